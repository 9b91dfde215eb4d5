// The explorer: filters every row of a run by the compact index beside the page, and searches one model's responses.
// Prompts, responses and labels enter the page through textContent only.
//
// index.js     the two files of the index, as codes by row
// filters.js   which rows pass, and the counts behind every choice
// responses.js a text in the responses of one model
// form.js      the filters, and the address that repeats them
// table.js     the rows found
// words.js     numbers and sentences

import { countsOf, scan } from "./filters.js";
import { FilterForm } from "./form.js";
import { openIndex } from "./index.js";
import { fetchFile, Responses } from "./responses.js";
import { bodyOf } from "./table.js";
import { adviceFor, hintFor, rowsInWords, whole } from "./words.js";

const PAGE_ROWS = 50;
const part = (name) => document.getElementById(`explorer-${name}`);
const root = document.getElementById("explorer");

let all, form, responses;
let body = document.querySelector("#explorer-table tbody");
let turn = 0; // of two refreshes under way only the later may draw

const say = (text) => { part("status").textContent = text; };

function advise(text, nothing) {
  part("advice").hidden = text === "";
  part("advice").textContent = text;
  part("clear").hidden = !nothing;
}

function sayFound(count) {
  const pages = Math.max(1, Math.ceil(count / PAGE_ROWS));
  const place = `${form.page + 1} of ${whole(pages)}`;
  part("rows").setAttribute("aria-label", pages > 1 ? `Rows found, page ${place}` : "Rows found");
  say(rowsInWords(count));
  part("page").textContent = `Page ${place}`;
  part("back").disabled = form.page === 0;
  part("next").disabled = form.page + 1 >= pages;
}

/** The hits of a text in the chosen model's responses, or null where there is no text or no model. */
async function hitsOf(text) {
  const model = form.model();
  if (!text || model < 0) return null;
  say("Loading the responses of this model …");
  return responses.find(model, text);
}

/** Draw this page's rows as soon as they are found; returns whether they are still wanted after that. */
async function drawFirst(want, hits, mine) {
  const found = scan(all, want, hits, (form.page + 1) * PAGE_ROWS).rows;
  form.page = Math.min(form.page, Math.max(0, Math.ceil(found.length / PAGE_ROWS) - 1));
  const shown = bodyOf(all, found.slice(form.page * PAGE_ROWS, (form.page + 1) * PAGE_ROWS), hits);
  body.replaceWith(shown);
  body = shown;
  await painted();
  return mine === turn;
}

/** Let the browser paint what is drawn before the rest is counted. */
const painted = () => new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 100); });

/** Count every row that passes, and what would pass by another choice. */
function countAll(want, hits, text) {
  const every = scan(all, want, hits, Infinity);
  const total = every.rows.length;
  const found = countsOf(all, every);
  sayFound(total);
  advise(adviceFor({ text, hits, found, total }, form), total === 0);
  form.showCounts(found);
  form.narrowChoices(form.field("attribute").value);
  form.hideEmpty(found.counts);
}

async function refresh() {
  const mine = ++turn;
  root.setAttribute("aria-busy", "true");
  const text = form.field("q").value.trim();
  const model = form.field("model").value;
  form.field("q").disabled = model === "";
  part("hint").textContent = hintFor(model);
  let hits;
  try {
    hits = await hitsOf(text);
  } catch (error) {
    say(`The responses could not be loaded (${error.message}).`);
    advise("", false);
    root.setAttribute("aria-busy", "false");
    return;
  }
  if (mine !== turn) return;
  const want = form.wanted();
  if (!await drawFirst(want, hits, mine)) return;
  countAll(want, hits, text);
  root.setAttribute("aria-busy", "false");
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
    if (part("clear").contains(document.activeElement)) form.field("model").focus();
    setTimeout(changed);
  });
  part("back").addEventListener("click", () => turnPage(-1));
  part("next").addEventListener("click", () => turnPage(1));
  addEventListener("popstate", () => { form.readAddress(); refresh(); });
}

async function start() {
  part("note").textContent = "Loading the index of all rows …";
  // Both at once; their addresses hold their hashes, so that they belong to each other.
  const [json, bytes] = [root.dataset.index, root.dataset.rows].map(fetchFile);
  all = openIndex(await (await json).json(), await (await bytes).arrayBuffer());
  form = new FilterForm(part("form"), all);
  responses = new Responses(all, { sums: root.dataset.sums, reader: root.dataset.parquet });
  form.readAddress();
  listen();
  root.hidden = false;
  part("note").hidden = true;
  await refresh();
}

start().catch((error) => {
  part("note").textContent =
    `The index of rows could not be loaded (${error.message}). The lists below lead to every row.`;
});
