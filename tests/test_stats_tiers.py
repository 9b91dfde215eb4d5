"""Tiers by their founder, and paired comparisons of models."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from statsmodels.stats.multitest import multipletests

from generator.stats.bootstrap import (
    LEAST_POSITIVE,
    LEAST_ZERO,
    NO_INTERVAL,
    Interval,
    Sample,
    percentile_interval,
    rounded,
)
from generator.stats.evidence import difference_p, tail_p
from generator.stats.tiers import OverallConsistency, Ranked, comparisons, tiers


def standing(model, estimate, low, high):
    return OverallConsistency(model, estimate, Interval(low, high, 0.01))


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
        found = places(OverallConsistency("v/a", math.nan, NO_INTERVAL), standing("v/b", 0.9, 0.8, 0.95))
        assert found == [("v/b", 1, 1, "v/b"), ("v/a", None, None, None)]

    def test_a_model_without_an_interval_founds_nothing_new(self):
        found = places(standing("v/a", 0.9, 0.8, 0.95), OverallConsistency("v/b", 0.2, NO_INTERVAL))
        assert found[1][2] == 1


def ranked(model, seed, shift=0.0, ns=(16,) * 7):
    draws = np.random.default_rng(seed).normal(0.1 + shift, 0.01, 500)
    return Ranked(model, 0.1 + shift, draws, ns)


@dataclass(frozen=True)
class Pair:
    """One pair of `Comparisons`, its arrays read at one place."""

    models: tuple[str, str]
    difference: float
    low: float
    high: float
    p: float
    p_holm: float


def pairs(models: dict[str, Ranked]) -> list[Pair]:
    found = comparisons(models)
    columns = (found.difference, found.low, found.high, found.p, found.p_holm)
    return [
        Pair((found.models[a], found.models[b]), *numbers)
        for a, b, *numbers in zip(found.first.tolist(), found.second.tolist(), *map(list, columns), strict=True)
    ]


def plain(a: Ranked, b: Ranked) -> tuple[float, float, float]:
    """Ends and p of a pair: round to 12 decimals first, then drop, sort, count, interpolate.

    See methodology: evidence, "Comparing two models".
    """
    drawn = [float(y) - float(x) for x, y in zip(a.draws, b.draws, strict=True)]
    whole = sorted(round(d * 1e12) for d in drawn if not math.isnan(d))
    ns = [min(n, m) for n, m in zip(a.n_concepts, b.n_concepts, strict=True)]
    sample = Sample(min(ns), sum(ns) - len(ns))
    if sample.n < 2 or not whole:
        return math.nan, math.nan, math.nan
    ends = []
    for share in (sample.tail, 1 - sample.tail):
        place = (len(whole) - 1) * share
        below = int(place)
        low, high = (whole[min(i, len(whole) - 1)] / 1e12 for i in (below, below + 1))
        ends.append(low + (place - below) * (high - low))
    sides = sum(x <= 0 for x in whole), sum(x >= 0 for x in whole)
    return ends[0], ends[1], min(1.0, 2 * min(tail_p(hits, len(whole), sample) for hits in sides))


# Values whose differences lie on, just below and just above the half of the last decimal that is kept.
NEAR = [
    0.0, 0.1, 0.5e-12, -0.5e-12, 1.5e-12, math.nextafter(0.5e-12, 0), math.nextafter(0.5e-12, 1), 4.9e-13, 5.1e-13,
    LEAST_ZERO, LEAST_POSITIVE, math.nextafter(LEAST_ZERO, -1), math.nextafter(LEAST_POSITIVE, 0), math.nan,
]  # fmt: skip


class TestAgainstAPlainReading:
    @given(
        hnp.arrays(np.float64, (5, 23), elements=st.one_of(st.sampled_from(NEAR), st.floats(-1, 1))),
        st.lists(st.tuples(st.integers(1, 16), st.integers(1, 16)), min_size=5, max_size=5),
    )
    @settings(max_examples=60, deadline=None)
    def test_any_draws_and_samples(self, draws, ns):
        models = {f"v/{i}": Ranked(f"v/{i}", 0.1, row, n) for i, (row, n) in enumerate(zip(draws, ns, strict=True))}
        expected = [plain(models[a], models[b]) for a, b in itertools.combinations(models, 2)]
        assert [(c.low, c.high, c.p) for c in pairs(models)] == [pytest.approx(e, nan_ok=True, abs=0) for e in expected]

    def test_more_models_than_stand_in_a_block(self):
        models = {f"v/{i:02d}": ranked(f"v/{i:02d}", i, shift=0.001 * i) for i in range(19)}
        expected = [plain(models[a], models[b]) for a, b in itertools.combinations(models, 2)]
        assert [(c.low, c.high, c.p) for c in pairs(models)] == expected


def against_nothing(difference: float, n: int = 16) -> Pair:
    """A pair whose 100 replicates all differ by one number."""
    a, b = (Ranked(m, 0.1, np.full(100, x), (n,) * 7) for m, x in (("v/a", 0.0), ("v/b", difference)))
    (found,) = pairs({"v/a": a, "v/b": b})
    return found


class TestZero:
    @pytest.mark.parametrize("difference", [0.5e-12, -0.5e-12, 1e-14, -0.0])
    def test_half_of_the_last_decimal_is_no_difference(self, difference):
        found = against_nothing(difference)
        assert (found.p, found.low, found.high) == (1.0, 0.0, 0.0)

    @pytest.mark.parametrize("difference", [LEAST_POSITIVE, -LEAST_POSITIVE, 0.6e-12, -0.6e-12])
    def test_beyond_it_all_replicates_are_on_one_side(self, difference):
        found = against_nothing(difference)
        assert found.p == 2 * tail_p(0, 100, Sample(16, 105))
        assert found.low == found.high == math.copysign(1e-12, difference)


class TestComparisons:
    def test_every_pair_once_in_slug_order(self):
        models = {m: ranked(m, i) for i, m in enumerate(["v/c", "v/a", "v/b"])}
        assert [c.models for c in pairs(models)] == [("v/a", "v/b"), ("v/a", "v/c"), ("v/b", "v/c")]

    @pytest.mark.parametrize("slugs", [[], ["v/a"]])
    def test_below_two_models_there_is_none(self, slugs):
        assert pairs({slug: ranked(slug, 1) for slug in slugs}) == []

    def test_difference_is_of_consistency_so_less_disparity_is_more(self):
        (found,) = pairs({"v/a": ranked("v/a", 1, shift=0.1), "v/b": ranked("v/b", 2)})
        assert found.difference == pytest.approx(-0.1)
        assert found.high < 0

    def test_equals_the_formula_from_paired_draws(self):
        a, b = ranked("v/a", 1), ranked("v/b", 2, shift=0.005)
        (found,) = pairs({"v/a": a, "v/b": b})
        draws = rounded(b.draws - a.draws)
        sample = Sample(16, 105)
        interval = percentile_interval(draws, sample)
        assert (found.low, found.high) == (interval.low, interval.high)
        expected = difference_p(int((draws <= 0).sum()), int((draws >= 0).sum()), 500, sample)
        assert found.p == pytest.approx(expected, rel=1e-12)

    def test_a_model_is_no_different_from_its_twin(self):
        a = ranked("v/a", 1)
        (found,) = pairs({"v/a": a, "v/b": Ranked("v/b", a.disparity, a.draws, a.n_concepts)})
        assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1)

    def test_holm_runs_over_all_pairs(self):
        models = {f"v/{i}": ranked(f"v/{i}", i, shift=0.004 * i) for i in range(6)}
        found = pairs(models)
        assert [c.p_holm for c in found] == pytest.approx(
            multipletests([c.p for c in found], method="holm")[1].tolist()
        )

    def test_the_sample_takes_the_smaller_n_attribute_by_attribute(self):
        a = ranked("v/a", 1, ns=(16, 12, 16, 16, 16, 16, 16))
        b = ranked("v/b", 2, ns=(16, 16, 14, 16, 16, 16, 16))
        (found,) = pairs({"v/a": a, "v/b": b})
        interval = percentile_interval(b.draws - a.draws, Sample(12, 5 * 15 + 11 + 13))
        assert (found.low, found.high) == (interval.low, interval.high)

    def test_an_attribute_of_one_concept_leaves_neither_interval_nor_p_and_holm_does_not_count_it(self):
        models = {"v/a": ranked("v/a", 1, ns=(16,) * 6 + (1,)), "v/b": ranked("v/b", 2), "v/c": ranked("v/c", 3, 0.004)}
        ab, ac, bc = pairs(models)
        assert np.isnan([ab.low, ab.high, ab.p, ab.p_holm, ac.low, ac.p, ac.p_holm]).all()
        assert bc.p_holm == bc.p
