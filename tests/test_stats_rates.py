"""Shares of rows: what stands in each numerator and denominator, concept by concept."""

from __future__ import annotations

import numpy as np
import pytest

from generator.stats.rates import RATES, refusal_shares, shares
from tests.scoring import make_rows_of

# Two concepts, one framing, two groups, three repeats.
ROWS = make_rows_of(
    [
        [[[1.0, 1.0, "refused"], ["contested", "error", 0.5]]],
        [[["absent", 0.5, 1.0], ["refused", "refused", "refused"]]],
    ]
)


def share_of(rows, metric):
    found = shares(rows)[metric]
    return found.numerator.tolist(), found.denominator.tolist()


class TestShares:
    def test_every_rate_is_there(self):
        assert sorted(shares(ROWS)) == sorted(RATES)

    def test_refusal_counts_scored_and_refused_rows(self):
        assert share_of(ROWS, "refusal_rate") == ([1, 3], [4, 5])

    def test_contested_adds_the_contested_ones(self):
        assert share_of(ROWS, "contested_rate") == ([1, 0], [5, 5])

    def test_error_counts_every_planned_row_absent_ones_too(self):
        assert share_of(ROWS, "error_rate") == ([1, 0], [6, 6])

    def test_instability_counts_cells_with_two_scored_repeats(self):
        # (1, 1): unanimous. (.5, 1): not. One scored repeat or none: no cell.
        assert share_of(ROWS, "instability") == ([0, 1], [1, 1])
        assert shares(ROWS)["instability"].n_cells == 2

    @pytest.mark.parametrize(("metric", "mark"), [("truncated_rate", "cut"), ("mask_leakage", "leaked")])
    def test_marks_count_rows_with_a_response_only(self, metric, mark):
        marked = np.zeros(ROWS.status.shape, bool)
        marked[0, 0, 0] = True
        answered = np.ones(ROWS.status.shape, bool)
        answered[0, 0, 0, 2] = False
        rows = make_rows_of([[[[1.0, 1.0, "error"]]]], answered=answered[:1, :, :1], **{mark: marked[:1, :, :1]})
        assert share_of(rows, metric) == ([2], [2])

    def test_filter_refusals_are_a_part_of_the_refusal_rate(self):
        filtered = np.zeros(ROWS.status.shape, bool)
        filtered[1, 0, 1, 0] = True
        rows = make_rows_of(
            [[[[1.0, 1.0, "refused"], ["contested", "error", 0.5]]], [[["absent", 0.5, 1.0], ["refused"] * 3]]],
            filtered=filtered,
        )
        assert share_of(rows, "filter_refusal_rate") == ([0, 1], [4, 5])

    def test_verdict_mismatches_count_votes(self):
        votes = np.full((1, 1, 1, 3), 2, np.int8)
        wrong = np.array([[[[0, 1, 2]]]], np.int8)
        rows = make_rows_of([[[[1.0, 1.0, 1.0]]]], verdict_votes=votes, mismatches=wrong)
        assert share_of(rows, "verdict_mismatch_rate") == ([3], [6])


class TestRefusalShares:
    def test_each_group_with_the_cells_that_count(self):
        # Group a: 2 scored and 1 refused, then 2 scored. Group b: 1 scored of three rows, then 3 refused.
        found = [(s.numerator.tolist(), s.denominator.tolist(), s.n_cells) for s in refusal_shares(ROWS)]
        assert found == [([1, 0], [3, 2], 2), ([0, 3], [1, 3], 2)]

    def test_a_cell_without_a_valid_row_is_not_counted(self):
        found = refusal_shares(make_rows_of([[[["error", "absent"], [1.0, "refused"]]], [[[1.0, 1.0], [1.0, 1.0]]]]))
        assert [share.n_cells for share in found] == [1, 2]

    def test_one_a_group(self):
        first, second = refusal_shares(ROWS)
        assert (first.numerator.tolist(), first.denominator.tolist()) == ([1, 0], [3, 2])
        assert (second.numerator.tolist(), second.denominator.tolist()) == ([0, 3], [1, 3])
