"""What one model's rows of one attribute come to: named ratios of sums over concepts.

An estimate is the sum of numerators over the sum of denominators. A replicate is the same with the resample's counts as
weights. A concept without a value has 0 in both, so it weighs nothing.

See methodology: statistics, "A statistic in a resample".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from generator.stats.bootstrap import FloatArray, IntArray, Resamples, Sample, one_attribute, rounded
from generator.stats.cells import Rows, nan_mean
from generator.stats.disparity import cell_disparity, cell_gap, crossfit, lean_sums, reversal_sums
from generator.stats.rates import Share, refusal_shares, shares


@dataclass(frozen=True)
class Ratio:
    """One number of an attribute, as a quotient over all its concepts.

    `hits` / `total` is the number on the 0-1 scale. `n_concepts`, `n_cells` and `n_rows` are the counts published
    beside it (contract: tables, "Scores"); `n_concepts` are those with a value. `group` is None for a number of all
    groups.
    """

    metric: str
    group: str | None
    hits: float
    total: float
    n_concepts: int
    n_cells: int
    n_rows: int

    @property
    def estimate(self) -> float:
        """The number on the 0-1 scale, hits / total; NaN where nothing was counted."""
        return self.hits / self.total if self.total > 0 else float("nan")

    @property
    def sample(self) -> Sample:
        """What the interval rests on: the concepts with a value, as one attribute."""
        return one_attribute(self.n_concepts)


@dataclass(frozen=True)
class Parts:
    """Ratios of the same concepts, stacked.

    `numerators`, `denominators`: float arrays (ratios, concepts), in the order of `ratios`.
    """

    ratios: tuple[Ratio, ...]
    numerators: FloatArray
    denominators: FloatArray

    @cached_property
    def _places(self) -> dict[tuple[str, str | None], int]:
        return {(item.metric, item.group): i for i, item in enumerate(self.ratios)}

    def index(self, metric: str, group: str | None = None) -> int:
        """Return the row of a ratio in the arrays.

        Raises:
            KeyError: there is no ratio of that metric and group.
        """
        return self._places[metric, group]

    def find(self, metric: str, group: str | None = None) -> Ratio:
        """Return one ratio by metric and group.

        Raises:
            KeyError: there is no ratio of that metric and group.
        """
        return self.ratios[self.index(metric, group)]


@dataclass(frozen=True)
class Tally(Parts):
    """All ratios of one attribute, and the counts behind its flags (methodology: statistics, "Flags").

    `positive`: concepts with D(c) > 0. `uncounted`: concepts without a counting framing. `absent`: planned rows that
    are not there.
    """

    positive: int
    uncounted: int
    absent: int


@dataclass(frozen=True)
class Replicates:
    """The resampled ratios of a tally, with equal ones kept once: about half of all ratios are alike.

    Attributes:
        sums: float array (distinct sums, resamples).
        over, under: for each distinct ratio, where its numerator and its denominator stand in `sums`.
        places: for each ratio, which distinct ratio it is. Rates that are 0 are all one, for example.
    """

    sums: FloatArray
    over: tuple[int, ...]
    under: tuple[int, ...]
    places: tuple[int, ...]

    def numerator(self, ratio: int) -> FloatArray:
        """Return the resampled numerator of a ratio, by its row in `Parts`: float array (resamples,)."""
        return np.asarray(self.sums[self.over[self.places[ratio]]])

    def denominator(self, ratio: int) -> FloatArray:
        """Return the resampled denominator of a ratio, by its row in `Parts`: float array (resamples,)."""
        return np.asarray(self.sums[self.under[self.places[ratio]]])

    def distinct(self, *, spare: int = 0) -> FloatArray:
        """Return the replicates of the distinct ratios.

        Args:
            spare: rows to leave at the end, uninitialized, for a caller that adds replicates of its own.

        Returns:
            A new float array (distinct ratios + spare, resamples), 0-1 scale, NaN = no value.
        """
        found = np.empty((len(self.over) + spare, self.sums.shape[1]))
        with np.errstate(invalid="ignore"):
            for over, under, row in zip(self.over, self.under, found, strict=not spare):
                np.divide(self.sums[over], self.sums[under], out=row)
        return found


def replicates(parts: Parts, resamples: Resamples) -> Replicates:
    """Resample the ratios of an attribute.

    Args:
        parts: ratios of the attribute's concepts.
        resamples: resamples of the same concepts in the same order.
    """
    rows = np.concatenate([parts.numerators, parts.denominators])
    # Equal rows have equal sums, so each distinct row is multiplied once.
    first, sums = _once([row.tobytes() for row in rows])
    n = len(parts.ratios)
    pairs = list(zip(sums[:n], sums[n:], strict=True))
    alike, places = _once(pairs)
    over, under = zip(*(pairs[i] for i in alike), strict=True) if alike else ((), ())
    return Replicates(resamples.sums(rows[first]), over, under, tuple(places))


def _once(items: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """Return where each distinct item stands first, and the place of every item among the distinct ones."""
    known: dict[Hashable, int] = {}
    first = []
    for i, item in enumerate(items):
        if item not in known:
            known[item] = len(known)
            first.append(i)
    return first, [known[item] for item in items]


@dataclass(frozen=True)
class ByConcept:
    """What rows come to concept by concept, so that concepts of several attributes can be worked out together.

    Attributes:
        names: metric of each ratio, and the place of its group (None = no group).
        numerators, denominators: float arrays (ratios, concepts).
        cells, rows: counts behind them, whole numbers in float arrays (ratios, concepts).
        disparities, gaps: D(c, f) and the gap of each (concept, framing), NaN = none: float arrays (concepts,
            framings).
        disparity: D(c), NaN = none: float array (concepts,).
        absent: planned rows that are not there: int array (concepts,).
    """

    names: tuple[tuple[str, int | None], ...]
    numerators: FloatArray
    denominators: FloatArray
    cells: FloatArray
    rows: FloatArray
    disparities: FloatArray
    gaps: FloatArray
    disparity: FloatArray
    absent: IntArray

    def tally(self, concepts: IntArray, groups: tuple[str, ...], *, lean: bool) -> Tally:
        """Sum up the concepts of one attribute.

        Args:
            concepts: places of the attribute's concepts, int array.
            groups: ids of the attribute's groups, in the order of the groups axis.
            lean: whether to keep the lean; controls have none.
        """
        chosen = [i for i, (metric, _) in enumerate(self.names) if lean or metric != "lean"]
        place = np.ix_(np.array(chosen), concepts)
        parts = _summed(
            [(metric, None if g is None else groups[g]) for metric, g in (self.names[i] for i in chosen)],
            *(values[place] for values in (self.numerators, self.denominators, self.cells, self.rows)),
        )
        disparity = self.disparity[concepts]
        return Tally(
            ratios=parts.ratios,
            numerators=parts.numerators,
            denominators=parts.denominators,
            positive=int((rounded(np.nan_to_num(disparity, nan=0.0)) > 0).sum()),
            uncounted=int(np.isnan(disparity).sum()),
            absent=int(self.absent[concepts].sum()),
        )


def _summed(
    names: Sequence[tuple[str, str | None]],
    numerators: FloatArray,
    denominators: FloatArray,
    cells: FloatArray,
    rows: FloatArray,
) -> Parts:
    """Sum each ratio over its concepts; all arrays (ratios, concepts)."""
    columns = (
        numerators.sum(axis=1).tolist(),
        denominators.sum(axis=1).tolist(),
        (denominators > 0).sum(axis=1).tolist(),
        cells.sum(axis=1).astype(np.int64).tolist(),
        rows.sum(axis=1).astype(np.int64).tolist(),
    )
    ratios = tuple(Ratio(*name, *numbers) for name, *numbers in zip(names, *columns, strict=True))
    return Parts(ratios, numerators, denominators)


def by_concept(rows: Rows) -> ByConcept:
    """Work out every ratio, concept by concept.

    Args:
        rows: rows of one attribute, or of several with as many groups. Two-sided concepts are left out before.
    """
    # Scored rows of (concept, framing) that count: the column `n_rows` of disparity and what is like it.
    scored = np.where(rows.counting[..., None], rows.n_scored, 0)
    counting, n_scored = rows.counting.sum(axis=1), scored.sum(axis=(1, 2))
    disparities, gaps = cell_disparity(rows.means), cell_gap(rows.means)
    disparity = nan_mean(disparities)
    lean, use = lean_sums(rows.means, rows.polarity)
    found = [
        (("disparity", None), *_mean_of(disparity), counting, n_scored),
        (("worst_gap", None), *_mean_of(nan_mean(gaps)), counting, n_scored),
        (("crossfit_disparity", None), *_mean_of(crossfit(rows.values, rows.scored)), *_crossfit_base(rows)),
        *((("lean", g), *columns) for g, columns in enumerate(zip(lean, use, use, scored.sum(axis=1).T, strict=True))),
        *((("refusal_rate", g), *_columns(share)) for g, share in enumerate(refusal_shares(rows))),
    ]
    for metric, share in shares(rows).items():
        repeated = np.where(rows.repeated, rows.n_scored, 0).sum(axis=(1, 2)) if metric == "instability" else None
        found.append(((metric, None), *_columns(share, repeated)))
    numerators, denominators, cells, n_rows = (
        np.stack([np.asarray(columns[i], np.float64) for _, *columns in found]) for i in range(4)
    )
    return ByConcept(
        names=tuple(name for name, *_ in found),
        numerators=numerators,
        denominators=denominators,
        cells=cells,
        rows=n_rows,
        disparities=disparities,
        gaps=gaps,
        disparity=disparity,
        absent=rows.absent,
    )


def _mean_of(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean over concepts of a value by concept, NaN = none, as numerators and denominators."""
    present = ~np.isnan(values)
    return np.where(present, values, 0.0), present.astype(np.float64)


def _columns(
    share: Share, rows: IntArray | None = None
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray | IntArray]:
    return share.numerator, share.denominator, share.cells, share.denominator if rows is None else rows


def tally(rows: Rows, groups: tuple[str, ...], *, lean: bool = True) -> Tally:
    """Return the ratios of one attribute.

    Args:
        rows: its rows, two-sided concepts left out before.
        groups: ids of its groups, in the order of the groups axis.
        lean: whether to work out the lean; controls have none.
    """
    return by_concept(rows).tally(np.arange(len(rows.values)), groups, lean=lean)


def _crossfit_base(rows: Rows) -> tuple[IntArray, IntArray]:
    """Return the cells and scored rows behind cross-fit disparity, of groups that can be compared with another.

    Two groups can be compared where both have two scored repeats or more and at least one of these is the same repeat.
    """
    usable = rows.scored & rows.repeated[..., None]
    shared = np.matmul(usable.astype(np.int64), usable.swapaxes(-1, -2).astype(np.int64)) > 0  # (..., groups, groups)
    use = rows.repeated & (shared.sum(axis=-1) >= 2)  # each shares its repeats with itself
    return use.any(axis=-1).sum(axis=1), np.where(use, rows.n_scored, 0).sum(axis=(1, 2))


def reversal(rows: Rows) -> Parts:
    """Return the role-reversal ratio of an attribute, as the only ratio.

    Args:
        rows: its two-sided rows.
    """
    numerator, denominator = reversal_sums(rows.means)
    cells, n_scored = (rows.n_groups > 0).sum(axis=1), rows.n_scored.sum(axis=(1, 2))
    columns = (np.asarray([values], np.float64) for values in (numerator, denominator, cells, n_scored))
    return _summed([("role_reversal", None)], *columns)
