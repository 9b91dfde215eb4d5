"""The range test: which of several models differ, no matter how many pairs are looked at.

All models share the resamples. So the range R of their errors, largest minus smallest over the models, is known
resample by resample. A difference that hardly any R reaches is more than chance makes of the largest of all
differences. The cost is models times resamples; no pair is resampled.

Romano and Wolf 2005 (single-step form, resampled); Tukey's studentized range; Demsar 2006 (critical difference). See
methodology: evidence, "The range test".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from generator.stats.bootstrap import FloatArray, IntArray, Sample, rounded
from generator.stats.distributions import normal_cdf, normal_quantile, t_cdf, t_quantile


@lru_cache(maxsize=65_536)
def range_p(hits: int, kept: int, sample: Sample) -> float:
    """Return the two-sided p-value of a difference, valid for all pairs of the family at once.

    p = 2 T_df(Phi^-1(u / 2) sqrt((n - 1) / n)) with u = (1 + hits) / (kept + 1).

    Args:
        hits: resamples whose range is as large as the difference.
        kept: resamples that have a range.
        sample: the concepts behind the family's statistic.

    Returns:
        A p-value in (0, 1]: 1 where all ranges are as large, the smallest possible one where none is. NaN below two
        concepts or without a range.
    """
    if not sample.enough or kept == 0:
        return math.nan
    z = normal_quantile((1 + hits) / (kept + 1) / 2)
    return min(1.0, 2 * t_cdf(z * math.sqrt((sample.n - 1) / sample.n), sample.df))


def error_ranges(estimates: FloatArray, draws: FloatArray) -> FloatArray:
    """Return R, the largest minus the smallest error over the models, resample by resample.

    Args:
        estimates: float array (models,), at least one model, 0-1 scale.
        draws: replicates, float array (models, resamples), NaN = no value.

    Returns:
        Float array (resamples,), rounded to 12 decimals; NaN where one of the models has no replicate.
    """
    # One model at a time, because draws - estimates[:, None] for all of them would be a second large array.
    top = draws[0] - estimates[0]
    low = top.copy()
    for estimate, row in zip(estimates[1:], draws[1:], strict=True):
        error = row - estimate
        np.maximum(top, error, out=top)
        np.minimum(low, error, out=low)
    return rounded(top - low)


@dataclass(frozen=True)
class Ranges:
    """The ranges R of a family of models, and the sample that the test rests on.

    `values`: float array (resamples,), 0-1 scale, NaN where one of the models has no replicate. `sample`: n and df of
    the family's statistic.
    """

    values: FloatArray
    sample: Sample

    @cached_property
    def ordered(self) -> FloatArray:
        """The ranges that have a value, smallest first: float array (kept,)."""
        return np.sort(self.values[~np.isnan(self.values)])

    @property
    def kept(self) -> int:
        """How many resamples have a range; B in the formulas."""
        return len(self.ordered)

    def hits(self, differences: FloatArray) -> IntArray:
        """Return how many ranges are as large as each difference, ties counted.

        Args:
            differences: float array of any shape, 0-1 scale, either sign; rounded to 12 decimals here.

        Returns:
            Int array of the same shape.
        """
        sizes = rounded(np.abs(differences))
        return np.asarray(self.kept - np.searchsorted(self.ordered, sizes, side="left"), np.int64)

    def test(self, differences: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return u and p of differences between models of the family.

        Args:
            differences: float array of any shape, 0-1 scale, either sign.

        Returns:
            Two float arrays of that shape; NaN in both where the family has fewer than two concepts or no range.
        """
        hits = self.hits(differences)
        # Many differences share a number of hits, and each p-value costs a t distribution.
        distinct, places = np.unique(hits, return_inverse=True)
        ps = np.array([range_p(int(h), self.kept, self.sample) for h in distinct], np.float64)
        u = (1 + hits) / (self.kept + 1)
        p = ps[places].reshape(hits.shape)
        return np.where(np.isnan(p), np.nan, u), p

    def critical_difference(self, level: float = 0.05) -> float:
        """Return the size at which a difference has p of about `level`, on the 0-1 scale.

        It is the type 7 quantile of R at 1 - 2 Phi(-t_{1-level/2, df} sqrt(n / (n - 1))), the inverse of `range_p`. It
        serves the eye; where the two disagree in the last digits, p decides.

        Returns:
            NaN below two concepts or without a range.
        """
        if not self.sample.enough or not self.kept:
            return math.nan
        n, df = self.sample.n, self.sample.df
        u = 2 * normal_cdf(-t_quantile(1 - level / 2, df) * math.sqrt(n / (n - 1)))
        return float(np.quantile(self.ordered, 1 - u))


def largest_of(families: Sequence[Ranges]) -> Ranges:
    """Join families into one: its range is the largest of theirs, in each resample in which all of them have one.

    Args:
        families: one family for each attribute, over the same resamples. The joint test rests on the fewest concepts.

    Raises:
        ValueError: there is no family.
    """
    n = min(family.sample.n for family in families)
    return Ranges(np.max([family.values for family in families], axis=0), Sample(n, n - 1))
