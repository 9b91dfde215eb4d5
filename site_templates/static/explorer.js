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
  const advice = document.getElementById("explorer-advice");
  const clear = document.getElementById("explorer-clear");
  const hint = document.getElementById("explorer-hint");
  const region = document.getElementById("explorer-rows");
  let body = document.querySelector("#explorer-table tbody");
  const element = (name) => form.elements.namedItem(name);

  if (location.protocol === "file:") {
    note.textContent = "Filters and search need a web server, because browsers do not let a page opened from a file read "
      + "the index of rows. “aibiasbench serve” starts one on this machine. The lists below lead to every row without it.";
    return;
  }
  note.textContent = "Loading the index of all rows …";

  // ---- The index: one planned row of one model is (model, place); every property is a small code in a typed array.

  /** Spread the plan into codes by place: attribute, category, concept, group, framing, repeat. */
  function planOf(index) {
    const size = index.size;
    const plan = {
      attribute: new Uint16Array(size), category: new Uint16Array(size), concept: new Uint16Array(size),
      group: new Uint16Array(size), framing: new Uint16Array(size), repeat: new Uint16Array(size),
      names: { attribute: [], category: [], concept: [], group: [], framing: [] },
      title: [], // of each concept
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
      for (const concept of attribute.concepts) {
        const c = plan.names.concept.push(concept.id) - 1;
        plan.title.push(concept.title);
        const category = code("category", concept.category);
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
  const choices = {}; // of each select: { option, label, code }
  let texts = null; // responses of one model: { model, text: string[] by place, lower: string[] by place }
  let turn = 0;

  function readAddress() {
    const asked = new URLSearchParams(location.search);
    narrowChoices("");
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
    // A field that waits for a model is switched off, and a form leaves such a field out.
    if (element("q").value) kept.set("q", element("q").value);
    if (page) kept.set("page", page + 1);
    const target = kept.size ? `?${kept}` : location.pathname;
    history[push ? "pushState" : "replaceState"](null, "", target);
  }

  // ---- Filtering. A row that fails exactly one filter still counts for that filter's own choices. What a place of the
  // plan decides is decided once for all models, and counted once at the end.

  const IN_PLAN = ["attribute", "category", "concept", "group", "framing"];

  function wanted() {
    const code = (names, name) => (element(name).value ? names.indexOf(element(name).value) : -1);
    return {
      model: code(index.models.map((m) => m.id), "model"),
      plan: IN_PLAN.map((name) => code(plan.names[name], name)),
      status: code(statusNames, "status"),
      label: code(labelNames, "label"),
      flags: index.flags.reduce((bits, name, i) => bits | (element(name).checked ? 1 << i : 0), 0),
      contested: element("contested").checked,
    };
  }

  /** For each place of the plan how many of the plan's own filters it fails, and the last of those. */
  function placesFor(codes, hits) {
    const fails = new Uint8Array(index.size);
    const which = new Uint8Array(index.size);
    codes.forEach((code, k) => {
      if (code < 0) return;
      const own = plan[IN_PLAN[k]];
      for (let p = 0; p < fails.length; p++) if (own[p] !== code) { fails[p]++; which[p] = k; }
    });
    if (hits) for (let p = 0; p < fails.length; p++) if (!hits.has(p)) fails[p] = 2;
    return { fails, which };
  }

  /** Find rows in their order, `limit` of them at most; only a scan without a limit has counted every choice. */
  function scan(want, hits, limit) {
    const size = index.size;
    const { fails, which } = placesFor(want.plan, hits);
    const rows = [];
    const n = { passed: new Uint32Array(size), nearly: new Uint32Array(size), model: new Uint32Array(columns.length),
      status: new Uint32Array(statusNames.length), label: new Uint32Array(labelNames.length),
      flags: new Uint32Array(1 << index.flags.length), contested: 0, unlabeled: 0 };
    const isContested = statusNames.indexOf("contested");
    for (let m = 0; m < columns.length; m++) {
      const { outcome, flags } = columns[m];
      const other = want.model >= 0 && want.model !== m ? 1 : 0;
      for (let p = 0; p < size; p++) {
        const o = outcome[p];
        if (o === 0 || fails[p] + other > 1) continue;
        const s = statusOf[o];
        const l = labelOf[o];
        const badStatus = want.status >= 0 && want.status !== s ? 1 : 0;
        const badLabel = want.label >= 0 && want.label !== l ? 1 : 0;
        const bad = fails[p] + other + badStatus + badLabel;
        if (bad > 1 || (flags[p] & want.flags) !== want.flags || (want.contested && s !== isContested)) continue;
        if (bad === 0) {
          rows.push(m * size + p);
          if (rows.length === limit) return { rows, which, n };
          n.passed[p]++;
          n.flags[flags[p]]++;
          if (s === isContested) n.contested++;
        } else if (fails[p]) n.nearly[p]++;
        if (bad === other) n.model[m]++;
        if (bad === badStatus) n.status[s]++;
        if (bad === badLabel && l >= 0) n.label[l]++;
        else if (bad === badLabel) n.unlabeled++;
      }
    }
    return { rows, which, n };
  }

  /** What stands behind each choice and each box, from a whole scan. */
  function countsOf({ which, n }) {
    const counts = { model: n.model, status: n.status, label: n.label };
    IN_PLAN.forEach((name, k) => {
      const own = new Uint32Array(plan.names[name].length);
      for (let p = 0; p < index.size; p++) own[plan[name][p]] += n.passed[p] + (which[p] === k ? n.nearly[p] : 0);
      counts[name] = own;
    });
    const boxes = index.flags.map((_, k) => n.flags.reduce((sum, count, bits) => sum + (bits & (1 << k) ? count : 0), 0));
    return { counts, boxes: [...boxes, n.contested], unlabeled: n.unlabeled };
  }

  /** Thousands apart. The browser's own formatter takes longer to load than all rows to filter. */
  const whole = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ",");

  function showCounts({ counts, boxes }) {
    for (const name of SELECTS) {
      for (const choice of choices[name]) {
        choice.option.text = `${choice.label} (${whole(counts[name][choice.code])})`;
      }
    }
    [...index.flags, "contested"].forEach((name, k) => {
      form.querySelector(`[data-count="${name}"]`).textContent = `(${whole(boxes[k])})`;
    });
  }

  const sets = { concept: [], group: [] }; // the choices of each attribute, in its order

  /** Leave the concepts and groups of one attribute, or of all. The rest goes: not every browser can hide a choice. */
  function narrowChoices(attribute) {
    for (const [name, all] of Object.entries(sets)) {
      let after = null;
      for (const set of [...all].reverse()) {
        const fits = attribute === "" || set.dataset.attribute === attribute || set.contains(element(name).selectedOptions[0]);
        if (!fits) set.remove();
        else if (!set.isConnected) element(name).insertBefore(set, after);
        if (fits) after = set;
      }
    }
  }

  /** Categories and framings that the chosen attribute does not have at all; a chosen one stays. */
  function hideEmpty(counts) {
    const attribute = plan.names.attribute.indexOf(element("attribute").value);
    for (const name of ["category", "framing"]) {
      for (const { option, code } of choices[name]) {
        option.hidden = attribute >= 0 && counts[name][code] === 0 && !option.selected
          && !plan[name].some((own, p) => own === code && plan.attribute[p] === attribute);
      }
    }
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

  function excerptRow(row, place, at, length) {
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

  /** Ids may wrap after an underscore, and are copied without a trace of it. */
  function breakable(made, id) {
    id.split(/(?<=_)/).forEach((part, i) => made.append(...(i ? [document.createElement("wbr"), part] : [part])));
  }

  function rowsOf(code, hits, length) {
    const m = Math.floor(code / index.size);
    const p = code % index.size;
    const outcome = index.outcomes[columns[m].outcome[p] - 1];
    const concept = plan.names.concept[plan.concept[p]];
    const framing = plan.names.framing[plan.framing[p]];
    const attribute = index.attributes[plan.attribute[p]];
    const group = attribute.groups.find((g) => `${attribute.id}.${g.id}` === plan.names.group[plan.group[p]]);
    const row = document.createElement("tr");
    const link = document.createElement("a");
    link.href = `${index.models[m].id}/${concept}/index.html#${framing}.${group.id}.${plan.repeat[p]}`;
    link.textContent = plan.title[plan.concept[p]];
    const cite = document.createElement("code");
    cite.className = "cite";
    breakable(cite, concept);
    const head = document.createElement("th");
    head.scope = "row";
    head.append(link, document.createElement("br"), cite);
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
    if (!hits) return [row];
    const excerpt = document.createElement("tr");
    excerptRow(excerpt, p, hits.get(p), length);
    return [row, excerpt];
  }

  const WORDS = { disagree: "judges disagree", leak: "mask leak", truncated: "cut", mismatch: "verdict mismatch",
    filtered: "vendor’s filter" };

  function marksOf(m, p) {
    return index.flags.filter((_, k) => columns[m].flags[p] & (1 << k)).map((name) => WORDS[name]);
  }

  function draw(rows, hits, length) {
    const shown = document.createElement("tbody");
    for (const code of rows.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS)) shown.append(...rowsOf(code, hits, length));
    body.replaceWith(shown);
    body = shown;
  }

  function sayFound(count) {
    const pages = Math.max(1, Math.ceil(count / PAGE_ROWS));
    region.setAttribute("aria-label", pages > 1 ? `Rows found, page ${page + 1} of ${whole(pages)}` : "Rows found");
    say(count === 1 ? "1 row" : `${whole(count)} rows`);
    document.getElementById("explorer-page").textContent = `Page ${page + 1} of ${whole(pages)}`;
    document.getElementById("explorer-back").disabled = page === 0;
    document.getElementById("explorer-next").disabled = page + 1 >= pages;
  }

  const labelOfField = (name) => form.querySelector(`label[for="filter-${name}"]`).textContent;

  /** How many rows there would be without one of the filters: those that fail nothing but it. */
  function withoutOne({ counts, unlabeled }) {
    return SELECTS.filter((name) => element(name).value)
      .map((name) => ({ name, rows: counts[name].reduce((sum, count) => sum + count, name === "label" ? unlabeled : 0) }))
      .filter((one) => one.rows > 0)
      .sort((a, b) => b.rows - a.rows);
  }

  /** What to loosen where nothing is found, and what is missing where a text waits for its model. */
  function adviceFor(count, found, hits, text) {
    if (text && !hits) return `The text “${visible(text)}” is not searched yet: choose a model, whose responses are then searched.`;
    if (count) return "";
    if (hits && hits.size === 0) return "No response of this model holds this text. Try fewer or other words, or another model.";
    const [most] = withoutOne(found);
    if (most) {
      const rows = most.rows === 1 ? "1 row" : `${whole(most.rows)} rows`;
      return `No row matches all filters. With “${labelOfField(most.name)}” set to any, ${rows} would.`;
    }
    const ticked = form.querySelector("input[type=checkbox]:checked");
    return `No row matches all filters. ${ticked ? "Untick a box of “Only rows”, or set" : "Set"} more than one filter to any.`;
  }

  function advise(text, nothing) {
    advice.hidden = text === "";
    clear.hidden = !nothing;
    advice.textContent = text;
  }

  function hintAtModel() {
    const model = element("model").value;
    hint.textContent = (model ? `The file of responses of ${model} is loaded and searched in your browser.`
      : "Choose a model first: its file of responses is then loaded and searched in your browser.")
      + " Nothing you type leaves it.";
  }

  /** Let the browser paint what is drawn before the rest is counted. */
  const painted = () => new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 100); });

  async function refresh() {
    const mine = ++turn;
    root.setAttribute("aria-busy", "true");
    const text = element("q").value.trim();
    element("q").disabled = element("model").value === "";
    hintAtModel();
    let hits = null;
    try {
      hits = await matching(text);
    } catch (error) {
      say(`The responses could not be loaded (${error.message}).`);
      advise("", false);
      root.setAttribute("aria-busy", "false");
      return;
    }
    if (mine !== turn) return;
    const want = wanted();
    const first = scan(want, hits, (page + 1) * PAGE_ROWS).rows;
    page = Math.min(page, Math.max(0, Math.ceil(first.length / PAGE_ROWS) - 1));
    draw(first, hits, text.length);
    await painted();
    if (mine !== turn) return;
    const all = scan(want, hits, Infinity);
    const found = countsOf(all);
    sayFound(all.rows.length);
    advise(adviceFor(all.rows.length, found, hits, text), all.rows.length === 0);
    showCounts(found);
    narrowChoices(element("attribute").value);
    hideEmpty(found.counts);
    root.setAttribute("aria-busy", "false");
  }

  // ---- Start.

  function fillSelect(name, items, into = element(name)) {
    const made = items.map(({ text, value, code }) => ({ option: new Option(text, value), label: text, code }));
    into.append(...made.map((choice) => choice.option));
    choices[name] = [...(choices[name] || []), ...made];
  }

  function fillSelects() {
    const plainly = (id, code) => ({ text: id, value: id, code });
    fillSelect("model", index.models.map((m, code) => ({ text: `${m.id}, ${m.judges} judges`, value: m.id, code })));
    fillSelect("attribute", index.attributes.map((a, code) => ({ text: a.label, value: a.id, code })));
    for (const name of ["category", "framing"]) fillSelect(name, plan.names[name].map(plainly));
    fillSelect("status", statusNames.map(plainly));
    fillSelect("label", labelNames.map(plainly));
    let concept = 0;
    let group = 0;
    for (const attribute of index.attributes) {
      const [concepts, groups] = ["concept", "group"].map((name) => {
        const set = document.createElement("optgroup");
        set.label = attribute.label;
        set.dataset.attribute = attribute.id;
        element(name).append(set);
        sets[name].push(set);
        return set;
      });
      fillSelect("concept", attribute.concepts.map((c) => ({ text: c.title, value: c.id, code: concept++ })), concepts);
      fillSelect("group", attribute.groups.map((g) => (
        { text: g.label, value: `${attribute.id}.${g.id}`, code: group++ })), groups);
    }
  }

  function listen() {
    const changed = () => { page = 0; writeAddress(true); refresh(); };
    // Who turns a page reads on at its top; the button may have been switched off under the finger.
    const turnTo = (step) => async () => {
      page += step;
      writeAddress(true);
      await refresh();
      region.focus({ preventScroll: true });
      region.scrollIntoView({ block: "start" });
    };
    for (const input of form.querySelectorAll("select, input[type=checkbox]")) {
      input.addEventListener("change", () => {
        if (input.name === "attribute") { element("concept").value = ""; element("group").value = ""; }
        changed();
      });
    }
    form.addEventListener("submit", (event) => { event.preventDefault(); changed(); });
    form.addEventListener("reset", () => {
      // The button below the table's head goes away with what it cleared: the focus must not go with it.
      if (clear.contains(document.activeElement)) element("model").focus();
      setTimeout(changed);
    });
    document.getElementById("explorer-back").addEventListener("click", turnTo(-1));
    document.getElementById("explorer-next").addEventListener("click", turnTo(1));
    addEventListener("popstate", () => { readAddress(); refresh(); });
  }

  async function start() {
    // Both at once; their addresses hold their hashes, so that they belong to each other.
    const files = [root.dataset.index, root.dataset.rows].map(fetchFile);
    index = await (await files[0]).json();
    plan = planOf(index);
    columns = columnsOf(index, await (await files[1]).arrayBuffer());
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
