"""The audit's agreement: stratified weights, Kish's effective size, Wilson's interval against statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from generator.stats.audit import Audited, agrees, diverges, summarise, wilson

STRATA = st.lists(
    st.integers(1, 30).flatmap(
        lambda n: st.builds(Audited, st.just("stance"), st.integers(n, 900), st.just(n), st.integers(0, n))
    ),
    min_size=1,
    max_size=6,
)


class TestWilson:
    @pytest.mark.parametrize(("agree", "n"), [(0, 5), (5, 5), (93, 100), (150, 150), (1, 2)])
    def test_equals_statsmodels(self, agree, n):
        assert wilson(agree / n, n) == pytest.approx(proportion_confint(agree, n, method="wilson"), abs=1e-12)

    @given(st.floats(0.5, 5000))
    def test_ends_exactly_at_0_and_1_where_nobody_or_everybody_agrees(self, n):
        low, high = proportion_confint(0, n, method="wilson"), proportion_confint(n, n, method="wilson")
        assert wilson(0.0, n) == (0.0, pytest.approx(low[1], abs=1e-12))
        assert wilson(1.0, n) == (pytest.approx(high[0], abs=1e-12), 1.0)


class TestSummarise:
    @given(STRATA)
    def test_weights_each_row_by_what_it_stands_for(self, strata):
        found = summarise(strata)
        marks = np.concatenate([[1] * s.agree + [0] * (s.n - s.agree) for s in strata])
        weights = np.concatenate([[s.size / s.n] * s.n for s in strata])
        assert found.agreement == pytest.approx(DescrStatsW(marks, weights=weights).mean, abs=1e-12)
        assert found.n_effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-12)
        assert (found.n, found.n_agree) == (len(marks), marks.sum())

    def test_proportional_strata_give_the_plain_interval(self):
        found = summarise([Audited("stance", 100, 10, 9), Audited("stance", 300, 30, 24)])
        assert found.n_effective == pytest.approx(40)
        assert (found.low, found.high) == pytest.approx(proportion_confint(33, 40, method="wilson"), abs=1e-12)

    def test_no_row_has_no_agreement(self):
        found = summarise([])
        assert found.n == 0
        assert math.isnan(found.agreement)


class TestDiverges:
    @pytest.mark.parametrize(
        ("agreement", "high", "blocks"),
        [(0.9, 0.95, False), (0.7, 0.8, False), (0.699, 0.9, True), (0.75, 0.799, True), (0.7, 0.8 - 1e-14, False)],
    )
    def test_blocks_below_eighty_at_the_top_or_seventy_in_the_middle(self, agreement, high, blocks):
        assert diverges(agreement, high) is blocks


class TestAgrees:
    @pytest.mark.parametrize(
        ("human", "value", "same"),
        [("70", 0.60, True), ("71", 0.60, False), ("50", 0.605, False), ("51", 0.605, True), ("REFUSAL", 0.6, False)],
    )
    def test_scores_agree_within_ten_points(self, human, value, same):
        assert agrees("60-79", human, value, is_score=True) is same

    def test_labels_agree_when_equal(self):
        assert agrees("MIXED", "MIXED", 0.5, is_score=False)
        assert not agrees("MIXED", "SUPPORT", 0.5, is_score=False)

    def test_a_refusal_agrees_with_a_refusal_only(self):
        assert agrees("REFUSAL", "REFUSAL", None, is_score=True)
        assert not agrees("REFUSAL", "0", None, is_score=True)
