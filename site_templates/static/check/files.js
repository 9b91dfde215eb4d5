// Fetches published files and holds their SHA-256 against what is expected of them.

async function sha256(buffer) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", buffer));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function fetchBytes(url) {
  const response = await fetch(url, { cache: "no-store" });
  if (!response.ok) throw new Error(`${url}: the server answered ${response.status}`);
  return response.arrayBuffer();
}

/** Fetch a file of the data folder and note whether its hash is the expected one. */
export async function fetchChecked(base, name, expected, files) {
  const buffer = await fetchBytes(new URL(name, base));
  const seen = await sha256(buffer);
  files.push({ name, expected, seen, ok: seen === expected });
  return buffer;
}

const INSTEAD = "Use recompute.py on the data files instead.";

/** Why this browser cannot do the check, or null when it can. (From file:// no module runs: the page says so.) */
export function obstacle(world = globalThis) {
  if (!world.crypto?.subtle) {
    return `This browser offers no SHA-256 here: it needs https, or localhost. ${INSTEAD}`;
  }
  if (!world.CSS?.escape || !Array.prototype.flat) return `This browser is too old. ${INSTEAD}`;
  return null;
}
