"""Holds the receipt pages against the published receipts: every prompt, answer, label, status, value and evidence.

Untrusted text stands on a page in a `raw` block or a `bdi`, with marks around some of it. With the tags taken out, the
text of such an element must be exactly what `visible` makes of the receipt, tags taken out likewise.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from generator.edition import paths
from generator.html.frame import visible
from generator.html.receipt_words import matches_text, vote_text
from generator.runs.reader import Run
from generator.schema.errors import InputError
from generator.schema.names import shard_name
from generator.verify.findings import ABSENT, Findings
from generator.verify.tables import read_table, table_files

COLUMNS = (
    "receipt_id",
    "concept",
    "framing",
    "group",
    "repeat",
    "prompt",
    "prompt_sha256",
    "rubric_sha256",
    "response",
    "response_key",
    "votes",
    "final_label",
    "value",
    "status",
)
_PAGE = re.compile(r"runs/([^/]+)/receipts/([^/]+/[^/]+)/([^/]+)/([^/]+)\.html")
_TAG = re.compile(r"<[^>]*>")
_RAW = re.compile(r'<div class="raw"[^>]*>(.*?)</div>', re.DOTALL)
_BDI = re.compile(r"<bdi>(.*?)</bdi>", re.DOTALL)
_STATUS = re.compile(r'<span class="[^"]*\bst-(\w+)')
_VOTE = re.compile(
    r'<tr><th scope="row">(.*?) <span class="soft">(.*?)</span></th><td>(.*?)</td><td class="say">.*?</td>'
    r'<td class="agrees">(.*?)</td></tr>',
    re.DOTALL,
)
_ARTICLE = re.compile(r'<article id="([^"]+)">(.*?)</article>', re.DOTALL)
Row = dict[str, Any]


def text_of(markup: str) -> str:
    """Return the text of a piece of HTML: tags out, references resolved."""
    return html.unescape(_TAG.sub("", markup)) if "<" in markup or "&" in markup else markup


def shown_text(text: str | None) -> str | None:
    """Return the text that a page shows of an untrusted text, hidden characters as their code points; None for null."""
    return None if text is None else text_of(visible(text))


@dataclass
class ReceiptPages:
    """The receipt pages of a site as they are met; the receipts of one model are held at a time."""

    dist: Path
    _model: tuple[str, str] = ("", "")
    _rows: dict[str, dict[str, Row]] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def check(self, page: str, text: str, findings: Findings, *, known: bool = False) -> None:
        """Check one page when it is a receipt page: a matched set, or the page of a row; a `known` one is right."""
        found = _PAGE.fullmatch(page)
        if found is None:
            return
        if known:
            self._seen.add(page)
            return
        run_id, model, concept, name = found.groups()
        rows = self._of(run_id, model).get(concept)
        if rows is None:
            findings.add(page, "page", "a page of receipts", "no such receipts are published")
            return
        self._seen.add(page)
        if name == "index":
            _check_set(page, text, rows, findings)
        elif name in rows:
            _check_row(page, text, rows[name], findings)
        else:
            findings.add(page, "page", "a receipt's page", "no such receipt is published")

    def check_absent(self, run: Run, withheld: frozenset[str], findings: Findings) -> None:
        """Find the pages that a run should have and has not; concepts of a withheld category have none.

        A run in which one row has a page of its own has one for each.
        """
        run_id = run.manifest.run_id
        kept = {c.id for c in run.bank.concepts if c.category not in withheld}
        with_rows = any(p.startswith(f"runs/{run_id}/") and not p.endswith("/index.html") for p in self._seen)
        for model in run.models:
            for concept, rows in self._of(run_id, model).items():
                own = [paths.set_page(run_id, model, concept)] if concept in kept else []
                if own and with_rows:
                    own += [f"{own[0].removesuffix('index.html')}{anchor}.html" for anchor in rows]
                for page in (p for p in own if p not in self._seen):
                    findings.add(page, "page", ABSENT, f"receipts of {concept}")

    def _of(self, run_id: str, model: str) -> dict[str, dict[str, Row]]:
        """Return a model's receipts: concept, then anchor."""
        if self._model != (run_id, model):
            self._model, self._rows = (run_id, model), {}
            for row in self._read(run_id, model).to_pylist():
                anchor = paths.row_anchor(row["framing"], row["group"], row["repeat"])
                self._rows.setdefault(row["concept"], {})[anchor] = row
        return self._rows

    def _read(self, run_id: str, model: str) -> pa.Table:
        folder = self.dist / paths.data_file(run_id, "receipts")
        names = table_files([p.name for p in folder.glob("*.parquet")], shard_name(model))
        try:
            return pa.concat_tables([read_table(folder / name).select(COLUMNS) for name in names])
        except (InputError, KeyError, pa.ArrowInvalid):
            return pa.table({name: [] for name in COLUMNS})  # what is wrong with the file is a finding already


def _check_set(page: str, text: str, rows: dict[str, Row], findings: Findings) -> None:
    articles = dict(_ARTICLE.findall(text))
    outside = {text_of(raw) for raw in _RAW.findall(_ARTICLE.sub("", text))}
    for anchor, row in rows.items():
        if anchor not in articles:
            findings.add(page, f"#{anchor}", ABSENT, f"receipt {row['receipt_id']}")
            continue
        prompt = shown_text(row["prompt"])
        if prompt is not None and prompt not in outside:  # what an import lacks the page says in words of its own
            findings.add(page, f"#{anchor}|prompt", ABSENT, prompt)
        body = articles[anchor]
        head = body.partition("</h4>")[0]
        _same(page, f"#{anchor}", [("response", _first(_RAW, body), shown_text(row["response"]))], findings)
        _check_words(page, f"#{anchor}", text_of(head), text_of(_RAW.sub("", body)), row, findings)
        _check_record(page, f"#{anchor}", body, row, findings)
    for anchor in articles.keys() - rows.keys():
        findings.add(page, f"#{anchor}", "an answer", ABSENT)


def _check_row(page: str, text: str, row: Row, findings: Findings) -> None:
    main = text.partition("<main")[2]
    raws = [text_of(raw) for raw in _RAW.findall(main)]
    expected = [("prompt", shown_text(row["prompt"])), ("response", shown_text(row["response"]))]
    if len(raws) != len(expected):
        findings.add(page, "raw blocks", len(raws), len(expected))
        return
    _same(page, "", [(name, seen, right) for (name, right), seen in zip(expected, raws, strict=True)], findings)
    verdict = text_of(main.partition('class="verdict">')[2].partition("</p>")[0])
    _check_words(page, "", verdict, verdict, row, findings)
    _check_record(page, "", main.partition("<h2>The same")[0], row, findings)
    _check_votes(page, main, row["votes"], findings)
    keys = [row[name] for name in ("receipt_id", "prompt_sha256", "rubric_sha256", "response_key")]
    for key in (k for k in (*keys, *(vote["key"] for vote in row["votes"])) if k is not None and k not in main):
        findings.add(page, "hashes and keys", ABSENT, key)


def _check_votes(page: str, main: str, votes: list[dict[str, Any]], findings: Findings) -> None:
    """Hold who voted, as what, for which label, and whether the verdict word agrees with the reasoning."""
    right = [(v["judge"], v["role"], vote_text(v), matches_text(v["verdict_matches_prose"])) for v in votes]
    seen = [tuple(text_of(part) for part in vote) for vote in _VOTE.findall(main)]
    if seen != right:
        findings.add(page, "votes", "; ".join(map(", ".join, seen)), "; ".join(map(", ".join, right)))


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return text_of(found.group(1)) if found else ABSENT


def _same(page: str, anchor: str, triples: list[tuple[str, str, str | None]], findings: Findings) -> None:
    """Hold untrusted texts; where the receipt has none the page says so in words of its own."""
    for name, seen, right in triples:
        if right is not None:
            findings.compare(page, f"{anchor}|{name}".lstrip("|"), seen, right, what="receipt texts")


def _check_words(page: str, anchor: str, head: str, value_in: str, row: Row, findings: Findings) -> None:
    """Hold label and value, each in the words where it stands; a row without them has its status to say so."""
    value = None if row["value"] is None else f"{row['value']:.3f}".rstrip("0").rstrip(".")
    for name, right, words in (("final_label", row["final_label"], head), ("value", value, value_in)):
        if right is not None and not re.search(rf"(?<![\w.-]){re.escape(right)}(?![\w-]|\.\d)", words):
            findings.add(page, f"{anchor}|{name}".lstrip("|"), words.strip()[:120], right)


def _check_record(page: str, anchor: str, body: str, row: Row, findings: Findings) -> None:
    """Hold the status, the ids and every judge's evidence."""
    statuses = set(_STATUS.findall(body))
    if statuses != {row["status"]}:
        findings.add(page, f"{anchor}|status".lstrip("|"), ", ".join(sorted(statuses)) or ABSENT, row["status"])
    right = [text_of(visible(v["evidence"])) for v in row["votes"] if v["evidence"] is not None]
    seen = [text_of(said) for said in _BDI.findall(body)]
    if [said for said in seen if said in right] != right:
        findings.add(page, f"{anchor}|evidence".lstrip("|"), "; ".join(seen), "; ".join(right))
    if anchor and row["receipt_id"] not in body:
        findings.add(page, f"{anchor}|receipt_id".lstrip("|"), ABSENT, row["receipt_id"])
