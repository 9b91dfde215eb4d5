// Makes the Data page's commands ready to paste: fills in the folder's address and offers a copy button.
const base = new URL(".", location.href).href.replace(/\/$/, "");

for (const code of document.querySelectorAll("[data-example] code")) {
  if (location.protocol === "file:" || !code.textContent.includes("$BASE")) continue;
  // The command to fetch everything sets BASE itself; the others name the folder directly.
  code.textContent = code.textContent.startsWith("BASE=")
    ? code.textContent.replace(/^BASE=.*$/m, `BASE="${base}"`)
    : code.textContent.replaceAll("$BASE", base);
}

if (navigator.clipboard) {
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Copying was refused";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }
}
