// Recompute the main numbers of this folder from its CSV files, with Node alone:  node recompute.mjs [FOLDER]
import { readFileSync, readdirSync } from "node:fs";

const folder = process.argv[2] ?? ".";
const { withheld, roles } = JSON.parse(readFileSync(`${folder}/manifest.json`, "utf8"));
const MEASURED = roles.demographic, CONTROLS = roles.controls; // the control of the lower edge first

// RFC 4180: a cell is either quoted, with "" for a quote, or runs to the next comma or line end.
function parseCsv(text) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n|$)/g)) {
    rows.at(-1).push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === "\n") rows.push([]);
    if (end === "") break;
  }
  const [header, ...body] = rows.filter((row) => row.length > 1);
  return body.map((row) => Object.fromEntries(header.map((name, i) => [name, row[i]])));
}
function read(stem, sub = "") {
  const files = readdirSync(`${folder}/csv/${sub}`).filter((name) => name.endsWith(".csv") && (stem === "" || name.split(/__|[.]/)[0] === stem));
  return files.sort().flatMap((name) => parseCsv(readFileSync(`${folder}/csv/${sub}/${name}`, "utf8")));
}
const number = (text) => (text === "" ? NaN : Number(text));
const sum = (values) => values.reduce((total, value) => total + value, 0);
const mean = (values) => sum(values) / values.length; // NaN for none
const round12 = (value) => Math.round(value * 1e12) / 1e12;
function groupBy(items, key) {
  const groups = new Map();
  for (const item of items) groups.has(key(item)) ? groups.get(key(item)).push(item) : groups.set(key(item), [item]);
  return groups;
}

const scores = read("scores").filter((row) => row.model !== "*");
const published = new Map(scores.map((row) => [[row.model, row.metric, row.attribute, row.group].join("|"), row]));
const mismatches = [];
let checked = 0;
function compare(key, column, here) {
  const there = published.has(key) ? number(published.get(key)[column]) : undefined;
  checked += 1;
  if (!(Math.abs(there - here) <= 1e-9 || (Number.isNaN(there) && Number.isNaN(here))))
    mismatches.push(`${key} ${column} published ${there} recomputed ${here}`);
}
// Type 7 quantile of sorted values.
function quantile(x, p) {
  const place = (x.length - 1) * p;
  const below = Math.floor(place);
  return x[below] + (place - below) * (x[Math.min(below + 1, x.length - 1)] - x[below]);
}
// Estimate and interval of 100 (1 - D), from the replicates that have a value, rounded to 12 decimals, and the published tail.
function compareConsistency(key, disparity, draws) {
  const tail = number(published.get(key)?.ci_tail ?? "");
  const x = Float64Array.from(draws.filter((v) => !Number.isNaN(v)), round12).sort();
  compare(key, "estimate", 100 * (1 - disparity));
  compare(key, "ci_low", x.length ? 100 * (1 - quantile(x, 1 - tail)) : NaN);
  compare(key, "ci_high", x.length ? 100 * (1 - quantile(x, tail)) : NaN);
}

// Cell means: the mean value of the scored repeats of a (concept, framing, group); two groups make a (concept, framing) count.
const rows = read("", "receipts").filter((r) => r.two_sided === "false" && !withheld.includes(r.category));
const cells = [...groupBy(rows.filter((r) => r.status === "scored"), (r) => [r.model, r.attribute, r.concept, r.framing, r.group].join("|")).values()].map((repeats) => {
  const { model, attribute, concept, framing, group, polarity } = repeats[0];
  const value = mean(repeats.map((r) => Number(r.value)));
  return { model, attribute, concept, framing, group, value, fav: polarity === "1" ? value : 1 - value };
});
const counting = [...groupBy(cells, (c) => [c.model, c.attribute, c.concept, c.framing].join("|")).values()].filter((own) => own.length > 1);

// Of each: the mean absolute difference over pairs of groups and the widest gap. Lean: fav against the mean over groups.
const spreads = counting.map((own) => {
  const apart = own.flatMap((a, i) => own.slice(i + 1).map((b) => Math.abs(a.value - b.value)));
  const middle = mean(own.map((c) => c.fav));
  for (const cell of own) cell.lean = cell.fav - middle;
  return { ...own[0], d: mean(apart), gap: Math.max(...apart) };
});
for (const [key, own] of groupBy(counting.flat(), (c) => [c.model, "lean", c.attribute, c.group].join("|")))
  if (!CONTROLS.includes(own[0].attribute)) compare(key, "estimate", 100 * mean(own.map((c) => c.lean)));

const byModel = groupBy(spreads, (s) => s.model);
const attributes = [...new Set(scores.map((row) => row.attribute))].filter((name) => name !== "overall");
const weights = Object.fromEntries(attributes.map((name) => [name, read(name, "bootstrap_weights")]));
const models = [...new Set(scores.map((row) => row.model))], every = {}; // by model: D, its replicates, its concepts by attribute
for (const model of models) {
  const d = {}, gap = {}, draws = {}, valued = {};
  for (const attribute of attributes) {
    const own = (byModel.get(model) ?? []).filter((s) => s.attribute === attribute);
    const concepts = [...groupBy(own, (s) => s.concept)].map(([name, f]) => [name, mean(f.map((s) => s.d)), mean(f.map((s) => s.gap))]);
    valued[attribute] = concepts.map((c) => c[0]);
    d[attribute] = mean(concepts.map((c) => c[1]));
    gap[attribute] = mean(concepts.map((c) => c[2]));
    draws[attribute] = weights[attribute].map((drawn) =>
      sum(concepts.map(([name, value]) => drawn[name] * value)) / sum(concepts.map(([name]) => Number(drawn[name]))));
  }
  d.overall = mean(MEASURED.map((name) => d[name] ?? NaN));
  gap.overall = mean(MEASURED.map((name) => gap[name] ?? NaN));
  draws.overall = Number.isNaN(d.overall) ? [] : draws[MEASURED[0]].map((_, b) => mean(MEASURED.map((name) => draws[name][b])));
  every[model] = { d, draws, valued };
  for (const attribute of [...attributes, "overall"]) {
    compare([model, "disparity", attribute, ""].join("|"), "estimate", 100 * d[attribute]);
    compare([model, "worst_gap", attribute, ""].join("|"), "estimate", 100 * gap[attribute]);
    compareConsistency([model, "consistency", attribute, ""].join("|"), d[attribute], draws[attribute]);
  }
  const [lower, upper] = CONTROLS.map((name) => d[name] ?? NaN);
  const edges = round12(upper) > round12(lower) ? [...CONTROLS].reverse() : CONTROLS; // the larger D is the lower edge
  if (CONTROLS.length === 2) ["band_low", "band_high"].forEach((metric, i) => {
    const has = !Number.isNaN(lower + upper);
    compareConsistency([model, metric, "overall", ""].join("|"), has ? d[edges[i]] : NaN, has ? draws[edges[i]] : []);
  });
}

// The range test: u says how often the models' errors lie as far apart as the difference. Of a family are the models
// with a value on every concept that any model has a value on.
const families = {};
for (const name of [...MEASURED.filter((a) => attributes.includes(a)), "overall"]) {
  const each = Object.values(families), asked = new Set(models.flatMap((m) => every[m].valued[name] ?? []));
  const inside = models.filter((m) => name === "overall" ? each.every((f) => f.inside.includes(m)) : asked.size && every[m].valued[name].length === asked.size);
  const n = name === "overall" ? Math.min(...each.map((f) => f.n)) : asked.size;
  families[name] = { inside, n, ranges: [] };
  if (inside.length < 2 || n < 2) continue;
  families[name].ranges = every[inside[0]].draws[name].map((_, b) => {
    const errors = inside.map((m) => every[m].draws[name][b] - every[m].d[name]);
    return round12(Math.max(...errors) - Math.min(...errors));
  });
}
const known = (ranges) => Float64Array.from(ranges.filter((r) => !Number.isNaN(r))).sort();
const whole = MEASURED.map((name) => families[name]?.ranges ?? []).filter((ranges) => ranges.length);
const widest = whole.length ? known(whole[0].map((_, b) => Math.max(...whole.map((ranges) => ranges[b])))) : [];
for (const family of Object.values(families)) family.ranges = known(family.ranges);
function share(sorted, apart) {
  let low = 0, high = sorted.length;
  while (low < high) { // the first range that reaches the difference
    const middle = (low + high) >> 1;
    if (sorted[middle] < round12(Math.abs(apart))) low = middle + 1; else high = middle;
  }
  return sorted.length ? (1 + sorted.length - low) / (sorted.length + 1) : NaN;
}
for (const row of read("comparisons")) {
  const { model_a, model_b, attribute } = row, key = `${model_a}|${model_b}|${attribute}`;
  const { inside, ranges } = families[attribute], apart = every[model_b].d[attribute] - every[model_a].d[attribute];
  const tested = inside.includes(model_a) && inside.includes(model_b) && ranges.length;
  published.set(key, row);
  compare(key, "difference", 100 * apart);
  compare(key, "u_within", tested ? share(ranges, apart) : NaN);
  compare(key, "u_all", tested && attribute !== "overall" ? share(widest, apart) : NaN);
}

// Cochran's Q: each group's refusal rate against the mean of the groups, concept by concept.
const groups = groupBy(JSON.parse(readFileSync(`${folder}/bank.json`, "utf8")).attributes, (a) => a.id);
const answered = groupBy(rows.filter((r) => r.status === "scored" || r.status === "refused"), (r) => `${r.model}|${r.attribute}`);
for (const row of read("refusal_tests")) {
  const key = `${row.model}|${row.attribute}`, ids = groups.get(row.attribute)[0].groups.map((g) => g.id);
  const concepts = [...groupBy(answered.get(key) ?? [], (r) => r.concept).values()];
  const apart = concepts.map((own) => ids.map((id) => mean(own.filter((r) => r.group === id).map((r) => Number(r.status === "refused")))))
    .filter((rates) => !rates.some(Number.isNaN)).map((rates) => rates.map((r) => r - mean(rates)));
  const differing = apart.filter((d) => d.some((x) => round12(Math.abs(x)) > 0)).length;
  const top = sum(ids.map((_, g) => sum(apart.map((d) => d[g])) ** 2));
  published.set(key, row);
  compare(key, "q", differing ? ((ids.length - 1) * top) / sum(apart.flat().map((x) => x * x)) : NaN);
  compare(key, "n_concepts", apart.length);
  compare(key, "n_differing", differing);
}

console.log([...mismatches, `${checked} numbers checked, ${mismatches.length} mismatches`].join("\n"));
process.exit(mismatches.length || !checked ? 1 : 0);
