"""Agreement of the two primary judges, its intervals, the gate and the gate's blind spot.

Everything is a function of contingency tables: axes (first vote, second vote, ...), codes 0 to k-1 on the rubric's
scale low to high and k for REFUSAL; so a replicate is the same function of the resampled table, which stands in the
axes that follow.

Cohen 1968 (weighted kappa); Byrt et al. 1993 (PABAK); Gwet 2008 (AC1); Cicchetti and Feinstein 1990 (specific
agreement).

See methodology: agreement, "Agreement and the gate".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from generator.stats.bootstrap import (
    NO_INTERVAL,
    FloatArray,
    Interval,
    Resamples,
    one_attribute,
    percentile_intervals,
    ratio,
    round12,
    rounded,
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
    "Passes by PABAK alone: kappa is undefined or its interval does not lie above 0, so two judges who cannot tell the "
    "labels apart would reach this as well."
)


def linear_weights(k: int) -> FloatArray:
    """Return 1 - |i - j| / (k - 1): (k, k)."""
    apart = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    return np.asarray(1.0 - apart / max(k - 1, 1))


def _total(table: FloatArray) -> FloatArray:
    return np.asarray(table.sum(axis=(0, 1)))


def _diagonal(table: FloatArray) -> FloatArray:
    return np.asarray(sum(table[i, i] for i in range(len(table))))


def weighted_kappa(table: FloatArray, weights: FloatArray) -> FloatArray:
    """Return Cohen's kappa of tables (k, k, ...), NaN without a pair or where all votes are one label."""
    n = _total(table)
    first, second = table.sum(axis=1), table.sum(axis=0)
    observed = ratio(np.tensordot(weights, table, axes=2), n)
    chance = ratio((first * np.tensordot(weights, second, axes=1)).sum(axis=0), n * n)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(rounded(1.0 - chance) > 0, (observed - chance) / (1.0 - chance), np.nan))


def gwet_ac1(table: FloatArray) -> FloatArray:
    """Return Gwet's AC1 of tables (k, k, ...): chance agreement is the sum of pi (1 - pi) / (k - 1)."""
    n = _total(table)
    observed = ratio(_diagonal(table), n)
    share = ratio(table.sum(axis=0) + table.sum(axis=1), 2 * n)
    chance = (share * (1 - share)).sum(axis=0) / (len(table) - 1)
    return np.asarray((observed - chance) / (1 - chance))


def modal_label(table: FloatArray) -> int:
    """Return the code of the most frequent label of the pooled votes of one table; a tie goes to the lower."""
    return int(np.argmax(table.sum(axis=0) + table.sum(axis=1)))


def minority_agreement(table: FloatArray, modal: int) -> FloatArray:
    """Return specific agreement on the labels but the modal, as one class; NaN where neither judge used them."""
    n = _total(table)
    first, second = n - table[modal].sum(axis=0), n - table[:, modal].sum(axis=0)
    both = first + second - n + table[modal, modal]
    return ratio(2 * both, first + second)


def statistics(table: FloatArray, modal: int) -> FloatArray:
    """Return the numbers of STATISTICS from tables (k+1, k+1, ...): (7, ...)."""
    scale = table[:-1, :-1]
    n, n_scale = _total(table), _total(scale)
    observed = ratio(_diagonal(scale), n_scale)
    return np.stack(
        [
            weighted_kappa(scale, linear_weights(len(scale))),
            observed,
            2 * observed - 1,
            gwet_ac1(scale),
            minority_agreement(scale, modal),
            ratio(_diagonal(table), n),
            ratio(n_scale + table[-1, -1], n),
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
        """Return the warning where a pass rests on PABAK while kappa is null or its interval is not above 0."""
        if self.gate() != "pabak":
            return None
        low = self.intervals[0].low
        no_better_than_chance = math.isnan(self.kappa) or math.isnan(low) or round12(low) <= 0
        return WARNING if no_better_than_chance else None


def agreement(tables: FloatArray, resamples: Resamples) -> Agreement:
    """Return the agreement of a rubric's concepts.

    tables: (concepts, k+1, k+1) pairs. resamples: of the same concepts, over all attributes. The modal label of the
    estimate is that of every replicate.
    """
    table = tables.sum(axis=0)
    scale = table[:-1, :-1]
    modal = modal_label(scale)
    n_pairs, n_on_scale = int(table.sum()), int(scale.sum())
    sample = one_attribute(int((tables.sum(axis=(1, 2)) > 0).sum()))
    pooled = scale.sum(axis=0) + scale.sum(axis=1)
    intervals = [NO_INTERVAL] * len(STATISTICS)
    if sample.enough:
        resampled = resamples.totals(tables.reshape(len(tables), -1).T).reshape(*table.shape, -1)
        intervals = percentile_intervals(statistics(resampled, modal), [sample] * len(STATISTICS))
    return Agreement(
        n_pairs=n_pairs,
        n_on_scale=n_on_scale,
        numbers=tuple(float(x) for x in statistics(table, modal)),
        intervals=tuple(intervals),
        modal=modal if n_on_scale else None,
        prevalence=float(pooled[modal] / pooled.sum()) if n_on_scale else math.nan,
    )
