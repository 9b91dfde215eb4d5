// The explorer: filters every row of a run by the compact index beside the page, shows the answers and searches them.
// Prompts, answers and labels enter the page through textContent only.
//
// index.js     the two files of the index, as codes by row
// filters.js   which rows pass, and the counts behind every choice
// apart.js     the prompts on which models part most
// responses.js the answers, and a text in them
// form.js      the filters, and the address that repeats them
// table.js     the rows found
// words.js     numbers and sentences

import { partMost } from "./apart.js";
import { countsOf, scan } from "./filters.js";
import { FilterForm } from "./form.js";
import { openIndex } from "./index.js";
import { fetchFile, MOST_HITS, Responses } from "./responses.js";
import { addressOf, bodyOf, fillAnswers } from "./table.js";
import { adviceFor, rowsInWords, searchedInWords, shortfallOf, whole } from "./words.js";

const PAGE_ROWS = 50;
const FEW_FILES = 3; // answers of so many models are loaded without being asked for
const part = (name) => document.getElementById(`explorer-${name}`);
const root = document.getElementById("explorer");

let all, form, responses;
let body = document.querySelector("#explorer-table tbody");
let turn = 0; // of two refreshes under way only the later may draw
let search = new AbortController();
let passing = []; // the rows found, of all pages

const say = (text) => { part("status").textContent = text; };
const modelOf = (code) => Math.floor(code / all.index.size);

function advise(text, nothing) {
  part("advice").hidden = text === "";
  part("advice").textContent = text;
  part("clear").hidden = !nothing;
}

function sayFound(count, hits) {
  const pages = Math.max(1, Math.ceil(count / PAGE_ROWS));
  const place = `${form.page + 1} of ${whole(pages)}`;
  part("rows").setAttribute("aria-label", pages > 1 ? `Rows found, page ${place}` : "Rows found");
  say(rowsInWords(count) + shortfallOf(hits, MOST_HITS));
  part("page").textContent = `Page ${place}`;
  part("back").disabled = form.page === 0;
  part("next").disabled = form.page + 1 >= pages;
  part("any").disabled = count === 0;
}

/** The hits of a text in the answers, drawn as they are found; null where there is no text. */
async function hitsOf(text, want, mine) {
  if (!text) return null;
  search = new AbortController();
  part("stop").hidden = false;
  let drawn = 0;
  const progress = async (hits, m) => {
    if (mine !== turn) return;
    say(searchedInWords(hits, all.index.models[m].id));
    if (hits.at.size > drawn && drawn < PAGE_ROWS) draw(scan(all, want, hits, PAGE_ROWS).rows, hits);
    drawn = hits.at.size;
    await painted();
  };
  try {
    return await responses.find(want.model, text, { signal: search.signal, progress });
  } finally {
    if (mine === turn) part("stop").hidden = true;
  }
}

const shownOf = (rows) => rows.slice(form.page * PAGE_ROWS, (form.page + 1) * PAGE_ROWS);

function draw(codes, hits) {
  const lines = new Set(codes.map(modelOf)).size <= FEW_FILES;
  const made = bodyOf(all, codes, { hits, lines });
  body.replaceWith(made);
  body = made;
  root.dataset.drawn = "";
}

/** Draw this page's rows as soon as they are found. */
function drawFirst(want, hits) {
  const found = scan(all, want, hits, (form.page + 1) * PAGE_ROWS).rows;
  form.page = Math.min(form.page, Math.max(0, Math.ceil(found.length / PAGE_ROWS) - 1));
  draw(shownOf(found), hits);
}

/** Let the browser paint what is drawn before the rest is counted. */
const painted = () => new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 100); });

/** Count every row that passes, and what would pass by another choice; returns the rows of all pages in their order. */
function countAll(want, hits, text) {
  const every = scan(all, want, hits, Infinity);
  const found = countsOf(all, every);
  const apart = form.field("order").value === "apart";
  passing = apart ? partMost(all, every.rows) : every.rows;
  const total = passing.length;
  form.page = Math.min(form.page, Math.max(0, Math.ceil(total / PAGE_ROWS) - 1));
  sayFound(total, hits);
  const alone = apart && every.rows.length > 0 && total === 0;
  const advice = alone ? "Of these rows no two models answered one prompt differently. Set Model to any."
    : adviceFor({ text, hits, found, total }, form);
  advise(advice, total === 0);
  form.showCounts(found);
  form.narrowChoices(form.field("attribute").value);
  form.hideEmpty(found.counts);
  if (apart) draw(shownOf(passing), hits);
}

/** Fill in the answers of the rows shown; those of many models only when asked for. */
async function showAnswers(codes, mine) {
  const models = new Set(codes.map(modelOf));
  const many = models.size > FEW_FILES && !body.querySelector(".preview");
  part("answers").hidden = !many;
  part("answers").textContent = `Show the answers, from the files of ${models.size} models`;
  if (many) return;
  try {
    const texts = new Map();
    for (const m of models) texts.set(m, await responses.textsOf(m, search.signal));
    if (mine === turn) fillAnswers(body, codes.map((code) => texts.get(modelOf(code))[code % all.index.size] ?? null));
  } catch (error) {
    if (!search.signal.aborted) say(`${part("status").textContent}. The answers could not be loaded (${error.message}).`);
  }
}

async function refresh() {
  const mine = ++turn;
  search.abort();
  root.setAttribute("aria-busy", "true");
  part("answers").hidden = true;
  const chosen = form.chosenWords();
  part("chosen").textContent = chosen && `: ${chosen}`;
  const text = form.field("q").value.trim();
  const want = form.wanted();
  let hits;
  try {
    hits = await hitsOf(text, want, mine);
  } catch (error) {
    if (mine !== turn) return;
    say(`The answers could not be loaded (${error.message}).`);
    advise("", false);
    root.setAttribute("aria-busy", "false");
    return;
  }
  if (mine !== turn) return;
  if (form.field("order").value !== "apart") {
    drawFirst(want, hits);
    await painted();
    if (mine !== turn) return;
  }
  countAll(want, hits, text);
  root.setAttribute("aria-busy", "false");
  if (hits) return;
  search = new AbortController();
  showAnswers(shownOf(passing), mine);
}

function changed() {
  form.page = 0;
  form.writeAddress();
  refresh();
}

/** Who turns a page reads on at its top; the button may have been switched off under the finger. */
async function turnPage(step) {
  form.page += step;
  form.writeAddress();
  await refresh();
  part("rows").focus({ preventScroll: true });
  part("rows").scrollIntoView({ block: "start" });
}

function goToAny() {
  const code = passing[Math.floor(Math.random() * passing.length)];
  location.assign(addressOf(all, modelOf(code), code % all.index.size));
}

/** Make room for the answers of many models, and load them. */
function askForAnswers() {
  const codes = shownOf(passing);
  const made = bodyOf(all, codes, { hits: null, lines: true });
  body.replaceWith(made);
  body = made;
  part("rows").focus({ preventScroll: true });
  showAnswers(codes, turn);
}

function listen() {
  const element = part("form");
  for (const input of element.querySelectorAll("select, input[type=checkbox]")) {
    input.addEventListener("change", () => {
      if (input.name === "attribute") for (const name of ["concept", "group"]) form.field(name).value = "";
      changed();
    });
  }
  element.addEventListener("submit", (event) => { event.preventDefault(); changed(); });
  element.addEventListener("reset", () => {
    // The button below the table's head goes away with what it cleared: the focus must not go with it.
    if (part("clear").contains(document.activeElement)) form.field("q").focus();
    setTimeout(changed);
  });
  part("stop").addEventListener("click", () => { search.abort(); form.field("q").focus(); });
  part("any").addEventListener("click", goToAny);
  part("answers").addEventListener("click", askForAnswers);
  part("back").addEventListener("click", () => turnPage(-1));
  part("next").addEventListener("click", () => turnPage(1));
  addEventListener("popstate", () => { form.readAddress(); refresh(); });
}

async function start() {
  // Both at once; their addresses hold their hashes, so that they belong to each other.
  const [json, bytes] = [root.dataset.index, root.dataset.rows].map((address) => fetchFile(address));
  all = openIndex(await (await json).json(), await (await bytes).arrayBuffer());
  form = new FilterForm(part("form"), all);
  responses = new Responses(all, { sums: root.dataset.sums, reader: root.dataset.parquet });
  form.readAddress();
  listen();
  await refresh();
}

start().catch((error) => {
  root.hidden = true;
  part("note").hidden = false;
  part("note").textContent =
    `The index of rows could not be loaded (${error.message}). The lists below lead to every row.`;
});
