"""Excess over the control edge, p values and their corrections, evidence tiers and MDE.

See methodology: evidence, "Evidence".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from generator.stats.bootstrap import LEAST_POSITIVE, FloatArray, Interval, Sample, round12
from generator.stats.distributions import normal_quantile, t_cdf

FLAGGED_AT = 0.10
SUGGESTIVE_AT = 0.05
# 1.960 + 0.842: two-sided 5 % and 80 % power, to the digits that the contract states.
MDE_FACTOR = 1.960 + 0.842


@lru_cache(maxsize=65_536)
def tail_p(hits: int, kept: int, sample: Sample) -> float:
    """Return T_df(Phi^-1((1 + hits) / (kept + 1)) sqrt((n - 1) / n)); NaN below two concepts or without a replicate.

    `hits` of the `kept` replicates are on the far side of zero.
    """
    if not sample.enough or kept == 0:
        return math.nan
    z = normal_quantile((1 + hits) / (kept + 1))
    return t_cdf(z * math.sqrt((sample.n - 1) / sample.n), sample.df)


def excess_p(replicates: FloatArray, sample: Sample) -> float:
    """Return the one-sided p of an excess: small when hardly any replicate is at or below zero."""
    kept = len(replicates) - np.count_nonzero(np.isnan(replicates))
    return tail_p(int(np.count_nonzero(replicates < LEAST_POSITIVE)), int(kept), sample)


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Return the adjusted p values; NaN stays NaN and is not counted."""
    values = np.asarray(ps, dtype=np.float64)
    present = np.flatnonzero(~np.isnan(values))
    order = present[np.argsort(values[present], kind="stable")]
    m = len(order)
    raised = values[order] * m / np.arange(1, m + 1)
    adjusted = np.full(len(values), np.nan)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(raised[::-1])[::-1])
    return [float(p) for p in adjusted]


def holm(ps: FloatArray) -> FloatArray:
    """Return Holm's adjusted p values; NaN stays NaN and is not counted."""
    present = np.flatnonzero(~np.isnan(ps))
    order = present[np.argsort(ps[present], kind="stable")]
    m = len(order)
    adjusted = np.full(len(ps), np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(ps[order] * (m - np.arange(m))))
    return adjusted


def evidence_tier(*, excess: Interval, p: float, p_adjusted: float, lower: float, edge: float, degenerate: bool) -> str:
    """Return flagged, suggestive or unresolved.

    `lower` is the lower end of the attribute's disparity, `edge` the disparity of the edge; NaN satisfies nothing. A
    degenerate edge allows at most suggestive.
    """
    beyond = round12(excess.low) > 0 if not math.isnan(excess.low) else False
    if beyond and not degenerate and round12(p_adjusted) <= FLAGGED_AT:
        return "flagged"
    weak = not math.isnan(p) and round12(p) <= SUGGESTIVE_AT
    above = not math.isnan(lower) and round12(lower) > round12(edge)
    return (
        "suggestive" if weak or above or (beyond and degenerate and round12(p_adjusted) <= FLAGGED_AT) else "unresolved"
    )


def standard_error(replicates: FloatArray) -> float:
    """Return the sample standard deviation (divisor B - 1) of the replicates that have a value."""
    none = np.isnan(replicates)
    kept = replicates[~none] if none.any() else replicates
    return float(kept.std(ddof=1)) if len(kept) > 1 else math.nan


def minimum_detectable(se_attribute: float, n_attribute: int, se_edge: float, n_edge: int) -> float:
    """Return the MDE on the 0-1 scale; NaN below two concepts on either side."""
    if n_attribute < 2 or n_edge < 2:
        return math.nan
    spread = n_attribute / (n_attribute - 1) * se_attribute**2 + n_edge / (n_edge - 1) * se_edge**2
    return MDE_FACTOR * math.sqrt(spread)
