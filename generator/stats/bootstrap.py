"""The bootstrap: portable draws of concepts, replicates of ratios, the expanded percentile interval.

Every statistic here is a ratio of sums over concepts. So the replicates of all models are one matrix product: the
numerators and denominators by concept times the counts of the resamples.

Hesterberg 2015, arXiv 1411.5279 (expanded percentile); Hyndman and Fan 1996, type 7 (quantile).

See methodology: statistics, "Statistics".
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

_SAMPLED = 20  # one value in as many tells where the ends of a row lie
RESAMPLES = 10_000
DECIMALS = 12
UNSTABLE_SHARE = 0.01
_SCALE = 10.0**DECIMALS
_WORDS = 8
_ONE_THREAD = 250_000  # multiplications below which OpenBLAS stays on one thread
_ROWS = 24  # rows multiplied at a time: more of them would make the blocks narrow


def rounded(values: FloatArray) -> FloatArray:
    """Round to 12 decimals, so that every language decides alike (methodology: scoring, "Rounding before a decision").

    Args:
        values: float array of any shape, NaN allowed.

    Returns:
        A new array of the same shape; minus zero becomes zero, NaN stays.
    """
    return np.asarray(scaled(values) / _SCALE + 0.0)


def scaled(values: FloatArray) -> FloatArray:
    """Return values times 10^12 to the nearest whole number, the first half of `rounded`.

    Comparing the whole numbers decides like comparing the rounded values, and saves a division.
    """
    whole = np.asarray(values * _SCALE)
    return np.rint(whole, out=whole)


def round12(value: float) -> float:
    """Round one number to 12 decimals before it is compared; minus zero becomes zero, NaN stays."""
    return round(value, DECIMALS) + 0.0


def _least_positive() -> float:
    """Return the smallest number that rounds above 0 at 12 decimals.

    Rounding keeps the order. So comparing with this number decides like comparing the rounded value with 0, without
    rounding millions of replicates.
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
    """Draw concepts with replacement and count them (methodology: statistics, "Draws that any language can repeat").

    Draw j of resample b is word j mod 8, a big-endian uint32, of SHA-256("<bank>|<attribute>|<n>|<b>|<j div 8>"). It
    picks concept floor(word * n / 2^32). Any language with SHA-256 makes the same counts.

    Args:
        bank_sha256: the bank's hash in hexadecimal, the seed of all draws.
        attribute: id of the attribute; attributes are drawn independently.
        n: number of concepts, at most 255.
        resamples: number of resamples.

    Returns:
        uint8 array (resamples, n), rows summing to n. It is cached, hence read-only.
    """
    blocks = -(-n // _WORDS)
    # The prefix is hashed once; each digest goes on from a copy of that state.
    prefix = hashlib.sha256(f"{bank_sha256}|{attribute}|{n}|".encode())
    digests = bytearray()
    for b in range(resamples):
        for k in range(blocks):
            state = prefix.copy()
            state.update(b"%d|%d" % (b, k))
            digests += state.digest()
    # uint64, because word * n does not fit into 32 bits.
    words = np.frombuffer(digests, ">u4").reshape(resamples, blocks * _WORDS)[:, :n].astype(np.uint64)
    drawn = ((words * np.uint64(n)) >> np.uint64(32)).astype(np.int64)
    flat = drawn + n * np.arange(resamples)[:, None]
    counts = np.bincount(flat.ravel(), minlength=resamples * n).reshape(resamples, n).astype(np.uint8)
    counts.flags.writeable = False
    return counts


def _on_grid(values: FloatArray) -> FloatArray:
    """Return each row on a binary grid coarse enough for its sums of n counted terms to be exact in doubles.

    Sums of at most n terms then do not depend on their order. So they do not depend on the processor, on the number of
    threads, or on the models in the same product. The step is below 2^-52 of the row's largest possible sum.
    """
    largest = np.abs(values).max(axis=-1, keepdims=True, initial=0.0) * values.shape[-1]
    _, exponent = np.frexp(largest)
    return np.asarray(np.ldexp(np.rint(np.ldexp(values, 52 - exponent)), exponent - 52))


@dataclass(frozen=True)
class Resamples:
    """An attribute's resamples, ready to multiply with.

    `matrix`: how often each resample draws each concept, float64 array (concepts, resamples).
    """

    matrix: FloatArray

    @classmethod
    def of(cls, counts: CountArray) -> Resamples:
        """Build resamples from the counts of `concept_counts`: uint8 array (resamples, concepts)."""
        return cls(np.ascontiguousarray(counts.T, dtype=np.float64))

    def kept(self, concepts: BoolArray) -> Resamples:
        """Return the resamples reduced to some concepts; those left out have weight 0.

        The draws do not change (methodology: statistics, "When a category is withheld").

        Args:
            concepts: which concepts stay, bool array (concepts,).
        """
        return self if concepts.all() else Resamples(self.matrix[concepts])

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sums over concepts of count times value, the same in any order of addition.

        Args:
            values: float array (rows, concepts), no NaN.

        Returns:
            Float array (rows, resamples).
        """
        return self.totals(_on_grid(values))

    def totals(self, numbers: FloatArray) -> FloatArray:
        """Return the sums over concepts of count times number, where these sums are exact as they stand.

        Use it for counts and other whole numbers; use `sums` for everything else.

        Args:
            numbers: float array (rows, concepts), no NaN.

        Returns:
            Float array (rows, resamples).
        """
        out = np.empty((len(numbers), self.matrix.shape[1]))
        # In blocks so small that the linear algebra library stays on one thread: its own threads wait for each other
        # longer than such a product takes, and many times longer on a busy machine.
        for top in range(0, len(numbers), _ROWS):
            part, target = numbers[top : top + _ROWS], out[top : top + _ROWS]
            width = max(64, _ONE_THREAD // max(1, part.size))
            for start in range(0, out.shape[1], width):
                block = slice(start, start + width)
                np.matmul(part, self.matrix[:, block], out=target[:, block])
        return out


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return numerator / denominator, NaN where nothing was counted.

    Args:
        numerator, denominator: float arrays of shapes that broadcast; both are 0 where nothing was counted.
    """
    with np.errstate(invalid="ignore"):
        return np.asarray(numerator / denominator)


@dataclass(frozen=True)
class Sample:
    """What an interval rests on: `n` concepts and `df` degrees of freedom.

    Both come from the table in methodology: statistics, "The expanded percentile interval".
    """

    n: int
    df: int

    @property
    def enough(self) -> bool:
        """Whether there is an interval at all: two concepts or more."""
        return self.n >= 2

    @property
    def tail(self) -> float:
        """The tail a at which an interval reads its quantiles (`expanded_tail`); NaN below two concepts."""
        return expanded_tail(self.n, self.df) if self.enough else math.nan


def one_attribute(n: int) -> Sample:
    """Return the sample behind a number of one attribute with `n` concepts: df = n - 1."""
    return Sample(n, n - 1)


def several_attributes(ns: Sequence[int]) -> Sample:
    """Return the sample behind a number pooled over attributes: the smallest n, df the sum of n - 1.

    Args:
        ns: concepts with a value in each attribute; an empty list gives n = 0, hence no interval.
    """
    return Sample(min(ns, default=0), sum(n - 1 for n in ns))


@lru_cache(maxsize=4096)
def expanded_tail(n: int, df: int) -> float:
    """Return the tail probability at which the expanded percentile interval reads its quantiles.

    a = Phi(-sqrt(n / (n - 1)) t_{0.975, df}), smaller than 0.025: it makes up for a resampled spread that is too small
    by sqrt((n - 1) / n) and for normal quantiles where t quantiles belong (Hesterberg 2015, arXiv 1411.5279).

    Args:
        n: concepts, 2 or more.
        df: degrees of freedom, 1 or more.
    """
    return normal_cdf(-math.sqrt(n / (n - 1)) * t_quantile(0.975, df))


@dataclass(frozen=True)
class Interval:
    """A 95 % interval on the scale of its replicates.

    `tail` is the probability at which the quantiles were read. Ends and tail are NaN where there is no interval.
    `unstable`: more than 1 % of the replicates had no value.
    """

    low: float
    high: float
    tail: float
    unstable: bool = False

    def mapped(self, scale: float, shift: float) -> Interval:
        """Return the interval of scale * statistic + shift; a negative scale swaps the ends."""
        ends = (scale * self.low + shift, scale * self.high + shift)
        return Interval(min(ends), max(ends), self.tail, self.unstable)


NO_INTERVAL = Interval(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Ends:
    """The ends of many intervals: float arrays (statistics,), NaN where there is none.

    `kept` counts the replicates that have a value: int array (statistics,).
    """

    low: FloatArray
    high: FloatArray
    kept: IntArray


def tail_ends(values: FloatArray, tails: FloatArray, *, few_ties: bool = False) -> Ends:
    """Return the type 7 quantiles of each row at its tail and at 1 - tail (Hyndman and Fan 1996).

    Replicates count as rounded to 12 decimals. Rounding keeps their order, so only the four values that are used are
    rounded.

    Args:
        values: replicates, float array (statistics, resamples), NaN = no value. Left in another order.
        tails: float array (statistics,), NaN = no interval.
        few_ties: choose the method for rows with hardly two equal values. It changes nothing but the time: half of it
            for such rows, many times it where most values are equal.
    """
    kept = _valued(values)
    none = np.isnan(tails) | (kept == 0)
    # h = (B - 1) p, with B the replicates that have a value.
    places = [(kept - 1) * np.where(none, 0.0, p) for p in (tails, 1 - tails)]
    below = np.floor(places)
    whole = below.astype(np.intp)
    index = np.stack([whole, np.minimum(whole + 1, np.maximum(kept - 1, 0))])
    lower, following = rounded(_selected_at(values, index, kept) if few_ties else _sorted_at(values, index))
    # Adding 0.0 turns minus zero into zero.
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
    """Return the values at given places of each row's order, by sorting what lies near its ends.

    Args:
        values: float array (rows, resamples), left in another order; NaN counts as the largest.
        index: the places, int array (two neighbors, two ends, rows).
    """
    found = np.empty(index.shape)
    for number, row in enumerate(values):
        found[..., number] = _of_row(row, index[..., number])
    return found


def _of_row(row: FloatArray, places: IntArray) -> FloatArray:
    """Return the values of one row at (two neighbors, two ends).

    A sorted sample of the row tells a value that lies a little inside each end. What is at or beyond it is sorted
    alone, a twentieth of the row as a rule. Where the sample misleads, or a value is NaN, the whole row is sorted.
    """
    (low, high), (second, last) = places.tolist()
    sample = np.sort(row[::_SAMPLED])
    inside, most = len(sample) - 1, len(row) - 1
    if not math.isnan(sample[-1]) and inside > 0:
        bottom = row[row <= sample[min(inside, _reach(second))]]
        top = row[row >= sample[max(0, inside - _reach(most - high))]]
        if len(bottom) > second and len(top) > most - high and not math.isnan(row.max()):
            bottom.sort()
            top.sort()
            ends = [[bottom[low], top[high - most - 1]], [bottom[second], top[last - most - 1]]]
            return np.array(ends, np.float64)
    return np.asarray(np.sort(row)[places])  # NaN last


def _reach(place: int) -> int:
    """Return how far into a sorted sample one has to go to pass a place of the whole, but for rare samples."""
    return place * 3 // (2 * _SAMPLED) + 8


def _selected_at(values: FloatArray, index: IntArray, kept: IntArray) -> FloatArray:
    """Return the same by selection, which orders the two ends of a row and leaves the middle as it is."""
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
        # Two cuts are enough: below `second` lie the values up to it, above it the rest, which is cut once more at
        # `high`.
        block.partition(second, axis=-1)
        rest = block[:, second + 1 :]
        middle = high - second - 1
        rest.partition(middle, axis=-1)
        found[0, :, part] = block[:, :second].max(axis=-1), rest[:, middle]
        found[1, :, part] = block[:, second], rest[:, middle + 1 :].min(axis=-1)
    return found


def percentile_intervals(replicates: FloatArray, samples: Sequence[Sample]) -> list[Interval]:
    """Return the expanded percentile interval of each statistic.

    Replicates without a value are dropped; where they are more than 1 %, the interval is marked unstable (methodology:
    statistics, "The expanded percentile interval").

    Args:
        replicates: float array (statistics, resamples), NaN = no value. Left as it is.
        samples: the concepts behind each statistic; below two there is no interval.

    Returns:
        One interval for each statistic, on the scale of the replicates.
    """
    return tail_intervals(replicates.copy(), samples)


def tail_intervals(replicates: FloatArray, samples: Sequence[Sample]) -> list[Interval]:
    """Return what `percentile_intervals` returns, and leave the replicates in another order.

    It saves the copy where nobody needs the replicates afterwards.
    """
    tails = [sample.tail for sample in samples]
    ends = tail_ends(replicates, np.array(tails))
    total = replicates.shape[-1]
    return [
        NO_INTERVAL if math.isnan(low) else Interval(low, high, tail, total - kept > UNSTABLE_SHARE * total)
        for low, high, kept, tail in zip(ends.low.tolist(), ends.high.tolist(), ends.kept.tolist(), tails, strict=True)
    ]


def percentile_interval(replicates: FloatArray, sample: Sample) -> Interval:
    """Return the expanded percentile interval of one statistic.

    Args:
        replicates: float array (resamples,), NaN = no value.
        sample: the concepts behind the statistic.
    """
    return percentile_intervals(replicates[None], [sample])[0]


def reflected(estimate: float, interval: Interval) -> Interval:
    """Return the interval reflected about the estimate, [2e - high, 2e - low], clipped to [0, 1].

    A largest minus a smallest value is biased upwards, and more so in resamples (methodology: statistics, "Three
    exceptions").

    Args:
        estimate: the statistic of the sample, in [0, 1].
        interval: its percentile interval, on the same scale; without one it is returned as it is.
    """
    if math.isnan(interval.tail):
        return interval
    low, high = (min(1.0, max(0.0, 2 * estimate - end)) for end in (interval.high, interval.low))
    return Interval(low, high, interval.tail, interval.unstable)
