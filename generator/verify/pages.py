"""Holds every number on pages that could not be made anew against the recomputed tables.

An element that names a number holds it and nothing else; one of any other form is a finding itself, so nothing hides by
its shape.

See contract: publication, "Numbers on pages".
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from generator.edition import paths
from generator.edition.site_pages import SitePage, site_pages, typical_pages
from generator.html.frame import NULL, SCORE_COLUMNS, TABLE_KEYS, number
from generator.html.links import dead_links
from generator.verify.data import Recomputed
from generator.verify.findings import ABSENT, Findings, shown
from generator.verify.markup import holds_text_alone, text_of, tree_of
from generator.verify.receipts import ReceiptPages
from generator.verify.tables import rows_by_key

_NUMBERS = "[data-score], [data-cell]"
# A share as percent, and a pair read from its second member: nothing else may stand between a value and its text.
_SCALES = {"": 1, "1": 1, "100": 100, "-1": -1, "-100": -100}


@dataclass(frozen=True)
class RecomputedRows:
    """A run's recomputed tables, each indexed by the key that pages write."""

    recomputed: Recomputed
    _tables: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    def row(self, table: str, key: str) -> dict[str, Any] | None:
        """Return a row, None when the table has none of that key; raises KeyError on an unknown table."""
        if table not in self._tables:
            self._tables[table] = rows_by_key(self.recomputed.scored.tables[table], TABLE_KEYS[table])
        return self._tables[table].get(key)


def verify_pages(dist: Path, books: dict[str, RecomputedRows], made: Container[str] = frozenset()) -> Findings:
    """Check every page below a site folder but those in `made`, which were made anew and compared byte for byte.

    `books` are the runs scored anew, by id. A page belongs to the run whose folder it is in; a root page to the run
    that its `data-run` names.
    """
    findings, unchecked = Findings(), dict[str, list[str]]()
    receipts = ReceiptPages(dist)
    for page in site_pages(dist):
        findings.checked["pages"] += 1
        if page.path in made:
            continue
        tree = tree_of((dist / page.path).read_bytes())
        if tree.css_first(_NUMBERS) is not None:
            run_id = run_of(page, tree)
            if run_id in books:
                check_page(page.path, tree, books[run_id], findings)
            else:
                unchecked.setdefault(run_id, []).append(page.path)
        if page.run in books:
            _check_notice(page.path, tree, books[page.run].recomputed.run.manifest.simulated, findings)
        receipts.check(page, tree, findings)
    for run_id, found in unchecked.items():
        more = f" (and {len(found) - 1} pages more)" if len(found) > 1 else ""
        findings.add(found[0], "run", f"{run_id or 'names no run'}{more}", "none of the runs that could be recomputed")
    for run_id, book in books.items():
        if paths.run_index(run_id) not in made:
            receipts.check_absent(book.recomputed.run, book.recomputed.scored.withheld, findings)
    return findings


def _check_notice(page: str, tree: LexborHTMLParser, simulated: bool, findings: Findings) -> None:
    """Hold the banner above a run's page against the run: a simulated one says so on each of its pages."""
    findings.checked["marks"] += 1
    there = tree.css_first(".notice-simulated") is not None
    if there != simulated:
        words = {True: "a notice that the run is simulated", False: "no such notice"}
        findings.add(page, "simulated", words[there], words[simulated])


def check_links(dist: Path, base_url: str | None, findings: Findings) -> None:
    """Find every link within the site that leads nowhere: on ordinary pages, and on one of each bulk template.

    Of a page that is named as absent the many links to it need not be told.
    """
    gone = {mismatch.file for mismatch in findings.mismatches if mismatch.published == ABSENT}
    pages = [page.path for page in typical_pages(site_pages(dist))]
    findings.checked["pages with links"] += len(pages)
    for link in (link for link in dead_links(dist, pages, base_url) if link.file not in gone):
        findings.add(link.page, f"link to {link.target}", "a link", link.why)


def run_of(page: SitePage, tree: LexborHTMLParser) -> str:
    """Return the id of the run that a page shows: that of its folder, or what its `data-run` says."""
    if page.run is not None:
        return page.run
    root = tree.css_first("html[data-run]")
    return (root.attributes["data-run"] or "") if root is not None else ""


def check_page(page: str, tree: LexborHTMLParser, book: RecomputedRows, findings: Findings) -> None:
    """Check each number of one page."""
    odd = 0
    for element in tree.css(_NUMBERS):
        keys = [name for name in ("data-score", "data-cell") if name in element.attributes]
        if len(keys) != 1 or not holds_text_alone(element):
            odd += 1
            continue
        _check_number(page, keys[0], element, book, findings)
    if odd:
        right = "an element that holds its number and nothing else"
        findings.add(page, "data-score and data-cell", f"{odd} elements in another form", right)


def _check_number(page: str, name: str, element: LexborNode, book: RecomputedRows, findings: Findings) -> None:
    findings.checked["page numbers"] += 1
    key, seen = element.attributes[name] or "", text_of(element).strip()
    written = element.attributes.get("data-scale") or ""
    scale = _SCALES.get(written)
    if scale is None:
        findings.add(page, f"{key} data-scale", written, "one of 1, 100, -1, -100")
    elif name == "data-score":
        _check_score(page, key, seen, scale, book, findings)
    else:
        _check_cell(page, key, seen, scale, book, findings)


def _check_score(page: str, key: str, seen: str, scale: int, book: RecomputedRows, findings: Findings) -> None:
    parts = key.split("|")
    if len(parts) != 5 or parts[4] not in SCORE_COLUMNS:
        findings.add(page, key, seen, "a key <model>|<metric>|<attribute>|<group>|<estimate, ci_low or ci_high>")
        return
    _compare(page, key, seen, scale, book.row("scores", ",".join(parts[:4])), parts[4], findings)


def _check_cell(page: str, key: str, seen: str, scale: int, book: RecomputedRows, findings: Findings) -> None:
    parts = key.split("|")
    if len(parts) != 3 or parts[0] not in TABLE_KEYS:
        findings.add(page, key, seen, f"a key <table>|<key>|<column>, the table one of {', '.join(TABLE_KEYS)}")
        return
    _compare(page, key, seen, scale, book.row(parts[0], parts[1]), parts[2], findings)


def _compare(
    page: str, key: str, seen: str, scale: int, row: dict[str, Any] | None, column: str, findings: Findings
) -> None:
    """Hold the text of one element against its value, rounded to as many digits as the text shows."""
    if row is None:
        # Withheld or never computed: a page may say so with a dash, and with nothing else.
        if seen != NULL:
            findings.add(page, key, seen, ABSENT)
        return
    if column not in row:
        findings.add(page, key, seen, f"a column of the table: {', '.join(row)}")
        return
    expected = expected_text(row[column], seen, scale)
    if seen != expected:
        findings.add(page, key, seen, f"{expected} (from {shown(row[column])})")


def expected_text(value: Any, seen: str, scale: int) -> str:
    """Return how a page writes a value: numbers with the digits that the text has, words as they are, null a dash."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    digits = len(seen.partition(".")[2]) if re.fullmatch(r"-?[\d,]+(\.\d+)?", seen) else 0
    return number(value * scale, digits)
