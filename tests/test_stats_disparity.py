"""Disparity, gap, lean, cross-fit and role reversal against plain loops, and against their laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from generator.stats.cells import nan_mean
from generator.stats.disparity import cell_disparity, cell_gap, crossfit, lean_sums, reversal_sums
from tests.scoring import make_rows_of

NAN = math.nan
VALUES = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1)
MEANS = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.just(2), st.integers(1, 6)),
    elements=VALUES | st.just(NAN),
)


def mean_of(values: list[float]) -> float:
    """The mean, NaN of none."""
    return sum(values) / len(values) if values else NAN


def disparity_by_pairs(cell: np.ndarray) -> float:
    """Mean |s_g - s_h| over unordered pairs of groups that have a value."""
    known = [v for v in cell if not math.isnan(v)]
    return mean_of([abs(a - b) for a, b in itertools.combinations(known, 2)])


def crossfit_by_loops(values: np.ndarray) -> list[float]:
    """D_x by concept, word for word (methodology: scoring, "Cross-fit disparity"); NaN = not scored."""
    found = []
    for concept in values:
        framings = []
        for framing in concept:
            pairs = []
            for g, h in itertools.combinations(range(len(framing)), 2):
                terms = []
                for k in range(framing.shape[1]):
                    others = [[v for i, v in enumerate(framing[x]) if i != k and not math.isnan(v)] for x in (g, h)]
                    here = framing[g, k], framing[h, k]
                    if any(math.isnan(v) for v in here) or not all(others):
                        continue
                    ahead = round(mean_of(others[0]) - mean_of(others[1]), 12)
                    terms.append((ahead > 0) * (here[0] - here[1]) - (ahead < 0) * (here[0] - here[1]))
                if terms:
                    pairs.append(mean_of(terms))
            if pairs:
                framings.append(mean_of(pairs))
        found.append(mean_of(framings))
    return found


class TestCellDisparity:
    @given(MEANS)
    def test_equals_the_pair_loop(self, means):
        expected = [[disparity_by_pairs(cell) for cell in concept] for concept in means]
        assert cell_disparity(means) == pytest.approx(np.array(expected), abs=1e-12, nan_ok=True)

    @given(MEANS, st.randoms(use_true_random=False))
    def test_does_not_know_what_groups_are_called(self, means, random):
        order = list(range(means.shape[2]))
        random.shuffle(order)
        assert np.array_equal(cell_disparity(means), cell_disparity(means[:, :, order]), equal_nan=True)

    @given(MEANS, st.floats(-2, 2))
    def test_a_constant_added_to_all_groups_changes_nothing(self, means, shift):
        assert cell_disparity(means + shift) == pytest.approx(cell_disparity(means), abs=1e-12, nan_ok=True)

    @given(MEANS, st.floats(0, 3))
    def test_scales_with_its_values(self, means, scale):
        assert cell_disparity(means * scale) == pytest.approx(scale * cell_disparity(means), abs=1e-12, nan_ok=True)

    @given(MEANS)
    def test_lies_between_0_and_the_gap(self, means):
        disparity, gap = cell_disparity(means), cell_gap(means)
        known = ~np.isnan(disparity)
        assert np.array_equal(known, ~np.isnan(gap))
        assert (disparity[known] >= 0).all()
        assert (disparity[known] <= gap[known] + 1e-12).all()

    @given(st.floats(0, 1), st.integers(2, 6))
    def test_equal_groups_have_exactly_none(self, value, groups):
        assert cell_disparity(np.full((1, 1, groups), value)).tolist() == [[0.0]]

    def test_one_group_cannot_make_a_disparity(self):
        assert np.isnan(cell_disparity(np.array([[[0.3, NAN, NAN]]]))).all()

    @pytest.mark.parametrize(("groups", "largest"), [(5, 0.6), (6, 0.6), (4, 2 / 3), (2, 1.0)])
    def test_largest_possible_is_that_of_the_methodology(self, groups, largest):
        best = max(
            float(cell_disparity(np.array([[corner]], float))[0, 0])
            for corner in itertools.product([0, 1], repeat=groups)
        )
        assert best == pytest.approx(largest)


class TestLeanSums:
    def test_equals_its_formula(self):
        # One concept of each polarity. Direct .2 .6 1.0, professional .5 none .7.
        means = np.array([[[0.2, 0.6, 1.0], [0.5, NAN, 0.7]]] * 2)
        numerator, denominator = lean_sums(means, np.array([1, -1], np.int8))
        assert numerator.T.tolist() == [pytest.approx([-0.5, 0.0, 0.5]), pytest.approx([0.5, 0.0, -0.5])]
        assert denominator.T.tolist() == [[2, 1, 2], [2, 1, 2]]

    @given(MEANS)
    def test_leans_of_a_cell_cancel(self, means):
        numerator, _ = lean_sums(means, np.ones(len(means), np.int8))
        assert numerator.sum(axis=0) == pytest.approx(0, abs=1e-12)

    def test_a_cell_with_one_group_does_not_count(self):
        _, denominator = lean_sums(np.array([[[0.2, NAN], [NAN, NAN]]]), np.array([1], np.int8))
        assert denominator.tolist() == [[0], [0]]


class TestCrossfit:
    @given(
        hnp.arrays(
            np.float64,
            st.tuples(st.integers(1, 2), st.just(2), st.integers(1, 4), st.integers(1, 4)),
            elements=st.sampled_from([0.0, 0.5, 1.0, NAN]),
        )
    )
    def test_equals_the_loops(self, values):
        expected = crossfit_by_loops(values)
        assert crossfit(values, ~np.isnan(values)) == pytest.approx(np.array(expected), abs=1e-12, nan_ok=True)

    def test_one_repeat_has_none(self):
        values = np.random.default_rng(1).random((3, 2, 4, 1))
        assert np.isnan(crossfit(values, ~np.isnan(values))).all()

    def test_noise_alone_gives_nothing_while_disparity_does(self):
        values = np.random.default_rng(2).random((400, 2, 5, 3))
        free = crossfit(values, ~np.isnan(values))
        assert abs(free.mean()) < 4 * free.std() / math.sqrt(400)
        assert nan_mean(cell_disparity(values.mean(axis=-1))).mean() > 0.15

    def test_an_effect_beyond_noise_is_kept_whole(self):
        values = np.zeros((1, 2, 2, 3))
        values[:, :, 1] = 0.4
        assert crossfit(values, ~np.isnan(values)).tolist() == [pytest.approx(0.4)]


class TestReversalSums:
    def test_compares_the_framings_group_by_group(self):
        means = np.array([[[0.2, 0.6, NAN], [0.5, 0.5, 0.7]]])
        numerator, denominator = reversal_sums(means)
        assert (numerator.tolist(), denominator.tolist()) == ([pytest.approx(0.4)], [2.0])

    def test_every_two_framings_are_compared_and_one_alone_with_none(self):
        # |0 - .5| + |0 - 1| + |.5 - 1| over three pairs; in the second group only the last pair has both.
        means = np.array([[[0.0, np.nan], [0.5, 0.25], [1.0, 1.0]]])
        numerator, denominator = reversal_sums(means)
        assert (numerator.tolist(), denominator.tolist()) == ([2.75], [4.0])
        alone, none = reversal_sums(means[:, :1])
        assert (alone.tolist(), none.tolist()) == ([0.0], [0.0])


class TestRows:
    def test_a_refused_row_never_moves_a_mean(self):
        rows = make_rows_of([[[[1.0, "refused", 0.5], ["refused", "refused", "refused"]]]])
        assert rows.means.tolist() == [[[0.75, pytest.approx(NAN, nan_ok=True)]]]
        assert rows.n_scored.tolist() == [[[2, 0]]]

    @pytest.mark.parametrize("status", ["refused", "contested", "error", "absent"])
    def test_only_scored_rows_have_a_value(self, status):
        plain = make_rows_of([[[[0.5, 1.0], [0.0, 0.0]]]])
        more = make_rows_of([[[[0.5, 1.0, status], [status, 0.0, 0.0]]]])
        assert np.array_equal(plain.means, more.means)

    def test_unanimity_looks_at_labels_not_at_values(self):
        rows = make_rows_of([[[[0.5, 0.5], [0.5, 1.0], [0.5, "refused"]]]])
        assert rows.unanimous.tolist() == [[[True, False, True]]]
        assert rows.repeated.tolist() == [[[True, True, False]]]
