"""Holds the receipt pages against the published receipts: every prompt, answer, label, status, value and evidence.

Untrusted text stands on a page in a `raw` block or a `bdi`, with marks around some of it. The text of such an element
must be exactly the text of what `visible` makes of the receipt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from selectolax.lexbor import LexborHTMLParser, LexborNode

from generator.edition import paths
from generator.edition.site_pages import BULK, SitePage, page_at, row_pages
from generator.html.receipt_words import matches_text, vote_text
from generator.runs.reader import Run
from generator.schema.errors import InputError
from generator.schema.names import shard_name
from generator.verify.findings import ABSENT, Findings
from generator.verify.markup import shown_text, text_of, texts_of
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
Row = dict[str, Any]


@dataclass
class ReceiptPages:
    """The receipt pages of a site as they are met; the receipts of one model are held at a time."""

    dist: Path
    _model: tuple[str, str] = ("", "")
    _rows: dict[str, dict[str, Row]] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def check(self, page: SitePage, tree: LexborHTMLParser, findings: Findings) -> None:
        """Check one page when it is a receipt page: a matched set, or the page of a row."""
        if page.kind not in BULK:
            return
        run_id, vendor, name, concept = page.names[:4]
        rows = self._of(run_id, f"{vendor}/{name}").get(concept)
        if rows is None:
            findings.add(page.path, "page", "a page of receipts", "no such receipts are published")
            return
        self._seen.add(page.path)
        if page.kind == "set":
            _check_set(page.path, tree, rows, findings)
        elif page.name in rows:
            _check_row(page.path, tree, rows[page.name], findings)
        else:
            findings.add(page.path, "page", "a receipt's page", "no such receipt is published")

    def check_absent(self, run: Run, withheld: frozenset[str], findings: Findings) -> None:
        """Find the pages that a run should have and has not; concepts of a withheld category have none.

        A run in which one row has a page of its own has one for each. A run with the page that reads sets from the
        files has none of a set; a page of a set beside it was made by somebody else, or its neighbors were taken away.
        """
        run_id = run.manifest.run_id
        if (self.dist / paths.set_reader(run_id)).is_file() and not self._seen_of(run_id):
            return
        kept = {c.id for c in run.bank.concepts if c.category not in withheld}
        with_rows = any(page_at(page).kind == "row" for page in self._seen_of(run_id))
        for model in run.models:
            for concept, rows in self._of(run_id, model).items():
                own = [paths.set_page(run_id, model, concept)] if concept in kept else []
                if own and with_rows:
                    own += [page.path for page in row_pages(run_id, model, ((concept, anchor) for anchor in rows))]
                for page in (p for p in own if p not in self._seen):
                    findings.add(page, "page", ABSENT, f"receipts of {concept}")

    def _seen_of(self, run_id: str) -> list[str]:
        return [page for page in self._seen if page.startswith(f"runs/{run_id}/")]

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


def _check_set(page: str, tree: LexborHTMLParser, rows: dict[str, Row], findings: Findings) -> None:
    articles: dict[str, LexborNode] = {}
    for article in tree.css("article[id]"):
        anchor = article.attributes["id"] or ""
        if anchor in articles:
            findings.add(page, f"#{anchor}", "twice", "one answer")
        articles[anchor] = article
    answers = {anchor: _taken(article, "div.raw") for anchor, article in articles.items()}
    prompts = set(texts_of(tree, "div.raw"))  # the answers' own are taken out by now
    for anchor, row in rows.items():
        if anchor not in articles:
            findings.add(page, f"#{anchor}", ABSENT, f"receipt {row['receipt_id']}")
            continue
        prompt = shown_text(row["prompt"])
        if prompt is not None and prompt not in prompts:  # what an import lacks the page says in words of its own
            findings.add(page, f"#{anchor}|prompt", ABSENT, prompt)
        article, answer = articles[anchor], answers[anchor]
        _same(page, f"#{anchor}|", [("response", answer[0] if answer else ABSENT, row["response"])], findings)
        _check_words(page, f"#{anchor}|", text_of(article.css_first("h4")), text_of(article), row, findings)
        _check_record(page, f"#{anchor}|", article, row, findings)
        if row["receipt_id"] not in text_of(article):
            findings.add(page, f"#{anchor}|receipt_id", ABSENT, row["receipt_id"])
    for anchor in articles.keys() - rows.keys():
        findings.add(page, f"#{anchor}", "an answer", ABSENT)


def _taken(node: LexborNode, selector: str) -> list[str]:
    """Take the elements that a selector names out of a node; returns their texts."""
    found = node.css(selector)
    texts = [text_of(element) for element in found]
    for element in found:
        element.decompose()
    return texts


def _check_row(page: str, tree: LexborHTMLParser, row: Row, findings: Findings) -> None:
    main = tree.css_first("main")
    raws = texts_of(main, "div.raw") if main is not None else []
    if main is None or len(raws) != 2:
        findings.add(page, "raw blocks", len(raws), 2)
        return
    _same(page, "", [("prompt", raws[0], row["prompt"]), ("response", raws[1], row["response"])], findings)
    verdict = text_of(main.css_first(".verdict"))
    _check_words(page, "", verdict, verdict, row, findings)
    _check_record(page, "", main, row, findings)
    _check_votes(page, main, row["votes"], findings)
    keys = [row[name] for name in ("receipt_id", "prompt_sha256", "rubric_sha256", "response_key")]
    words = text_of(main)
    for key in (k for k in (*keys, *(vote["key"] for vote in row["votes"])) if k is not None and k not in words):
        findings.add(page, "hashes and keys", ABSENT, key)


def _check_votes(page: str, main: LexborNode, votes: list[dict[str, Any]], findings: Findings) -> None:
    """Hold who voted, as what, for which label, and whether the verdict word agrees with the reasoning."""
    right = [(v["judge"], v["role"], vote_text(v), matches_text(v["verdict_matches_prose"])) for v in votes]
    seen = [_vote(line) for line in main.css("table.votes tbody tr")]
    if seen != right:
        findings.add(page, "votes", "; ".join(map(", ".join, seen)), "; ".join(map(", ".join, right)))


def _vote(line: LexborNode) -> tuple[str, str, str, str]:
    """Return (judge, role, vote, agreement) as a line of the table has them."""
    role = text_of(line.css_first("th .soft"))
    judge = text_of(line.css_first("th")).removesuffix(f" {role}")
    return judge, role, text_of(line.css_first("td")), text_of(line.css_first("td.agrees"))


def _same(page: str, place: str, triples: list[tuple[str, str, str | None]], findings: Findings) -> None:
    """Hold untrusted texts; where the receipt has none the page says so in words of its own."""
    for name, seen, right in triples:
        if right is not None:
            findings.compare(page, f"{place}{name}", seen, shown_text(right), what="receipt texts")


def _check_words(page: str, place: str, head: str, value_in: str, row: Row, findings: Findings) -> None:
    """Hold label and value, each in the words where it stands; a row without them has its status to say so."""
    value = None if row["value"] is None else f"{row['value']:.3f}".rstrip("0").rstrip(".")
    for name, right, words in (("final_label", row["final_label"], head), ("value", value, value_in)):
        if right is not None and not re.search(rf"(?<![\w.-]){re.escape(right)}(?![\w-]|\.\d)", words):
            findings.add(page, f"{place}{name}", words.strip()[:120], right)


def _check_record(page: str, place: str, body: LexborNode, row: Row, findings: Findings) -> None:
    """Hold the status and every judge's evidence."""
    classes = {name for tag in body.css("span.st") for name in (tag.attributes["class"] or "").split()}
    statuses = {name.removeprefix("st-") for name in classes if name.startswith("st-")}
    if statuses != {row["status"]}:
        findings.add(page, f"{place}status", ", ".join(sorted(statuses)) or ABSENT, row["status"])
    right = [shown_text(v["evidence"]) for v in row["votes"] if v["evidence"] is not None]
    seen = texts_of(body, "bdi")
    if [said for said in seen if said in right] != right:
        findings.add(page, f"{place}evidence", "; ".join(seen), "; ".join(map(str, right)))
