// The explorer: filters every row of a run by the compact index beside the page, and searches one model's responses.
// Prompts, responses and labels enter the page through textContent only.
(() => {
  "use strict";
  const PAGE_ROWS = 50;
  const SELECTS = ["model", "attribute", "category", "concept", "group", "framing", "status", "label"];
  const root = document.getElementById("explorer");
  const note = document.getElementById("explorer-note");
  const form = document.getElementById("explorer-form");
  const status = document.getElementById("explorer-status");
  const body = document.querySelector("#explorer-table tbody");
  const element = (name) => form.elements.namedItem(name);

  if (location.protocol === "file:") {
    note.textContent = "Filters and search need a web server, because browsers do not let a page opened from a file read "
      + "the index of rows. “aibiasbench serve” starts one on this machine. The lists below lead to every row without it.";
    return;
  }

  // ---- The index: one planned row of one model is (model, place); every property is a small code in a typed array.

  /** Spread the plan into codes by place: attribute, category, concept, group, framing, repeat. */
  function planOf(index) {
    const size = index.size;
    const plan = {
      attribute: new Uint16Array(size), category: new Uint16Array(size), concept: new Uint16Array(size),
      group: new Uint16Array(size), framing: new Uint16Array(size), repeat: new Uint16Array(size),
      names: { attribute: [], category: [], concept: [], group: [], framing: [] }, of: { concept: [], group: [] },
      place: new Map(),
    };
    const code = (kind, name) => {
      const found = plan.names[kind].indexOf(name);
      return found < 0 ? plan.names[kind].push(name) - 1 : found;
    };
    let place = 0;
    index.attributes.forEach((attribute, a) => {
      plan.names.attribute.push(attribute.id);
      const groups = attribute.groups.map((group) => plan.names.group.push(`${attribute.id}.${group.id}`) - 1);
      for (const group of groups) plan.of.group[group] = a;
      for (const concept of attribute.concepts) {
        const c = plan.names.concept.push(concept.id) - 1;
        const category = code("category", concept.category);
        plan.of.concept[c] = a;
        plan.place.set(concept.id, place);
        for (const framing of attribute.framings.map((name) => code("framing", name))) {
          for (const group of groups) {
            for (let repeat = 0; repeat < index.repeats; repeat++, place++) {
              plan.attribute[place] = a;
              plan.category[place] = category;
              plan.concept[place] = c;
              plan.group[place] = group;
              plan.framing[place] = framing;
              plan.repeat[place] = repeat;
            }
          }
        }
      }
    });
    return plan;
  }

  /** Cut rows.bin into each model's outcome (uint16, 0 = no such row) and flags (uint8). */
  function columnsOf(index, buffer) {
    const size = index.size;
    const stride = 2 * size + size + (size % 2);
    if (buffer.byteLength !== stride * index.models.length) throw new Error("the index of rows is incomplete");
    return index.models.map((_, m) => ({
      outcome: new Uint16Array(buffer, m * stride, size),
      flags: new Uint8Array(buffer, m * stride + 2 * size, size),
    }));
  }

  // ---- State: the form is the state, and the address repeats it, so that a view can be linked to.

  let index, plan, columns, statusNames, labelNames, statusOf, labelOf;
  let page = 0;
  let found = [];
  let texts = null; // responses of one model: { model, text: string[] by place, lower: string[] by place }
  let turn = 0;

  function readAddress() {
    const asked = new URLSearchParams(location.search);
    for (const name of SELECTS) {
      let value = asked.get(name) || "";
      if (name === "group" && value && !value.includes(".")) value = `${asked.get("attribute") || ""}.${value}`;
      element(name).value = value;
      if (element(name).value !== value) element(name).value = "";
    }
    for (const box of form.querySelectorAll("input[type=checkbox]")) box.checked = asked.get(box.name) === "1";
    element("q").value = asked.get("q") || "";
    page = Math.max(0, (parseInt(asked.get("page"), 10) || 1) - 1);
  }

  function writeAddress(push) {
    const kept = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value) kept.set(name, value);
    if (page) kept.set("page", page + 1);
    const target = kept.size ? `?${kept}` : location.pathname;
    history[push ? "pushState" : "replaceState"](null, "", target);
  }

  // ---- Filtering: one pass over all rows. A row that fails exactly one filter still counts for that filter's own choices.

  function wanted() {
    const code = (names, value) => (value ? names.indexOf(value) : -1);
    const names = { model: index.models.map((m) => m.id), ...plan.names, status: statusNames, label: labelNames };
    const codes = SELECTS.map((name) => code(names[name], element(name).value));
    const flags = index.flags.reduce((bits, name, i) => bits | (element(name).checked ? 1 << i : 0), 0);
    return { codes, flags, contested: element("contested").checked };
  }

  function filterRows(hits) {
    const { codes, flags, contested } = wanted();
    const size = index.size;
    const counts = [index.models, ...["attribute", "category", "concept", "group", "framing"].map((k) => plan.names[k]),
      statusNames, labelNames].map((names) => new Uint32Array(names.length));
    const boxes = new Uint32Array(index.flags.length + 1);
    const isContested = statusNames.indexOf("contested");
    const row = new Int32Array(SELECTS.length);
    found = [];
    for (let m = 0; m < columns.length; m++) {
      const { outcome, flags: marks } = columns[m];
      for (let p = 0; p < size; p++) {
        const o = outcome[p];
        if (o === 0) continue;
        if (hits && !hits.has(p)) continue;
        row[0] = m;
        row[1] = plan.attribute[p];
        row[2] = plan.category[p];
        row[3] = plan.concept[p];
        row[4] = plan.group[p];
        row[5] = plan.framing[p];
        row[6] = statusOf[o];
        row[7] = labelOf[o];
        let failed = -1;
        let fails = 0;
        for (let k = 0; k < codes.length && fails < 2; k++) {
          if (codes[k] >= 0 && codes[k] !== row[k]) { failed = k; fails++; }
        }
        const flagged = (marks[p] & flags) === flags && (!contested || row[6] === isContested);
        if (fails > 1 || !flagged) continue;
        if (fails === 1) { if (row[failed] >= 0) counts[failed][row[failed]]++; continue; }
        for (let k = 0; k < codes.length; k++) if (row[k] >= 0) counts[k][row[k]]++;
        for (let k = 0; k < index.flags.length; k++) if (marks[p] & (1 << k)) boxes[k]++;
        if (row[6] === isContested) boxes[index.flags.length]++;
        found.push(m * size + p);
      }
    }
    return { counts, boxes };
  }

  function showCounts({ counts, boxes }) {
    SELECTS.forEach((name, k) => {
      for (const option of element(name).options) {
        if (!option.value) continue;
        const n = counts[k][Number(option.dataset.code)];
        option.textContent = `${option.dataset.label} (${n.toLocaleString("en")})`;
      }
    });
    const attribute = element("attribute").value;
    for (const name of ["concept", "group"]) {
      for (const option of element(name).querySelectorAll("option[data-code]")) {
        option.hidden = attribute !== "" && plan.names.attribute[plan.of[name][option.dataset.code]] !== attribute;
      }
      for (const set of element(name).querySelectorAll("optgroup")) {
        set.hidden = attribute !== "" && set.dataset.attribute !== attribute;
      }
    }
    [...index.flags, "contested"].forEach((name, k) => {
      form.querySelector(`[data-count="${name}"]`).textContent = `(${boxes[k].toLocaleString("en")})`;
    });
  }

  // ---- Responses: the published shard of one model, read in the browser.

  async function shardFiles(shard) {
    const sums = await (await fetchFile(root.dataset.sums)).text();
    const names = sums.split("\n").map((line) => line.slice(66).trim());
    const mine = names.filter((n) => n === `receipts/${shard}.parquet`
      || (n.startsWith(`receipts/${shard}__`) && n.endsWith(".parquet")));
    return mine.map((name) => new URL(name, new URL(root.dataset.sums, location.href)).href);
  }

  async function fetchFile(address) {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
    return answer;
  }

  async function loadTexts(m) {
    if (texts && texts.model === m) return texts;
    const { readRows } = await import(new URL(root.dataset.parquet, location.href).href);
    const loaded = { model: m, text: [], lower: [] };
    const wantedColumns = ["concept", "framing", "group", "repeat", "response"];
    for (const address of await shardFiles(index.models[m].shard)) {
      const rows = await readRows(await (await fetchFile(address)).arrayBuffer(), { columns: wantedColumns });
      for (const row of rows) {
        const place = placeOf(row);
        if (place < 0 || row.response === null) continue;
        loaded.text[place] = row.response;
        loaded.lower[place] = row.response.toLowerCase();
      }
    }
    texts = loaded;
    return texts;
  }

  function placeOf(row) {
    const start = plan.place.get(row.concept);
    if (start === undefined) return -1;
    const attribute = index.attributes[plan.attribute[start]];
    const f = attribute.framings.indexOf(row.framing);
    const g = attribute.groups.findIndex((group) => group.id === row.group);
    return f < 0 || g < 0 ? -1 : start + (f * attribute.groups.length + g) * index.repeats + Number(row.repeat);
  }

  async function matching(text) {
    const m = index.models.findIndex((model) => model.id === element("model").value);
    if (!text || m < 0) return null;
    say("Loading the responses of this model …");
    const { lower } = await loadTexts(m);
    const needle = text.toLowerCase();
    const hits = new Map();
    lower.forEach((response, place) => {
      const at = response.indexOf(needle);
      if (at >= 0) hits.set(place, at);
    });
    return hits;
  }

  // ---- Drawing.

  const say = (text) => { status.textContent = text; };

  function cell(row, text, css) {
    const made = row.insertCell();
    made.textContent = text;
    if (css) made.className = css;
    return made;
  }

  /** Control and bidi characters would hide or reorder text: show them by their code point. */
  function visible(text) {
    return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]/gu, (c) => (c === "\n" ? " ⏎ "
      : `[U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`));
  }

  function excerptRow(place, at, length) {
    const row = body.insertRow();
    row.className = "excerpt";
    const inside = row.insertCell();
    inside.colSpan = 10;
    inside.dir = "auto";
    const text = texts.text[place];
    // Lower-casing can change a text's length; then the place of the hit is only near, and no mark is drawn.
    const exact = text.length === texts.lower[place].length;
    const from = Math.max(0, at - 80);
    inside.append(from ? "… " : "", visible(text.slice(from, exact ? at : at + length)));
    if (exact) {
      const mark = document.createElement("mark");
      mark.textContent = visible(text.slice(at, at + length));
      inside.append(mark);
    }
    const rest = text.slice(at + length, at + length + 120);
    inside.append(visible(rest), at + length + 120 < text.length ? " …" : "");
  }

  function drawRow(code, hits, length) {
    const m = Math.floor(code / index.size);
    const p = code % index.size;
    const outcome = index.outcomes[columns[m].outcome[p] - 1];
    const concept = plan.names.concept[plan.concept[p]];
    const framing = plan.names.framing[plan.framing[p]];
    const attribute = index.attributes[plan.attribute[p]];
    const group = attribute.groups.find((g) => `${attribute.id}.${g.id}` === plan.names.group[plan.group[p]]);
    const row = body.insertRow();
    const link = document.createElement("a");
    link.href = `${index.models[m].id}/${concept}/index.html#${framing}.${group.id}.${plan.repeat[p]}`;
    link.textContent = concept;
    const head = document.createElement("th");
    head.scope = "row";
    head.append(link);
    row.append(head);
    cell(row, index.models[m].id);
    cell(row, attribute.label);
    cell(row, group.label);
    cell(row, framing);
    cell(row, String(plan.repeat[p]), "n");
    cell(row, outcome.label === null ? "–" : outcome.label);
    cell(row, outcome.value === null ? "–" : String(outcome.value), "n");
    cell(row, outcome.status);
    cell(row, marksOf(m, p).join(", "));
    if (hits) excerptRow(p, hits.get(p), length);
  }

  const WORDS = { disagree: "judges disagree", leak: "mask leak", truncated: "cut", mismatch: "verdict mismatch",
    filtered: "vendor’s filter" };

  function marksOf(m, p) {
    return index.flags.filter((_, k) => columns[m].flags[p] & (1 << k)).map((name) => WORDS[name]);
  }

  function draw(hits, length) {
    const pages = Math.max(1, Math.ceil(found.length / PAGE_ROWS));
    page = Math.min(page, pages - 1);
    body.replaceChildren();
    for (const code of found.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS)) drawRow(code, hits, length);
    say(found.length === 1 ? "1 row" : `${found.length.toLocaleString("en")} rows`);
    document.getElementById("explorer-page").textContent = `Page ${page + 1} of ${pages.toLocaleString("en")}`;
    document.getElementById("explorer-back").disabled = page === 0;
    document.getElementById("explorer-next").disabled = page + 1 >= pages;
  }

  async function refresh() {
    const mine = ++turn;
    const text = element("q").value.trim();
    element("q").disabled = element("model").value === "";
    let hits = null;
    try {
      hits = await matching(text);
    } catch (error) {
      say(`The responses could not be loaded (${error.message}).`);
      return;
    }
    if (mine !== turn) return;
    showCounts(filterRows(hits));
    draw(hits, text.length);
  }

  // ---- Start.

  function option(text, value, code) {
    const made = new Option(text, value);
    made.dataset.code = code;
    made.dataset.label = text;
    return made;
  }

  function fillSelects() {
    index.models.forEach((m, i) => element("model").append(option(`${m.id}, ${m.judges} judges`, m.id, i)));
    index.attributes.forEach((a, i) => element("attribute").append(option(a.label, a.id, i)));
    for (const name of ["category", "framing"]) {
      plan.names[name].forEach((id, i) => element(name).append(option(id, id, i)));
    }
    for (const name of ["concept", "group"]) {
      index.attributes.forEach((attribute) => {
        const set = document.createElement("optgroup");
        set.label = attribute.label;
        set.dataset.attribute = attribute.id;
        for (const item of name === "concept" ? attribute.concepts : attribute.groups) {
          const id = name === "concept" ? item.id : `${attribute.id}.${item.id}`;
          set.append(option(item.label || item.id, id, plan.names[name].indexOf(id)));
        }
        element(name).append(set);
      });
    }
    statusNames.forEach((id, i) => element("status").append(option(id, id, i)));
    labelNames.forEach((id, i) => element("label").append(option(id, id, i)));
  }

  function listen() {
    const changed = () => { page = 0; writeAddress(true); refresh(); };
    const turnTo = (step) => () => { page += step; writeAddress(true); refresh(); };
    for (const input of form.querySelectorAll("select, input[type=checkbox]")) {
      input.addEventListener("change", () => {
        if (input.name === "attribute") { element("concept").value = ""; element("group").value = ""; }
        changed();
      });
    }
    form.addEventListener("submit", (event) => { event.preventDefault(); changed(); });
    form.addEventListener("reset", () => setTimeout(changed));
    document.getElementById("explorer-back").addEventListener("click", turnTo(-1));
    document.getElementById("explorer-next").addEventListener("click", turnTo(1));
    addEventListener("popstate", () => { readAddress(); refresh(); });
  }

  async function start() {
    index = await (await fetchFile(root.dataset.index)).json();
    const rows = await fetchFile(`${root.dataset.rows}?${index.sha256.slice(0, 12)}`);
    plan = planOf(index);
    columns = columnsOf(index, await rows.arrayBuffer());
    statusNames = [...new Set(index.outcomes.map((o) => o.status))];
    labelNames = [...new Set(index.outcomes.map((o) => o.label).filter((label) => label !== null))];
    statusOf = [-1, ...index.outcomes.map((o) => statusNames.indexOf(o.status))];
    labelOf = [-1, ...index.outcomes.map((o) => labelNames.indexOf(o.label))];
    fillSelects();
    readAddress();
    listen();
    root.hidden = false;
    note.hidden = true;
    await refresh();
  }

  start().catch((error) => {
    note.textContent = `The index of rows could not be loaded (${error.message}). The lists below lead to every row.`;
  });
})();
