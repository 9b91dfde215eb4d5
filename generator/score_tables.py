"""The published tables as Arrow (SPEC 6): exactly the columns of `generator.schema.tables`, rows in canonical order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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
from generator.stats.bootstrap import BoolArray, Interval
from generator.stats.cells import CONTESTED, ERROR, REFUSED, Rows
from generator.stats.disparity import cell_disparity, cell_gap
from generator.stats.tiers import Comparison, Placed


def number(value: float) -> float | None:
    """Return a number for a file: null for NaN, no minus zero."""
    return None if math.isnan(value) else value + 0.0


def _ends(interval: Interval, scale: float = 1.0) -> tuple[float | None, float | None]:
    return number(scale * interval.low), number(scale * interval.high)


def _key(*parts: str | None) -> tuple[bytes, ...]:
    return tuple((part or "").encode() for part in parts)


class TableMaker:
    """Makes the tables of one run; every row carries the run's provenance."""

    def __init__(self, run: Run) -> None:
        self._run = run
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

    def tiers(self, placed: Sequence[Placed]) -> pa.Table:
        """Return the leaderboard in the order of rank, unranked models last."""
        rows = []
        for item in placed:
            low, high = _ends(item.standing.interval, POINTS)
            rows.append(
                {
                    "model": item.standing.model,
                    "rank": item.rank,
                    "tier": item.tier,
                    "founder": item.founder,
                    "estimate": number(POINTS * item.standing.estimate),
                    "ci_low": low,
                    "ci_high": high,
                }
            )
        return self.from_rows("tiers", rows)

    def comparisons(self, found: Sequence[Comparison]) -> pa.Table:
        """Return all pairs of ranked models, in slug order."""
        ends = [_ends(c.interval, POINTS) for c in found]
        columns = {
            "model_a": [c.model_a for c in found],
            "model_b": [c.model_b for c in found],
            "difference": [number(POINTS * c.difference) for c in found],
            "ci_low": [low for low, _ in ends],
            "ci_high": [high for _, high in ends],
            "p": [number(c.p) for c in found],
            "p_holm": [number(c.p_holm) for c in found],
        }
        return self.make("comparisons", columns, len(found))

    @cached_property
    def _cell_keys(self) -> dict[str, dict[str, pa.Array]]:
        return {block.attribute: _keys(block, with_group=True) for block in self._run.layout.blocks}

    @cached_property
    def _pair_keys(self) -> dict[str, dict[str, pa.Array]]:
        return {block.attribute: _keys(block, with_group=False) for block in self._run.layout.blocks}

    def cells(self, model: str, block: Block, rows: Rows, kept: BoolArray) -> pa.Table:
        """Return every (concept, framing, group) of an attribute; `kept` (concepts,) leaves withheld ones out."""
        use = np.broadcast_to(kept[:, None, None], rows.n_scored.shape).ravel()
        means = rows.means.ravel()
        unanimous = pa.array(rows.unanimous.ravel()[use], mask=~rows.repeated.ravel()[use])
        columns = {
            "mean_value": pa.array(means[use], mask=np.isnan(means)[use]),
            "n_scored": rows.n_scored.ravel()[use],
            "n_refused": rows.count(REFUSED).ravel()[use],
            "n_contested": rows.count(CONTESTED).ravel()[use],
            "n_error": rows.count(ERROR).ravel()[use],
            "unanimous": unanimous,
        }
        return self._of_block("cells", model, self._cell_keys[block.attribute], use, columns)

    def disparities(self, model: str, block: Block, rows: Rows, kept: BoolArray) -> pa.Table:
        """Return every (concept, framing) of an attribute; `kept` leaves withheld and two_sided concepts out."""
        use = np.broadcast_to(kept[:, None], rows.n_groups.shape).ravel()
        none = ~rows.counting.ravel()[use]
        columns = {
            "n_groups": rows.n_groups.ravel()[use],
            "disparity": pa.array(cell_disparity(rows.means).ravel()[use], mask=none),
            "gap": pa.array(cell_gap(rows.means).ravel()[use], mask=none),
        }
        return self._of_block("disparities", model, self._pair_keys[block.attribute], use, columns)

    def _of_block(
        self, name: str, model: str, keys: dict[str, pa.Array], use: BoolArray, columns: dict[str, Any]
    ) -> pa.Table:
        mask = pa.array(use)
        own = {key: values.filter(mask) for key, values in keys.items()}
        n_rows = int(use.sum())
        return self.make(name, {"model": pa.repeat(pa.scalar(model), n_rows), **own, **columns}, n_rows)


def _keys(block: Block, *, with_group: bool) -> dict[str, pa.Array]:
    """Return the key columns of an attribute's cells in canonical order."""
    axes = [block.concepts, block.framings, *([block.groups] if with_group else [])]
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
