"""Shares of rows as numerators and denominators by concept (SPEC 4, "Rates"): their intervals resample concepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from generator.stats.bootstrap import BoolArray, FloatArray
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
    """Numerator and denominator of a share by concept, (concepts,), and how many cells have a denominator."""

    numerator: FloatArray
    denominator: FloatArray
    n_cells: int


def _share(numerator: AnyArray, denominator: AnyArray) -> Share:
    """Sum arrays (concepts, framings, ...) over all but the concepts; cells are (concept, framing)."""
    axes = tuple(range(1, denominator.ndim))
    by_cell = denominator.reshape(*denominator.shape[:2], -1).sum(axis=-1)
    return Share(
        numerator.sum(axis=axes, dtype=np.float64),
        denominator.sum(axis=axes, dtype=np.float64),
        int((by_cell > 0).sum()),
    )


def refusal_shares(rows: Rows) -> list[Share]:
    """Return r(g) = refused / (scored + refused) of each group."""
    refused, valid = _refused_of(rows)
    return [_share(refused[:, :, g], valid[:, :, g]) for g in range(refused.shape[2])]


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
        "instability": Share(instability.numerator, instability.denominator, int(rows.repeated.sum())),
    }
