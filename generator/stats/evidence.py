"""Excess over the control edge, p-values and their adjustment, evidence tiers, minimum detectable effect.

Benjamini and Hochberg 1995 (false discovery rate); Holm 1979 (familywise error rate).

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
    """Return the one-sided p-value of a share of replicates (methodology: evidence, "The p-value").

    p = T_df(Phi^-1((1 + hits) / (kept + 1)) sqrt((n - 1) / n)): the share becomes a normal quantile, which is shrunk as
    much as the interval is widened and read off a t distribution.

    Args:
        hits: replicates on the far side of 0.
        kept: replicates that have a value.
        sample: the concepts behind the statistic.

    Returns:
        A p-value in (0, 1]; NaN below two concepts or without a replicate.
    """
    if not sample.enough or kept == 0:
        return math.nan
    z = normal_quantile((1 + hits) / (kept + 1))
    return t_cdf(z * math.sqrt((sample.n - 1) / sample.n), sample.df)


def excess_p(replicates: FloatArray, sample: Sample) -> float:
    """Return the one-sided p-value against "no more disparity than the edge".

    Args:
        replicates: resampled excess on the 0-1 scale, float array (resamples,), NaN = no value.
        sample: the concepts behind the excess.

    Returns:
        Small when hardly any replicate is at or below 0; NaN as in `tail_p`.
    """
    kept = len(replicates) - np.count_nonzero(np.isnan(replicates))
    return tail_p(int(np.count_nonzero(replicates < LEAST_POSITIVE)), int(kept), sample)


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Return p-values adjusted to control the false discovery rate (Benjamini and Hochberg 1995).

    Args:
        ps: p-values of one model's attributes; NaN = no p-value.

    Returns:
        Adjusted values in the order of `ps`. NaN stays NaN and is not counted in the number of tests.
    """
    values = np.asarray(ps, dtype=np.float64)
    present = np.flatnonzero(~np.isnan(values))
    order = present[np.argsort(values[present], kind="stable")]
    m = len(order)
    # M / j times the j-th smallest, then the least of all that follow, so that the adjusted values never fall.
    raised = values[order] * m / np.arange(1, m + 1)
    adjusted = np.full(len(values), np.nan)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(raised[::-1])[::-1])
    return [float(p) for p in adjusted]


def holm(ps: FloatArray) -> FloatArray:
    """Return p-values adjusted to control the familywise error rate, by Holm's step-down method (Holm 1979).

    Args:
        ps: float array (tests,), NaN = no p-value.

    Returns:
        Float array (tests,), in the order of `ps`. NaN stays NaN and is not counted in the number of tests.
    """
    present = np.flatnonzero(~np.isnan(ps))
    order = present[np.argsort(ps[present], kind="stable")]
    m = len(order)
    adjusted = np.full(len(ps), np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(ps[order] * (m - np.arange(m))))
    return adjusted


def evidence_tier(*, excess: Interval, p: float, p_adjusted: float, lower: float, edge: float, degenerate: bool) -> str:
    """Return `flagged`, `suggestive` or `unresolved` (methodology: evidence, "Evidence tiers").

    A condition on NaN is not met, so numbers that do not exist never raise the tier.

    Args:
        excess: interval of the attribute's excess over the edge, 0-1 scale.
        p: one-sided p-value of the excess.
        p_adjusted: the same after adjustment within the model.
        lower: lower end of the interval of the attribute's disparity, 0-1 scale.
        edge: disparity of the edge, 0-1 scale.
        degenerate: whether the edge's disparity is 0 on every concept. A yardstick without noise allows at most
            `suggestive`.
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
    """Return the standard error of a statistic: the standard deviation of its replicates, divisor B - 1.

    Args:
        replicates: float array (resamples,), NaN = no value, which is left out.

    Returns:
        On the scale of the replicates; NaN with fewer than two values.
    """
    none = np.isnan(replicates)
    kept = replicates[~none] if none.any() else replicates
    return float(kept.std(ddof=1)) if len(kept) > 1 else math.nan


def minimum_detectable(se_attribute: float, n_attribute: int, se_edge: float, n_edge: int) -> float:
    """Return the minimum detectable effect on the 0-1 scale (methodology: evidence, "What could have been seen").

    Args:
        se_attribute, se_edge: standard errors of the two disparities, 0-1 scale.
        n_attribute, n_edge: concepts with a value on either side.

    Returns:
        The excess found four times out of five; NaN below two concepts on either side.
    """
    if n_attribute < 2 or n_edge < 2:
        return math.nan
    # Each variance is raised by n / (n - 1), because a resampled spread is too small by sqrt((n - 1) / n).
    spread = n_attribute / (n_attribute - 1) * se_attribute**2 + n_edge / (n_edge - 1) * se_edge**2
    return MDE_FACTOR * math.sqrt(spread)
