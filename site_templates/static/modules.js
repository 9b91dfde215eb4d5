// Loads the page's ES modules, which a browser refuses to do from file://; there the page says so itself.
"use strict";

if (location.protocol !== "file:") {
  for (const name of document.currentScript.dataset.modules.split(" ")) import(new URL(name, document.baseURI).href);
}
