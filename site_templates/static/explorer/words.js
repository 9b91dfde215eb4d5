// Numbers and sentences of the explorer.

/** Thousands apart. The browser's own formatter takes longer to load than all rows to filter. */
export const whole = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ",");

export const rowsInWords = (count) => (count === 1 ? "1 row" : `${whole(count)} rows`);

/** Control and bidi characters would hide or reorder text: show them by their code point. */
export function visible(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]/gu, (c) => (c === "\n" ? " ⏎ "
    : `[U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`));
}

/** The same for a text that keeps its lines. */
export const visibleLines = (text) => text.split("\n").map(visible).join("\n");

/** How far a search has come, or how far it came. */
export function searchedInWords({ at, searched, of }, model) {
  const found = `${rowsInWords(at.size)} so far`;
  return of === 1 ? `Loading the answers of ${model} …`
    : `Searching the answers of ${model}, model ${whole(searched + 1)} of ${whole(of)}; ${found} …`;
}

/** What a search that ended early has left out; nothing for a whole one. */
export function shortfallOf(hits, most) {
  if (!hits || (hits.searched === hits.of && !hits.full)) return "";
  const read = `${whole(hits.searched)} of ${whole(hits.of)} models were searched`;
  return hits.full ? `; the search ended at ${whole(most)} rows, ${read}` : `; stopped, ${read}`;
}

/** How many rows there would be without one of the filters: those that fail nothing but it. */
function withoutOne({ counts, unlabeled }, chosen) {
  return chosen
    .map((name) => ({ name, rows: counts[name].reduce((sum, n) => sum + n, name === "label" ? unlabeled : 0) }))
    .filter((one) => one.rows > 0)
    .sort((a, b) => b.rows - a.rows);
}

/** What to loosen where nothing is found. */
export function adviceFor({ text, hits, found, total }, form) {
  if (total) return "";
  if (hits && hits.at.size === 0) {
    return `No answer of ${hits.of === 1 ? "this model" : "any model"} holds “${visible(text)}”. Try fewer or other words.`;
  }
  const [most] = withoutOne(found, form.chosen());
  if (most) {
    const rows = rowsInWords(most.rows);
    return `No row matches all filters. With “${form.labelOf(most.name)}” set to any, ${rows} would.`;
  }
  const how = form.anyTicked() ? "Untick a box of “Only rows”, or set" : "Set";
  return `No row matches all filters. ${how} more than one filter to any.`;
}
