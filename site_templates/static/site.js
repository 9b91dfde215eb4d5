// Small comforts on every page that loads it; nothing here is needed to read the page.
"use strict";

// Copy buttons: <button type="button" data-copy="…" hidden>. A relative address is made absolute first.
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const before = button.textContent;
    const text = new URL(button.dataset.copy, document.baseURI).href;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = text;
    }
    setTimeout(() => { button.textContent = before; }, 2500);
  });
}

// The theme: as the system has it, dark, light, in turn. The choice stays on this machine (theme.js reads it).
for (const button of document.querySelectorAll("[data-theme-switch]")) {
  const order = ["auto", "dark", "light"];
  const root = document.documentElement;
  const show = () => { button.textContent = `Theme: ${root.dataset.theme ?? "auto"}`; };
  button.hidden = false;
  show();
  button.addEventListener("click", () => {
    const next = order[(order.indexOf(root.dataset.theme ?? "auto") + 1) % order.length];
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    try {
      if (next === "auto") localStorage.removeItem("theme");
      else localStorage.setItem("theme", next);
    } catch { /* it holds for this page */ }
    show();
  });
}

// A note leads back to the mark that led to it.
document.addEventListener("click", (event) => {
  const mark = event.target.closest?.(".fn a");
  const back = mark && document.querySelector(`${mark.hash} [href^="#use-"]`);
  if (!back) return;
  mark.id ||= `from-${[...document.querySelectorAll(".fn a")].indexOf(mark)}`;
  back.hash = mark.id;
});

// An address that leads to a row of a set shows its group and prompt at the top; the row is outlined below them.
function showSide() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named?.matches(".side article")) named.closest(".side").scrollIntoView();
}
window.addEventListener("hashchange", showSide);
showSide();

// On paper nothing can be opened: what is folded is opened for the print and folded again after it, but for groups without
// a finding and for explanations, which stay a line. The address
// is printed below the page, since a browser's own header may be switched off.
(() => {
  let opened = [];
  let address = null;
  window.addEventListener("beforeprint", () => {
    if (address) return;
    opened = [...document.querySelectorAll("details:not([open], .lean, .how)")];
    for (const details of opened) details.open = true;
    address = document.createElement("p");
    address.className = "small print-address";
    address.textContent = `Printed from ${location.href}`;
    document.getElementById("main")?.append(address);
  });
  window.addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
    opened = [];
    address?.remove();
    address = null;
  });
})();

// Sortable tables: <table data-sort>; a header cell with data-key="text" or "number" gets a button. A cell may carry its
// value in data-value; cells without a value stay last in both directions.
for (const table of document.querySelectorAll("table[data-sort]")) {
  const headers = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  headers.forEach((header, column) => {
    if (!header.dataset.key) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...header.childNodes);
    for (const link of button.querySelectorAll("a")) link.replaceWith(...link.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const down = header.dataset.key === "number"
        ? header.getAttribute("aria-sort") !== "descending"
        : header.getAttribute("aria-sort") === "ascending";
      for (const other of headers) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", down ? "descending" : "ascending");
      sortRows(table, column, header.dataset.key, down ? -1 : 1);
    });
  });
}

function sortRows(table, column, kind, direction) {
  const value = (row) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.trim();
    if (text === "" || text === "–") return null;
    return kind === "number" ? Number(text) : text;
  };
  for (const body of table.tBodies) {
    const rows = [...body.rows].map((row, place) => ({ row, place, value: value(row) }));
    rows.sort((a, b) => {
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.place - b.place;
      const order = kind === "number" ? a.value - b.value : a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
      return direction * order || a.place - b.place;
    });
    body.append(...rows.map((item) => item.row));
  }
}

// A long list in folded parts, filtered by part and by text: <p data-list-filter="id of the list" hidden>.
for (const filter of document.querySelectorAll("[data-list-filter]")) {
  const list = document.getElementById(filter.dataset.listFilter);
  const parts = [...list.querySelectorAll("details")];
  const [select, input, status] = ["select", "input", "[role=status]"].map((name) => filter.querySelector(name));
  const nameOf = (part) => part.querySelector("summary").textContent.split(",")[0];
  select.append(...parts.map((part) => new Option(nameOf(part), nameOf(part))));
  const apply = () => {
    const text = input.value.trim().toLowerCase();
    let found = 0;
    for (const part of parts) {
      const asked = !select.value || nameOf(part) === select.value;
      let own = 0;
      for (const item of part.querySelectorAll("li")) {
        item.hidden = !asked || !item.textContent.toLowerCase().includes(text);
        own += item.hidden ? 0 : 1;
      }
      part.hidden = own === 0;
      part.open = own > 0 && (text !== "" || select.value !== "");
      found += own;
    }
    const around = list.closest("details");
    if (around) around.open = text !== "" || select.value !== "";
    status.textContent = text || select.value ? (found === 1 ? "1 model" : `${found} models`) : "";
  };
  filter.hidden = false;
  select.addEventListener("change", apply);
  input.addEventListener("input", apply);
}
