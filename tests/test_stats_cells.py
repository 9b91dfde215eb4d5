"""The rows of an attribute: what a cell counts, which cells take part, and what a part of the concepts keeps."""

from __future__ import annotations

import numpy as np

from generator.stats.cells import FIELDS, mean_where
from generator.stats.tally import tally
from tests.scoring import make_rows_of

# Two concepts, one framing, two groups, three repeats.
ROWS = make_rows_of(
    [
        [[[1.0, 0.5, "refused"], ["contested", "error", "error"]]],
        [[["absent", 0.5, 1.0], ["refused", "refused", 0.0]]],
    ]
)


class TestCounts:
    def test_each_status_by_cell(self):
        assert ROWS.n_scored.tolist() == [[[2, 0]], [[2, 1]]]
        assert ROWS.n_refused.tolist() == [[[1, 0]], [[0, 2]]]
        assert ROWS.n_contested.tolist() == [[[0, 1]], [[0, 0]]]
        assert ROWS.n_error.tolist() == [[[0, 2]], [[0, 0]]]

    def test_absent_rows_by_concept(self):
        assert ROWS.absent.tolist() == [0, 1]


class TestMeans:
    def test_a_cell_without_a_scored_repeat_has_none(self):
        np.testing.assert_equal(ROWS.means, [[[0.75, np.nan]], [[0.75, 0.0]]])

    def test_what_is_absent_may_hold_anything(self):
        found = mean_where(np.array([[1.0, np.nan], [np.inf, np.nan]]), np.array([[True, False], [False, False]]))
        np.testing.assert_equal(found, [1.0, np.nan])


class TestTakingPart:
    def test_two_groups_with_a_mean_at_least(self):
        assert ROWS.n_groups.tolist() == [[1], [2]]
        assert ROWS.counting.tolist() == [[False], [True]]

    def test_two_scored_repeats_at_least(self):
        assert ROWS.repeated.tolist() == [[[True, False]], [[True, False]]]

    def test_a_concept_without_a_disparity_is_not_counted_as_one_that_has(self):
        found = tally(ROWS, ("a", "b"))
        assert (found.positive, found.uncounted, found.absent) == (1, 1, 1)


class TestOf:
    def test_a_mask_and_places_give_the_same_concepts_whatever_was_asked_before(self):
        assert ROWS.means.shape == (2, 1, 2)
        by_mask, by_place = ROWS.of(np.array([False, True])), ROWS.of(np.array([1]))
        for name in FIELDS:
            np.testing.assert_equal(getattr(by_mask, name), getattr(ROWS, name)[1:])
            np.testing.assert_equal(getattr(by_place, name), getattr(ROWS, name)[1:])
        assert by_mask.means.tolist() == [[[0.75, 0.0]]]
