// The report of a check: verdict, numbers and files as tables. Everything enters the page as text.

import { PARTS, TOLERANCE } from "./compare.js";

// Caption and heads of the two tables.
const NUMBERS = [
  "Consistency, published and recomputed here, with 95 % intervals",
  ["Attribute", "Result", "Published", "Recomputed"],
];
const FILES = [
  "Files, held against the manifest, and the manifest against this page",
  ["File", "Result", "SHA-256 of the file fetched"],
];

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

/** What attributes are called, by their ids. */
const labels = () => JSON.parse(document.querySelector("[data-check]").dataset.labels ?? "{}");

/** An element with this text. */
export function element(name, text, attributes = {}) {
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
    const result = ok ? element("td", "✓ same", { class: "ok" }) : element("td", "✗ differs", { class: "bad" });
    row.append(element("th", name, { scope: "row" }), result, ...rest.map((text) => element("td", text)));
  }
  return made;
}

function numberRow(result, wrong) {
  const note = wrong.length ? ` This page shows another ${wrong.join(", ")}.` : "";
  return {
    key: result.attribute,
    ok: result.ok && !wrong.length,
    cells: [labels()[result.attribute] ?? result.attribute, span(result.published) + note, span(result.recomputed)],
  };
}

function fileRow({ name, ok, seen, expected }) {
  const hash = ok ? seen : `${seen}; the manifest says ${expected ?? "nothing of this file"}`;
  return { key: name, ok, cells: [name, hash] };
}

/** Replace what stands in `output` by the report of one check. */
export function report(output, { files, results }, model, seconds) {
  const rows = results.map((result) => numberRow(result, misprinted(result, model)));
  const hashes = files.sort((a, b) => (a.name < b.name ? -1 : 1)).map(fileRow);
  const whole = (count) => count.toLocaleString("en-US");
  const failed = [...rows, ...hashes].filter((row) => !row.ok).length;
  const verdict = failed
    ? `${whole(failed)} of ${whole(rows.length + hashes.length)} checks failed.`
    : `All ${whole(rows.length)} numbers with their intervals, and all ${whole(hashes.length)} files, are as published.`;
  const said = { role: "status", "data-verdict": failed ? "mismatch" : "match" };
  output.replaceChildren(
    element("p", `${verdict} (${seconds.toFixed(1)} s)`, said),
    scroll(table(...NUMBERS, rows)),
    scroll(table(...FILES, hashes)),
  );
}

function scroll(content) {
  const name = content.caption.textContent;
  const box = element("div", "", { class: "scroll", tabindex: "0", role: "group", "aria-label": name });
  box.append(content);
  return box;
}
