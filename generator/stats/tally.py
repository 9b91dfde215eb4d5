"""What one model's rows of one attribute come to: named ratios of sums over concepts (SPEC 4).

An estimate is sum of numerators / sum of denominators; a replicate is the same with the resample's counts as weights. A
concept without a value has numerator and denominator 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from generator.stats.bootstrap import FloatArray, Resamples, Sample, one_attribute, rounded
from generator.stats.cells import Rows, nan_mean
from generator.stats.disparity import cell_disparity, cell_gap, crossfit, lean_sums, reversal_sums
from generator.stats.rates import Share, refusal_shares, shares


@dataclass(frozen=True)
class Ratio:
    """One number, 0-1 scale: NaN where nothing was counted. `hits` of `total` is its quotient over all concepts.

    n_concepts: concepts with a value.
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
        """The number itself."""
        return self.hits / self.total if self.total > 0 else float("nan")

    @property
    def sample(self) -> Sample:
        """The sample that its interval rests on."""
        return one_attribute(self.n_concepts)


@dataclass(frozen=True)
class Part:
    """A ratio before it is summed: numerator and denominator by concept, (concepts,)."""

    metric: str
    group: str | None
    numerator: FloatArray
    denominator: FloatArray
    n_cells: int
    n_rows: int


@dataclass(frozen=True)
class Parts:
    """Ratios with their numerators and denominators stacked: (ratios, concepts)."""

    ratios: tuple[Ratio, ...]
    numerators: FloatArray
    denominators: FloatArray

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Parts:
        """Sum each part over its concepts."""
        numerators = np.stack([p.numerator for p in parts])
        denominators = np.stack([p.denominator for p in parts])
        sums = zip(
            parts,
            numerators.sum(axis=1).tolist(),
            denominators.sum(axis=1).tolist(),
            (denominators > 0).sum(axis=1).tolist(),
            strict=True,
        )
        ratios = tuple(Ratio(p.metric, p.group, hits, total, n, p.n_cells, p.n_rows) for p, hits, total, n in sums)
        return cls(ratios, numerators, denominators)

    @cached_property
    def _places(self) -> dict[tuple[str, str | None], int]:
        return {(item.metric, item.group): i for i, item in enumerate(self.ratios)}

    def index(self, metric: str, group: str | None = None) -> int:
        """Return a ratio's place; raises KeyError when there is none of that name."""
        return self._places[metric, group]

    def find(self, metric: str, group: str | None = None) -> Ratio:
        """Return one ratio; raises KeyError when there is none of that name."""
        return self.ratios[self.index(metric, group)]


@dataclass(frozen=True)
class Tally(Parts):
    """All ratios of one attribute.

    positive: concepts with D(c) > 0. uncounted: concepts without a counting cell. absent: planned rows not there.
    """

    positive: int
    uncounted: int
    absent: int


@dataclass(frozen=True)
class Replicates:
    """The resampled ratios of a tally: each distinct sum once, and which of them are a ratio's two.

    sums: (distinct, resamples). over, under: (ratios,) places in `sums` of numerators and denominators. Most ratios
    share a denominator, and rates that are zero share a numerator.
    """

    sums: FloatArray
    over: tuple[int, ...]
    under: tuple[int, ...]

    def numerator(self, place: int) -> FloatArray:
        """Return the resampled numerator of a ratio: (resamples,)."""
        return np.asarray(self.sums[self.over[place]])

    def denominator(self, place: int) -> FloatArray:
        """Return the resampled denominator of a ratio: (resamples,)."""
        return np.asarray(self.sums[self.under[place]])

    def values(self) -> FloatArray:
        """Return numerator / denominator: a new array (ratios, resamples), NaN = no value."""
        found = np.empty((len(self.over), self.sums.shape[1]))
        with np.errstate(invalid="ignore"):
            for over, under, row in zip(self.over, self.under, found, strict=True):
                np.divide(self.sums[over], self.sums[under], out=row)
        return found


def replicates(parts: Parts, resamples: Resamples) -> Replicates:
    """Resample ratios of an attribute's concepts."""
    rows = np.concatenate([parts.numerators, parts.denominators])
    first: dict[bytes, int] = {}
    places = [first.setdefault(row.tobytes(), len(first)) for row in rows]
    distinct = np.unique(places, return_index=True)[1]
    n = len(parts.ratios)
    return Replicates(resamples.sums(rows[distinct]), tuple(places[:n]), tuple(places[n:]))


def _by_concept(metric: str, values: FloatArray, n_cells: int, n_rows: int) -> Part:
    """Return the mean over concepts of a value by concept, NaN = none."""
    present = ~np.isnan(values)
    return Part(metric, None, np.where(present, values, 0.0), present.astype(np.float64), n_cells, n_rows)


def _of_share(metric: str, group: str | None, share: Share, n_rows: int | None = None) -> Part:
    rows = int(share.denominator.sum()) if n_rows is None else n_rows
    return Part(metric, group, share.numerator, share.denominator, share.n_cells, rows)


def tally(rows: Rows, groups: tuple[str, ...], *, lean: bool = True) -> Tally:
    """Return the ratios of an attribute's rows, two_sided concepts left out before; controls have no lean."""
    disparity = nan_mean(cell_disparity(rows.means))
    cells = int(rows.counting.sum())
    scored = rows.n_scored * rows.counting[..., None]
    ratios = [
        _by_concept("disparity", disparity, cells, int(scored.sum())),
        _by_concept("worst_gap", nan_mean(cell_gap(rows.means)), cells, int(scored.sum())),
        _by_concept("crossfit_disparity", crossfit(rows.values, rows.scored), *_crossfit_base(rows)),
    ]
    numerator, denominator = lean_sums(rows.means, rows.polarity)
    for g, group in enumerate(groups if lean else ()):
        n_cells = int(denominator[g].sum())
        ratios.append(Part("lean", group, numerator[g], denominator[g], n_cells, int(scored[:, :, g].sum())))
    ratios += [
        _of_share("refusal_rate", group, share) for group, share in zip(groups, refusal_shares(rows), strict=True)
    ]
    for metric, share in shares(rows).items():
        n_rows = int(rows.n_scored[rows.repeated].sum()) if metric == "instability" else None
        ratios.append(_of_share(metric, None, share, n_rows))
    parts = Parts.of(ratios)
    return Tally(
        ratios=parts.ratios,
        numerators=parts.numerators,
        denominators=parts.denominators,
        positive=int((rounded(np.nan_to_num(disparity, nan=0.0)) > 0).sum()),
        uncounted=int(np.isnan(disparity).sum()),
        absent=rows.n_absent,
    )


def _crossfit_base(rows: Rows) -> tuple[int, int]:
    """Return (cells, scored rows) behind the cross-fit disparity: two groups with two scored repeats at least."""
    use = rows.repeated & (rows.repeated.sum(axis=-1, keepdims=True) >= 2)
    return int(use.any(axis=-1).sum()), int(rows.n_scored[use].sum())


def reversal(rows: Rows) -> Parts:
    """Return the role-reversal ratio of an attribute's two_sided rows."""
    numerator, denominator = reversal_sums(rows.means)
    cells = int((rows.n_groups > 0).sum())
    return Parts.of([Part("role_reversal", None, numerator, denominator, cells, int(rows.n_scored.sum()))])
