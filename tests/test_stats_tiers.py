"""Tiers by their founder, and paired comparisons of models."""

from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from generator.stats.bootstrap import NO_INTERVAL, Interval, Sample, percentile_interval, rounded
from generator.stats.evidence import difference_p
from generator.stats.tiers import Ranked, Standing, comparisons, tiers


def standing(model, estimate, low, high):
    return Standing(model, estimate, Interval(low, high, 0.01))


def places(*standings):
    return [(p.standing.model, p.rank, p.tier, p.founder) for p in tiers(standings)]


class TestTiers:
    def test_a_tier_starts_only_below_its_founders_lower_end(self):
        # b's interval overlaps a's; c overlaps b's but ends below a's lower end: a new tier, founded by c.
        found = places(
            standing("v/c", 0.7, 0.6, 0.79), standing("v/a", 0.9, 0.8, 0.95), standing("v/b", 0.85, 0.7, 0.9)
        )
        assert found == [("v/a", 1, 1, "v/a"), ("v/b", 2, 1, "v/a"), ("v/c", 3, 2, "v/c")]

    def test_touching_intervals_do_not_part(self):
        assert places(standing("v/a", 0.9, 0.8, 0.95), standing("v/b", 0.7, 0.6, 0.8))[1][2] == 1

    def test_equal_after_rounding_is_touching(self):
        assert places(standing("v/a", 0.9, 0.8, 0.95), standing("v/b", 0.7, 0.6, 0.8 - 1e-14))[1][2] == 1

    def test_ties_go_by_slug(self):
        found = places(standing("v/b", 0.9, 0.8, 0.95), standing("v/a", 0.9 + 1e-15, 0.8, 0.95))
        assert [model for model, *_ in found] == ["v/a", "v/b"]

    def test_a_model_without_an_estimate_is_listed_last_and_unranked(self):
        found = places(Standing("v/a", math.nan, NO_INTERVAL), standing("v/b", 0.9, 0.8, 0.95))
        assert found == [("v/b", 1, 1, "v/b"), ("v/a", None, None, None)]

    def test_a_model_without_an_interval_founds_nothing_new(self):
        found = places(standing("v/a", 0.9, 0.8, 0.95), Standing("v/b", 0.2, NO_INTERVAL))
        assert found[1][2] == 1


def ranked(model, seed, shift=0.0, ns=(16,) * 7):
    draws = np.random.default_rng(seed).normal(0.1 + shift, 0.01, 500)
    return Ranked(model, 0.1 + shift, draws, ns)


class TestComparisons:
    def test_every_pair_once_in_slug_order(self):
        models = {m: ranked(m, i) for i, m in enumerate(["v/c", "v/a", "v/b"])}
        assert [(c.model_a, c.model_b) for c in comparisons(models)] == [("v/a", "v/b"), ("v/a", "v/c"), ("v/b", "v/c")]

    def test_difference_is_of_consistency_so_less_disparity_is_more(self):
        (found,) = comparisons({"v/a": ranked("v/a", 1, shift=0.1), "v/b": ranked("v/b", 2)})
        assert found.difference == pytest.approx(-0.1)
        assert found.interval.high < 0

    def test_equals_the_formula_from_paired_draws(self):
        a, b = ranked("v/a", 1), ranked("v/b", 2, shift=0.005)
        (found,) = comparisons({"v/a": a, "v/b": b})
        draws = rounded(b.draws - a.draws)
        sample = Sample(16, 105)
        assert found.interval == percentile_interval(draws, sample)
        expected = difference_p(int((draws <= 0).sum()), int((draws >= 0).sum()), 500, sample)
        assert found.p == pytest.approx(expected, rel=1e-12)

    def test_a_model_is_no_different_from_its_twin(self):
        a = ranked("v/a", 1)
        (found,) = comparisons({"v/a": a, "v/b": Ranked("v/b", a.disparity, a.draws, a.n_concepts)})
        assert (found.difference, found.interval.low, found.interval.high, found.p) == (0, 0, 0, 1)

    def test_holm_runs_over_all_pairs(self):
        models = {f"v/{i}": ranked(f"v/{i}", i, shift=0.004 * i) for i in range(6)}
        found = comparisons(models)
        assert [c.p_holm for c in found] == pytest.approx(
            multipletests([c.p for c in found], method="holm")[1].tolist()
        )

    def test_the_sample_takes_the_smaller_n_attribute_by_attribute(self):
        a = ranked("v/a", 1, ns=(16, 12, 16, 16, 16, 16, 16))
        b = ranked("v/b", 2, ns=(16, 16, 14, 16, 16, 16, 16))
        (found,) = comparisons({"v/a": a, "v/b": b})
        assert found.interval.tail == Sample(12, 5 * 15 + 11 + 13).tail
