"""Holds every number on the pages against the recomputed tables (contract: publication, "Numbers on pages").

Pages are read by pattern and not as a tree: sixty thousand of them have to be read in seconds, and each number stands
alone in its element. An element that names a number in any other form is a finding itself: nothing hides by its shape.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.html.frame import NULL, SCORE_COLUMNS, TABLE_KEYS, number
from generator.verify.data import Recomputed
from generator.verify.findings import ABSENT, Findings, shown
from generator.verify.receipts import ReceiptPages
from generator.verify.tables import rows_by_key

_ELEMENT = re.compile(
    r"<(?P<tag>[a-zA-Z][\w-]*)\b(?P<before>[^<>]*?)\sdata-(?P<kind>score|cell)=\"(?P<key>[^\"<>]*)\"(?P<after>[^<>]*)>"
    r"(?P<text>[^<]*)</(?P=tag)>"
)
_NAMED = re.compile(r"\sdata-(?:score|cell)\s*=", re.IGNORECASE)
_SCALE = re.compile(r"\sdata-scale=\"([^\"]*)\"")
# A share as percent, and a pair read from its second member: nothing else may stand between a value and its text.
_SCALES = {"": 1, "1": 1, "100": 100, "-1": -1, "-100": -100}
_RUN = re.compile(r"<html[^>]*\sdata-run=\"([^\"]*)\"")
_MARKED = (b"data-score", b"data-cell")


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


def verify_pages(dist: Path, books: dict[str, RecomputedRows], equal: Container[str] = frozenset()) -> Findings:
    """Check every page below a site folder; `books` are the runs scored anew, by id.

    A page belongs to the run whose folder it is in; a root page to the run that its `data-run` names. `equal`: pages
    that were made anew with the same bytes. Their numbers are held all the same, by means that no template has a part
    in; the texts of receipts are not read a second time.
    """
    findings, unchecked = Findings(), dict[str, list[str]]()
    receipts = ReceiptPages(dist)
    for path in pages(dist):
        page, data = path.relative_to(dist).as_posix(), path.read_bytes()
        findings.checked["pages"] += 1
        text = data.decode("utf-8", errors="replace")
        if any(mark in data for mark in _MARKED):
            run_id = run_of(page, text)
            if run_id in books:
                check_page(page, text, books[run_id], findings)
            else:
                unchecked.setdefault(run_id, []).append(page)
        receipts.check(page, text, findings, known=page in equal)
    for run_id, found in unchecked.items():
        more = f" (and {len(found) - 1} pages more)" if len(found) > 1 else ""
        findings.add(found[0], "run", f"{run_id or 'names no run'}{more}", "none of the runs that could be recomputed")
    for book in books.values():
        receipts.check_absent(book.recomputed.run, book.recomputed.scored.withheld, findings)
    return findings


def pages(dist: Path) -> Iterator[Path]:
    """Yield every HTML page, in order of its path."""
    yield from sorted(dist.rglob("*.html"))


def run_of(page: str, text: str) -> str:
    """Return the id of the run that a page shows: that of its folder, or what its `data-run` says."""
    parts = page.split("/")
    if len(parts) > 2 and parts[0] == "runs":
        return parts[1]
    found = _RUN.search(text)
    return html.unescape(found.group(1)) if found else ""


def check_page(page: str, text: str, book: RecomputedRows, findings: Findings) -> None:
    """Check each number of one page."""
    elements = list(_ELEMENT.finditer(text))
    if len(elements) != len(_NAMED.findall(text)):
        odd = f"{len(_NAMED.findall(text)) - len(elements)} elements in another form"
        findings.add(page, "data-score and data-cell", odd, "an element that holds its number and nothing else")
    checks: dict[str, Callable[[str, str, int], None]] = {
        "score": lambda key, seen, scale: _check_score(page, key, seen, scale, book, findings),
        "cell": lambda key, seen, scale: _check_cell(page, key, seen, scale, book, findings),
    }
    for element in elements:
        scale = _SCALE.search(element["before"] + element["after"])
        findings.checked["page numbers"] += 1
        key, seen = html.unescape(element["key"]), html.unescape(element["text"]).strip()
        factor = _SCALES.get(scale.group(1) if scale else "")
        if factor is None:
            findings.add(page, f"{key} data-scale", scale and scale.group(1), "one of 1, 100, -1, -100")
        else:
            checks[element["kind"]](key, seen, factor)


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
