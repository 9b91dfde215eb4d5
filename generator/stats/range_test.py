"""The range test: which of several models differ, no matter how many pairs are looked at.

All models share the resamples, so the spread of their errors over the models, R, is known resample by resample. A
difference that hardly any R reaches is beyond what chance makes of the largest of all differences. The cost is models
times resamples; no pair is resampled.

Romano and Wolf 2005 (single-step form, resampled); Tukey's studentized range; Demsar 2006 (critical difference).
(methodology: evidence, "The range test")
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
    """Return 2 T_df(Phi^-1(u / 2) sqrt((n - 1) / n)) at u = (1 + hits) / (kept + 1); NaN below two concepts.

    `hits` of the `kept` ranges are as large as the difference. It is 1 where all are; with no hit it is the floor.
    """
    if not sample.enough or kept == 0:
        return math.nan
    z = normal_quantile((1 + hits) / (kept + 1) / 2)
    return min(1.0, 2 * t_cdf(z * math.sqrt((sample.n - 1) / sample.n), sample.df))


def error_ranges(estimates: FloatArray, draws: FloatArray) -> FloatArray:
    """Return R, the largest minus the smallest error over the models of each resample, rounded to 12 decimals.

    estimates: (models,), draws: (models, resamples), at least one model; NaN where a model has no replicate.
    """
    top = draws[0] - estimates[0]
    low = top.copy()
    for estimate, row in zip(estimates[1:], draws[1:], strict=True):
        error = row - estimate
        np.maximum(top, error, out=top)
        np.minimum(low, error, out=low)
    return rounded(top - low)


@dataclass(frozen=True)
class Ranges:
    """R of a family of models, and what the test rests on.

    values: (resamples,), NaN where one of the models has no replicate. sample: n and df of the family's statistic.
    """

    values: FloatArray
    sample: Sample

    @cached_property
    def ordered(self) -> FloatArray:
        """The ranges that have a value, smallest first."""
        return np.sort(self.values[~np.isnan(self.values)])

    @property
    def kept(self) -> int:
        """How many resamples have a range."""
        return len(self.ordered)

    def hits(self, differences: FloatArray) -> IntArray:
        """Return how many ranges are as large as each |difference|, rounded to 12 decimals, ties counted."""
        sizes = rounded(np.abs(differences))
        return np.asarray(self.kept - np.searchsorted(self.ordered, sizes, side="left"), np.int64)

    def test(self, differences: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return u and p of differences on the 0-1 scale: two arrays of their shape; p is NaN where there is none."""
        hits = self.hits(differences)
        distinct, places = np.unique(hits, return_inverse=True)
        ps = np.array([range_p(int(h), self.kept, self.sample) for h in distinct], np.float64)
        u = (1 + hits) / (self.kept + 1)
        p = ps[places].reshape(hits.shape)
        return np.where(np.isnan(p), np.nan, u), p

    def critical_difference(self, level: float = 0.05) -> float:
        """Return the type 7 quantile of R at which p is about `level`; NaN without a range or below two concepts."""
        if not self.sample.enough or not self.kept:
            return math.nan
        n, df = self.sample.n, self.sample.df
        u = 2 * normal_cdf(-t_quantile(1 - level / 2, df) * math.sqrt(n / (n - 1)))
        return float(np.quantile(self.ordered, 1 - u))


def largest_of(families: Sequence[Ranges]) -> Ranges:
    """Return the ranges of several families at once: the largest of them in each resample in which all have one.

    The test then rests on the family with the fewest concepts. Raises ValueError without a family.
    """
    n = min(family.sample.n for family in families)
    return Ranges(np.max([family.values for family in families], axis=0), Sample(n, n - 1))
