"""The bootstrap: portable draws of concepts, replicates of ratios, the expanded percentile interval.

See methodology: statistics, "Statistics".

Every statistic here is a ratio of sums over concepts, so that all replicates of all models are one matrix product of
the counts with the concepts' numerators and denominators.

Hesterberg 2015, arXiv 1411.5279 (expanded percentile); Hyndman and Fan 1996, type 7 (quantile).
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from generator.stats.distributions import normal_cdf, t_quantile

FloatArray = npt.NDArray[np.float64]
CountArray = npt.NDArray[np.uint8]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

RESAMPLES = 10_000
DECIMALS = 12
UNSTABLE_SHARE = 0.01
_SCALE = 10.0**DECIMALS
_WORDS = 8
_ONE_THREAD = 250_000  # multiplications below which OpenBLAS stays on one thread
_ROWS = 24  # rows multiplied at a time: more of them would make the blocks narrow


def rounded(values: FloatArray) -> FloatArray:
    """Round to 12 decimals, as before any comparison, sign or quantile, so that every language decides alike."""
    return np.asarray(scaled(values) / _SCALE + 0.0)


def scaled(values: FloatArray) -> FloatArray:
    """Return values x 10^12 to the nearest whole number: rounding to 12 decimals before it divides again."""
    whole = np.asarray(values * _SCALE)
    return np.rint(whole, out=whole)


def round12(value: float) -> float:
    """Round one number to 12 decimals, minus zero to zero."""
    return round(value, DECIMALS) + 0.0


def _least_positive() -> float:
    """Return the least number that rounds above 0 at 12 decimals.

    Rounding keeps the order, so that comparing with it decides as comparing the rounded value with 0 does.
    """
    above = 0.5 / _SCALE
    while np.rint(above * _SCALE) > 0:
        above = math.nextafter(above, 0.0)
    while np.rint(above * _SCALE) <= 0:
        above = math.nextafter(above, math.inf)
    return above


LEAST_POSITIVE = _least_positive()


@lru_cache(maxsize=64)
def concept_counts(bank_sha256: str, attribute: str, n: int, resamples: int = RESAMPLES) -> CountArray:
    """Return how often each of `n` concepts is drawn: uint8 array (resamples, n), rows summing to n, read-only.

    Draw j of resample b is word j mod 8, big-endian uint32, of SHA-256("<bank>|<attribute>|<n>|<b>|<j div 8>"), mapped
    to floor(word * n / 2^32): any language with SHA-256 makes the same matrix.
    """
    blocks = -(-n // _WORDS)
    prefix = hashlib.sha256(f"{bank_sha256}|{attribute}|{n}|".encode())
    digests = bytearray()
    for b in range(resamples):
        for k in range(blocks):
            state = prefix.copy()
            state.update(b"%d|%d" % (b, k))
            digests += state.digest()
    words = np.frombuffer(digests, ">u4").reshape(resamples, blocks * _WORDS)[:, :n].astype(np.uint64)
    drawn = ((words * np.uint64(n)) >> np.uint64(32)).astype(np.int64)
    flat = drawn + n * np.arange(resamples)[:, None]
    counts = np.bincount(flat.ravel(), minlength=resamples * n).reshape(resamples, n).astype(np.uint8)
    counts.flags.writeable = False
    return counts


def _on_grid(values: FloatArray) -> FloatArray:
    """Return each row on a binary grid so coarse that its sums of n counted terms are exact in doubles.

    Sums of at most n terms then do not depend on their order, hence not on the processor, the number of threads or the
    models that stand in the same product. The step is below 2^-52 of the row's largest possible sum.
    """
    largest = np.abs(values).max(axis=-1, keepdims=True, initial=0.0) * values.shape[-1]
    _, exponent = np.frexp(largest)
    return np.asarray(np.ldexp(np.rint(np.ldexp(values, 52 - exponent)), exponent - 52))


@dataclass(frozen=True)
class Resamples:
    """An attribute's resamples as a matrix to multiply with: float64 (concepts, resamples)."""

    matrix: FloatArray

    @classmethod
    def of(cls, counts: CountArray) -> Resamples:
        """Return the resamples of counts (resamples, concepts)."""
        return cls(np.ascontiguousarray(counts.T, dtype=np.float64))

    def kept(self, concepts: BoolArray) -> Resamples:
        """Return the resamples of some concepts: the others have weight 0."""
        return self if concepts.all() else Resamples(self.matrix[concepts])

    def sums(self, values: FloatArray) -> FloatArray:
        """Return sum over concepts of count x value: (rows, concepts) -> (rows, resamples), exact in any order."""
        return self.totals(_on_grid(values))

    def totals(self, numbers: FloatArray) -> FloatArray:
        """Return the same sums of numbers whose sums are exact as they stand, such as counts.

        In blocks so small that the linear algebra library keeps to one thread: its own threads wait for each other
        longer than such a product takes, and many times longer on a busy machine.
        """
        out = np.empty((len(numbers), self.matrix.shape[1]))
        for top in range(0, len(numbers), _ROWS):
            part, target = numbers[top : top + _ROWS], out[top : top + _ROWS]
            width = max(64, _ONE_THREAD // max(1, part.size))
            for start in range(0, out.shape[1], width):
                block = slice(start, start + width)
                np.matmul(part, self.matrix[:, block], out=target[:, block])
        return out


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return numerator / denominator, NaN where nothing was counted: there both are 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(numerator / denominator)


@dataclass(frozen=True)
class Sample:
    """How much evidence an interval rests on: `n` concepts (the smaller number where there are two) and `df`."""

    n: int
    df: int

    @property
    def enough(self) -> bool:
        """Whether there is an interval at all."""
        return self.n >= 2

    @property
    def tail(self) -> float:
        """The expanded tail a = Phi(-sqrt(n/(n-1)) t_{.975,df}); NaN below two concepts."""
        return expanded_tail(self.n, self.df) if self.enough else math.nan


def one_attribute(n: int) -> Sample:
    """Return the sample of a number that rests on one attribute's `n` concepts."""
    return Sample(n, n - 1)


def several_attributes(ns: Sequence[int]) -> Sample:
    """Return the sample of a number pooled over attributes: the smallest n, df summed."""
    return Sample(min(ns, default=0), sum(n - 1 for n in ns))


@lru_cache(maxsize=4096)
def expanded_tail(n: int, df: int) -> float:
    """Return the tail probability of the expanded percentile interval at 95 %."""
    return normal_cdf(-math.sqrt(n / (n - 1)) * t_quantile(0.975, df))


@dataclass(frozen=True)
class Interval:
    """An interval on the scale of its replicates; NaN ends and tail where there is none."""

    low: float
    high: float
    tail: float
    unstable: bool = False

    def mapped(self, scale: float, shift: float) -> Interval:
        """Return the interval of scale x statistic + shift, its ends in order."""
        ends = (scale * self.low + shift, scale * self.high + shift)
        return Interval(min(ends), max(ends), self.tail, self.unstable)


NO_INTERVAL = Interval(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Ends:
    """The intervals of several statistics: arrays (statistics,), NaN where there is none; `kept` counts replicates."""

    low: FloatArray
    high: FloatArray
    kept: IntArray


def tail_ends(values: FloatArray, tails: FloatArray, *, few_ties: bool = False) -> Ends:
    """Return the type 7 quantiles at each row's tail and at 1 - tail, of values rounded to 12 decimals.

    values: (statistics, resamples), NaN = no value; left in another order. tails: (statistics,), NaN = no interval.
    Rounding keeps the order, so that rounding the four values that are used is the same as rounding all of them.
    few_ties changes nothing but the time: half of it where hardly two values are equal, many times it where most are.
    """
    kept = _valued(values)
    none = np.isnan(tails) | (kept == 0)
    places = [(kept - 1) * np.where(none, 0.0, p) for p in (tails, 1 - tails)]
    below = np.floor(places)
    whole = below.astype(np.intp)
    index = np.stack([whole, np.minimum(whole + 1, np.maximum(kept - 1, 0))])
    lower, following = rounded(_selected_at(values, index, kept) if few_ties else _sorted_at(values, index))
    ends = np.where(none, np.nan, lower + (places - below) * (following - lower) + 0.0)
    return Ends(ends[0], ends[1], kept)


def _valued(values: FloatArray) -> IntArray:
    """Return how many values of each row are not NaN."""
    kept = np.full(len(values), values.shape[-1])
    some = np.isnan(values.max(axis=-1))
    if some.any():
        kept[some] -= np.isnan(values[some]).sum(axis=-1)
    return kept


def _sorted_at(values: FloatArray, index: IntArray) -> FloatArray:
    """Return the values at places of each row's order: index (two neighbors, two ends, rows)."""
    values.sort(axis=-1)  # NaN last
    return np.asarray(values[np.arange(len(values)), index])


def _selected_at(values: FloatArray, index: IntArray, kept: IntArray) -> FloatArray:
    """Return the same by selection, which puts the two ends in order and not what lies between them."""
    found = np.empty(index.shape)
    start = 0
    keys = zip(*index.reshape(4, -1).tolist(), kept.tolist(), strict=True)
    for (low, high, second, last, n), rows in itertools.groupby(keys):
        part = slice(start, start + len(list(rows)))
        start = part.stop
        block = values[part]
        if not low < second < high < last or n < block.shape[-1]:
            found[..., part] = _sorted_at(block, index[..., part])
            continue
        block.partition(second, axis=-1)
        rest = block[:, second + 1 :]
        middle = high - second - 1
        rest.partition(middle, axis=-1)
        found[0, :, part] = block[:, :second].max(axis=-1), rest[:, middle]
        found[1, :, part] = block[:, second], rest[:, middle + 1 :].min(axis=-1)
    return found


def percentile_intervals(replicates: FloatArray, samples: Sequence[Sample]) -> list[Interval]:
    """Return the expanded percentile interval of each statistic: replicates (statistics, resamples), NaN = no value.

    Replicates without a value are dropped; above 1 % of them the interval is marked unstable.
    """
    return tail_intervals(replicates.copy(), samples)


def tail_intervals(replicates: FloatArray, samples: Sequence[Sample]) -> list[Interval]:
    """Return the same intervals of replicates that nobody needs afterwards: they are left in another order."""
    tails = [sample.tail for sample in samples]
    ends = tail_ends(replicates, np.array(tails))
    total = replicates.shape[-1]
    return [
        NO_INTERVAL if math.isnan(low) else Interval(low, high, tail, total - kept > UNSTABLE_SHARE * total)
        for low, high, kept, tail in zip(ends.low.tolist(), ends.high.tolist(), ends.kept.tolist(), tails, strict=True)
    ]


def percentile_interval(replicates: FloatArray, sample: Sample) -> Interval:
    """Return the interval of one statistic's replicates (resamples,)."""
    return percentile_intervals(replicates[None], [sample])[0]


def reflected(estimate: float, interval: Interval) -> Interval:
    """Return the reflected interval [2e - high, 2e - low] clipped to [0, 1]: for a maximum minus a minimum."""
    if math.isnan(interval.tail):
        return interval
    low, high = (min(1.0, max(0.0, 2 * estimate - end)) for end in (interval.high, interval.low))
    return Interval(low, high, interval.tail, interval.unstable)
