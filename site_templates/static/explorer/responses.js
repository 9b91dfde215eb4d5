// Searches the responses of one model: its published shard, read in the browser.

import { placeOf } from "./index.js";

const COLUMNS = ["concept", "framing", "group", "repeat", "response"];

/** Fetch a file; an answer other than success is an error that names the address. */
export async function fetchFile(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer;
}

export class Responses {
  #all;
  #sums;
  #reader;
  #loaded = null; // of one model: { model, text: string[] by place, lower: string[] by place }

  /** `sums` is the address of SHA256SUMS, which lists a shard's files; `reader` that of the Parquet reader. */
  constructor(all, { sums, reader }) {
    this.#all = all;
    this.#sums = new URL(sums, location.href);
    this.#reader = new URL(reader, location.href);
  }

  async #shardFiles(shard) {
    const sums = await (await fetchFile(this.#sums.href)).text();
    const names = sums.split("\n").map((line) => line.slice(66).trim()); // after the 64 digits and two spaces
    const mine = names.filter((n) => n === `receipts/${shard}.parquet`
      || (n.startsWith(`receipts/${shard}__`) && n.endsWith(".parquet")));
    return mine.map((name) => new URL(name, this.#sums).href);
  }

  async #load(m) {
    if (this.#loaded?.model === m) return this.#loaded;
    const { readRows } = await import(this.#reader.href);
    const loaded = { model: m, text: [], lower: [] };
    for (const address of await this.#shardFiles(this.#all.index.models[m].shard)) {
      const rows = await readRows(await (await fetchFile(address)).arrayBuffer(), { columns: COLUMNS });
      for (const row of rows) {
        const place = placeOf(this.#all, row);
        if (place < 0 || row.response === null) continue;
        loaded.text[place] = row.response;
        loaded.lower[place] = row.response.toLowerCase();
      }
    }
    this.#loaded = loaded;
    return loaded;
  }

  /** Where model `m` says `text`: the texts, and `at`, a Map from the place of a row to the hit's place in its text. */
  async find(m, text) {
    const loaded = await this.#load(m);
    const needle = text.toLowerCase();
    const at = new Map();
    loaded.lower.forEach((response, place) => {
      const found = response.indexOf(needle);
      if (found >= 0) at.set(place, found);
    });
    return { ...loaded, at, length: text.length };
  }
}
