"""The bootstrap of SPEC 5: portable draws of concepts, replicates of ratios, the expanded percentile interval.

Every statistic here is a ratio of sums over concepts, so that all replicates of all models are one matrix product of
the counts with the concepts' numerators and denominators.

Hesterberg 2015, arXiv 1411.5279 (expanded percentile); Hyndman and Fan 1996, type 7 (quantile).
"""

from __future__ import annotations

import hashlib
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

RESAMPLES = 10_000
DECIMALS = 12
UNSTABLE_SHARE = 0.01
_SCALE = 10.0**DECIMALS
_WORDS = 8
_ONE_THREAD = 250_000  # multiplications below which OpenBLAS stays on one thread


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
        width = max(64, _ONE_THREAD // max(1, numbers.size))
        for start in range(0, out.shape[1], width):
            block = slice(start, start + width)
            out[:, block] = numbers @ self.matrix[:, block]
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


def sorted_quantile(ordered: FloatArray, p: float, scale: float = 1.0) -> float:
    """Return the type 7 quantile of ascending values, each divided by `scale` first."""
    place = (len(ordered) - 1) * p
    below = math.floor(place)
    low, high = (float(x) / scale for x in (ordered[below], ordered[min(below + 1, len(ordered) - 1)]))
    return low + (place - below) * (high - low) + 0.0


def percentile_intervals(replicates: FloatArray, samples: Sequence[Sample]) -> list[Interval]:
    """Return the expanded percentile interval of each statistic: replicates (statistics, resamples), NaN = no value.

    Replicates without a value are dropped; above 1 % of them the interval is marked unstable.
    """
    return scaled_intervals(scaled(replicates), samples)


def scaled_intervals(ordered: FloatArray, samples: Sequence[Sample]) -> list[Interval]:
    """Return the intervals of replicates that `scaled` has rounded; sorts them in place."""
    ordered.sort(axis=-1)  # NaN last
    kept = (~np.isnan(ordered)).sum(axis=-1)
    total = ordered.shape[-1]
    found = []
    for row, n, sample in zip(ordered, kept.tolist(), samples, strict=True):
        if not sample.enough or n == 0:
            found.append(NO_INTERVAL)
            continue
        a = sample.tail
        low, high = (sorted_quantile(row[:n], p, _SCALE) for p in (a, 1 - a))
        found.append(Interval(low, high, a, total - n > UNSTABLE_SHARE * total))
    return found


def percentile_interval(replicates: FloatArray, sample: Sample) -> Interval:
    """Return the interval of one statistic's replicates (resamples,)."""
    return percentile_intervals(replicates[None], [sample])[0]


def reflected(estimate: float, interval: Interval) -> Interval:
    """Return the reflected interval [2e - high, 2e - low] clipped to [0, 1]: for a maximum minus a minimum."""
    if math.isnan(interval.tail):
        return interval
    low, high = (min(1.0, max(0.0, 2 * estimate - end)) for end in (interval.high, interval.low))
    return Interval(low, high, interval.tail, interval.unstable)
