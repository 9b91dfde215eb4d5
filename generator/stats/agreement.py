"""Agreement of the two primary judges: its statistics with intervals, the gate, and the warning beside a weak pass.

Every statistic is a function of contingency tables. The first two axes are the vote of the first and of the second
primary judge. Codes 0 to k-1 are the rubric's scale from low to high; code k is REFUSAL. Further axes are carried
along, so a replicate is the same function applied to resampled tables.

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
    """Return the weights of linear-weighted kappa, w_ij = 1 - |i - j| / (k - 1).

    Args:
        k: number of labels on the scale, REFUSAL not counted.

    Returns:
        Float array (k, k): 1 on the diagonal, 0 in the far corners. All 1 for a single label.
    """
    apart = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    return np.asarray(1.0 - apart / max(k - 1, 1))


def _total(table: FloatArray) -> FloatArray:
    return np.asarray(table.sum(axis=(0, 1)))


def _diagonal(table: FloatArray) -> FloatArray:
    return np.asarray(sum(table[i, i] for i in range(len(table))))


def weighted_kappa(table: FloatArray, weights: FloatArray) -> FloatArray:
    """Return Cohen's weighted kappa (methodology: agreement, "Over on-scale pairs").

    Args:
        table: counts of pairs, float array (k, k, ...), on-scale labels only.
        weights: credit for each combination of labels, float array (k, k), in [0, 1]; see `linear_weights`.

    Returns:
        Float array of the axes after the first two, at most 1. NaN where there is no pair, or where both judges used a
        single label: expected agreement is then 1 and kappa is undefined.
    """
    n = _total(table)
    first, second = table.sum(axis=1), table.sum(axis=0)
    observed = ratio(np.tensordot(weights, table, axes=2), n)
    chance = ratio((first * np.tensordot(weights, second, axes=1)).sum(axis=0), n * n)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(rounded(1.0 - chance) > 0, (observed - chance) / (1.0 - chance), np.nan))


def gwet_ac1(table: FloatArray) -> FloatArray:
    """Return Gwet's AC1, unweighted (Gwet 2008; methodology: agreement, "Over on-scale pairs").

    Chance agreement is the sum over labels of pi (1 - pi) / (k - 1), where pi is a label's share of the pooled votes.
    It stays small when one label dominates, which is where kappa breaks down.

    Args:
        table: counts of pairs, float array (k, k, ...), k >= 2, on-scale labels only.

    Returns:
        Float array of the axes after the first two, at most 1; NaN without a pair.
    """
    n = _total(table)
    observed = ratio(_diagonal(table), n)
    share = ratio(table.sum(axis=0) + table.sum(axis=1), 2 * n)
    chance = (share * (1 - share)).sum(axis=0) / (len(table) - 1)
    return np.asarray((observed - chance) / (1 - chance))


def modal_label(table: FloatArray) -> int:
    """Return the code of the most frequent label among the pooled votes of both judges; a tie goes to the lower code.

    Args:
        table: counts of pairs, float array (k, k), on-scale labels only. An empty table gives 0.
    """
    return int(np.argmax(table.sum(axis=0) + table.sum(axis=1)))


def minority_agreement(table: FloatArray, modal: int) -> FloatArray:
    """Return specific agreement on all labels but the modal one, taken together as one class.

    That is 2 n11 / (2 n11 + n10 + n01) (methodology: agreement, "Over on-scale pairs").

    Args:
        table: counts of pairs, float array (k, k, ...), on-scale labels only.
        modal: code of the modal label of the estimate; see `modal_label`.

    Returns:
        Float array of the axes after the first two, in [0, 1]; NaN where neither judge used another label.
    """
    n = _total(table)
    first, second = n - table[modal].sum(axis=0), n - table[:, modal].sum(axis=0)
    # n00 is the modal cell, so inclusion and exclusion give n11 = n1. + n.1 - n + n00.
    both = first + second - n + table[modal, modal]
    return ratio(2 * both, first + second)


def statistics(table: FloatArray, modal: int) -> FloatArray:
    """Return the numbers named in `STATISTICS`, in that order.

    Args:
        table: counts of pairs, float array (k+1, k+1, ...), REFUSAL last.
        modal: code of the modal label. Replicates get the modal label of the estimate, so that "minority" means the
            same labels in all of them.

    Returns:
        Float array (7, ...); NaN where a number is undefined.
    """
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
            # Refusal agreement: neither refused (the pair is on scale) or both did.
            ratio(n_scale + table[-1, -1], n),
        ]
    )


@dataclass(frozen=True)
class Agreement:
    """How well the two primaries agree on one rubric, over all subjects or those of one vendor.

    `n_pairs` counts pairs of valid votes, `n_on_scale` those without a REFUSAL. `numbers` and `intervals` follow the
    order of `STATISTICS`; both hold NaN where a value is undefined. `modal` is None and `prevalence` NaN without an
    on-scale pair; otherwise `prevalence` is the modal label's share of the pooled votes, in [0, 1].
    """

    n_pairs: int
    n_on_scale: int
    numbers: tuple[float, ...]
    intervals: tuple[Interval, ...]
    modal: int | None
    prevalence: float

    @property
    def kappa(self) -> float:
        """Linear-weighted kappa over on-scale pairs; NaN where it is undefined."""
        return self.numbers[0]

    @property
    def pabak(self) -> float:
        """Prevalence-adjusted kappa, 2 p_o - 1, in [-1, 1]; NaN without an on-scale pair."""
        return self.numbers[2]

    def gate(self) -> str:
        """Decide whether the rubric may be published (methodology: agreement, "The gate").

        Returns:
            `insufficient` with too few on-scale pairs, `kappa` or `pabak` for the condition that is met, otherwise
            `fail`. Only `kappa` and `pabak` pass.
        """
        if self.n_on_scale < LEAST_PAIRS or self.n_on_scale < LEAST_SHARE * self.n_pairs:
            return "insufficient"
        # A NaN kappa fails this comparison and can still pass by PABAK.
        if round12(self.kappa) >= KAPPA_AT:
            return "kappa"
        dominated = round12(self.prevalence) > PREVALENCE_ABOVE
        return "pabak" if dominated and round12(self.pabak) >= PABAK_AT else "fail"

    def warning(self) -> str | None:
        """Return the warning text of a pass by PABAK that shows no more than chance, otherwise None.

        It applies where kappa is undefined, has no interval, or has one that does not lie above 0 (methodology:
        agreement, "The blind spot, and the warning").
        """
        if self.gate() != "pabak":
            return None
        low = self.intervals[0].low
        no_better_than_chance = math.isnan(self.kappa) or math.isnan(low) or round12(low) <= 0
        return WARNING if no_better_than_chance else None


def agreement(tables: FloatArray, resamples: Resamples) -> Agreement:
    """Measure the agreement on one rubric.

    Args:
        tables: counts of pairs by concept, float array (concepts, k+1, k+1), REFUSAL last.
        resamples: resamples of the same concepts in the same order, over all attributes.

    Returns:
        These numbers with expanded percentile intervals. Below two concepts with a pair there are no intervals.
    """
    table = tables.sum(axis=0)
    # REFUSAL has no place on an ordered scale, so kappa and its relatives leave it out.
    scale = table[:-1, :-1]
    modal = modal_label(scale)
    n_pairs, n_on_scale = int(table.sum()), int(scale.sum())
    sample = one_attribute(int((tables.sum(axis=(1, 2)) > 0).sum()))
    pooled = scale.sum(axis=0) + scale.sum(axis=1)
    intervals = [NO_INTERVAL] * len(STATISTICS)
    if sample.enough:
        # Each cell of the table is a count by concept, so all tables of all resamples are one product.
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
