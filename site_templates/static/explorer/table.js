// The rows found, as a table's body. Labels and responses enter it as text only.

import { visible } from "./words.js";

const WIDTH = 10; // columns
const BEFORE = 80; // characters of a response shown before a hit, and AFTER it
const AFTER = 120;
const MARKS = {
  disagree: "judges disagree", leak: "mask leak", truncated: "cut", mismatch: "verdict mismatch",
  filtered: "vendor’s filter",
};

function cell(row, text, css) {
  const made = row.insertCell();
  made.textContent = text;
  if (css) made.className = css;
}

/** A response around its hit, the hit marked. */
function excerptRow(place, { at, text: texts, lower, length }) {
  const row = document.createElement("tr");
  row.className = "excerpt";
  const inside = row.insertCell();
  inside.colSpan = WIDTH;
  inside.dir = "auto";
  const text = texts[place];
  const start = at.get(place);
  const end = start + length;
  // Lower-casing can change a text's length; then the place of the hit is only near, and no mark is drawn.
  const exact = text.length === lower[place].length;
  const from = Math.max(0, start - BEFORE);
  inside.append(from ? "… " : "", visible(text.slice(from, exact ? start : end)));
  if (exact) {
    const mark = document.createElement("mark");
    mark.textContent = visible(text.slice(start, end));
    inside.append(mark);
  }
  inside.append(visible(text.slice(end, end + AFTER)), end + AFTER < text.length ? " …" : "");
  return row;
}

/** An id that may wrap after an underscore, and is copied without a trace of it. */
function citedId(id) {
  const made = document.createElement("code");
  made.className = "cite";
  id.split(/(?<=_)/).forEach((part, i) => made.append(...(i ? [document.createElement("wbr"), part] : [part])));
  return made;
}

/** The row's heading: a link to its receipt. */
function headOf(title, concept, address) {
  const link = document.createElement("a");
  link.href = address;
  link.textContent = title;
  const head = document.createElement("th");
  head.scope = "row";
  head.append(link, document.createElement("br"), citedId(concept));
  return head;
}

function rowOf({ index, plan, columns }, m, p) {
  const outcome = index.outcomes[columns[m].outcome[p] - 1];
  const concept = plan.names.concept[plan.concept[p]];
  const framing = plan.names.framing[plan.framing[p]];
  const attribute = index.attributes[plan.attribute[p]];
  const group = attribute.groups.find((g) => `${attribute.id}.${g.id}` === plan.names.group[plan.group[p]]);
  const model = index.models[m].id;
  const address = `${model}/${concept}/index.html#${framing}.${group.id}.${plan.repeat[p]}`;
  const marks = index.flags.filter((_, k) => columns[m].flags[p] & (1 << k)).map((name) => MARKS[name]);
  const row = document.createElement("tr");
  row.append(headOf(plan.title[plan.concept[p]], concept, address));
  cell(row, model);
  cell(row, attribute.label);
  cell(row, group.label);
  cell(row, framing);
  cell(row, String(plan.repeat[p]), "n");
  cell(row, outcome.label === null ? "–" : outcome.label);
  cell(row, outcome.value === null ? "–" : String(outcome.value), "n");
  cell(row, outcome.status);
  cell(row, marks.join(", "));
  return row;
}

/** A body with the rows of these codes (model * size + place), each with its excerpt where a text is searched. */
export function bodyOf(all, codes, hits) {
  const made = document.createElement("tbody");
  for (const code of codes) {
    const p = code % all.index.size;
    made.append(rowOf(all, Math.floor(code / all.index.size), p));
    if (hits) made.append(excerptRow(p, hits));
  }
  return made;
}
