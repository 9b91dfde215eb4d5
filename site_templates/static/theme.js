// The theme that a reader chose, before anything is drawn; kept on this machine alone, and nothing is sent.
"use strict";

(() => {
  try {
    const kept = localStorage.getItem("theme");
    if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  } catch { /* no storage here: the system's theme holds */ }
})();
