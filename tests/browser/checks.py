"""Checkers of finished pages: plain functions that return what is wrong, each proven by a seeded bad page."""

from __future__ import annotations

import gzip
import json
import posixpath
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parent.parent.parent
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
VNU = ROOT / "node_modules" / "vnu-jar" / "build" / "dist" / "vnu.jar"
# WCAG 2.2 AA with everything below it, and axe's own best practices.
AXE_TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
# Listed in the page and run before any of its scripts: what a policy blocked, whatever the browser's console prints.
CSP_WATCH = """
window.__blocked = [];
document.addEventListener("securitypolicyviolation", (e) => {
  window.__blocked.push(`${e.effectiveDirective} ${e.blockedURI} ${e.sourceFile || ""}:${e.lineNumber || 0}`);
});
"""


@dataclass
class Page:
    """What the link check needs of a page: its anchors and the addresses that it names, with the element."""

    anchors: set[str] = field(default_factory=set)
    targets: list[tuple[str, str]] = field(default_factory=list)


# Published pages hold no bare < or > outside tags (vnu checks that), so a pattern reads them ten times faster.
_TAG = re.compile(r"<([a-z][a-z0-9]*)\b([^<>]*)>")
_ATTRIBUTE = re.compile(r"\b(id|href|src|srcset|rel)=\"([^\"]*)\"")


def read_page(path: Path) -> Page:
    """Read one page's anchors and addresses."""
    page = Page()
    for tag, attributes in _TAG.findall(path.read_text(encoding="utf-8")):
        named = {name: unescape(value) for name, value in _ATTRIBUTE.findall(attributes)}
        if "id" in named:
            page.anchors.add(named["id"])
        address = named.get("href") if tag in ("a", "link") else named.get("src")
        if address is not None and named.get("rel") != "canonical":
            page.targets.append((tag, address))
        sources = named.get("srcset", "").split(",")
        page.targets += [(tag, source.split()[0]) for source in sources if source.strip()]
    return page


def dead_links(root: Path, *, absolute: Iterable[str] = ("404.html",)) -> list[str]:
    """Return every internal link below `root` whose file or anchor is missing, or that is not relative."""
    pages = {p.relative_to(root).as_posix(): read_page(p) for p in sorted(root.rglob("*.html"))}
    files = {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}
    faults = []
    for name, page in pages.items():
        for tag, address in page.targets:
            parts = urlsplit(address)
            if parts.scheme in ("http", "https", "mailto") and tag == "a":
                continue
            if parts.scheme or parts.netloc:
                faults.append(f"{name}: <{tag}> loads from elsewhere: {address[:80]}")
            elif parts.path.startswith("/"):
                if name not in absolute:
                    faults.append(f"{name}: link from the domain's root: {address[:80]}")
            else:
                faults += _dead(name, address, parts.path, unquote(parts.fragment), pages, files)
    return faults


def _dead(name: str, address: str, path: str, anchor: str, pages: dict[str, Page], files: set[str]) -> list[str]:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(path))) if path else name
    if target not in files:
        return [f"{name}: no such file: {address[:120]}"]
    if anchor and target in pages and anchor not in pages[target].anchors:
        return [f"{name}: no such anchor: {address[:120]}"]
    return []


def axe_faults(page: Any) -> list[str]:
    """Run axe-core in an open page; returns rule, element and reason of every violation."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        "tags => axe.run(document, {runOnly: tags, resultTypes: ['violations']}).then(r => r.violations)",
        list(AXE_TAGS),
    )
    return [
        f"{rule['id']}: {node['target'][0]}: {' '.join(node['failureSummary'].split())[:300]}"
        for rule in found
        for node in rule["nodes"][:3]
    ]


def vnu_ready() -> str | None:
    """Say why the HTML validator cannot run here, or None."""
    if shutil.which("java") is None:
        return "java is not installed (make system)"
    return None if VNU.is_file() else "vnu-jar is not installed (make assets)"


def html_faults(files: Iterable[Path]) -> list[str]:
    """Validate pages with the Nu HTML Checker in one run of Java; returns its errors."""
    command = [
        "java",
        "-Xss4m",
        "-XX:TieredStopAtLevel=1",
        "-jar",
        str(VNU),
        "--format",
        "json",
        "--exit-zero-always",
        *map(str, files),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    messages = json.loads(done.stderr or done.stdout)["messages"]
    return [
        f"{urlsplit(m['url']).path}:{m.get('lastLine')}: {m['message']} [{m.get('extract', '')[:80]!r}]"
        for m in messages
        if m["type"] in ("error", "non-document-error")
    ]


def zipped(path: Path) -> int:
    """Return a file's gzipped size in bytes."""
    return len(gzip.compress(path.read_bytes(), 9, mtime=0))


def page_weight(root: Path, name: str) -> int:
    """Return what a first visit of a page loads, gzipped: the page and every file that it names to render itself."""
    seen = {name}
    for tag, address in read_page(root / name).targets:
        if tag in ("link", "script", "img", "source"):
            seen.add(posixpath.normpath(posixpath.join(posixpath.dirname(name), urlsplit(address).path)))
    return sum(zipped(root / file) for file in sorted(seen))


def contrast(foreground: tuple[float, ...], background: tuple[float, ...]) -> float:
    """Return the WCAG contrast ratio of two sRGB colours (0-255)."""

    def luminance(colour: tuple[float, ...]) -> float:
        parts = [c / 255 for c in colour[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(foreground), luminance(background)), reverse=True)
    return (high + 0.05) / (low + 0.05)
