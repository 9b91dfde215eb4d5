// The rows found, as a table's body. Labels and responses enter it as text only.

import { visible } from "./words.js";

const WIDTH = 10; // columns
const SHOWN = 240; // characters of an answer put into its line; a line shows fewer
const MARKS = {
  disagree: "judges disagree", leak: "mask leak", truncated: "cut", mismatch: "verdict mismatch",
  filtered: "vendor’s filter",
};

function cell(row, text, css) {
  const made = row.insertCell();
  made.textContent = text;
  if (css) made.className = css;
}

/** A row below a row of the table, as wide as it. */
function below(css) {
  const row = document.createElement("tr");
  row.className = css;
  const inside = row.insertCell();
  inside.colSpan = WIDTH;
  inside.dir = "auto";
  return { row, inside };
}

/** An answer around its hit, the hit marked. */
function excerptRow({ before, hit, after }) {
  const { row, inside } = below("excerpt");
  const mark = document.createElement("mark");
  mark.textContent = visible(hit);
  inside.append(visible(before), ...(hit ? [mark] : []), visible(after));
  return row;
}

/** Fill the lines that were kept for answers: `answers` in the order of the rows, null for a row without one. */
export function fillAnswers(body, answers) {
  [...body.querySelectorAll(".preview td")].forEach((inside, i) => {
    inside.textContent = answers[i] === null ? "no answer" : visible(answers[i].slice(0, SHOWN));
  });
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

/** The address of a row's receipt, from the explorer's page. */
export function addressOf({ index, plan }, m, p) {
  const attribute = index.attributes[plan.attribute[p]];
  const group = plan.names.group[plan.group[p]].slice(attribute.id.length + 1);
  const anchor = `${plan.names.framing[plan.framing[p]]}.${group}.${plan.repeat[p]}`;
  const [model, concept] = [index.models[m].id, plan.names.concept[plan.concept[p]]];
  // Without pages of sets, one page reads them from the files.
  const page = index.reader ? `${index.reader}?${new URLSearchParams({ model, concept })}` : `${model}/${concept}/index.html`;
  return `${page}#${anchor}`;
}

function rowOf(all, m, p) {
  const { index, plan, columns } = all;
  const outcome = index.outcomes[columns[m].outcome[p] - 1];
  const concept = plan.names.concept[plan.concept[p]];
  const framing = plan.names.framing[plan.framing[p]];
  const attribute = index.attributes[plan.attribute[p]];
  const group = attribute.groups.find((g) => `${attribute.id}.${g.id}` === plan.names.group[plan.group[p]]);
  const model = index.models[m].id;
  const marks = index.flags.filter((_, k) => columns[m].flags[p] & (1 << k)).map((name) => MARKS[name]);
  const row = document.createElement("tr");
  row.append(headOf(plan.title[plan.concept[p]], concept, addressOf(all, m, p)));
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

/** A body with the rows of these codes (model * size + place), each with its excerpt, or with a line for its answer. */
export function bodyOf(all, codes, { hits, lines }) {
  const made = document.createElement("tbody");
  for (const code of codes) {
    made.append(rowOf(all, Math.floor(code / all.index.size), code % all.index.size));
    if (hits) made.append(excerptRow(hits.at.get(code)));
    else if (lines) made.append(below("preview").row);
  }
  return made;
}
