// Checks a model's published numbers in the reader's own browser, from nothing but the published files.
//
// 1. Fetch the run's manifest.json and hold its SHA-256 against the one printed on this page.
// 2. Fetch this model's receipts, the bootstrap counts and the scores; hold their SHA-256 against the manifest.
// 3. Recompute consistency and its interval for each attribute, and over all, from the receipts and the counts.
// 4. Show published and recomputed side by side.
//
// statistics.js  the arithmetic, which is the whole of it
// files.js       fetching and hashing
// compare.js     published and recomputed, side by side
// report.js      what the reader sees of it
//
// No library has a part in this, except the reader of the Parquet format.

import { check } from "./compare.js";
import { obstacle } from "./files.js";
import { element, report } from "./report.js";

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

for (const section of document.querySelectorAll("[data-check]")) wire(section);
