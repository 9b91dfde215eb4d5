// The search page: asks Pagefind's index and lists what it finds. Text from the index enters the page as text only.

const form = document.getElementById("search-form");
const field = document.getElementById("search-text");
const status = document.getElementById("search-status");
const list = document.getElementById("search-results");
const pages = document.getElementById("search-pages");
const more = document.getElementById("search-more");
const SHOWN = 20;
// Pages of two runs hold nearly the same words: another run's page stands behind unless it fits far better.
const BEHIND = 0.5;
let turn = 0; // of two searches under way only the later may draw

status.textContent = "Loading the search index …";

/** An excerpt comes as escaped HTML with <mark> around hits: read it as text and rebuild the marks by hand. */
function excerpt(html) {
  const line = document.createElement("p");
  const parsed = new DOMParser().parseFromString(html, "text/html");
  for (const node of parsed.body.childNodes) {
    const hit = node.nodeName === "MARK";
    const part = hit ? document.createElement("mark") : document.createTextNode(node.textContent);
    if (hit) part.textContent = node.textContent;
    line.append(part);
  }
  return line;
}

/** The index knows addresses below the site's root, which is this page's own folder. */
function address(url) {
  return new URL(url.replace(/^\//, ""), new URL(".", location.href)).href;
}

const whole = (count) => count.toLocaleString("en-US");

function item(found) {
  const entry = document.createElement("li");
  const link = document.createElement("a");
  link.href = address(found.url);
  // A page of a run names it, and whether it is simulated or a preview; pages of the site itself do not.
  link.textContent = (found.meta.title || found.url) + (found.meta.run ? ` · run ${found.meta.run}` : "");
  entry.append(link);
  entry.append(excerpt(found.excerpt));
  return entry;
}

/** Hits in their order: the page that bears the words as its title, then by score, other runs behind the front one. */
function ordered(results, known, text) {
  const front = document.documentElement.dataset.run;
  const placed = results.map((hit) => {
    const [run, title] = known[hit.id] || [front, ""]; // prose belongs to no run
    return { hit, named: title.toLowerCase() === text.toLowerCase(), score: hit.score * (run === front ? 1 : BEHIND) };
  });
  return placed.sort((a, b) => b.named - a.named || b.score - a.score).map((one) => one.hit);
}

async function search(pagefind, known, text) {
  const mine = ++turn;
  history.replaceState(null, "", text ? `?q=${encodeURIComponent(text)}` : location.pathname);
  if (!text) {
    list.hidden = more.hidden = true;
    pages.hidden = false;
    status.textContent = "Type a word, such as kappa, lean or a model’s name.";
    return;
  }
  const results = ordered((await pagefind.search(text)).results, known, text);
  if (mine !== turn) return;
  const add = async (from) => {
    const shown = await Promise.all(results.slice(from, from + SHOWN).map((result) => result.data()));
    if (mine !== turn) return;
    const items = shown.map(item);
    if (from) list.append(...items);
    else list.replaceChildren(...items);
    const until = from + shown.length;
    list.hidden = false;
    pages.hidden = results.length > 0;
    more.hidden = until >= results.length;
    more.onclick = () => add(until);
    const many = more.hidden ? "" : `, the first ${whole(until)} shown`;
    status.textContent = `${whole(results.length)} ${results.length === 1 ? "page" : "pages"} for “${text}”${many}`;
    // Whoever asked for more goes on reading at the first of them.
    if (from) items[0].querySelector("a").focus();
  };
  await add(0);
}

async function start() {
  const index = new URL(status.dataset.index, location.href);
  const known = await (await fetch(new URL("known.json", index))).json();
  const pagefind = await import(index.href);
  // What a page is about counts, by the weights of its words: not how short it is, nor that its title holds the word.
  const ranking = { pageLength: 0.1, termFrequency: 0.1, metaWeights: { title: 0 } };
  await pagefind.options({ baseUrl: "/", excerptLength: 25, ranking });
  form.hidden = false;
  const ask = () => search(pagefind, known, field.value.trim());
  let timer = 0;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 150);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  field.value = new URLSearchParams(location.search).get("q") || "";
  await ask();
}

start().catch(() => {
  status.textContent = "The search index could not be loaded. Start from one of these pages:";
});
