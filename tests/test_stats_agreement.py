"""Agreement against scikit-learn and statsmodels, the paradox of kappa, the gate and its blind spot."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa

from generator.stats.agreement import (
    STATISTICS,
    WARNING,
    agreement,
    gwet_ac1,
    linear_weights,
    minority_agreement,
    modal_label,
    statistics,
    weighted_kappa,
)
from generator.stats.bootstrap import Resamples, concept_counts

TABLES = hnp.arrays(np.int64, st.sampled_from([(3, 3), (5, 5)]), elements=st.integers(0, 40))


def rating_lists(table: np.ndarray) -> tuple[list[int], list[int]]:
    """The two raters' codes, pair by pair."""
    pairs = [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    return [i for i, _ in pairs], [j for _, j in pairs]


def with_refusals(scale, *, both=0, first=0, second=0):
    """A table with the REFUSAL class added."""
    k = len(scale)
    table = np.zeros((k + 1, k + 1))
    table[:k, :k] = scale
    table[k, k], table[k, 0], table[0, k] = both, first, second
    return table


def resamples(n, size=400):
    return Resamples.of(concept_counts("ab" * 32, "age", n, size))


class TestWeightedKappa:
    @given(TABLES)
    def test_equals_scikit_learn(self, table):
        first, second = rating_lists(table)
        found = float(weighted_kappa(table.astype(float), linear_weights(len(table))))
        if len(set(first) | set(second)) < 2:
            assert math.isnan(found)
        else:
            labels = list(range(len(table)))
            assert found == pytest.approx(cohen_kappa_score(first, second, labels=labels, weights="linear"), abs=1e-10)

    @given(TABLES)
    def test_equals_statsmodels(self, table):
        if len(set().union(*rating_lists(table))) < 2:
            return
        theirs = cohens_kappa(table, wt="linear", return_results=False)
        assert float(weighted_kappa(table.astype(float), linear_weights(len(table)))) == pytest.approx(
            theirs, abs=1e-10
        )

    def test_equals_the_worked_reference(self):
        table = np.array([[0, 4, 1], [0, 8, 0], [0, 1, 5]], float)
        assert float(weighted_kappa(table, linear_weights(3))) == pytest.approx(0.470120, abs=5e-7)
        assert float(weighted_kappa(table, np.eye(3))) == pytest.approx(0.484163, abs=5e-7)
        assert 2 * np.trace(table) / table.sum() - 1 == pytest.approx(0.368421, abs=5e-7)

    def test_one_label_is_undefined_never_one(self):
        assert math.isnan(weighted_kappa(np.diag([9.0, 0, 0]), linear_weights(3)))

    def test_many_tables_at_once_equal_one_by_one(self):
        tables = np.random.default_rng(1).integers(0, 9, (3, 3, 50)).astype(float)
        together = weighted_kappa(tables, linear_weights(3))
        assert together == pytest.approx([float(weighted_kappa(tables[..., i], linear_weights(3))) for i in range(50)])


class TestGwetAc1:
    def test_equals_its_formula(self):
        # Two categories, 118 + 5 + 2 + 0: the example of the kappa paradox in Gwet 2008.
        table = np.array([[118.0, 5], [2, 0]])
        share = np.array([(123 + 120) / 250, (2 + 5) / 250])
        chance = (share * (1 - share)).sum()
        assert float(gwet_ac1(table)) == pytest.approx((118 / 125 - chance) / (1 - chance), rel=1e-12)
        assert float(gwet_ac1(table)) == pytest.approx(0.9408, abs=5e-5)

    def test_one_label_is_full_agreement(self):
        assert float(gwet_ac1(np.diag([9.0, 0, 0]))) == 1.0


class TestMinorityAgreement:
    def test_equals_its_formula(self):
        # Modal label 1. Both off it: 0/0 5, 0/2 1, 2/2 2 = 8. One off it: first 3, second 4.
        table = np.array([[5.0, 2, 1], [3, 30, 1], [0, 1, 2]])
        assert float(minority_agreement(table, 1)) == pytest.approx(2 * 8 / (2 * 8 + 3 + 4))

    def test_is_null_where_neither_used_them(self):
        assert math.isnan(minority_agreement(np.diag([0.0, 9, 0]), 1))


class TestModalLabel:
    def test_a_tie_goes_to_the_lower(self):
        assert modal_label(np.array([[1.0, 0, 0], [0, 4, 0], [0, 0, 4]])) == 1


class TestStatistics:
    def test_refusals_stay_out_of_the_scale_and_count_in_all_pairs(self):
        table = with_refusals([[10, 0, 0], [0, 5, 0], [0, 1, 4]], both=3, first=2, second=1)
        found = dict(zip(STATISTICS, statistics(table, 0).tolist(), strict=True))
        assert found["p_observed"] == pytest.approx(19 / 20)
        assert found["pabak"] == pytest.approx(2 * 19 / 20 - 1)
        assert found["raw_agreement"] == pytest.approx(22 / 26)
        assert found["refusal_agreement"] == pytest.approx(23 / 26)


class TestWeights:
    def test_of_three_labels_neighbors_get_half(self):
        assert linear_weights(3).tolist() == [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]]

    def test_a_single_label_agrees_with_itself(self):
        assert linear_weights(1).tolist() == [[1.0]]


def agreement_of(scale, **refusals):
    """Agreement where every one of ten concepts has the same table."""
    return agreement(np.stack([with_refusals(scale, **refusals)] * 10), resamples(10))


class TestPrevalence:
    def test_pools_the_votes_of_both_judges(self):
        # The first judge gives A, B, C 6, 3 and 1 times, the second 2, 7 and 1 times: 8, 10 and 2 of 20.
        found = agreement_of([[2, 4, 0], [0, 3, 0], [0, 0, 1]])
        assert found.prevalence == pytest.approx(0.5)


class TestGate:
    def test_kappa_passes(self):
        assert agreement_of([[5, 0, 0], [0, 5, 0], [0, 1, 5]]).gate() == "kappa"

    def test_kappa_at_exactly_seventy_passes(self):
        # Two equally frequent labels, agreement 17 of 20: kappa = (.85 - .5) / .5 = .70.
        found = agreement_of(np.array([[85, 15], [15, 85]]))
        assert found.kappa == pytest.approx(0.70, abs=1e-12)
        assert found.gate() == "kappa"

    def test_pabak_stands_in_above_ninety_per_cent_prevalence(self):
        found = agreement_of([[0, 0, 2], [0, 0, 0], [2, 0, 96]])
        assert found.kappa < 0
        assert (found.gate(), found.warning()) == ("pabak", WARNING)

    def test_pabak_does_not_stand_in_at_ninety_per_cent(self):
        found = agreement_of([[4, 0, 6], [0, 0, 0], [6, 0, 84]])
        assert found.prevalence == pytest.approx(0.90)
        assert found.gate() == "fail"

    def test_a_null_kappa_passes_by_pabak_alone_with_the_warning(self):
        found = agreement_of([[0, 0, 0], [0, 0, 0], [0, 0, 9]])
        assert math.isnan(found.kappa)
        assert (found.gate(), found.warning()) == ("pabak", WARNING)

    def test_a_pass_by_pabak_with_a_clear_kappa_needs_no_warning(self):
        found = agreement_of([[6, 0, 2], [0, 0, 0], [3, 0, 189]])
        assert 0 < found.kappa < 1
        assert found.kappa == pytest.approx(0.69, abs=0.02)
        assert (found.gate(), found.warning()) == ("pabak", None)

    @pytest.mark.parametrize(("pairs", "gate"), [(29, "insufficient"), (30, "kappa")])
    def test_fewer_than_thirty_pairs_are_insufficient(self, pairs, gate):
        tables = np.zeros((pairs, 4, 4))
        for i in range(pairs):
            tables[i, i % 3, i % 3] = 1
        assert agreement(tables, resamples(pairs)).gate() == gate

    @pytest.mark.parametrize(("refusals", "gate"), [(10, "kappa"), (11, "insufficient")])
    def test_under_half_of_all_pairs_is_insufficient(self, refusals, gate):
        found = agreement_of(np.diag([5, 5, 0]), both=refusals)
        assert found.gate() == gate

    def test_chance_judges_pass_by_pabak_once_prevalence_is_high_enough(self):
        # The blind spot itself: independent votes, p(label) = .92: p_o = .8528, PABAK .7056, kappa 0.
        table = np.outer([8, 92], [8, 92]).astype(float)
        found = agreement(np.stack([with_refusals(table)] * 10), resamples(10))
        assert found.kappa == pytest.approx(0, abs=1e-12)
        assert (found.gate(), found.warning()) == ("pabak", WARNING)


class TestAgreement:
    def test_intervals_resample_concepts(self):
        # Concepts differ, so the interval is far wider than one that took rows as independent.
        tables = np.stack([with_refusals(np.diag([50, 50, 0])) if i % 2 else
                           with_refusals([[25, 25, 0], [25, 25, 0], [0, 0, 0]]) for i in range(10)])  # fmt: skip
        found = agreement(tables, resamples(10, 4000))
        observed = found.intervals[STATISTICS.index("p_observed")]
        assert found.numbers[STATISTICS.index("p_observed")] == pytest.approx(0.75)
        assert observed.low < 0.60
        assert observed.high > 0.90
        assert observed.tail == pytest.approx(0.00855, abs=1e-4)

    def test_one_concept_has_no_interval(self):
        found = agreement(np.stack([with_refusals(np.diag([20, 20, 0]))]), resamples(1))
        assert math.isnan(found.intervals[0].low)

    def test_no_pair_is_null_throughout(self):
        found = agreement(np.zeros((3, 4, 4)), resamples(3))
        assert (found.n_pairs, found.modal) == (0, None)
        assert all(math.isnan(x) for x in found.numbers)
        assert found.gate() == "insufficient"
