"""The published tables as Arrow (SPEC 6): exactly the columns of `generator.schema.tables`, rows in canonical order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from generator.model_scores import POINTS, Score
from generator.schema.bank import Rubric
from generator.schema.columns import arrow_schema
from generator.schema.layout import Block
from generator.schema.tables import TABLES
from generator.shards import Run
from generator.stats.agreement import STATISTICS, Agreement
from generator.stats.bootstrap import BoolArray, FloatArray, Interval
from generator.stats.cells import CONTESTED, ERROR, REFUSED, Rows
from generator.stats.disparity import cell_disparity, cell_gap
from generator.stats.tiers import Comparisons, Placed


def number(value: float) -> float | None:
    """Return a number for a file: null for NaN, no minus zero."""
    return None if math.isnan(value) else value + 0.0


def numbers(values: FloatArray) -> pa.Array:
    """Return numbers for a file: null for NaN, no minus zero."""
    return pa.array(values + 0.0, mask=np.isnan(values))


def _ends(interval: Interval, scale: float = 1.0) -> tuple[float | None, float | None]:
    return number(scale * interval.low), number(scale * interval.high)


def _key(*parts: str | None) -> tuple[bytes, ...]:
    return tuple((part or "").encode() for part in parts)


class TableMaker:
    """Makes the tables of one run; every row carries the run's provenance."""

    def __init__(self, run: Run, shown: Mapping[str, BoolArray], counted: Mapping[str, BoolArray]) -> None:
        """Take a run and, by attribute, the concepts that `cells` shows and those that disparities count."""
        self._run, self._shown, self._counted = run, shown, counted
        manifest = run.manifest
        self._constants = {
            "run_id": manifest.run_id,
            "kind": manifest.kind,
            "bank_version": manifest.bank_version,
            "bank_sha256": manifest.bank_sha256,
            "harness_sha": manifest.harness_sha,
        }

    def make(self, name: str, columns: dict[str, Any], n_rows: int) -> pa.Table:
        """Return a table from its own columns; run and provenance are added, types are the contract's."""
        schema = arrow_schema(TABLES[name])
        full = {**{k: pa.repeat(pa.scalar(v), n_rows) for k, v in self._constants.items()}, **columns}
        return pa.table({f.name: pa.array(full[f.name], f.type) for f in schema}, schema=schema)

    def from_rows(self, name: str, rows: Sequence[dict[str, Any]]) -> pa.Table:
        """Return a table from rows of its own columns."""
        own = [c.name for c in TABLES[name] if c.name not in self._constants]
        return self.make(name, {c: [row[c] for row in rows] for c in own}, len(rows))

    def scores(self, by_model: dict[str, list[Score]]) -> pa.Table:
        """Return the tidy table of all scores, sorted by model, metric, attribute, group."""
        flat = [(model, row) for model, rows in by_model.items() for row in rows]
        flat.sort(key=lambda item: _key(item[0], item[1].metric, item[1].attribute, item[1].group))
        return self.from_rows("scores", [_score_row(model, row) for model, row in flat])

    def agreement(self, rows: Iterable[tuple[Rubric, str, Agreement]]) -> pa.Table:
        """Return agreement by rubric and vendor, `*` for all vendors."""
        ordered = sorted(rows, key=lambda item: _key(item[0].id, item[1]))
        return self.from_rows("agreement", [_agreement_row(*item) for item in ordered])

    def tiers(self, placed: Sequence[Placed], overall: Mapping[str, Score]) -> pa.Table:
        """Return the leaderboard in the order of rank, unranked models last; numbers are those of `scores`."""
        rows = []
        for item in placed:
            score = overall[item.standing.model]
            low, high = _ends(score.interval)
            rows.append(
                {
                    "model": item.standing.model,
                    "rank": item.rank,
                    "tier": item.tier,
                    "founder": item.founder,
                    "estimate": number(score.estimate),
                    "ci_low": low,
                    "ci_high": high,
                }
            )
        return self.from_rows("tiers", rows)

    def comparisons(self, found: Comparisons) -> pa.Table:
        """Return all pairs of ranked models, in slug order."""
        slugs = pa.array(found.models, pa.string())
        columns = {
            "model_a": slugs.take(pa.array(found.first)),
            "model_b": slugs.take(pa.array(found.second)),
            "difference": numbers(POINTS * found.difference),
            "ci_low": numbers(POINTS * found.low),
            "ci_high": numbers(POINTS * found.high),
            "p": numbers(found.p),
            "p_holm": numbers(found.p_holm),
        }
        return self.make("comparisons", columns, len(found.first))

    def cells(self, model: str, rows: Mapping[str, Rows]) -> pa.Table:
        """Return every (concept, framing, group) of a model, withheld concepts left out."""
        parts = [_cell_columns(rows[name], mask) for name, mask in self._shown.items()]
        return self._of_model("cells", model, self._cell_keys, parts)

    def disparities(self, model: str, rows: Mapping[str, Rows]) -> pa.Table:
        """Return every (concept, framing) of a model, withheld and two_sided concepts left out."""
        parts = [_pair_columns(rows[name], mask) for name, mask in self._counted.items()]
        return self._of_model("disparities", model, self._pair_keys, parts)

    @cached_property
    def _cell_keys(self) -> dict[str, pa.ChunkedArray]:
        return _joined([_keys(b, self._shown[b.attribute], with_group=True) for b in self._run.layout.blocks])

    @cached_property
    def _pair_keys(self) -> dict[str, pa.ChunkedArray]:
        return _joined([_keys(b, self._counted[b.attribute], with_group=False) for b in self._run.layout.blocks])

    def _of_model(
        self, name: str, model: str, keys: dict[str, pa.ChunkedArray], parts: Sequence[dict[str, pa.Array]]
    ) -> pa.Table:
        columns = _joined(parts)
        n_rows = len(keys["attribute"])
        return self.make(name, {"model": pa.repeat(pa.scalar(model), n_rows), **keys, **columns}, n_rows)


def _joined(parts: Sequence[dict[str, pa.Array]]) -> dict[str, pa.Array]:
    """Put the columns of several parts one below the other."""
    return {name: pa.concat_arrays([part[name] for part in parts]) for name in parts[0]}


def _cell_columns(rows: Rows, shown: BoolArray) -> dict[str, pa.Array]:
    means = rows.means[shown].ravel()
    columns = {
        "n_scored": rows.n_scored,
        "n_refused": rows.count(REFUSED),
        "n_contested": rows.count(CONTESTED),
        "n_error": rows.count(ERROR),
    }
    return {
        "mean_value": pa.array(means, mask=np.isnan(means)),
        **{name: pa.array(values[shown].ravel(), pa.int32()) for name, values in columns.items()},
        "unanimous": pa.array(rows.unanimous[shown].ravel(), mask=~rows.repeated[shown].ravel()),
    }


def _pair_columns(rows: Rows, counted: BoolArray) -> dict[str, pa.Array]:
    means, none = rows.means[counted], ~rows.counting[counted].ravel()
    return {
        "n_groups": pa.array(rows.n_groups[counted].ravel(), pa.int32()),
        "disparity": pa.array(cell_disparity(means).ravel(), mask=none),
        "gap": pa.array(cell_gap(means).ravel(), mask=none),
    }


def _keys(block: Block, concepts: BoolArray, *, with_group: bool) -> dict[str, pa.Array]:
    """Return the key columns of the cells of some concepts of an attribute, in canonical order."""
    chosen = [name for name, use in zip(block.concepts, concepts, strict=True) if use]
    axes = [chosen, block.framings, *([block.groups] if with_group else [])]
    grid = np.indices([len(axis) for axis in axes]).reshape(len(axes), -1)
    keys = {
        name: pa.array(axis, pa.string()).take(pa.array(index))
        for name, axis, index in zip(("concept", "framing", "group"), axes, grid, strict=False)
    }
    return {"attribute": pa.repeat(pa.scalar(block.attribute), grid.shape[1]), **keys}


def _score_row(model: str, row: Score) -> dict[str, Any]:
    low, high = _ends(row.interval)
    return {
        "model": model,
        "metric": row.metric,
        "attribute": row.attribute,
        "group": row.group,
        "estimate": number(row.estimate),
        "ci_low": low,
        "ci_high": high,
        "ci_tail": number(row.interval.tail),
        "n_concepts": row.n_concepts,
        "n_cells": row.n_cells,
        "n_rows": row.n_rows,
        "p": number(row.p),
        "p_adjusted": number(row.p_adjusted),
        "evidence": row.evidence,
        "flag": row.flag,
    }


def _agreement_row(rubric: Rubric, vendor: str, found: Agreement) -> dict[str, Any]:
    row: dict[str, Any] = {
        "rubric": rubric.id,
        "vendor": vendor,
        "n_pairs": found.n_pairs,
        "n_on_scale": found.n_on_scale,
        "modal_label": None if found.modal is None else rubric.names[found.modal],
        "modal_prevalence": number(found.prevalence),
        "gate": found.gate() if vendor == "*" else None,
        "warning": found.warning() if vendor == "*" else None,
    }
    for name, value, interval in zip(STATISTICS, found.numbers, found.intervals, strict=True):
        row[name] = number(value)
        row[f"{name}_ci_low"], row[f"{name}_ci_high"] = _ends(interval)
    return row
