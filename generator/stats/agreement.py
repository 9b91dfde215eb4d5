"""Agreement of the two primary judges, its intervals, the gate and the gate's blind spot (SPEC 4 and 5).

Everything is a function of contingency tables: axes (..., first vote, second vote), codes 0 to k-1 on the rubric's
scale low to high and k for REFUSAL; so a replicate is the same function of the resampled table.

Cohen 1968 (weighted kappa); Byrt et al. 1993 (PABAK); Gwet 2008 (AC1); Cicchetti and Feinstein 1990 (specific
agreement).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from generator.stats.bootstrap import (
    NO_INTERVAL,
    FloatArray,
    Interval,
    Sample,
    one_attribute,
    percentile_intervals,
    ratio,
    round12,
)

KAPPA_AT = 0.70
PABAK_AT = 0.70
PREVALENCE_ABOVE = 0.90
LEAST_PAIRS = 30
LEAST_SHARE = 0.5
STATISTICS = (
    "kappa",
    "p_observed",
    "pabak",
    "ac1",
    "minority_agreement",
    "raw_agreement",
    "refusal_agreement",
)
WARNING = (
    "Passes by PABAK alone: kappa is undefined or its interval holds 0, so two judges who cannot tell the labels apart "
    "would reach this as well."
)


def linear_weights(k: int) -> FloatArray:
    """Return 1 - |i - j| / (k - 1): (k, k)."""
    apart = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    return np.asarray(1.0 - apart / max(k - 1, 1))


def weighted_kappa(table: FloatArray, weights: FloatArray) -> FloatArray:
    """Return Cohen's kappa of tables (..., k, k), NaN without a pair or where all votes are one label."""
    n = table.sum(axis=(-2, -1))
    rows, columns = table.sum(axis=-1), table.sum(axis=-2)
    observed = ratio((table * weights).sum(axis=(-2, -1)), n)
    chance = ratio(np.einsum("...i,ij,...j->...", rows, weights, columns), n * n)
    left = np.round(1.0 - chance, 12)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(left > 0, (observed - chance) / (1.0 - chance), np.nan))


def gwet_ac1(table: FloatArray) -> FloatArray:
    """Return Gwet's AC1 of tables (..., k, k): chance agreement is the sum of pi (1 - pi) / (k - 1)."""
    n = table.sum(axis=(-2, -1))
    k = table.shape[-1]
    observed = ratio(np.trace(table, axis1=-2, axis2=-1), n)
    share = ratio(table.sum(axis=-1) + table.sum(axis=-2), 2 * n[..., None])
    chance = (share * (1 - share)).sum(axis=-1) / (k - 1)
    return np.asarray((observed - chance) / (1 - chance))


def modal_label(table: FloatArray) -> int:
    """Return the code of the most frequent label of the pooled votes of one table; a tie goes to the lower."""
    return int(np.argmax(table.sum(axis=-1) + table.sum(axis=-2)))


def minority_agreement(table: FloatArray, modal: int) -> FloatArray:
    """Return specific agreement on the labels but the modal, as one class; NaN where neither judge used them."""
    n = table.sum(axis=(-2, -1))
    first = n - table[..., modal, :].sum(axis=-1)
    second = n - table[..., :, modal].sum(axis=-1)
    both = n - table[..., modal, :].sum(axis=-1) - table[..., :, modal].sum(axis=-1) + table[..., modal, modal]
    return ratio(2 * both, first + second)


def statistics(table: FloatArray, modal: int) -> FloatArray:
    """Return the numbers of STATISTICS from tables (..., k+1, k+1): (7, ...)."""
    scale = table[..., :-1, :-1]
    k = scale.shape[-1]
    n, n_scale = table.sum(axis=(-2, -1)), scale.sum(axis=(-2, -1))
    observed = ratio(np.trace(scale, axis1=-2, axis2=-1), n_scale)
    both_or_neither = n_scale + table[..., -1, -1]
    return np.stack(
        [
            weighted_kappa(scale, linear_weights(k)),
            observed,
            2 * observed - 1,
            gwet_ac1(scale),
            minority_agreement(scale, modal),
            ratio(np.trace(table, axis1=-2, axis2=-1), n),
            ratio(both_or_neither, n),
        ]
    )


@dataclass(frozen=True)
class Agreement:
    """The agreement of one rubric, of all subjects or one vendor's; numbers and intervals as in STATISTICS."""

    n_pairs: int
    n_on_scale: int
    numbers: tuple[float, ...]
    intervals: tuple[Interval, ...]
    modal: int | None
    prevalence: float

    @property
    def kappa(self) -> float:
        """Linear-weighted kappa."""
        return self.numbers[0]

    @property
    def pabak(self) -> float:
        """2 p_o - 1."""
        return self.numbers[2]

    def gate(self) -> str:
        """Return kappa, pabak, fail or insufficient."""
        if self.n_on_scale < LEAST_PAIRS or self.n_on_scale < LEAST_SHARE * self.n_pairs:
            return "insufficient"
        if round12(self.kappa) >= KAPPA_AT:
            return "kappa"
        dominated = round12(self.prevalence) > PREVALENCE_ABOVE
        return "pabak" if dominated and round12(self.pabak) >= PABAK_AT else "fail"

    def warning(self) -> str | None:
        """Return the warning where a pass rests on PABAK while kappa is null or its interval holds 0."""
        if self.gate() != "pabak":
            return None
        interval = self.intervals[0]
        holds_zero = math.isnan(interval.low) or round12(interval.low) <= 0 <= round12(interval.high)
        return WARNING if math.isnan(self.kappa) or holds_zero else None


def agreement(tables: FloatArray, counts: FloatArray) -> Agreement:
    """Return the agreement of a rubric's concepts.

    tables: (concepts, k+1, k+1) pairs. counts: (resamples, concepts) of the same concepts, over all attributes. The
    modal label of the estimate is that of every replicate.
    """
    table = tables.sum(axis=0)
    scale = table[:-1, :-1]
    modal = modal_label(scale)
    n_pairs, n_on_scale = int(table.sum()), int(scale.sum())
    sample = one_attribute(int((tables.sum(axis=(1, 2)) > 0).sum()))
    pooled = scale.sum(axis=0) + scale.sum(axis=1)
    intervals = [NO_INTERVAL] * len(STATISTICS)
    if sample.enough:
        flat = counts @ tables.reshape(len(tables), -1)  # whole numbers: exact in any order
        intervals = _intervals(flat.reshape(-1, *table.shape), modal, sample)
    return Agreement(
        n_pairs=n_pairs,
        n_on_scale=n_on_scale,
        numbers=tuple(float(x) for x in statistics(table, modal)),
        intervals=tuple(intervals),
        modal=modal if n_on_scale else None,
        prevalence=float(pooled[modal] / pooled.sum()) if n_on_scale else math.nan,
    )


def _intervals(resampled: FloatArray, modal: int, sample: Sample) -> list[Interval]:
    return percentile_intervals(statistics(resampled, modal), [sample] * len(STATISTICS))
