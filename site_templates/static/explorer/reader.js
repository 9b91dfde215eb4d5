// One matched set, read from the published shard: where a run has too many models for a page of each set.
// Prompts, answers and votes enter the page through textContent only.

import { openIndex, placeOf } from "./index.js";
import { fetchFile, Responses } from "./responses.js";
import { visibleLines } from "./words.js";

const COLUMNS = [
  "receipt_id", "concept", "framing", "group", "repeat", "prompt", "swap_start", "swap_end", "response", "votes",
  "final_label", "value", "status",
];
const root = document.getElementById("reader");
const note = document.getElementById("reader-note");

function made(tag, text, css) {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  if (css) element.className = css;
  return element;
}

function link(text, address) {
  const element = made("a", text);
  element.href = address;
  return element;
}

/** The prompt as it was sent, its swapped words marked. Places count code points, not UTF-16 units. */
function promptOf(row) {
  const box = made("div", "", "raw");
  box.dir = "auto";
  const points = [...row.prompt];
  const [start, end] = [Number(row.swap_start), Number(row.swap_end)];
  const mark = made("mark", visibleLines(points.slice(start, end).join("")), "swap");
  box.append(visibleLines(points.slice(0, start).join("")), mark, visibleLines(points.slice(end).join("")));
  return box;
}

function voteOf(vote) {
  const said = vote.error ? `no vote: ${vote.error}` : vote.score === null ? vote.label : `${vote.label}, score ${vote.score}`;
  const item = made("li", `${vote.judge} (${vote.role}): ${said}. `);
  item.append(made("bdi", vote.evidence ? visibleLines(vote.evidence) : ""));
  return item;
}

function articleOf(row) {
  const article = document.createElement("article");
  article.id = `${row.framing}.${row.group}.${row.repeat}`;
  const head = document.createElement("h4");
  const value = row.value === null ? "" : `, value ${row.value}`;
  head.append(link(`Repeat ${row.repeat}`, `#${article.id}`), `: ${row.final_label ?? "no label"}${value} `,
    made("span", row.status, `tag st st-${row.status}`));
  const answer = made("div", row.response === null ? "No answer." : visibleLines(row.response), "raw");
  answer.dir = "auto";
  const votes = document.createElement("details");
  const list = document.createElement("ul");
  list.append(...row.votes.map(voteOf));
  const record = made("p", "Receipt ");
  record.append(made("code", row.receipt_id));
  votes.append(made("summary", "Votes and record"), list, record);
  article.append(head, answer, votes);
  return article;
}

/** The mean value of the scored rows, as a set's own page prints it. */
function meanOf(rows) {
  const values = rows.map((row) => row.value).filter((value) => value !== null);
  return values.length ? (values.reduce((sum, value) => sum + value, 0) / values.length).toFixed(2) : "–";
}

function sideOf(group, rows, repeats) {
  // Heading, prompt, mean and answers share the rows of the sides beside them, as on a set's own page.
  const side = made("section", "", `side span-${3 + repeats}`);
  side.append(made("h3", group.label));
  if (rows.length) side.append(promptOf(rows[0]), made("p", `Mean value ${meanOf(rows)}`, "mean"));
  side.append(...rows.map(articleOf));
  return side;
}

function framingOf(framing, groups, rows, repeats) {
  const section = document.createElement("section");
  const sides = made("div", "", "sides");
  sides.append(...groups.map((group) => sideOf(group, rows.filter((row) => row.group === group.id), repeats)));
  section.append(made("h2", `${framing} framing`), sides);
  return section;
}

/** The model and the concept that the address asks for, as places of the index. */
function asked(all) {
  const query = new URLSearchParams(location.search);
  const m = all.index.models.findIndex((model) => model.id === query.get("model"));
  const attribute = all.index.attributes.find((a) => a.concepts.some((c) => c.id === query.get("concept")));
  if (m < 0 || !attribute) throw new Error("the address names no set of this run");
  return { m, attribute, concept: attribute.concepts.find((c) => c.id === query.get("concept")) };
}

async function rowsOf(all, m, concept) {
  const responses = new Responses(all, { sums: root.dataset.sums, reader: root.dataset.parquet });
  const { readRows } = await import(new URL(root.dataset.parquet, location.href).href);
  const found = [];
  for (const address of await responses.files(m)) {
    const rows = await readRows(await (await fetchFile(address)).arrayBuffer(), { columns: COLUMNS });
    // A row of a withheld category stands in the file and in no page.
    found.push(...rows.filter((row) => row.concept === concept.id && all.columns[m].outcome[placeOf(all, row)] > 0));
  }
  return found.sort((a, b) => placeOf(all, a) - placeOf(all, b));
}

/** The sets before and after this one. */
function neighbors({ index }, model, concept) {
  const order = index.attributes.flatMap((attribute) => attribute.concepts);
  const place = order.indexOf(concept);
  const nav = made("nav", "", "pager");
  nav.setAttribute("aria-label", "Neighbors");
  for (const [other, words] of [[order[place - 1], (t) => `← ${t}`], [order[place + 1], (t) => `${t} →`]]) {
    if (other) nav.append(link(words(other.title), `?${new URLSearchParams({ model, concept: other.id })}`));
  }
  return nav;
}

async function start() {
  const [json, bytes] = [root.dataset.index, root.dataset.rows].map((address) => fetchFile(address));
  const all = openIndex(await (await json).json(), await (await bytes).arrayBuffer());
  const { m, attribute, concept } = asked(all);
  const model = all.index.models[m].id;
  const rows = await rowsOf(all, m, concept);
  document.getElementById("reader-title").textContent = concept.title;
  const where = document.getElementById("reader-where");
  where.replaceChildren(link(model, `../models/${model}.html`), ` · ${attribute.label} · ${concept.category} · `,
    link("this concept in every model", `../concepts/${concept.id}.html`));
  root.replaceChildren(...attribute.framings.map((framing) => framingOf(framing, attribute.groups,
    rows.filter((row) => row.framing === framing), all.index.repeats)), neighbors(all, model, concept));
  root.setAttribute("aria-busy", "false");
  note.textContent = rows.length ? "" : "No answer of this set is published.";
  note.hidden = rows.length > 0;
  if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

start().catch((error) => {
  root.setAttribute("aria-busy", "false");
  note.hidden = false;
  note.textContent = `The set could not be read (${error.message}). The published files hold every answer.`;
});
