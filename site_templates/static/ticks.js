// The ticked groups of a matched set stand in the address (?only=direct.g0&only=direct.g1), so that a comparison can be
// linked to. The page narrows to them without a script; this only reads and writes the address.
"use strict";

(() => {
  const boxes = [...document.querySelectorAll(".glance input[type=checkbox]")];
  if (!boxes.length) return;
  const nameOf = (box) => decodeURIComponent(box.closest("tr").querySelector("th a").hash.slice(1));

  function read() {
    const only = new Set(new URLSearchParams(location.search).getAll("only"));
    for (const box of boxes) box.checked = only.has(nameOf(box));
  }

  function write() {
    const query = new URLSearchParams(location.search);
    query.delete("only");
    for (const box of boxes) if (box.checked) query.append("only", nameOf(box));
    const text = query.size ? `?${query}` : "";
    try {
      history.replaceState(null, "", `${location.pathname}${text}${location.hash}`);
    } catch {
      // A browser may keep a page opened from a file from changing its address; the page narrows all the same.
    }
  }

  read();
  for (const box of boxes) box.addEventListener("change", write);
  addEventListener("popstate", read);
})();
