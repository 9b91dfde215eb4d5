// Loads the page's ES modules. A browser refuses that from file://; there it shows what the page says about it.
"use strict";

if (location.protocol === "file:") {
  for (const note of document.querySelectorAll("[data-from-file]")) note.hidden = false;
  for (const part of document.querySelectorAll("[data-needs-server]")) part.hidden = true;
} else {
  for (const name of document.currentScript.dataset.modules.split(" ")) import(new URL(name, document.baseURI).href);
}
