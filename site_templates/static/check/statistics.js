// The arithmetic of the check: consistency and its interval for each attribute, and over all, from receipts and counts.
// This is the whole of it, and it needs no library. Formulas: the site's methodology, under Scores and Statistics.

const OVERALL = "overall";

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

/**
 * Recompute every attribute of a model and the overall number: Map from attribute to consistency.
 * The overall number is the mean over the `measured` attributes; a model that lacks one has none.
 */
export function recompute(rows, weights, withheld, measured) {
  const kept = rows.filter((row) => !row.two_sided && !withheld.includes(row.category));
  const found = new Map(), parts = [];
  for (const [attribute, drawn] of weights) {
    const disparities = conceptDisparities(kept.filter((row) => row.attribute === attribute));
    const n = disparities.size;
    if (!n) continue;
    const part = { attribute, n, disparity: mean([...disparities.values()]), drawn: replicates(disparities, drawn) };
    found.set(attribute, consistency(part.disparity, part.drawn, n, n - 1));
    if (measured.includes(attribute)) parts.push(part);
  }
  if (parts.length === measured.length) {
    const pooled = parts[0].drawn.map((_, b) => mean(parts.map((part) => part.drawn[b])));
    const n = Math.min(...parts.map((part) => part.n));
    const df = parts.reduce((sum, part) => sum + part.n - 1, 0);
    found.set(OVERALL, consistency(mean(parts.map((part) => part.disparity)), pooled, n, df));
  }
  return found;
}
