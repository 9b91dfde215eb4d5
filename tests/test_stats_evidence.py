"""p values by scipy, corrections by statsmodels, evidence tiers and MDE by the methodology's own words."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from generator.stats.bootstrap import LEAST_POSITIVE, Interval, Sample, one_attribute
from generator.stats.evidence import (
    benjamini_hochberg,
    evidence_tier,
    excess_p,
    holm,
    minimum_detectable,
    standard_error,
    tail_p,
)

PS = st.lists(st.floats(0, 1), min_size=1, max_size=30)
NAN = math.nan


def p_by_scipy(hits: int, kept: int, n: int, df: int) -> float:
    """The formula of (methodology: evidence, "The p-value") with scipy's distributions."""
    return scipy.stats.t.cdf(scipy.stats.norm.ppf((1 + hits) / (kept + 1)) * math.sqrt((n - 1) / n), df)


class TestTailP:
    @pytest.mark.parametrize("hits", [0, 1, 137, 5000, 9999])
    @pytest.mark.parametrize(("n", "df"), [(10, 9), (16, 105), (2, 1)])
    def test_equals_scipy(self, hits, n, df):
        assert tail_p(hits, 10_000, Sample(n, df)) == pytest.approx(p_by_scipy(hits, 10_000, n, df), rel=1e-10)

    def test_all_hits_give_one(self):
        assert tail_p(10_000, 10_000, one_attribute(10)) == 1.0

    def test_below_two_concepts_there_is_none(self):
        assert math.isnan(tail_p(0, 10_000, one_attribute(1)))

    def test_without_a_replicate_there_is_none(self):
        assert math.isnan(tail_p(0, 0, one_attribute(10)))


class TestExcessP:
    def test_zero_counts_as_no_excess(self):
        draws = np.array([-1.0, 0.0, 1e-14, 1.0])  # the third is zero after rounding
        assert excess_p(draws, one_attribute(10)) == pytest.approx(p_by_scipy(3, 4, 10, 9), rel=1e-10)

    def test_the_least_number_that_rounds_above_zero_is_an_excess(self):
        draws = np.array([-1.0, math.nextafter(LEAST_POSITIVE, 0), LEAST_POSITIVE, 1.0])
        assert excess_p(draws, one_attribute(10)) == pytest.approx(p_by_scipy(2, 4, 10, 9), rel=1e-10)

    def test_replicates_without_a_value_do_not_count(self):
        draws = np.array([-1.0, 1.0, 2.0])
        more = np.array([-1.0, NAN, 1.0, NAN, 2.0])
        assert excess_p(draws, one_attribute(5)) == excess_p(more, one_attribute(5))

    @given(st.lists(st.floats(-1, 1), min_size=2, max_size=40), st.integers(1, 40), st.integers(2, 16))
    def test_as_many_of_them_as_one_likes_change_nothing(self, values, without, n):
        draws = np.array(values)
        more = np.concatenate([np.full(without, NAN), draws])
        hits = int((np.round(draws, 12) <= 0).sum())
        wanted = p_by_scipy(hits, len(draws), n, n - 1)
        for found in (excess_p(draws, one_attribute(n)), excess_p(more, one_attribute(n))):
            assert found == pytest.approx(wanted, rel=1e-9)


class TestCorrections:
    @given(PS)
    def test_benjamini_hochberg_equals_statsmodels(self, ps):
        assert benjamini_hochberg(ps) == pytest.approx(multipletests(ps, method="fdr_bh")[1].tolist(), abs=1e-12)

    @given(PS)
    def test_holm_equals_statsmodels(self, ps):
        assert holm(np.array(ps)) == pytest.approx(multipletests(ps, method="holm")[1], abs=1e-12)

    def test_a_missing_p_stays_missing_and_is_not_counted(self):
        assert benjamini_hochberg([0.01, NAN, 0.04]) == pytest.approx([0.02, NAN, 0.04], nan_ok=True)
        assert holm(np.array([0.01, NAN, 0.04])) == pytest.approx([0.02, NAN, 0.04], nan_ok=True)

    def test_none_at_all(self):
        assert benjamini_hochberg([]) == []


def tier(**changes):
    """The tier of an excess of .1 [.02, .2] with adjusted p .02, unless told otherwise."""
    given = {
        "excess": Interval(0.02, 0.2, 0.01),
        "p": 0.01,
        "p_adjusted": 0.02,
        "lower": 0.05,
        "edge": 0.1,
        "degenerate": False,
    }
    return evidence_tier(**{**given, **changes})


class TestEvidenceTier:
    def test_interval_and_adjusted_p_together_flag(self):
        assert tier() == "flagged"

    @pytest.mark.parametrize("p_adjusted", [0.1, 0.1 + 1e-13])
    def test_the_adjusted_p_may_be_ten_per_cent(self, p_adjusted):
        assert tier(p_adjusted=p_adjusted) == "flagged"

    def test_an_adjusted_p_above_ten_per_cent_does_not_flag(self):
        assert tier(p_adjusted=0.1001) == "suggestive"

    @pytest.mark.parametrize("low", [0.0, -0.01, 1e-14])
    def test_an_interval_that_reaches_zero_does_not_flag(self, low):
        assert tier(excess=Interval(low, 0.2, 0.01)) == "suggestive"

    def test_p_alone_suggests(self):
        assert tier(excess=Interval(-0.1, 0.2, 0.01), p=0.05, p_adjusted=0.35) == "suggestive"

    def test_a_lower_end_above_the_edge_alone_suggests(self):
        found = tier(excess=Interval(-0.1, 0.2, 0.01), p=0.2, p_adjusted=0.35, lower=0.11)
        assert found == "suggestive"

    def test_a_lower_end_at_the_edge_does_not(self):
        assert tier(excess=Interval(-0.1, 0.2, 0.01), p=0.2, p_adjusted=0.35, lower=0.1) == "unresolved"

    def test_a_degenerate_edge_allows_at_most_suggestive(self):
        assert tier(degenerate=True) == "suggestive"

    def test_at_a_degenerate_edge_interval_and_adjusted_p_suggest_by_themselves(self):
        assert tier(degenerate=True, p=0.2, lower=0.0) == "suggestive"

    @pytest.mark.parametrize(
        "less",
        [
            {"degenerate": True, "p_adjusted": 0.2},  # an interval above zero alone
            {"degenerate": True, "excess": Interval(-0.1, 0.2, 0.01)},  # an adjusted p alone
            {"degenerate": False, "p_adjusted": 0.2},
        ],
    )
    def test_one_of_the_two_alone_does_not(self, less):
        assert tier(p=0.2, lower=0.0, **less) == "unresolved"

    def test_ties_at_the_twelfth_decimal_go_by_the_rounded_value(self):
        assert tier(excess=Interval(NAN, NAN, NAN), p=0.05 + 1e-13, lower=0.0) == "suggestive"
        assert tier(excess=Interval(NAN, NAN, NAN), p=0.2, lower=0.1 + 1e-13) == "unresolved"

    def test_without_interval_and_p_nothing_is_resolved(self):
        found = tier(excess=Interval(NAN, NAN, NAN), p=NAN, p_adjusted=NAN, lower=NAN)
        assert found == "unresolved"


class TestMinimumDetectable:
    def test_equals_its_formula(self):
        expected = (1.960 + 0.842) * math.sqrt(16 / 15 * 0.02**2 + 10 / 9 * 0.03**2)
        assert minimum_detectable(0.02, 16, 0.03, 10) == pytest.approx(expected, rel=1e-14)

    def test_two_concepts_on_each_side_are_enough(self):
        expected = (1.960 + 0.842) * math.sqrt(2 * 0.02**2 + 2 * 0.03**2)
        assert minimum_detectable(0.02, 2, 0.03, 2) == pytest.approx(expected, rel=1e-14)

    @pytest.mark.parametrize(("a", "c"), [(1, 10), (16, 1)])
    def test_below_two_concepts_there_is_none(self, a, c):
        assert math.isnan(minimum_detectable(0.02, a, 0.03, c))


class TestStandardError:
    def test_divides_by_one_less(self):
        assert standard_error(np.array([1.0, NAN, 2.0, 4.0])) == pytest.approx(np.std([1, 2, 4], ddof=1))

    def test_of_two_replicates_there_is_one(self):
        assert standard_error(np.array([1.0, NAN, 2.0])) == pytest.approx(math.sqrt(0.5))

    @pytest.mark.parametrize("draws", [[], [1.0], [NAN, 1.0]])
    def test_of_fewer_there_is_none(self, draws):
        assert math.isnan(standard_error(np.array(draws)))
