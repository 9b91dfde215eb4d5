"""Paired differences of models: every pair once, with an interval of the two alone."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from generator.stats.bootstrap import LEAST_POSITIVE, Sample, percentile_interval
from generator.stats.pairs import Contender, pairs


def contender(model, seed, shift=0.0, ns=(16,) * 7):
    draws = np.random.default_rng(seed).normal(0.1 + shift, 0.01, 500)
    return Contender(model, 0.1 + shift, draws, ns)


def listed(contenders):
    """Every pair as (a, b, difference, low, high)."""
    found = pairs(contenders)
    places = zip(found.first.tolist(), found.second.tolist(), strict=True)
    numbers = zip(found.difference.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
    return [(found.models[a], found.models[b], *n) for (a, b), n in zip(places, numbers, strict=True)]


def plain(a, b):
    """Ends of a pair as the page says: round to 12 decimals first, then drop, sort, interpolate."""
    drawn = [float(y) - float(x) for x, y in zip(a.draws, b.draws, strict=True)]
    whole = sorted(round(d * 1e12) for d in drawn if not math.isnan(d))
    ns = [min(n, m) for n, m in zip(a.n_concepts, b.n_concepts, strict=True)]
    sample = Sample(min(ns), sum(ns) - len(ns))
    if sample.n < 2 or not whole:
        return math.nan, math.nan
    ends = []
    for share in (sample.tail, 1 - sample.tail):
        place = (len(whole) - 1) * share
        below = int(place)
        low, high = (whole[min(i, len(whole) - 1)] / 1e12 for i in (below, below + 1))
        ends.append(low + (place - below) * (high - low))
    return ends[0], ends[1]


# Values whose differences lie on, just below and just above the half of the last decimal that is kept.
NEAR = [
    0.0, 0.1, 0.5e-12, -0.5e-12, 1.5e-12, math.nextafter(0.5e-12, 0), math.nextafter(0.5e-12, 1), 4.9e-13, 5.1e-13,
    LEAST_POSITIVE, math.nextafter(LEAST_POSITIVE, 0), math.nan,
]  # fmt: skip


class TestAgainstAPlainReading:
    @given(
        hnp.arrays(np.float64, (5, 23), elements=st.one_of(st.sampled_from(NEAR), st.floats(-1, 1))),
        st.lists(st.tuples(st.integers(1, 16), st.integers(1, 16)), min_size=5, max_size=5),
    )
    @settings(max_examples=60, deadline=None)
    def test_any_draws_and_samples(self, draws, ns):
        models = [Contender(f"v/{i}", 0.1, row, n) for i, (row, n) in enumerate(zip(draws, ns, strict=True))]
        expected = [plain(a, b) for a, b in itertools.combinations(models, 2)]
        assert [p[3:] for p in listed(models)] == [pytest.approx(e, nan_ok=True, abs=0) for e in expected]

    def test_more_models_than_stand_in_a_block(self):
        models = [contender(f"v/{i:02d}", i, shift=0.001 * i) for i in range(39)]
        assert [p[3:] for p in listed(models)] == [plain(a, b) for a, b in itertools.combinations(models, 2)]


class TestPairs:
    def test_every_pair_once_in_slug_order(self):
        found = listed([contender(m, i) for i, m in enumerate(["v/c", "v/a", "v/b"])])
        assert [p[:2] for p in found] == [("v/a", "v/b"), ("v/a", "v/c"), ("v/b", "v/c")]

    @pytest.mark.parametrize("slugs", [[], ["v/a"]])
    def test_below_two_models_there_is_none(self, slugs):
        assert listed([contender(slug, 1) for slug in slugs]) == []

    def test_difference_is_of_consistency_so_less_disparity_is_more(self):
        ((_, _, difference, _, high),) = listed([contender("v/a", 1, shift=0.1), contender("v/b", 2)])
        assert difference == pytest.approx(-0.1)
        assert high < 0

    def test_a_model_is_no_different_from_its_twin(self):
        a = contender("v/a", 1)
        twin = Contender("v/b", a.disparity, a.draws, a.n_concepts)
        assert listed([a, twin]) == [("v/a", "v/b", 0, 0, 0)]

    def test_the_sample_takes_the_smaller_n_attribute_by_attribute(self):
        a = contender("v/a", 1, ns=(16, 12, 16, 16, 16, 16, 16))
        b = contender("v/b", 2, ns=(16, 16, 14, 16, 16, 16, 16))
        interval = percentile_interval(b.draws - a.draws, Sample(12, 5 * 15 + 11 + 13))
        assert listed([a, b])[0][3:] == (interval.low, interval.high)

    def test_an_attribute_of_one_concept_leaves_no_interval(self):
        models = [contender("v/a", 1, ns=(16,) * 6 + (1,)), contender("v/b", 2), contender("v/c", 3)]
        assert [math.isnan(p[3]) for p in listed(models)] == [True, True, False]
