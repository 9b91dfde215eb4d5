"""The rows of `judges`: how many votes each judge cast, how many are errors, and what was taken off its replies.

See contract: tables, "Judges"; contract: verdicts, "Packaging of a verdict".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from generator.schema.verdict import UNWRAPPED

JudgeCounts = dict[str, dict[str, int]]  # by judge and column
COLUMNS = ("n_votes", "n_errors", "n_unwrapped", *(f"n_{name}" for name in UNWRAPPED), "n_evidence_cut")


def judge_counts(votes: pa.ListArray) -> JudgeCounts:
    """Count the votes of one shard by judge. What format 1 does not record counts as none.

    Args:
        votes: the column `votes`, with the fields that the file has.

    Returns:
        By judge, the counts named in `COLUMNS`.
    """
    flat = votes.flatten()
    # Format 1 has neither `unwrapped` nor `evidence_cut`.
    names = {field.name for field in flat.type}
    judge = pc.struct_field(flat, "judge").dictionary_encode()
    marks = {"n_votes": np.ones(len(flat), bool), "n_errors": _there(flat, "error")}
    off = pc.struct_field(flat, "unwrapped") if "unwrapped" in names else pa.nulls(len(flat), pa.string())
    marks["n_unwrapped"] = np.asarray(off.is_valid())
    for name in UNWRAPPED:
        # Several things can be taken off one reply; their names are joined by `;`.
        found = pc.match_substring_regex(pc.fill_null(off, ""), rf"(^|;){name}($|;)")
        marks[f"n_{name}"] = np.asarray(found)
    cut = pc.struct_field(flat, "evidence_cut") if "evidence_cut" in names else pa.nulls(len(flat), pa.bool_())
    marks["n_evidence_cut"] = np.asarray(pc.fill_null(cut, False))
    places, slugs = np.asarray(judge.indices), judge.dictionary.to_pylist()
    counted = {name: np.bincount(places[mark], minlength=len(slugs)) for name, mark in marks.items()}
    return {slug: {name: int(counts[i]) for name, counts in counted.items()} for i, slug in enumerate(slugs)}


def _there(flat: pa.StructArray, name: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.asarray(pc.struct_field(flat, name).is_valid())


def judge_rows(judges: Iterable[str], found: Sequence[Mapping[str, Mapping[str, int]]]) -> list[dict[str, Any]]:
    """Return a row for every judge of a run, slugs in byte order.

    Args:
        judges: all judges of the run; one without a vote gets zeros.
        found: the counts of the shards, from `judge_counts`.
    """
    return [
        {"judge": judge, **{name: sum(counts.get(judge, {}).get(name, 0) for counts in found) for name in COLUMNS}}
        for judge in sorted(judges, key=str.encode)
    ]
