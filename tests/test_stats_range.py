"""The range test: an answer worked by hand, scipy's numbers, its floor, ties, and what no pair may do to another."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from generator.stats.bootstrap import Sample
from generator.stats.range_test import Ranges, error_ranges, largest_of, range_p

ESTIMATES = np.array([0.10, 0.20, 0.40])
# Of the four resamples the errors are (.02, -.02, 0), (0, .1, -.05), (0, 0, 0), (-.05, .05, 0).
DRAWS = np.array([[0.12, 0.10, 0.10, 0.05], [0.18, 0.30, 0.20, 0.25], [0.40, 0.35, 0.40, 0.40]])


def by_scipy(u, n, df):
    return 2 * stats.t.cdf(stats.norm.ppf(u / 2) * math.sqrt((n - 1) / n), df)


class TestByHand:
    def test_the_ranges_of_four_resamples(self):
        assert error_ranges(ESTIMATES, DRAWS).tolist() == [0.04, 0.15, 0.0, 0.1]

    def test_u_counts_the_ranges_that_reach_the_difference_and_p_follows(self):
        # |.1 - .2| is reached by .15 and by the tie .1: u = 3 / 5. The other two reach none: 1 / 5.
        # Phi^-1(.3) = -.5244, times sqrt(3/4) = -.4541, twice T_3 = .6806; Phi^-1(.1) = -1.2816, -1.1099, .3480.
        ranges = Ranges(error_ranges(ESTIMATES, DRAWS), Sample(4, 3))
        u, p = ranges.test(np.array([0.1, 0.3, -0.2]))
        assert u.tolist() == [0.6, 0.2, 0.2]
        assert p.tolist() == pytest.approx([0.6806, 0.3480, 0.3480], abs=5e-5)
        assert p.tolist() == pytest.approx([by_scipy(x, 4, 3) for x in u])

    def test_a_tie_at_the_twelfth_decimal_counts(self):
        ranges = Ranges(np.array([0.1, 0.1 + 3e-13, 0.2]), Sample(4, 3))
        assert ranges.hits(np.array([0.1 + 4e-13, 0.1 + 6e-13])).tolist() == [3, 1]

    def test_no_difference_has_p_one(self):
        u, p = Ranges(np.array([0.1, 0.0]), Sample(16, 15)).test(np.array([0.0, -0.0, 1e-13]))
        assert u.tolist() == p.tolist() == [1.0, 1.0, 1.0]

    def test_of_several_families_the_largest_range_and_the_fewest_concepts(self):
        one, two = Ranges(np.array([0.1, 0.3]), Sample(16, 15)), Ranges(np.array([0.2, 0.1]), Sample(9, 8))
        both = largest_of([one, two])
        assert (both.values.tolist(), both.sample) == ([0.2, 0.3], Sample(9, 8))

    def test_a_resample_in_which_a_family_has_no_range_counts_in_none(self):
        both = largest_of([Ranges(np.array([0.1, math.nan]), Sample(4, 3)), Ranges(np.array([0.2, 0.3]), Sample(4, 3))])
        assert (both.kept, both.hits(np.array([0.2])).tolist()) == (1, [1])


class TestResamplesWithoutARange:
    def test_they_are_neither_counted_nor_waited_for(self):
        # Of four resamples two have a range, of which one reaches .2: u = (1 + 1) / (2 + 1).
        ranges = Ranges(np.array([math.nan, 0.1, 0.3, math.nan]), Sample(4, 3))
        u, p = ranges.test(np.array([0.2]))
        assert (ranges.kept, u[0]) == (2, pytest.approx(2 / 3))
        assert p[0] == pytest.approx(by_scipy(2 / 3, 4, 3))


class TestFloor:
    @pytest.mark.parametrize(("n", "df", "floor"), [(16, 15, 0.00186), (16, 105, 0.00027)])
    def test_with_ten_thousand_resamples(self, n, df, floor):
        assert range_p(0, 10_000, Sample(n, df)) == pytest.approx(floor, abs=6e-6)
        assert range_p(0, 10_000, Sample(n, df)) == pytest.approx(by_scipy(1 / 10_001, n, df))

    @pytest.mark.parametrize(("n", "reached"), [(3, 0.1), (4, 0.05), (7, 0.05), (8, 0.01)])
    def test_few_concepts_cannot_reach_small_levels(self, n, reached):
        levels = [level for level in (0.01, 0.05, 0.1) if range_p(0, 10_000, Sample(n, n - 1)) <= level]
        assert levels[0] == reached

    def test_below_two_concepts_or_without_a_resample_there_is_none(self):
        assert math.isnan(range_p(0, 100, Sample(1, 0)))
        assert math.isnan(range_p(0, 0, Sample(4, 3)))
        u, p = Ranges(np.array([0.1]), Sample(1, 0)).test(np.array([0.5]))
        assert np.isnan([u, p]).all()


class TestCriticalDifference:
    def test_is_where_p_passes_the_level(self):
        ranges = Ranges(np.abs(np.random.default_rng(1).normal(0.05, 0.01, 9_999)), Sample(16, 15))
        at = ranges.critical_difference()
        _, (below, above) = ranges.test(np.array([at - 0.001, at + 0.001]))
        assert above < 0.05 < below

    def test_there_is_none_for_one_concept(self):
        assert math.isnan(Ranges(np.array([0.1]), Sample(1, 0)).critical_difference())


NUMBERS = hnp.arrays(np.float64, (6, 30), elements=st.floats(0, 1))


class TestLaws:
    @given(NUMBERS, hnp.arrays(np.float64, 6, elements=st.floats(0, 1)))
    def test_equals_a_plain_reading(self, draws, estimates):
        wanted = [round(max(e) - min(e), 12) for e in (draws - estimates[:, None]).T.tolist()]
        assert error_ranges(estimates, draws).tolist() == pytest.approx(wanted, abs=1e-12)

    @given(NUMBERS, hnp.arrays(np.float64, 6, elements=st.floats(0, 1)))
    def test_one_more_model_never_makes_a_p_smaller(self, draws, estimates):
        fewer = Ranges(error_ranges(estimates[:5], draws[:5]), Sample(16, 15))
        more = Ranges(error_ranges(estimates, draws), Sample(16, 15))
        differences = np.subtract.outer(estimates[:5], estimates[:5])
        assert (more.test(differences)[1] >= fewer.test(differences)[1]).all()

    @given(NUMBERS, hnp.arrays(np.float64, 6, elements=st.floats(0, 1)))
    def test_over_all_attributes_no_p_is_smaller_than_within_one(self, draws, estimates):
        one = Ranges(error_ranges(estimates, draws), Sample(16, 15))
        other = Ranges(error_ranges(estimates[::-1], draws), Sample(12, 11))
        differences = np.subtract.outer(estimates, estimates)
        assert (largest_of([one, other]).test(differences)[1] >= one.test(differences)[1] - 1e-15).all()

    @given(st.integers(0, 200), st.integers(2, 40))
    def test_p_falls_with_the_difference_and_stays_within_0_and_1(self, hits, n):
        assume(hits < 200)
        p, next_p = (range_p(h, 200, Sample(n, n - 1)) for h in (hits, hits + 1))
        assert 0 < p <= next_p <= 1
