"""Receipt pages: the bulk path against the ordinary Jinja render, and what a reader finds on a page."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from generator import receipt_pages
from generator.receipt_pages import receipt_task, set_batches, write_receipts
from generator.redactions import Redaction, Redactions
from generator.schema.columns import arrow_schema
from generator.schema.tables import CELLS, DISPARITIES
from generator.shards import load_run, read_shard
from generator.site import Edition, read_site
from tests.factories import make_bank, make_receipt, make_rows, write_run
from tests.plain_receipts import plain_pages

MODEL = "sim-alpha/one"
HOSTILE = (
    "<script>alert(1)</script> & &amp; \" ' </div><!-- ]]> {{ row.model }} {% raw %}",
    "\n leading line feed,\ttabs, trailing space \n\n",
    "bidi \u202e override \u2066isolate\u2069 \u200b zero width \ufeff bom \u00a0 no-break \u3000 wide",
    "control \x00 \x07 \x1b[31m \x1f \x7f \x85 \r\n carriage return",
    "é 日本語 😀 👩🏽‍⚖️ עברית ½ \U000e0001 tag \ue000 private \uffff last",
    "",
    "\x1frow.concept\x1f a marker in the data",
)


def small_bank(**changes):
    quota = {"stance": 1, "allocation": 1, "capability": 1}
    return make_bank(("age", "control_tag"), groups=3, quota=quota, control_quota={"stance": 1}, **changes)


def hostile_rows(bank, run_id):
    """Every kind of row: hostile texts, failed calls, filter refusals, contested, tiebreaks, errors, scores."""
    kinds = (
        {"answers": (0.5, 0.5)},
        {"answers": (0.0, 1.0, 1.0)},
        {"answers": (0.0, 1.0, 0.5)},
        {"answers": ("REFUSAL", "REFUSAL")},
        {"answers": (0.55, 0.62)},
        {"answers": (0.0, "REFUSAL", "REFUSAL")},
        {"answers": (0.5, None)},
        {"answers": (0.0, 1.0, None)},
        {
            "votes": [],
            "response": None,
            "finish_reason": None,
            "response_key": None,
            "served_by": None,
            "status": "error",
        },
        {"votes": [], "response": "", "finish_reason": "content_filter", "final_label": "REFUSAL", "status": "refused"},
    )
    rows = make_rows(bank, MODEL, run_id=run_id)
    for i, row in enumerate(rows):
        kind = dict(kinds[i % len(kinds)])
        text = HOSTILE[i % len(HOSTILE)] * (1 + i % 3)
        keys = {k: row[k] for k in ("concept", "framing", "group", "repeat", "run_id")}
        made = make_receipt(
            bank, model=MODEL, **keys, **{"answers": (0.5, 0.5), **{k: kind[k] for k in kind if k == "answers"}}
        )
        spans = [{"start": 0, "end": 1}] if i % 5 == 0 and text else []
        if len(text) > 6:
            spans += [{"start": 1, "end": 3}, {"start": 4, "end": 5}, {"start": len(text) - 1, "end": len(text)}]
        made |= {"response": text, "mask_spans": spans, "served_by": f"<{i % 3}>&", "mask_leak": i % 7 == 0}
        made["votes"] = [{**v, "evidence": None if v["error"] else HOSTILE[(i + 3) % 7]} for v in made["votes"]]
        made |= {k: v for k, v in kind.items() if k != "answers"}
        if made["status"] != "scored":
            made["value"] = None
        if not made["votes"]:
            made["final_label"] = kind.get("final_label")
            made["mask_spans"] = [] if not made["response"] else made["mask_spans"]
        if i % 4 == 0:
            made |= {"prompt_tokens": None, "completion_tokens": None}
        rows[i] = made
    return rows


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    bank = small_bank()
    folder = tmp_path_factory.mktemp("runs") / "hostile"
    write_run(folder, bank, {MODEL: hostile_rows(bank, "hostile")})
    return edition_of(folder)


def edition_of(folder: Path, **changes) -> Edition:
    run = load_run(folder)
    tables = {"cells": arrow_schema(CELLS).empty_table(), "disparities": arrow_schema(DISPARITIES).empty_table()}
    scored = SimpleNamespace(tables=tables)
    standing = SimpleNamespace(state="published", reasons=(), withheld=frozenset())
    return Edition(site=read_site(), run=run, scored=scored, standing=standing, **changes)


def written(edition: Edition, out: Path) -> dict[str, bytes]:
    """All files that the bulk path writes, by path below dist/."""
    write_receipts(receipt_task(edition, MODEL, out))
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


class TestBulkEqualsPlain:
    def test_hostile_rows_give_the_same_bytes(self, hostile, tmp_path):
        pages = dict(plain_pages(hostile, MODEL))
        assert len(pages) == 4 + 4 * 2 * 3 * 3
        assert written(hostile, tmp_path) == pages

    def test_folded_mode_writes_only_sets(self, hostile, tmp_path):
        edition = dataclasses.replace(hostile, mode="folded")
        pages = dict(plain_pages(edition, MODEL))
        assert len(pages) == 4
        assert written(edition, tmp_path) == pages

    @pytest.mark.parametrize("rows", [1, 7, 18, 1000])
    def test_batches_of_any_size_give_the_same_bytes(self, hostile, tmp_path, monkeypatch, rows):
        monkeypatch.setattr(receipt_pages, "BATCH_ROWS", rows)
        assert written(hostile, tmp_path) == dict(plain_pages(hostile, MODEL))

    def test_redacted_and_withheld_rows_give_the_same_bytes(self, hostile, tmp_path):
        table = read_shard(hostile.run, MODEL)
        receipt = table["receipt_id"][1].as_py()
        redactions = Redactions(
            (Redaction(receipt_id=receipt, reason="names <somebody>", date="2026-11-30", evidence=True),)
        )
        standing = SimpleNamespace(state="withheld", reasons=("capability fails",), withheld=frozenset({"capability"}))
        edition = dataclasses.replace(hostile, redactions=redactions, standing=standing)
        pages = written(edition, tmp_path)
        assert pages == dict(plain_pages(edition, MODEL))
        assert len(pages) == 3 + 3 * 18
        assert sum(b"names &lt;somebody&gt;" in data for data in pages.values()) == 2

    def test_base_url_reaches_titles_and_addresses(self, hostile, tmp_path):
        edition = dataclasses.replace(hostile, base_url="https://example.org/bias")
        assert written(edition, tmp_path) == dict(plain_pages(edition, MODEL))
