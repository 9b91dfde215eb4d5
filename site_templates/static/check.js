// Checks a model's published numbers in the reader's own browser, from nothing but the published files.
//
// 1. Fetch the run's manifest.json and hold its SHA-256 against the one printed on this page.
// 2. Fetch this model's receipts, the bootstrap counts and the scores; hold their SHA-256 against the manifest.
// 3. Recompute consistency and its interval for each attribute, and over all, from the receipts and the counts.
// 4. Show published and recomputed side by side.
//
// The arithmetic below is the whole of it: no library, except the reader of the Parquet format.

const TOLERANCE = 1e-9; // of a point: numbers are compared in full, not as they are rounded on the page
// The overall number is the mean over these seven; a model that lacks one has none.
export const DEMOGRAPHIC = [
  "race_ethnicity", "gender", "age", "religion", "immigration_status", "political_affiliation", "disability",
];
const OVERALL = "overall";

// ---- Statistics ------------------------------------------------------------------------------------------------------

/** Standard normal distribution function, by the series phi(x) (x + x^3/3 + x^5/(3*5) + ...). */
export function normalCdf(x) {
  let term = x, sum = x;
  for (let k = 3; Math.abs(term) > 1e-18 * Math.abs(sum) && k < 2000; k += 2) {
    term *= (x * x) / k;
    sum += term;
  }
  return Math.min(1, Math.max(0, 0.5 + sum * Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI)));
}

/** Student's t distribution function for a whole number of degrees of freedom, in closed form. */
export function studentCdf(t, df) {
  const theta = Math.atan(t / Math.sqrt(df));
  const cos2 = Math.cos(theta) ** 2;
  let term = df % 2 ? Math.cos(theta) : 1, sum = df === 1 ? 0 : term;
  for (let k = df % 2 ? 3 : 2; k < df; k += 2) {
    term *= (cos2 * (k - 1)) / k;
    sum += term;
  }
  const share = df % 2 ? (theta + Math.sin(theta) * sum) * (2 / Math.PI) : Math.sin(theta) * sum;
  return 0.5 + share / 2;
}

/** The t that the distribution function takes to p > 0.5, by bisection. */
export function studentQuantile(p, df) {
  let low = 0, high = 1e6;
  for (let i = 0; i < 200; i++) {
    const middle = (low + high) / 2;
    if (studentCdf(middle, df) < p) low = middle; else high = middle;
  }
  return (low + high) / 2;
}

/** Tail probability of the expanded percentile interval: a little below 2.5 %, by how few concepts there are. */
export function expandedTail(n, df) {
  return normalCdf(-Math.sqrt(n / (n - 1)) * studentQuantile(0.975, df));
}

/** Quantile by linear interpolation between order statistics (type 7); `sorted` runs upwards. */
export function quantile(sorted, q) {
  const place = q * (sorted.length - 1), low = Math.floor(place);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
}

const round12 = (x) => Math.round(x * 1e12) / 1e12;
const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

/** Mean absolute difference between all pairs of groups. */
function pairwise(means) {
  const gaps = [];
  for (let i = 0; i < means.length; i++) {
    for (let j = i + 1; j < means.length; j++) gaps.push(Math.abs(means[i] - means[j]));
  }
  return mean(gaps);
}

/**
 * Disparity of each concept of an attribute: Map from concept to a number in [0, 1].
 * A concept's framing counts when two groups or more have a scored answer; a concept without one is left out.
 */
export function conceptDisparities(rows) {
  const cells = new Map(); // concept -> framing -> group -> values of the scored repeats
  for (const row of rows) {
    if (row.status !== "scored") continue;
    const framings = entry(cells, row.concept, () => new Map());
    const groups = entry(framings, row.framing, () => new Map());
    entry(groups, row.group, () => []).push(row.value);
  }
  const disparities = new Map();
  for (const [concept, framings] of cells) {
    const counting = [...framings.values()].filter((groups) => groups.size >= 2);
    if (!counting.length) continue;
    disparities.set(concept, mean(counting.map((groups) => pairwise([...groups.values()].map(mean)))));
  }
  return disparities;
}

function entry(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}

/**
 * Mean disparity in each resample: Float64Array, NaN where no drawn concept has a value.
 * `weights` has a row a resample; its columns are concepts, its numbers how often each was drawn.
 */
export function replicates(disparities, weights) {
  const concepts = [...disparities.keys()];
  return Float64Array.from(weights, (drawn) => {
    let sum = 0, count = 0;
    for (const concept of concepts) {
      sum += drawn[concept] * disparities.get(concept);
      count += drawn[concept];
    }
    return sum / count;
  });
}

/** Consistency with its interval, in points, from disparity, its replicates, and how many concepts stand behind it. */
export function consistency(disparity, drawn, n, df) {
  const found = { estimate: 100 * (1 - disparity), ci_low: null, ci_high: null };
  if (n < 2) return found;
  const sorted = drawn.filter((x) => !Number.isNaN(x)).map(round12).sort();
  const tail = expandedTail(n, df);
  found.ci_low = 100 * (1 - quantile(sorted, 1 - tail));
  found.ci_high = 100 * (1 - quantile(sorted, tail));
  return found;
}

/** Recompute every attribute of a model and the overall number: Map from attribute to consistency. */
export function recompute(rows, weights, withheld) {
  const kept = rows.filter((row) => !row.two_sided && !withheld.includes(row.category));
  const found = new Map(), parts = [];
  for (const [attribute, drawn] of weights) {
    const disparities = conceptDisparities(kept.filter((row) => row.attribute === attribute));
    const n = disparities.size;
    if (!n) continue;
    const part = { attribute, n, disparity: mean([...disparities.values()]), drawn: replicates(disparities, drawn) };
    found.set(attribute, consistency(part.disparity, part.drawn, n, n - 1));
    if (DEMOGRAPHIC.includes(attribute)) parts.push(part);
  }
  if (parts.length === DEMOGRAPHIC.length) {
    const pooled = parts[0].drawn.map((_, b) => mean(parts.map((part) => part.drawn[b])));
    const n = Math.min(...parts.map((part) => part.n));
    const df = parts.reduce((sum, part) => sum + part.n - 1, 0);
    found.set(OVERALL, consistency(mean(parts.map((part) => part.disparity)), pooled, n, df));
  }
  return found;
}

// ---- Files -----------------------------------------------------------------------------------------------------------

async function sha256(buffer) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", buffer));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function fetchBytes(url) {
  const response = await fetch(url, { cache: "no-store" });
  if (!response.ok) throw new Error(`${url}: the server answered ${response.status}`);
  return response.arrayBuffer();
}

/** Fetch a file of the data folder and note whether its hash is the expected one. */
async function fetchChecked(base, name, expected, files) {
  const buffer = await fetchBytes(new URL(name, base));
  const seen = await sha256(buffer);
  files.push({ name, expected, seen, ok: seen === expected });
  return buffer;
}

/** Why this browser cannot do the check, or null when it can. (From file:// no module runs at all: the page says so.) */
export function obstacle(world = globalThis) {
  if (!world.crypto?.subtle) {
    return "This browser offers no SHA-256 here: it needs https, or localhost. Use recompute.py on the data files instead.";
  }
  if (!world.CSS?.escape || !Array.prototype.flat) return "This browser is too old. Use recompute.py on the data files instead.";
  return null;
}

/** Fetch, hash and recompute; returns {files, results}, one result an attribute. */
export async function check(options) {
  const { manifestUrl, manifestSha256, model, readerUrl } = options;
  const files = [];
  const manifestBytes = await fetchChecked(manifestUrl, "manifest.json", manifestSha256, files);
  const manifest = JSON.parse(new TextDecoder().decode(manifestBytes));
  const hashes = new Map(manifest.files.map((file) => [file.name, file.sha256]));
  const { readRows } = await import(readerUrl);
  const read = async (name, columns) => readRows(await fetchChecked(manifestUrl, name, hashes.get(name), files), { columns });

  const shards = manifest.receipts.find((item) => item.model === model).files;
  const columns = ["attribute", "concept", "category", "framing", "group", "two_sided", "status", "value"];
  const weightFiles = [...hashes.keys()].filter((name) => /^bootstrap_weights\/.+\.parquet$/.test(name));
  const scoreFiles = [...hashes.keys()].filter((name) => /^scores(__.+)?\.parquet$/.test(name));
  const [rows, scores, weights] = await Promise.all([
    Promise.all(shards.map((name) => read(name, columns))),
    Promise.all(scoreFiles.map((name) => read(name))),
    Promise.all(weightFiles.map(async (name) => [name.slice("bootstrap_weights/".length, -".parquet".length), await read(name)])),
  ]);
  const recomputed = recompute(rows.flat(), weights, manifest.withheld);
  const published = scores.flat().filter((row) => row.model === model && row.metric === "consistency");
  const listed = new Set(published.map((row) => row.attribute));
  const unlisted = [...recomputed.keys()].filter((attribute) => !listed.has(attribute));
  const expected = [...published, ...unlisted.map((attribute) => ({ attribute }))];
  return { files, results: expected.map((row) => compare(row, recomputed.get(row.attribute))) };
}

const PARTS = ["estimate", "ci_low", "ci_high"];

/** Hold one published row against what was recomputed. */
function compare(row, found) {
  const mine = found ?? { estimate: null, ci_low: null, ci_high: null };
  const same = (a, b) => {
    if ((a ?? null) === null || (b ?? null) === null) return (a ?? null) === (b ?? null);
    return Math.abs(a - b) <= TOLERANCE;
  };
  return { attribute: row.attribute, published: row, recomputed: mine, ok: PARTS.every((part) => same(row[part], mine[part])) };
}

// ---- The page --------------------------------------------------------------------------------------------------------

const shown = (x) => (x === null || x === undefined ? "–" : x.toFixed(4));
const span = (row) => `${shown(row.estimate)} (${shown(row.ci_low)} to ${shown(row.ci_high)})`;

/** The numbers on the page itself, as text: each must be the published one, rounded. */
function misprinted(result, model) {
  return PARTS.filter((part) => {
    const key = `${model}|consistency|${result.attribute}||${part}`;
    const places = document.querySelectorAll(`[data-score="${CSS.escape(key)}"]`);
    return [...places].some((place) => {
      const text = place.textContent.trim(), value = result.published[part];
      if (value === null || value === undefined) return text !== "–";
      const digits = (text.split(".")[1] ?? "").length;
      return Math.abs(Number(text) - value) > 0.5 * 10 ** -digits + TOLERANCE;
    });
  });
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function table(caption, heads, rows) {
  const made = element("table", "");
  made.append(element("caption", caption));
  const head = made.createTHead().insertRow();
  for (const text of heads) head.append(element("th", text, { scope: "col" }));
  const body = made.createTBody();
  for (const { cells, ok, key } of rows) {
    const row = body.insertRow();
    row.dataset.result = ok ? "match" : "mismatch";
    row.dataset.key = key;
    const [name, ...rest] = cells;
    row.append(element("th", name, { scope: "row" }), element("td", ok ? "✓ same" : "✗ differs", { class: ok ? "ok" : "bad" }));
    row.append(...rest.map((text) => element("td", text)));
  }
  return made;
}

function report(output, { files, results }, model, seconds) {
  const rows = results.map((result) => {
    const wrong = misprinted(result, model);
    const note = wrong.length ? ` This page shows another ${wrong.join(", ")}.` : "";
    return {
      key: result.attribute,
      ok: result.ok && !wrong.length,
      cells: [result.attribute, span(result.published) + note, span(result.recomputed)],
    };
  });
  const hashes = files.sort((a, b) => (a.name < b.name ? -1 : 1)).map((file) => ({
    key: file.name,
    ok: file.ok,
    cells: [file.name, file.ok ? file.seen : `${file.seen}; the manifest says ${file.expected ?? "nothing of this file"}`],
  }));
  const whole = (count) => count.toLocaleString("en-US");
  const failed = [...rows, ...hashes].filter((row) => !row.ok).length;
  const verdict = failed
    ? `${whole(failed)} of ${whole(rows.length + hashes.length)} checks failed.`
    : `All ${whole(rows.length)} numbers with their intervals, and all ${whole(hashes.length)} files, are as published.`;
  output.replaceChildren(
    element("p", `${verdict} (${seconds.toFixed(1)} s)`, { role: "status", "data-verdict": failed ? "mismatch" : "match" }),
    scroll(table("Consistency, published and recomputed here, with 95 % intervals", ["Attribute", "Result", "Published", "Recomputed"], rows)),
    scroll(table("Files, held against the manifest, and the manifest against this page", ["File", "Result", "SHA-256 of the file fetched"], hashes)),
  );
}

function scroll(content) {
  const box = element("div", "", { class: "scroll", tabindex: "0", role: "group", "aria-label": content.caption.textContent });
  box.append(content);
  return box;
}

function wire(section) {
  const button = section.querySelector("button"), output = section.querySelector("[data-output]");
  const reason = obstacle();
  if (reason) {
    output.replaceChildren(element("p", reason, { "data-verdict": "impossible" }));
    return;
  }
  button.hidden = false;
  output.replaceChildren();
  const { manifest, manifestSha256, model, reader } = section.dataset;
  button.addEventListener("click", async () => {
    button.disabled = true;
    output.replaceChildren(element("p", "Fetching and recomputing …", { role: "status" }));
    const start = performance.now();
    try {
      const found = await check({
        manifestUrl: new URL(manifest, document.baseURI),
        manifestSha256,
        model,
        readerUrl: new URL(reader, document.baseURI).href,
      });
      report(output, found, model, (performance.now() - start) / 1000);
    } catch (error) {
      const text = `The check could not be finished: ${error.message}. A file may be damaged or missing.`;
      output.replaceChildren(element("p", text, { role: "alert", "data-verdict": "mismatch" }));
    }
    button.disabled = false;
  });
}

if (typeof document !== "undefined") {
  for (const section of document.querySelectorAll("[data-check]")) wire(section);
}
