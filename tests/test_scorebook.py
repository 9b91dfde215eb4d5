"""The lookup of published scores: what is there, and what a number that is not there looks like."""

from __future__ import annotations

import pyarrow as pa
import pytest

from generator.schema.columns import arrow_schema
from generator.schema.tables import SCORES
from generator.scoring.lookup import ScoreBook, ScoreRow


def make_scores(**changes):
    row = {column.name: None for column in SCORES}
    row |= {"run_id": "r", "model": "v/m", "metric": "lean", "attribute": "age", "group": "old"}
    row |= {"n_concepts": 2, "n_cells": 4, "n_rows": 9, "kind": "live", "bank_version": "1", "bank_sha256": "0"}
    row |= {"harness_sha": "0"}
    return pa.Table.from_pylist([row | changes], schema=arrow_schema(SCORES))


class TestScoreBook:
    def test_a_row_is_found_by_its_four_names(self):
        book = ScoreBook(make_scores(estimate=1.5, ci_low=-1.0, ci_high=2.0, flag="sparse;swapped"))
        row = book.row("v/m", "lean", "age", "old")
        assert (row.estimate, row.ci_low, row.ci_high, row.n_rows) == (1.5, -1.0, 2.0, 9)
        assert row.flags == ("sparse", "swapped")

    def test_a_row_of_another_group_is_not_it(self):
        book = ScoreBook(make_scores(estimate=1.5))
        assert not book.has("v/m", "lean", "age", "young")
        assert book.row("v/m", "lean", "age", "young") == ScoreRow("v/m", "lean", "age", "young")

    def test_an_absent_number_has_no_flags_and_no_estimate(self):
        row = ScoreBook(make_scores()).row("v/m", "excess", "age")
        assert (row.estimate, row.evidence, row.flags) == (None, None, ())

    def test_the_key_is_that_of_data_score(self):
        assert ScoreRow("v/m", "lean", "age", "old").key == "v/m|lean|age|old"
        assert ScoreRow("v/m", "consistency", "overall", None).key == "v/m|consistency|overall|"


class TestFlagsBeyond:
    def test_only_what_the_other_row_lacks_in_its_own_order(self):
        excess = ScoreRow("m", "excess", "age", None, flag="swapped;sparse;degenerate")
        assert excess.flags_beyond(ScoreRow("m", "consistency", "age", None, flag="sparse")) == (
            "swapped",
            "degenerate",
        )
        assert excess.flags_beyond(excess) == ()


class TestSides:
    """Both sides of zero are decided to 12 decimals on the 0-1 scale: 1e-10 points are the last that counts."""

    @pytest.mark.parametrize(
        ("estimate", "below"),
        [(-1.0, True), (-1e-10, True), (-4e-11, False), (0.0, False), (2.0, False), (None, False)],
    )
    def test_an_estimate_below_zero(self, estimate, below):
        assert ScoreRow("m", "excess", "age", None, estimate).below_zero is below

    @pytest.mark.parametrize(
        ("low", "high", "excludes"),
        [(1.0, 2.0, True), (-2.0, -1.0, True), (-1.0, 1.0, False), (3e-11, 2.0, False), (1e-10, 2.0, True),
         (-2.0, -3e-11, False), (None, None, False)],
    )  # fmt: skip
    def test_an_interval_on_one_side(self, low, high, excludes):
        assert ScoreRow("m", "lean", "age", "g0", 1.0, low, high).excludes_zero is excludes
