// Where models part most: the prompts by how far the models' mean values lie from each other.

/** The rows of one model's answers to one prompt, from place `from` of `rows` on: its mean, and the row nearest to it. */
function answersFrom(rows, from, valueOf, promptOf) {
  const prompt = promptOf(rows[from]);
  let end = from;
  let sum = 0;
  const scored = [];
  for (; end < rows.length && promptOf(rows[end]) === prompt; end++) {
    const value = valueOf(rows[end]);
    if (value !== null) { sum += value; scored.push(rows[end]); }
  }
  if (!scored.length) return { end, mean: null };
  const mean = sum / scored.length;
  const off = (row) => Math.abs(valueOf(row) - mean);
  return { end, mean, row: scored.reduce((best, row) => (off(row) < off(best) ? row : best)) };
}

/**
 * For each prompt that two models or more answered differently, the row of the lowest and of the highest model, the
 * prompts by the standard deviation of the models' means, largest first. `rows` are codes in their order.
 */
export function partMost({ index, plan, columns }, rows) {
  const size = index.size;
  const valueOf = (code) => index.outcomes[columns[Math.floor(code / size)].outcome[code % size] - 1].value;
  const promptOf = (code) => code - plan.repeat[code % size];
  const prompts = new Map();
  for (let i = 0; i < rows.length;) {
    const place = promptOf(rows[i]) % size;
    const { end, mean, row } = answersFrom(rows, i, valueOf, promptOf);
    i = end;
    if (mean === null) continue;
    const seen = prompts.get(place);
    if (!seen) { prompts.set(place, { n: 1, mean, squares: 0, low: mean, high: mean, least: row, most: row, place }); continue; }
    seen.n++;
    const step = mean - seen.mean;
    seen.mean += step / seen.n;
    seen.squares += step * (mean - seen.mean);
    if (mean < seen.low) { seen.low = mean; seen.least = row; }
    if (mean > seen.high) { seen.high = mean; seen.most = row; }
  }
  const spread = (one) => one.squares / (one.n - 1);
  return [...prompts.values()].filter((one) => one.n > 1 && one.low < one.high)
    .sort((a, b) => spread(b) - spread(a) || a.place - b.place)
    .flatMap((one) => [one.least, one.most]);
}
