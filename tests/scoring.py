"""Arrays for tests of the statistics: `make_rows_of` turns values and marks into the rows of one attribute."""

from __future__ import annotations

from typing import Any

import numpy as np

from generator.stats.cells import ABSENT, CONTESTED, ERROR, REFUSED, SCORED, Rows

CODES = {"refused": REFUSED, "contested": CONTESTED, "error": ERROR, "absent": ABSENT}


def make_rows_of(values: Any, *, polarity: Any = None, **changes: Any) -> Rows:
    """Rows from nested lists (concepts, framings, groups, repeats) of values in [0, 1] or names of other statuses."""
    given = np.array(values, dtype=object)
    status = np.array([CODES.get(v, SCORED) if isinstance(v, str) else SCORED for v in given.ravel()], np.int8)
    status = status.reshape(given.shape)
    numbers = np.where(status == SCORED, np.where(status == SCORED, given, np.nan), np.nan).astype(np.float64)
    return rows_from(numbers, status, polarity=polarity, **changes)


def rows_from(values: np.ndarray, status: np.ndarray | None = None, *, polarity: Any = None, **changes: Any) -> Rows:
    """Rows from values (concepts, framings, groups, repeats), NaN = refused unless `status` says otherwise."""
    if status is None:
        status = np.where(np.isnan(values), REFUSED, SCORED).astype(np.int8)
    _, codes = np.unique(np.nan_to_num(values, nan=-1.0), return_inverse=True)
    none = np.zeros(values.shape, np.int8)
    parts: dict[str, Any] = {
        "values": np.where(status == SCORED, values, np.nan),
        "status": status,
        "label": np.where(status == SCORED, codes.reshape(values.shape), -1).astype(np.int16),
        "polarity": np.array([1] * len(values) if polarity is None else polarity, np.int8),
        "answered": status != ABSENT,
        "cut": none.astype(bool),
        "leaked": none.astype(bool),
        "finish_known": np.ones(values.shape, bool),
        "mask_known": np.ones(values.shape, bool),
        "filtered": none.astype(bool),
        "verdict_votes": none,
        "mismatches": none,
    }
    return Rows(**{**parts, **changes})
