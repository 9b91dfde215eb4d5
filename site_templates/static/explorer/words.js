// Numbers and sentences of the explorer.

/** Thousands apart. The browser's own formatter takes longer to load than all rows to filter. */
export const whole = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ",");

export const rowsInWords = (count) => (count === 1 ? "1 row" : `${whole(count)} rows`);

/** Control and bidi characters would hide or reorder text: show them by their code point. */
export function visible(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]/gu, (c) => (c === "\n" ? " ⏎ "
    : `[U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`));
}

export function hintFor(model) {
  return (model ? `The file of responses of ${model} is loaded and searched in your browser.`
    : "Choose a model first: its file of responses is then loaded and searched in your browser.")
    + " Nothing you type leaves it.";
}

/** How many rows there would be without one of the filters: those that fail nothing but it. */
function withoutOne({ counts, unlabeled }, chosen) {
  return chosen
    .map((name) => ({ name, rows: counts[name].reduce((sum, n) => sum + n, name === "label" ? unlabeled : 0) }))
    .filter((one) => one.rows > 0)
    .sort((a, b) => b.rows - a.rows);
}

/** What to loosen where nothing is found, and what is missing where a text waits for its model. */
export function adviceFor({ text, hits, found, total }, form) {
  if (text && !hits) {
    return `The text “${visible(text)}” is not searched yet: choose a model, whose responses are then searched.`;
  }
  if (total) return "";
  if (hits && hits.at.size === 0) {
    return "No response of this model holds this text. Try fewer or other words, or another model.";
  }
  const [most] = withoutOne(found, form.chosen());
  if (most) {
    const rows = rowsInWords(most.rows);
    return `No row matches all filters. With “${form.labelOf(most.name)}” set to any, ${rows} would.`;
  }
  const how = form.anyTicked() ? "Untick a box of “Only rows”, or set" : "Set";
  return `No row matches all filters. ${how} more than one filter to any.`;
}
