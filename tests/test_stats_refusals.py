"""Cochran's Q of refusals by group: worked by hand, by statsmodels and scipy, and what may not be named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from statsmodels.stats.contingency_tables import cochrans_q
from statsmodels.stats.multitest import multipletests

from generator.stats.refusal_test import RefusalTest, named_of, refusal_test


def counted(refused, valid=None):
    """The test of refused rows, given as a list of concepts, each with a number a group; one row a cell by default."""
    refused = np.array(refused, np.float64).T
    return refusal_test(refused, np.ones_like(refused) if valid is None else np.array(valid, np.float64).T)


class TestByHand:
    def test_five_concepts_in_which_one_group_of_three_is_refused(self):
        # d = (2/3, -1/3, -1/3) five times: 2 x 25 (6/9) / (5 (6/9)) = 10; with two degrees of freedom p = exp(-5).
        found = counted([[1, 0, 0]] * 5)
        assert (found.q, found.df, found.n_concepts, found.n_differing) == (pytest.approx(10), 2, 5, 5)
        assert found.p == pytest.approx(math.exp(-5))

    def test_unequal_numbers_of_rows_count_by_their_rates(self):
        # Rates 1/2, 0 and 1/4, 0: d = +-1/4 and +-1/8. Q = (3/8)^2 x 2 / (2/16 + 2/64) = 1.8.
        found = counted([[3, 0], [1, 0]], [[6, 5], [4, 6]])
        assert found.q == pytest.approx(1.8)

    def test_what_no_concept_shows_has_no_q(self):
        found = counted([[1, 1], [0, 0]])
        assert (found.df, found.n_concepts, found.n_differing) == (1, 2, 0)
        assert np.isnan([found.q, found.p]).all()

    def test_rates_that_are_equal_but_for_the_last_digit_do_not_differ(self):
        # A third of three rows and of nine: in doubles 1/3 - mean can be a bit beside 0.
        assert counted([[1, 3, 2]] * 6, [[3, 9, 6]] * 6).n_differing == 0

    def test_one_group_refused_once_in_four_of_sixteen_concepts_is_not_named(self):
        found = counted([[1, 0, 0, 0, 0]] * 4 + [[0] * 5] * 12, [[6] * 5] * 16)
        assert (found.n_concepts, found.n_differing) == (16, 4)
        assert found.q == pytest.approx(16)
        assert math.isnan(found.p)
        assert named_of([found]) == ([pytest.approx(math.nan, nan_ok=True)], [False])

    def test_a_concept_in_which_a_group_has_no_row_is_left_out(self):
        found = counted([[1, 0]] * 5 + [[1, 0]], [[1, 1]] * 5 + [[1, 0]])
        assert (found.n_concepts, found.n_differing) == (5, 5)

    @pytest.mark.parametrize("shape", [(5, 0), (2, 0)])
    def test_without_a_concept_there_is_nothing(self, shape):
        found = refusal_test(np.zeros(shape), np.zeros(shape))
        assert (found.n_concepts, found.n_differing) == (0, 0)
        assert math.isnan(found.q)


class TestAgainstOthers:
    @given(hnp.arrays(np.int64, st.tuples(st.integers(1, 16), st.integers(2, 6)), elements=st.integers(0, 1)))
    def test_of_single_rows_it_is_cochran_s_q(self, refused):
        found = counted(refused)
        if not found.n_differing:
            assert math.isnan(found.q)
            return
        wanted = cochrans_q(refused)
        assert found.q == pytest.approx(wanted.statistic, abs=1e-9)
        assert found.df == wanted.df
        if found.n_differing >= 5:
            assert found.p == pytest.approx(wanted.pvalue, abs=1e-12)
        else:
            assert math.isnan(found.p)

    @given(hnp.arrays(np.int64, (12, 4), elements=st.integers(0, 6)), st.permutations(range(4)))
    def test_the_order_of_groups_does_not_matter(self, refused, order):
        full = np.full((12, 4), 6)
        one, other = counted(refused, full), counted(refused[:, order], full)
        assert (one.df, one.n_differing) == (other.df, other.n_differing)
        assert one.q == pytest.approx(other.q, nan_ok=True)

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
    def test_holm_over_the_attributes_and_a_hundredth_names(self, ps):
        adjusted, named = named_of([RefusalTest(1.0, 5, p, 16, 6) for p in ps])
        wanted = multipletests(ps, method="holm")[1]
        assert adjusted == pytest.approx(wanted.tolist(), abs=1e-12)
        assert named == [round(p, 12) <= 0.01 for p in adjusted]

    def test_an_attribute_without_a_p_is_not_counted(self):
        tests = [RefusalTest(20.0, 5, 0.004, 16, 6), RefusalTest(2.0, 5, math.nan, 16, 4)]
        adjusted, named = named_of(tests)
        assert (adjusted[0], named) == (0.004, [True, False])
        assert math.isnan(adjusted[1])

    def test_the_tail_is_scipy_s(self):
        refused = np.zeros((16, 6), np.int64)
        refused[:, 0] = 3
        found = counted(refused, np.full((16, 6), 6))
        assert found.p == pytest.approx(stats.chi2.sf(found.q, 5), rel=1e-10)
        assert found.p < 1e-14
