// The answers of one model after another: its published shard, read in the browser.

import { placeOf } from "./index.js";

const COLUMNS = ["concept", "framing", "group", "repeat", "response"];
const KEPT = 8; // models whose answers stay in memory
const BEFORE = 80; // characters of an answer shown before a hit, and AFTER it
const AFTER = 120;
export const MOST_HITS = 20000; // a search ends here: nobody reads on, and memory has an end

/** Fetch a file; an answer other than success is an error that names the address. */
export async function fetchFile(address, options) {
  const answer = await fetch(address, options);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer;
}

/** An answer around its hit: before, the hit itself, after. */
function excerptOf(text, lower, start, length) {
  // Lower-casing can change a text's length; then the place of the hit is only near, and nothing is marked.
  const exact = text.length === lower.length;
  const end = start + length;
  const from = Math.max(0, start - BEFORE);
  return {
    before: (from ? "… " : "") + text.slice(from, exact ? start : end),
    hit: exact ? text.slice(start, end) : "",
    after: text.slice(end, end + AFTER) + (end + AFTER < text.length ? " …" : ""),
  };
}

export class Responses {
  #all;
  #sums;
  #reader;
  #names = null; // the files of SHA256SUMS
  #texts = new Map(); // of the models read last: texts by place
  #last = null; // the last search that was not stopped: { text, model, hits }

  /** `sums` is the address of SHA256SUMS, which lists a shard's files; `reader` that of the Parquet reader. */
  constructor(all, { sums, reader }) {
    this.#all = all;
    this.#sums = new URL(sums, location.href);
    this.#reader = new URL(reader, location.href);
  }

  /** The addresses of a model's files, one as a rule. */
  async files(m) {
    const { shard } = this.#all.index.models[m];
    if (!this.#names) {
      const sums = await (await fetchFile(this.#sums.href)).text();
      this.#names = sums.split("\n").map((line) => line.slice(66).trim()); // after the 64 digits and two spaces
    }
    const mine = this.#names.filter((n) => n === `receipts/${shard}.parquet`
      || (n.startsWith(`receipts/${shard}__`) && n.endsWith(".parquet")));
    return mine.map((name) => new URL(name, this.#sums).href);
  }

  /** The answers of model `m` by place; a row without one has none here. */
  async textsOf(m, signal) {
    const known = this.#texts.get(m);
    if (known) return known;
    const { readRows } = await import(this.#reader.href);
    const texts = [];
    for (const address of await this.files(m)) {
      const rows = await readRows(await (await fetchFile(address, { signal })).arrayBuffer(), { columns: COLUMNS });
      for (const row of rows) {
        const place = placeOf(this.#all, row);
        if (place >= 0 && row.response !== null) texts[place] = row.response;
      }
    }
    if (this.#texts.size >= KEPT) this.#texts.delete(this.#texts.keys().next().value);
    this.#texts.set(m, texts);
    return texts;
  }

  /**
   * Which answers of model `model`, or of all models where it is -1, hold `text`: `at`, a Map from the row (model *
   * size + place) to the answer around the hit; `searched` of `of` models were read. `progress` is called before each
   * model; the search ends early, with what it has, when `signal` says so or there are MOST_HITS.
   */
  async find(model, text, { signal, progress }) {
    if (this.#last?.text === text && (this.#last.model === model || this.#last.model === -1)) return this.#last.hits;
    const { index } = this.#all;
    const models = model < 0 ? [...index.models.keys()] : [model];
    const hits = { at: new Map(), searched: 0, of: models.length, full: false };
    for (const m of models) {
      await progress(hits, m);
      let texts;
      try {
        texts = await this.textsOf(m, signal);
      } catch (error) {
        if (signal.aborted) return hits;
        throw error;
      }
      this.#search(hits, m, texts, text);
      hits.searched++;
      if (hits.full || signal.aborted) return hits;
    }
    this.#last = { text, model, hits };
    return hits;
  }

  #search(hits, m, texts, text) {
    const needle = text.toLowerCase();
    texts.forEach((answer, place) => {
      const lower = answer.toLowerCase();
      const start = lower.indexOf(needle);
      if (start < 0 || hits.full) return;
      hits.at.set(m * this.#all.index.size + place, excerptOf(answer, lower, start, text.length));
      hits.full = hits.at.size >= MOST_HITS;
    });
  }
}
