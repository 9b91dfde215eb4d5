// Recomputes a model's published numbers from the published files and holds both side by side.

import { fetchChecked } from "./files.js";
import { recompute } from "./statistics.js";

export const TOLERANCE = 1e-9; // of a point: numbers are compared in full, not as they are rounded on the page
export const PARTS = ["estimate", "ci_low", "ci_high"];

const COLUMNS = ["attribute", "concept", "category", "framing", "group", "two_sided", "status", "value"];
const SCORES = /^scores(__.+)?\.parquet$/; // a large table lies in several files
const WEIGHTS = /^bootstrap_weights\/(.+)\.parquet$/;

/** Fetch and hash what the check reads of one model: {manifest, rows, scores, weights}; `files` notes every hash. */
async function fetchAll({ manifestUrl, manifestSha256, model, readerUrl }, files) {
  const manifestBytes = await fetchChecked(manifestUrl, "manifest.json", manifestSha256, files);
  const manifest = JSON.parse(new TextDecoder().decode(manifestBytes));
  const hashes = new Map(manifest.files.map((file) => [file.name, file.sha256]));
  const { readRows } = await import(readerUrl);
  const read = async (name, columns) => {
    const bytes = await fetchChecked(manifestUrl, name, hashes.get(name), files);
    return readRows(bytes, { columns });
  };
  const shards = manifest.receipts.find((item) => item.model === model).files;
  const names = [...hashes.keys()];
  const [rows, scores, weights] = await Promise.all([
    Promise.all(shards.map((name) => read(name, COLUMNS))),
    Promise.all(names.filter((name) => SCORES.test(name)).map((name) => read(name))),
    Promise.all(names.filter((name) => WEIGHTS.test(name)).map(async (name) => [WEIGHTS.exec(name)[1], await read(name)])),
  ]);
  return { manifest, rows: rows.flat(), scores: scores.flat(), weights };
}

/** Fetch, hash and recompute; returns {files, results}, one result an attribute. */
export async function check(options) {
  const files = [];
  const { manifest, rows, scores, weights } = await fetchAll(options, files);
  const recomputed = recompute(rows, weights, manifest.withheld, manifest.roles.demographic);
  const published = scores.filter((row) => row.model === options.model && row.metric === "consistency");
  const listed = new Set(published.map((row) => row.attribute));
  const unlisted = [...recomputed.keys()].filter((attribute) => !listed.has(attribute));
  const expected = [...published, ...unlisted.map((attribute) => ({ attribute }))];
  return { files, results: expected.map((row) => compare(row, recomputed.get(row.attribute))) };
}

/** Hold one published row against what was recomputed. */
function compare(row, found) {
  const mine = found ?? { estimate: null, ci_low: null, ci_high: null };
  const same = (a, b) => {
    if ((a ?? null) === null || (b ?? null) === null) return (a ?? null) === (b ?? null);
    return Math.abs(a - b) <= TOLERANCE;
  };
  const ok = PARTS.every((part) => same(row[part], mine[part]));
  return { attribute: row.attribute, published: row, recomputed: mine, ok };
}
