"""Portable draws against a plain reading of the rule; intervals against the exact distribution, scipy and DuckDB."""

from __future__ import annotations

import hashlib
import itertools
import math
import warnings

import duckdb
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from generator.stats.bootstrap import (
    LEAST_POSITIVE,
    Interval,
    Resamples,
    Sample,
    concept_counts,
    expanded_tail,
    one_attribute,
    percentile_interval,
    percentile_intervals,
    ratio,
    reflected,
    round12,
    rounded,
    scaled,
    several_attributes,
    tail_ends,
)

BANK = "ab" * 32
NAN = math.nan


def drawn_by_hand(bank: str, attribute: str, n: int, b: int) -> list[int]:
    """Draw j of resample b, word for word (methodology: statistics, "Draws that any language can repeat")."""
    found = []
    for j in range(n):
        digest = hashlib.sha256(f"{bank}|{attribute}|{n}|{b}|{j // 8}".encode()).digest()
        word = int.from_bytes(digest[4 * (j % 8) : 4 * (j % 8) + 4], "big")
        found.append(word * n // 2**32)
    return found


class TestConceptCounts:
    @pytest.mark.parametrize("n", [1, 2, 8, 9, 10, 16, 33])
    def test_are_those_of_the_contract(self, n):
        counts = concept_counts(BANK, "age", n, 50)
        for b in range(50):
            assert counts[b].tolist() == np.bincount(drawn_by_hand(BANK, "age", n, b), minlength=n).tolist()

    def test_each_resample_draws_n(self):
        assert set(concept_counts(BANK, "gender", 16).sum(axis=1).tolist()) == {16}

    def test_are_uint8_and_cannot_be_changed(self):
        counts = concept_counts(BANK, "gender", 16)
        assert counts.dtype == np.uint8
        with pytest.raises(ValueError, match="read-only"):
            counts[0, 0] = 1

    def test_differ_by_bank_attribute_and_n(self):
        base = concept_counts(BANK, "age", 16, 20)
        assert not np.array_equal(base, concept_counts("cd" * 32, "age", 16, 20))
        assert not np.array_equal(base, concept_counts(BANK, "gender", 16, 20))

    def test_are_uniform(self):
        # Chi-squared over 160,000 draws: a biased mapping would be far out.
        totals = concept_counts(BANK, "age", 16).sum(axis=0, dtype=np.int64)
        assert scipy.stats.chisquare(totals).pvalue > 1e-4


class TestResamples:
    def test_sums_are_exact_to_the_last_bit_in_any_order(self):
        rng = np.random.default_rng(3)
        counts, values = concept_counts(BANK, "age", 16, 400), rng.random((7, 16))
        order = rng.permutation(16)
        straight = Resamples.of(counts).sums(values)
        turned = Resamples.of(counts[:, order]).sums(values[:, order])
        alone = Resamples.of(counts).sums(values[3:4])
        assert np.array_equal(straight, turned)
        assert np.array_equal(straight[3:4], alone)

    def test_sums_equal_the_plain_product(self):
        counts, values = concept_counts(BANK, "age", 16, 400), np.random.default_rng(4).random((3, 16))
        assert np.abs(Resamples.of(counts).sums(values) - values @ counts.T).max() < 1e-13

    @given(hnp.arrays(np.float64, (2, 6), elements=st.floats(-1e3, 1e3)))
    @settings(max_examples=50)
    def test_the_grid_moves_no_sum_by_more_than_a_rounding(self, values):
        counts = concept_counts(BANK, "age", 6, 30)
        exact = [[math.fsum(v * c for v, c in zip(row, drawn, strict=True)) for drawn in counts] for row in values]
        scale = max(1e-300, np.abs(values).max() * 6)
        assert np.abs(Resamples.of(counts).sums(values) - exact).max() <= 4e-15 * scale

    def test_kept_gives_the_others_weight_nothing(self):
        counts = concept_counts(BANK, "age", 4, 30)
        keep = np.array([True, False, True, True])
        values = np.array([[1.0, 0.0, 0.5, 0.25]])
        kept = Resamples.of(counts).kept(keep).sums(values[:, keep])
        assert np.array_equal(kept, Resamples.of(counts).sums(values))


class TestRounding:
    def test_minus_zero_becomes_zero(self):
        assert math.copysign(1, round12(-1e-17)) == 1
        assert np.signbit(rounded(np.array([-1e-17]))).tolist() == [False]

    def test_keeps_twelve_decimals(self):
        assert round12(0.1234567890123456) == 0.123456789012


class TestLeastPositive:
    """The number that stands for a comparison with 0 after rounding."""

    def test_least_number_that_rounds_above_zero(self):
        assert rounded(np.array([LEAST_POSITIVE, math.nextafter(LEAST_POSITIVE, 0)])).tolist() == [1e-12, 0.0]

    @given(st.one_of(st.floats(-2e-12, 2e-12), st.floats(-1, 1)))
    def test_comparing_with_it_decides_like_rounding(self, value):
        assert (value < LEAST_POSITIVE) == (scaled(np.array([value]))[0] <= 0)


class TestRatio:
    def test_is_nan_where_nothing_was_counted(self):
        assert np.isnan(ratio(np.array([0.0]), np.array([0.0]))).tolist() == [True]


class TestSample:
    def test_one_attribute(self):
        assert one_attribute(16) == Sample(16, 15)

    def test_several_take_the_smallest_n_and_all_degrees(self):
        assert several_attributes([16, 15, 16]) == Sample(15, 44)

    def test_tail_equals_its_formula(self):
        expected = scipy.stats.norm.cdf(-math.sqrt(10 / 9) * scipy.stats.t.ppf(0.975, 9))
        assert expanded_tail(10, 9) == pytest.approx(expected, rel=1e-11)


class TestTailEnds:
    """Both ends of each row against other people's quantiles of type 7, whatever the tail, the ties and the gaps."""

    VALUES = st.one_of(st.just(NAN), st.sampled_from([0.0, 0.25, 1.0]), st.floats(-1e-11, 1e-11), st.floats(-5, 5))

    @pytest.mark.parametrize("few_ties", [False, True])
    @given(
        drawn=st.tuples(st.integers(1, 4), st.integers(1, 60)).flatmap(
            lambda shape: st.tuples(
                hnp.arrays(np.float64, shape, elements=TestTailEnds.VALUES),
                hnp.arrays(np.float64, shape[0], elements=st.one_of(st.just(NAN), st.floats(0, 0.5))),
            )
        )
    )
    @settings(max_examples=300)
    def test_equal_numpy(self, drawn, few_ties):
        values, tails = drawn
        ends = tail_ends(values.copy(), tails, few_ties=few_ties)
        for row, tail, low, high, n in zip(values, tails, ends.low, ends.high, ends.kept, strict=True):
            kept = rounded(row[~np.isnan(row)])
            assert n == len(kept)
            if math.isnan(tail) or not len(kept):
                assert np.isnan([low, high]).all()
            else:
                assert [low, high] == pytest.approx(np.quantile(kept, [tail, 1 - tail]), abs=1e-12)

    @pytest.mark.parametrize("few_ties", [False, True])
    @pytest.mark.parametrize("tail", [0.0, 0.00855, 0.0137, 0.0229, 0.25, 0.5])
    def test_equal_duckdb(self, tail, few_ties):
        values = np.random.default_rng(5).random(997)
        query = "select quantile_cont(x, [?::double, ?::double]) from (select unnest(?) as x)"
        ((found,),) = duckdb.execute(query, [tail, 1 - tail, values.tolist()]).fetchall()
        ends = tail_ends(values[None].copy(), np.array([tail]), few_ties=few_ties)
        assert [ends.low[0], ends.high[0]] == pytest.approx(found, abs=1e-12)

    @pytest.mark.parametrize("few_ties", [False, True])
    def test_rows_that_need_other_places_do_not_touch_each_other(self, few_ties):
        # Tails, gaps and ties in one array: rows alike are worked out together, and each is as it is alone.
        values = np.random.default_rng(7).normal(size=(6, 400))
        values[2, ::9] = np.nan
        values[4] = 0.5
        tails = np.array([0.02, 0.02, 0.02, 0.07, 0.02, 0.02])
        ends = tail_ends(values.copy(), tails, few_ties=few_ties)
        for i in range(len(values)):
            alone = tail_ends(values[i : i + 1].copy(), tails[i : i + 1], few_ties=few_ties)
            assert (ends.low[i], ends.high[i], ends.kept[i]) == (alone.low[0], alone.high[0], alone.kept[0])

    @pytest.mark.parametrize("kind", ["spread", "ties", "alike", "rare ends", "in order", "a gap", "hardly any"])
    @pytest.mark.parametrize("tail", [0.0, 0.00855, 0.0229, 0.25, 0.5])
    def test_many_replicates_equal_a_whole_sort(self, kind, tail):
        # What a sample of the row says of its ends may mislead: few extreme values, values in order, gaps.
        rng = np.random.default_rng(11)
        values = {
            "spread": rng.normal(size=10_000),
            "ties": rng.integers(0, 40, 10_000) / 40,
            "alike": np.full(10_000, 0.25),
            "rare ends": np.where(np.arange(10_000) % 20 == 0, 0.5, rng.normal(size=10_000)),
            "in order": np.arange(10_000) / 10_000,
            "a gap": np.where(np.arange(10_000) == 7, NAN, rng.normal(size=10_000)),
            "hardly any": np.where(np.arange(10_000) < 9_990, NAN, rng.normal(size=10_000)),
        }[kind]
        kept = np.sort(rounded(values[~np.isnan(values)]))
        places = [(len(kept) - 1) * p for p in (tail, 1 - tail)]
        expected = []
        for place in places:
            lower, upper = kept[math.floor(place)], kept[min(math.floor(place) + 1, len(kept) - 1)]
            expected.append(lower + (place - math.floor(place)) * (upper - lower) + 0.0)
        ends = tail_ends(values[None].copy(), np.array([tail]))
        assert [ends.low[0], ends.high[0], ends.kept[0]] == [*expected, len(kept)]


class TestPercentileInterval:
    def test_below_two_concepts_there_is_none(self):
        found = percentile_interval(np.arange(100.0), one_attribute(1))
        assert math.isnan(found.low)
        assert math.isnan(found.high)
        assert math.isnan(found.tail)

    def test_replicates_without_a_value_are_dropped(self):
        values = np.linspace(0, 1, 1000)
        some = np.concatenate([values, np.full(10, np.nan)])
        found, plain = (percentile_interval(v, one_attribute(10)) for v in (some, values))
        assert (found.low, found.high) == (plain.low, plain.high)

    @pytest.mark.parametrize(("missing", "unstable"), [(10, False), (11, True)])
    def test_above_one_per_cent_without_a_value_it_is_unstable(self, missing, unstable):
        values = np.concatenate([np.linspace(0, 1, 1000 - missing), np.full(missing, np.nan)])
        assert percentile_interval(values, one_attribute(10)).unstable is unstable

    def test_the_replicates_stay_as_they_were(self):
        draws = np.random.default_rng(8).random((2, 300))
        before = draws.copy()
        percentile_intervals(draws, [one_attribute(16)] * 2)
        assert np.array_equal(draws, before)

    def test_rows_do_not_touch_each_other(self):
        draws = np.random.default_rng(6).random((3, 500))
        draws[1, :50] = np.nan
        samples = [one_attribute(16), one_attribute(9), one_attribute(12)]
        together = percentile_intervals(draws, samples)
        assert together == [percentile_interval(d, s) for d, s in zip(draws, samples, strict=True)]

    @given(
        hnp.arrays(np.float64, (3, 40), elements=st.one_of(st.just(NAN), st.floats(-1e-11, 1e-11), st.floats(-1, 1))),
        st.lists(st.integers(0, 16), min_size=3, max_size=3),
    )
    @settings(max_examples=60)
    def test_rounding_after_the_sort_equals_rounding_before_it(self, draws, ns):
        samples = [one_attribute(n) for n in ns]
        found = percentile_intervals(draws, samples)
        for row, sample, interval in zip(draws, samples, found, strict=True):
            kept = np.sort(rounded(row[~np.isnan(row)]))
            if sample.n < 2 or not len(kept):
                assert np.isnan([interval.low, interval.high, interval.tail]).all()
                continue
            ends = np.quantile(kept, [sample.tail, 1 - sample.tail])
            assert [interval.low, interval.high] == pytest.approx(ends, abs=1e-15)
            assert interval.unstable is (len(kept) < 0.99 * len(row))

    def test_equals_the_exact_bootstrap_distribution(self):
        # Five concepts: all 5^5 resamples are equally likely, so the distribution of the mean can be listed whole.
        values = np.array([0.0, 0.1, 0.15, 0.4, 0.9])
        exact = np.sort([np.mean(drawn) for drawn in itertools.product(values, repeat=5)])
        sample = one_attribute(5)
        counts = Resamples.of(concept_counts(BANK, "age", 5))
        found = percentile_interval((counts.sums(values[None]) / 5)[0], sample)
        # Within the Monte Carlo error of 10,000 draws: four standard errors of the tail's share, as quantiles.
        error = 4 * math.sqrt(sample.tail * (1 - sample.tail) / 10_000)
        for end, p in ((found.low, sample.tail), (found.high, 1 - sample.tail)):
            lower, upper = np.quantile(exact, [max(0, p - error), min(1, p + error)])
            assert lower - 1e-12 <= end <= upper + 1e-12

    def test_equals_scipy_at_the_same_level(self):
        values = np.random.default_rng(7).beta(1, 6, 16)
        sample = one_attribute(16)
        counts = Resamples.of(concept_counts(BANK, "age", 16))
        found = percentile_interval((counts.sums(values[None]) / 16)[0], sample)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = scipy.stats.bootstrap(
                (values,), np.mean, confidence_level=1 - 2 * sample.tail, n_resamples=40_000, method="percentile",
                rng=np.random.default_rng(8),
            ).confidence_interval  # fmt: skip
        spread = values.std() / 4
        assert found.low == pytest.approx(theirs.low, abs=0.08 * spread)
        assert found.high == pytest.approx(theirs.high, abs=0.08 * spread)


class TestFewConcepts:
    """The page on statistics, "Where an interval says too little": two to five concepts with a value."""

    @staticmethod
    def of(n, planned):
        """The interval of a mean over the first n of the planned concepts, whose values are 0.01, 0.04, 0.09, ..."""
        counts = concept_counts(BANK, "age", planned)[:, :n].astype(float)
        values = 0.01 * np.arange(1, n + 1) ** 2
        found = percentile_interval(ratio(counts @ values, counts.sum(axis=1)), one_attribute(n))
        return (found.low, found.high), pytest.approx((values[0], values[-1]))

    @pytest.mark.parametrize("planned", [10, 16])
    @pytest.mark.parametrize("n", [2, 3, 4, 5])
    def test_the_interval_is_the_range_of_their_values(self, n, planned):
        found, whole = self.of(n, planned)
        assert found == whole

    @pytest.mark.parametrize("planned", [10, 16])
    def test_with_more_it_lies_inside(self, planned):
        found, whole = self.of(7, planned)
        assert found != whole


class TestMapped:
    def test_turns_the_ends_with_a_negative_scale(self):
        assert Interval(0.1, 0.3, 0.01).mapped(-100, 100) == Interval(70.0, 90.0, 0.01)


class TestReflected:
    def test_reflects_at_the_estimate(self):
        found = reflected(0.3, Interval(0.25, 0.5, 0.01))
        assert (found.low, found.high) == pytest.approx((0.1, 0.35))

    def test_is_clipped_to_0_and_1(self):
        found = reflected(0.1, Interval(0.0, 0.5, 0.01))
        assert (found.low, found.high) == pytest.approx((0.0, 0.2))
