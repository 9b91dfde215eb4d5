"""Votes by judge: errors, and what was taken off the replies, counted from receipts (contract: tables, "Judges")."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from generator.runs.reader import load_run
from generator.schema.columns import RECEIPT_SCHEMA
from generator.scoring.judges import COLUMNS, judge_counts, judge_rows
from generator.scoring.run import score_run
from tests.factories import make_bank, make_rows, write_run

VOTES = RECEIPT_SCHEMA.field("votes").type
NONE = dict.fromkeys(COLUMNS, 0)


def vote(judge: str, **fields: Any) -> dict[str, Any]:
    return {field.name: fields.get(field.name) for field in VOTES.value_type} | {"judge": judge}


def column(*rows: list[dict[str, Any]], type_: pa.DataType = VOTES) -> pa.ListArray:
    return pa.array(list(rows), type_)


def test_each_mark_is_counted_by_judge() -> None:
    found = judge_counts(
        column(
            [vote("a/x", unwrapped="fence;thought", evidence_cut=True), vote("b/x", error="not_json")],
            [],
            [vote("a/x", unwrapped="tool_call", evidence_cut=False), vote("b/x", evidence_cut=False), vote("c/x")],
        )
    )
    assert found == {
        "a/x": {
            **NONE,
            "n_votes": 2,
            "n_unwrapped": 2,
            "n_fence": 1,
            "n_thought": 1,
            "n_tool_call": 1,
            "n_evidence_cut": 1,
        },
        "b/x": {**NONE, "n_votes": 2, "n_errors": 1},
        "c/x": {**NONE, "n_votes": 1},
    }


def test_no_vote_is_no_count() -> None:
    assert judge_counts(column([], [])) == {}


def test_votes_of_format_1_had_nothing_taken_off() -> None:
    old = pa.list_(pa.struct([("judge", pa.string()), ("error", pa.string())]))
    found = judge_counts(column([{"judge": "a/x", "error": None}, {"judge": "a/x", "error": "empty"}], type_=old))
    assert found == {"a/x": {**NONE, "n_votes": 2, "n_errors": 1}}


def test_every_declared_judge_has_a_row_in_order() -> None:
    rows = judge_rows(["c/x", "a/x"], [{"a/x": {"n_votes": 2}}, {"a/x": {"n_votes": 3, "n_fence": 1}}])
    assert rows == [{"judge": "a/x", **NONE, "n_votes": 5, "n_fence": 1}, {"judge": "c/x", **NONE}]


@pytest.mark.parametrize("mark", ["fence", "number_form"])
def test_a_run_counts_its_receipts(tmp_path: Path, mark: str) -> None:
    bank = make_bank(("age",), groups=2, quota={"stance": 1})
    rows = make_rows(bank, "sim-alpha/one", run_id="plain", repeats=1)
    rows[0]["votes"][0]["unwrapped"] = mark
    scored = score_run(load_run(write_run(tmp_path / "plain", bank, {"sim-alpha/one": rows})), resamples=20)
    table = {row["judge"]: row for row in scored.tables["judges"].to_pylist()}
    judge = rows[0]["votes"][0]["judge"]
    assert sum(row["n_votes"] for row in table.values()) == sum(len(row["votes"]) for row in rows)
    assert (table[judge]["n_unwrapped"], table[judge][f"n_{mark}"]) == (1, 1)
