// The form is the state of the explorer, and the address repeats it, so that a view can be linked to.

import { IN_PLAN } from "./filters.js";
import { whole } from "./words.js";

const SELECTS = ["model", "attribute", "category", "concept", "group", "framing", "status", "label"];

export class FilterForm {
  page = 0;
  #all;
  #form;
  #choices = {}; // of each select: { option, label, code }
  #sets = { concept: [], group: [] }; // the choices of each attribute, in its order

  constructor(form, all) {
    this.#form = form;
    this.#all = all;
    this.#fill();
  }

  field(name) {
    return this.#form.elements.namedItem(name);
  }

  /** The names of the selects that are set to something. */
  chosen() {
    return SELECTS.filter((name) => this.field(name).value);
  }

  anyTicked() {
    return this.#form.querySelector("input[type=checkbox]:checked") !== null;
  }

  /** What is chosen, in words: `: Model sim-a/b; only contested`. */
  chosenWords() {
    const selects = this.chosen().map((name) => {
      const { label } = this.#choices[name].find((choice) => choice.option.selected);
      return `${this.labelOf(name)} ${label}`;
    });
    const boxes = [...this.#form.querySelectorAll("input[type=checkbox]:checked")].map((box) => `only ${box.name}`);
    return [...selects, ...boxes].join("; ");
  }

  labelOf(name) {
    return this.#form.querySelector(`label[for="filter-${name}"]`).textContent;
  }

  // ---- The address.

  readAddress() {
    const asked = new URLSearchParams(location.search);
    this.narrowChoices("");
    for (const name of SELECTS) {
      let value = asked.get(name) || "";
      // Groups of two attributes may share an id: an address that names the attribute may leave it out of the group.
      if (name === "group" && value && !value.includes(".")) value = `${asked.get("attribute") || ""}.${value}`;
      this.field(name).value = value;
      if (this.field(name).value !== value) this.field(name).value = "";
    }
    for (const box of this.#form.querySelectorAll("input[type=checkbox]")) box.checked = asked.get(box.name) === "1";
    this.field("q").value = asked.get("q") || "";
    this.field("order").value = asked.get("order") === "apart" ? "apart" : "";
    this.page = Math.max(0, (parseInt(asked.get("page"), 10) || 1) - 1);
  }

  writeAddress() {
    const kept = new URLSearchParams();
    for (const [name, value] of new FormData(this.#form)) if (value) kept.set(name, value);
    if (this.page) kept.set("page", this.page + 1);
    history.pushState(null, "", kept.size ? `?${kept}` : location.pathname);
  }

  // ---- What the filters ask for.

  #code(names, name) {
    return this.field(name).value ? names.indexOf(this.field(name).value) : -1;
  }

  /** The choices as `scan` reads them. */
  wanted() {
    const { index, plan, statuses, labels } = this.#all;
    return {
      model: this.model(),
      plan: IN_PLAN.map((name) => this.#code(plan.names[name], name)),
      status: this.#code(statuses, "status"),
      label: this.#code(labels, "label"),
      flags: index.flags.reduce((bits, name, i) => bits | (this.field(name).checked ? 1 << i : 0), 0),
      contested: this.field("contested").checked,
    };
  }

  /** The place of the chosen model, or -1. */
  model() {
    return this.#code(this.#all.index.models.map((m) => m.id), "model");
  }

  // ---- The choices.

  #add(name, items, into = this.field(name)) {
    const made = items.map(({ text, value, code }) => ({ option: new Option(text, value), label: text, code }));
    into.append(...made.map((choice) => choice.option));
    this.#choices[name] = [...(this.#choices[name] || []), ...made];
  }

  #fill() {
    const { index, plan, statuses, labels } = this.#all;
    const plainly = (id, code) => ({ text: id, value: id, code });
    this.#add("model", index.models.map((m, code) => ({ text: `${m.id}, ${m.judges} ${m.judges === 1 ? "judge" : "judges"}`, value: m.id, code })));
    this.#add("attribute", index.attributes.map((a, code) => ({ text: a.label, value: a.id, code })));
    for (const name of ["category", "framing"]) this.#add(name, plan.names[name].map(plainly));
    this.#add("status", statuses.map(plainly));
    this.#add("label", labels.map(plainly));
    let concept = 0;
    let group = 0;
    for (const attribute of index.attributes) {
      const concepts = attribute.concepts.map((c) => ({ text: c.title, value: c.id, code: concept++ }));
      const groups = attribute.groups.map((g) => ({ text: g.label, value: `${attribute.id}.${g.id}`, code: group++ }));
      this.#add("concept", concepts, this.#newSet("concept", attribute));
      this.#add("group", groups, this.#newSet("group", attribute));
    }
  }

  #newSet(name, attribute) {
    const set = document.createElement("optgroup");
    set.label = attribute.label;
    set.dataset.attribute = attribute.id;
    this.field(name).append(set);
    this.#sets[name].push(set);
    return set;
  }

  /** Leave the concepts and groups of one attribute, or of all. The rest goes: not every browser can hide a choice. */
  narrowChoices(attribute) {
    for (const [name, all] of Object.entries(this.#sets)) {
      const select = this.field(name);
      let after = null;
      for (const set of [...all].reverse()) {
        const fits = attribute === "" || set.dataset.attribute === attribute || set.contains(select.selectedOptions[0]);
        if (!fits) set.remove();
        else if (!set.isConnected) select.insertBefore(set, after);
        if (fits) after = set;
      }
    }
  }

  /** Hide categories and framings that the chosen attribute does not have at all; a chosen one stays. */
  hideEmpty(counts) {
    const { plan } = this.#all;
    const attribute = plan.names.attribute.indexOf(this.field("attribute").value);
    for (const name of ["category", "framing"]) {
      for (const { option, code } of this.#choices[name]) {
        option.hidden = attribute >= 0 && counts[name][code] === 0 && !option.selected
          && !plan[name].some((own, p) => own === code && plan.attribute[p] === attribute);
      }
    }
  }

  showCounts({ counts, boxes }) {
    for (const name of SELECTS) {
      for (const choice of this.#choices[name]) {
        choice.option.text = `${choice.label} (${whole(counts[name][choice.code])})`;
      }
    }
    [...this.#all.index.flags, "contested"].forEach((name, k) => {
      this.#form.querySelector(`[data-count="${name}"]`).textContent = `(${whole(boxes[k])})`;
    });
  }
}
