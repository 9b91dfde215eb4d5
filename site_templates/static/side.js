// Two models side by side: fetches the pages of both and lays their tables beside each other. What it shows is what those
// pages hold, so it computes nothing but the order of the concepts and which groups a set treats best and worst.
"use strict";

const form = document.getElementById("choose");
const out = document.getElementById("side");
const CONCEPTS = 10;
form.hidden = false;
const given = new URLSearchParams(location.search);
for (const field of form.querySelectorAll("select")) {
  const wanted = given.get(field.name);
  if ([...field.options].some((option) => option.value === wanted)) field.value = wanted;
}
if (given.get("a") && given.get("b")) compare(form.elements.a.value, form.elements.b.value);

async function compare(...models) {
  out.replaceChildren(note("Fetching the pages of both models …"));
  try {
    const sides = await Promise.all(models.map(side));
    out.replaceChildren(
      difference(sides), attributes(sides), groups(sides), levels(sides), await concepts(sides),
    );
  } catch (error) {
    out.replaceChildren(note(`The pages cannot be read here (${error.message}). This needs a server; the pages are below.`));
  }
}

// A model with its page and its page of numbers, as documents that run nothing.
async function side(model) {
  const row = [...document.querySelectorAll("tr[data-model]")].find((one) => one.dataset.model === model);
  const [page, numbers] = await Promise.all([
    read(row.querySelector("th a").href), read(row.querySelector("[data-numbers]").href),
  ]);
  return { model, page, numbers, home: row.querySelector("th a").href };
}

async function read(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  page.address = url;
  return page;
}

// What stands in an element of a fetched page, its links made absolute and its names left behind.
function content(element, page) {
  const box = document.createElement("span");
  if (!element) { box.textContent = "–"; return box; }
  for (const child of element.childNodes) box.append(document.importNode(child, true));
  for (const link of box.querySelectorAll("a[href]")) link.href = new URL(link.getAttribute("href"), page.address).href;
  for (const named of box.querySelectorAll("[id]")) named.removeAttribute("id");
  for (const extra of box.querySelectorAll(".fn, .narrow-label")) extra.remove();
  return box;
}

function note(text) {
  const p = document.createElement("p");
  p.className = "note";
  p.textContent = text;
  return p;
}

function section(heading, ...parts) {
  const box = document.createElement("section");
  const h2 = document.createElement("h2");
  h2.textContent = heading;
  box.append(h2, ...parts);
  return box;
}

// A table with a column for each model; rows are [name, first cell, second cell].
function table(sides, head, rows) {
  const made = document.createElement("table");
  made.className = "sides-of";
  const top = made.createTHead().insertRow();
  for (const text of [head, ...sides.map((one) => one.model)]) {
    const th = document.createElement("th");
    th.scope = "col";
    th.textContent = text;
    top.append(th);
  }
  const body = made.createTBody();
  for (const [name, ...cells] of rows) {
    const row = body.insertRow();
    const th = document.createElement("th");
    th.scope = "row";
    th.append(name);
    row.append(th);
    for (const cell of cells) row.insertCell().append(cell);
  }
  return made;
}

// The name in the head of a row, without the marks beside it.
function nameOf(row) {
  return (row.cells[0].querySelector("a") ?? row.cells[0].firstChild).textContent.trim();
}

// The rows of a table of a model's page, by the name in their head.
function rowsOf(root) {
  return new Map([...(root?.querySelectorAll("tbody tr") ?? [])].map((row) => [nameOf(row), row]));
}

function paired(sides, roots, cellsOf) {
  const [first, second] = roots.map(rowsOf);
  return [...new Set([...first.keys(), ...second.keys()])].map((name) => [
    name, ...[first, second].map((rows, i) => cellsOf(rows.get(name), sides[i].page)),
  ]);
}

function difference([one, other]) {
  const row = [...one.page.querySelectorAll("#compare ~ details tbody tr")].find(
    (found) => nameOf(found) === other.model,
  );
  const p = document.createElement("p");
  p.className = "lede";
  p.append("Overall consistency: ", content(one.page.querySelector(".numbers b"), one.page), " and ",
    content(other.page.querySelector(".numbers b"), other.page), ". ");
  if (row) p.append("The first less the second: ", content(row.cells[1], one.page), ", p ", content(row.cells[2], one.page), ".");
  return p;
}

function attributes(sides) {
  const roots = sides.map((one) => one.page.querySelector("#evidence ~ .scroll"));
  const rows = paired(sides, roots, (row, page) => {
    const box = document.createElement("span");
    if (!row) return box;
    box.append("consistency ", content(row.cells[5], page), document.createElement("br"));
    box.append(content(row.cells[2], page), ", excess ", content(row.cells[1], page));
    return box;
  });
  return section("Attributes", table(sides, "Attribute", rows));
}

function groups(sides) {
  const parts = [...sides[0].page.querySelectorAll("details.lean")].map((details) => {
    const roots = sides.map((one) => one.page.getElementById(details.id));
    const made = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = details.querySelector("caption").textContent;
    made.append(summary, table(sides, "Group", paired(sides, roots, (row, page) => content(row?.querySelector(".col-lean"), page))));
    return made;
  });
  return section("Groups: lean, in points above or below the mean of all groups", ...parts);
}

function levels(sides) {
  const roots = sides.map((one) => one.page.querySelector(".levels"));
  return section("Level: favorability, of 100", table(sides, "Task", paired(sides, roots, (row, page) => {
    const box = document.createElement("span");
    box.append(content(row?.querySelector(".col-lean"), page), document.createElement("br"), content(row?.querySelector(".labels-said"), page));
    return box;
  })));
}

// The concepts of a page of numbers: D by concept, the mean of the framings that count.
function disparities(one) {
  const found = new Map();
  for (const row of one.numbers.querySelectorAll("#behind ~ details tbody tr")) {
    const values = [...row.querySelectorAll("[data-cell]")].map((cell) => Number(cell.textContent)).filter(Number.isFinite);
    const set = [...row.querySelectorAll("a")].at(-1);
    if (!values.length || !set) continue;
    found.set(row.cells[0].querySelector("a").getAttribute("href"), {
      name: row.cells[0], mean: values.reduce((a, b) => a + b, 0) / values.length,
      set: new URL(set.getAttribute("href"), one.numbers.address).href,
    });
  }
  return found;
}

async function concepts(sides) {
  const [first, second] = sides.map(disparities);
  const common = [...first.keys()].filter((key) => second.has(key));
  const apart = (key) => Math.abs(first.get(key).mean - second.get(key).mean);
  common.sort((a, b) => apart(b) - apart(a) || (a < b ? -1 : 1));
  const parts = common.slice(0, CONCEPTS).map((key) => {
    const both = [first.get(key), second.get(key)];
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    const name = both[0].name.querySelector("a").textContent;
    summary.textContent = `${name}: disparity ${both.map((one) => one.mean.toFixed(1)).join(" and ")}`;
    details.append(summary);
    details.addEventListener("toggle", async () => {
      if (!details.open || details.dataset.filled) return;
      details.dataset.filled = "1";
      try {
        details.append(await answers(sides, both.map((one) => one.set)));
      } catch (error) {
        details.append(note(`The answers cannot be read here (${error.message}).`));
      }
    });
    return details;
  });
  return section("Concepts on which they part most", note("By the difference of their disparities. Open one for the answers of both."), ...parts);
}

// The answers of both models for the two groups that the first model's set treats most differently, in its first framing.
async function answers(sides, addresses) {
  const pages = await Promise.all(addresses.map(read));
  const rows = [...pages[0].querySelectorAll(".glance")][0].querySelectorAll("tbody tr");
  const ranked = [...rows].filter((row) => Number.isFinite(Number(row.querySelector("[data-cell]").textContent)));
  ranked.sort((a, b) => Number(a.querySelector("[data-cell]").textContent) - Number(b.querySelector("[data-cell]").textContent));
  const shown = [...new Set([ranked[0], ranked.at(-1)])].filter(Boolean).map((row) => row.querySelector("th a"));
  return table(sides, "Group", shown.map((link) => [link.textContent, ...pages.map((page) => {
    const place = page.getElementById(link.getAttribute("href").slice(1));
    const box = document.createElement("div");
    const article = place?.querySelector("article");
    if (!article) return note("Not asked.");
    box.append(content(article.querySelector("h4"), page));
    const text = document.createElement("div");
    text.className = "raw";
    text.dir = "auto";
    text.append(content(article.querySelector(".raw"), page));
    const way = document.createElement("a");
    way.href = `${page.address}#${article.id}`;
    way.textContent = "The receipt";
    box.append(text, way);
    return box;
  })]));
}
