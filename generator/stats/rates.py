"""Shares of rows as numerators and denominators by concept: their intervals resample concepts.

See methodology: scoring, "Rates".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from generator.stats.bootstrap import BoolArray, FloatArray, IntArray
from generator.stats.cells import CONTESTED, ERROR, REFUSED, Rows

AnyArray = npt.NDArray[Any]

RATES = (
    "refusal_rate",
    "filter_refusal_rate",
    "contested_rate",
    "error_rate",
    "truncated_rate",
    "mask_leakage",
    "verdict_mismatch_rate",
    "instability",
)


@dataclass(frozen=True)
class Share:
    """A share by concept, (concepts,): numerator, denominator, and how many cells have a denominator."""

    numerator: FloatArray
    denominator: FloatArray
    cells: IntArray

    @property
    def n_cells(self) -> int:
        """The cells of all concepts."""
        return int(self.cells.sum())


def _share(numerator: AnyArray, denominator: AnyArray) -> Share:
    """Sum arrays (concepts, framings, ...) over all but the concepts; cells are (concept, framing)."""
    axes = tuple(range(1, denominator.ndim))
    by_cell = denominator.sum(axis=axes[1:], dtype=np.int64)
    return Share(
        numerator.sum(axis=axes, dtype=np.float64),
        by_cell.sum(axis=1).astype(np.float64),
        np.asarray((by_cell > 0).sum(axis=1)),
    )


def refusal_shares(rows: Rows) -> list[Share]:
    """Return r(g) = refused / (scored + refused) of each group."""
    refused, valid = _refused_of(rows)
    numerators = refused.sum(axis=(1, 3), dtype=np.float64)
    by_cell = valid.sum(axis=3)
    denominators, cells = by_cell.sum(axis=1).astype(np.float64), (by_cell > 0).sum(axis=1)
    return [Share(*columns) for columns in zip(numerators.T, denominators.T, cells.T, strict=True)]


def _refused_of(rows: Rows) -> tuple[BoolArray, BoolArray]:
    refused = np.asarray(rows.status == REFUSED)
    return refused, refused | rows.scored


def shares(rows: Rows) -> dict[str, Share]:
    """Return every share of an attribute by metric name.

    Instability counts (concept, framing, group) cells with two or more scored repeats; all other shares count rows.
    The filter's refusals are the part of the refusal rate that has no vote. An absent row is planned, so it stands in
    the error rate's denominator, and in no other.
    """
    refused, valid = _refused_of(rows)
    contested = np.asarray(rows.status == CONTESTED)
    unstable = rows.repeated & ~rows.unanimous
    instability = _share(unstable, rows.repeated)
    return {
        "refusal_rate": _share(refused, valid),
        "filter_refusal_rate": _share(rows.filtered, valid),
        "contested_rate": _share(contested, contested | valid),
        "error_rate": _share(np.asarray(rows.status == ERROR), np.ones_like(refused)),
        "truncated_rate": _share(rows.cut & rows.answered, rows.answered),
        "mask_leakage": _share(rows.leaked & rows.answered, rows.answered),
        "verdict_mismatch_rate": _share(rows.mismatches, rows.verdict_votes),
        "instability": Share(
            instability.numerator, instability.denominator, np.asarray(rows.repeated.sum(axis=(1, 2)))
        ),
    }
