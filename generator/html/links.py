"""Links of finished pages that lead nowhere: no such file below the site, or no such place on the page.

A page is read by an HTML parser that builds the tree a browser builds, whoever made the page. Addresses outside the
site are not followed.

See contract: publication, "Publish" and "Verify".
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markupsafe import escape
from selectolax.lexbor import LexborHTMLParser

from generator.edition import paths

# A link as this program writes nearly all of them: a relative path and a place, with nothing in it to decode.
_PLAIN = re.compile(r"(?!/)[A-Za-z0-9._/-]*(?:#[A-Za-z0-9._-]*)?")
_TOP = ("", "top")  # the two fragments that every page has, by the HTML standard


@dataclass(frozen=True)
class PageLinks:
    """What a page leads to, as its attributes say it, and the places on it that others may lead to."""

    targets: tuple[str, ...]
    anchors: frozenset[str]


def page_links(data: bytes) -> PageLinks:
    """Return the links and anchors of a page, each target once."""
    tree = LexborHTMLParser(data)
    targets = [
        node.attributes[name] or ""
        for name in ("href", "src", "action")
        for node in tree.css(f"[{name}]")
        if node.tag != "base"
    ]
    anchors = [node.attributes.get("id") or node.attributes.get("name") for node in tree.css("[id], a[name]")]
    return PageLinks(tuple(dict.fromkeys(targets)), frozenset(anchor for anchor in anchors if anchor))


@dataclass(frozen=True)
class DeadLink:
    """A link of a page that leads nowhere: `target` as it is written, `file` where it leads, `why` what is missing."""

    page: str
    target: str
    file: str
    why: str

    def __str__(self) -> str:
        """One line for a person."""
        return f"{self.page}: {self.target}: {self.why}"


def dead_links(root: Path, pages: Iterable[str], base_url: str | None = None) -> list[DeadLink]:
    """Return every link of some pages below `root` that leads nowhere, in the order of the pages.

    `base_url`: where the site lives, if it says so; links that begin with it lead into the site, too.
    """
    links: list[tuple[str, str, tuple[str, str]]] = []
    read: dict[str, PageLinks] = {}
    for page in pages:
        read[page] = page_links((root / page).read_bytes())
        places = ((target, resolved(page, target, base_url)) for target in read[page].targets)
        links += ((page, target, place) for target, place in places if place is not None)
    wanted: dict[str, set[str]] = {}
    for _, _, (name, anchor) in links:
        wanted.setdefault(name, set()).add(anchor)
    faults = {(name, anchor): why for name in wanted for anchor, why in _faults(root, name, wanted[name], read)}
    return [DeadLink(page, target, place[0], faults[place]) for page, target, place in links if place in faults]


def _faults(root: Path, name: str, anchors: Iterable[str], read: Mapping[str, PageLinks]) -> Iterator[tuple[str, str]]:
    """Yield (anchor, what is missing) of the places of one file that are not there."""
    if name.startswith("../") or not (root / name).is_file():
        why = "leads out of the site" if name.startswith("../") else f"{name} is not there"
        yield from ((anchor, why) for anchor in anchors)
        return
    places = [a for a in anchors if a not in _TOP and not is_filter(name, a)] if name.endswith(".html") else []
    if places and name not in read:
        data = (root / name).read_bytes()
        # A place written as this program writes it is found without the tree: there are 25,000 links to answers.
        places = [a for a in places if f' id="{escape(a)}"'.encode() not in data]
    if places:
        there = (read.get(name) or page_links((root / name).read_bytes())).anchors
        yield from ((a, f"{name} has no place of that name") for a in places if a not in there)


def resolved(page: str, target: str, base_url: str | None = None) -> tuple[str, str] | None:
    """Return (path below the site, anchor) of a link as a browser resolves it; None for another site."""
    if _PLAIN.fullmatch(target):
        path, _, anchor = target.partition("#")
        return (_below(posixpath.dirname(page), path) if path else page), anchor
    home = urlsplit(base_url).path.rstrip("/") if base_url else ""
    if base_url and (target == base_url or target.startswith((f"{base_url}/", f"{base_url}#"))):
        target = f"{home}/{target[len(base_url) :].lstrip('/')}"
    try:
        parts = urlsplit(target)
    except ValueError:
        return target, ""  # no address at all, so no file of that name either
    if parts.scheme or parts.netloc:
        return None
    path, anchor = parts.path, unquote(parts.fragment)
    if not path:
        return page, anchor
    if path.startswith("/"):
        if home and not f"{path}/".startswith(f"{home}/"):
            return None
        path = path.removeprefix(home).lstrip("/")
        whole = posixpath.normpath(path or ".")
    else:
        return unquote(_below(posixpath.dirname(page), path)), anchor
    is_folder = path.endswith("/") or whole == "." or not path
    return unquote(posixpath.normpath(posixpath.join(whole, "index.html")) if is_folder else whole), anchor


@functools.lru_cache(maxsize=4096)
def _below(folder: str, path: str) -> str:
    """Return where a relative path leads from a folder; to a folder's index.html where it ends in a folder."""
    whole = posixpath.normpath(posixpath.join(folder, path))
    is_folder = path.endswith("/") or whole == "."
    return posixpath.normpath(posixpath.join(whole, "index.html")) if is_folder else whole


def is_filter(page: str, anchor: str) -> bool:
    """Tell whether a fragment is no place in a page's text but what its script is to show: rows of receipts."""
    parts = page.split("/")
    if len(parts) == 4 and page == paths.set_reader(parts[1]):
        return True
    return len(parts) == 4 and page == paths.explorer_page(parts[1]) and "=" in anchor
