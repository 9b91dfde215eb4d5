// The review sheet: shows one answer at a time, keeps the labels in this browser, and saves them as a CSV file.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const items = data.items;
const storageKey = `aibiasbench-audit-${data.run}-${data.key}`;
const el = (id) => document.getElementById(id);
const known = new Set(items.map((item) => item.id));
let labels = {};
let at = 0;
let kept = true;

// Control, format and bidi characters are shown by their code, so that none of them can hide or turn text.
const unseen = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function fill(box, text) {
  box.replaceChildren();
  let from = 0;
  for (const match of text.matchAll(unseen)) {
    box.append(text.slice(from, match.index));
    const mark = document.createElement("span");
    mark.className = "hidden-mark";
    mark.textContent = `U+${match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
    box.append(mark);
    from = match.index + match[0].length;
  }
  box.append(text.slice(from));
}

function load() {
  try {
    const stored = JSON.parse(localStorage.getItem(storageKey) || "{}");
    for (const [id, label] of Object.entries(stored.labels || {})) {
      if (known.has(id) && typeof label === "string") labels[id] = label;
    }
    if (Number.isInteger(stored.at) && stored.at >= 0 && stored.at < items.length) at = stored.at;
  } catch {
    kept = false;
  }
}

function keep() {
  try {
    localStorage.setItem(storageKey, JSON.stringify({ labels, at }));
  } catch {
    kept = false;
  }
}

function csv() {
  const ids = items.map((item) => item.id).filter((id) => labels[id] !== undefined).sort();
  return ["receipt_id,label", ...ids.map((id) => `r${id},${labels[id]}`)].join("\n") + "\n";
}

function choose(label) {
  labels[items[at].id] = label;
  keep();
  show();
}

function choiceButton(label, number) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.dataset.label = label;
  button.title = `Key ${number}`;
  button.setAttribute("aria-pressed", String(labels[items[at].id] === label));
  button.addEventListener("click", () => choose(label));
  return button;
}

function scoreInput() {
  const given = labels[items[at].id];
  const input = document.createElement("input");
  input.type = "number";
  input.min = "0";
  input.max = "100";
  input.step = "1";
  input.inputMode = "numeric";
  input.id = "score";
  input.setAttribute("aria-label", "Score from 0 to 100");
  input.value = given !== undefined && given !== "REFUSAL" ? given : "";
  const problem = document.createElement("p");
  problem.id = "problem";
  problem.setAttribute("role", "alert");
  input.addEventListener("change", () => {
    const text = input.value.trim();
    if (/^\d{1,3}$/.test(text) && Number(text) <= 100) {
      choose(String(Number(text)));
    } else {
      delete labels[items[at].id];
      keep();
      state();
      problem.textContent = "Use a whole number from 0 to 100.";
    }
  });
  return [input, problem];
}

function state() {
  const done = items.filter((item) => labels[item.id] !== undefined).length;
  el("bar").max = items.length;
  el("bar").value = done;
  const where = kept ? "Kept in this browser." : "This browser keeps nothing: save the CSV before you close the page.";
  el("state").textContent = `${done} of ${items.length} rows labeled. ${where}`;
}

function show() {
  const item = items[at];
  const rubric = data.rubrics[item.rubric];
  el("place").textContent = `Row ${at + 1} of ${items.length}, rubric ${item.rubric}`;
  fill(el("prompt"), item.prompt);
  fill(el("response"), item.response);
  fill(el("rules"), rubric.rules);
  const [input, problem] = rubric.score ? scoreInput() : [];
  const buttons = rubric.labels.map((label, i) => choiceButton(label, i + 1));
  el("choices").replaceChildren(...(input ? [input] : []), ...buttons, ...(problem ? [problem] : []));
  el("back").disabled = at === 0;
  el("next").disabled = at === items.length - 1;
  state();
}

function go(to) {
  at = Math.min(items.length - 1, Math.max(0, to));
  keep();
  show();
  el("response").scrollTop = 0;
  el("row").focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function nextOpen() {
  for (let step = 1; step <= items.length; step += 1) {
    const to = (at + step) % items.length;
    if (labels[items[to].id] === undefined) return go(to);
  }
  el("state").textContent = `All ${items.length} rows are labeled. Save the CSV.`;
}

el("back").addEventListener("click", () => go(at - 1));
el("next").addEventListener("click", () => go(at + 1));
el("open").addEventListener("click", nextOpen);
el("save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = `${data.run}-labels.csv`;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
});
el("copy").addEventListener("click", () => {
  el("csv").hidden = false;
  el("csv").value = csv();
  el("csv").focus();
  el("csv").select();
});
el("clear").addEventListener("click", () => {
  if (!window.confirm("Remove all labels from this browser?")) return;
  labels = {};
  go(0);
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
  const rubric = data.rubrics[items[at].rubric];
  const number = Number(event.key);
  if (event.key === "ArrowLeft") go(at - 1);
  else if (event.key === "ArrowRight") go(at + 1);
  else if (number >= 1 && number <= rubric.labels.length) choose(rubric.labels[number - 1]);
});

el("plain").remove();
if (data.simulated) {
  el("notice").hidden = false;
  el("notice").textContent = "Simulated run: these answers were made up by a program. Nothing here is about a real model.";
}
load();
show();
