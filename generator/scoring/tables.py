"""The published tables as Arrow: exactly the columns of `generator.schema.tables`, rows in canonical order.

See contract: tables, "Published tables"; contract: tables, "Order of rows".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from generator.runs.reader import Run
from generator.schema.bank import Rubric
from generator.schema.columns import arrow_schema
from generator.schema.layout import Block
from generator.schema.tables import TABLES
from generator.scoring.attribute import POINTS, Score
from generator.scoring.comparisons import Comparisons
from generator.scoring.refusal_rows import RefusalRow
from generator.scoring.row_arrays import ModelRows, Stack
from generator.stats.agreement import STATISTICS, Agreement
from generator.stats.bootstrap import BoolArray, FloatArray, Interval
from generator.stats.tiers import Placed

AnyArray = npt.NDArray[Any]


def number(value: float) -> float | None:
    """Return a number as a file has it: None for NaN, zero for minus zero."""
    # Adding 0.0 turns minus zero into zero.
    return None if math.isnan(value) else value + 0.0


def numbers(values: FloatArray) -> pa.Array:
    """Return an array of numbers as a file has it: null for NaN, zero for minus zero.

    Float array (n,) in, Arrow array out.
    """
    return _with_nulls(values + 0.0)


def _ends(interval: Interval) -> tuple[float | None, float | None]:
    return number(interval.low), number(interval.high)


def _key(*parts: str | None) -> tuple[bytes, ...]:
    return tuple((part or "").encode() for part in parts)


class TableMaker:
    """Makes the tables of one run; every row carries the run's provenance."""

    def __init__(self, run: Run, shown: Mapping[str, BoolArray], counted: Mapping[str, BoolArray]) -> None:
        """Keep what all tables share.

        Args:
            run: the run, for its keys and provenance.
            shown: by attribute id, the concepts that `cells` shows: bool arrays (concepts,).
            counted: by attribute id, the concepts that enter disparities: bool arrays (concepts,).
        """
        self._run, self._shown, self._counted = run, shown, counted
        self.bank = run.bank
        manifest = run.manifest
        self._constants = {
            "run_id": manifest.run_id,
            "kind": manifest.kind,
            "bank_version": manifest.bank_version,
            "bank_sha256": manifest.bank_sha256,
            "harness_sha": manifest.harness_sha,
        }

    def make(self, name: str, columns: dict[str, Any], n_rows: int) -> pa.Table:
        """Return a table in the contract's columns and types.

        Args:
            name: name of the table.
            columns: the table's own columns; run and provenance are added here.
            n_rows: number of rows.

        Raises:
            KeyError: a column of the schema is missing from `columns`.
        """
        schema = arrow_schema(TABLES[name])
        full = {**{k: pa.repeat(pa.scalar(v), n_rows) for k, v in self._constants.items()}, **columns}
        # Columns, order and types come from the schema, so no table can drift away from the contract.
        return pa.table({f.name: pa.array(full[f.name], f.type) for f in schema}, schema=schema)

    def from_rows(self, name: str, rows: Sequence[dict[str, Any]]) -> pa.Table:
        """Return a table from rows of its own columns; run and provenance are added.

        Args:
            name: name of the table.
            rows: a mapping of column to value for each row, None for null, in canonical order.

        Raises:
            KeyError: a row lacks a column of the table.
        """
        own = [c.name for c in TABLES[name] if c.name not in self._constants]
        return self.make(name, {c: [row[c] for row in rows] for c in own}, len(rows))

    def scores(self, by_model: Mapping[str, pa.Table]) -> pa.Table:
        """Return the table `scores`, models in byte order.

        Args:
            by_model: by slug, what `score_columns` returned, `*` for run-wide rows.
        """
        ordered = sorted(by_model, key=str.encode)
        return self._of_models("scores", {model: by_model[model] for model in ordered}, {})

    def agreement(self, rows: Iterable[tuple[Rubric, str, Agreement]]) -> pa.Table:
        """Return the table `agreement`, sorted by rubric and vendor (contract: tables, "Agreement").

        Args:
            rows: (rubric, vendor, agreement); vendor `*` stands for all subjects.
        """
        ordered = sorted(rows, key=lambda item: _key(item[0].id, item[1]))
        return self.from_rows("agreement", [_agreement_row(*item) for item in ordered])

    def tiers(self, placed: Sequence[Placed], overall: Mapping[str, Score]) -> pa.Table:
        """Return the leaderboard in the order of rank, unranked models last.

        Args:
            placed: the models in that order.
            overall: by slug, the overall consistency row of `scores`, whose numbers are shown.
        """
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

    def comparisons(self, found: Sequence[Comparisons]) -> pa.Table:
        """Return the table `comparisons`, sorted by the two slugs and the attribute (contract: tables, "Comparisons").

        Args:
            found: the pairs of each attribute and overall, on the 0-1 scale; the table has points.
        """
        parts = [(_pair_columns(one), one) for one in found]
        names = [] if not parts else list(parts[0][0])
        columns = {name: pa.concat_arrays([columns[name] for columns, _ in parts]) for name in names}
        n_rows = sum(len(one.found.first) for one in found)
        if not columns:
            return self.from_rows("comparisons", [])
        table = self.make("comparisons", columns, n_rows)
        # Text sorts by code points as its UTF-8 sorts by bytes.
        return table.sort_by([(key, "ascending") for key in ("model_a", "model_b", "attribute")]).combine_chunks()

    def refusal_tests(self, by_model: Mapping[str, Sequence[RefusalRow]]) -> pa.Table:
        """Return the table `refusal_tests`, models in byte order."""
        ordered = sorted(by_model, key=str.encode)
        return self.from_rows("refusal_tests", [_refusal_row(m, row) for m in ordered for row in by_model[m]])

    def cells(self, by_model: Mapping[str, pa.Table]) -> pa.Table:
        """Return the table `cells`, a row for every (concept, framing, group) of each model.

        See contract: tables, "Cells".

        Args:
            by_model: by slug, what `cell_columns` returned.
        """
        return self._of_models("cells", by_model, self._keys(self._shown, with_group=True))

    def disparities(self, by_model: Mapping[str, pa.Table]) -> pa.Table:
        """Return the table `disparities`, a row for every (concept, framing) of each model.

        See contract: tables, "Disparities".

        Args:
            by_model: by slug, what `disparity_columns` returned.
        """
        return self._of_models("disparities", by_model, self._keys(self._counted, with_group=False))

    def cell_columns(self, model: ModelRows) -> pa.Table:
        """Return the columns of `cells` that differ by model; concepts outside `shown` are left out."""
        parts = [_cell_arrays(model.stack[name], name, mask) for name, mask in self._shown.items()]
        found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        repeated = found.pop("repeated")
        return pa.table(
            {
                "mean_value": _with_nulls(found.pop("mean_value")),
                # One scored repeat cannot disagree, so unanimity is null below two.
                "unanimous": pa.array(found.pop("unanimous"), mask=~repeated),
                **{name: pa.array(values, pa.int32()) for name, values in found.items()},
            }
        )

    def disparity_columns(self, model: ModelRows) -> pa.Table:
        """Return the columns of `disparities` that differ by model; concepts outside `counted` are left out."""
        parts = [_pair_arrays(model.stack[name], name, mask) for name, mask in self._counted.items()]
        groups, disparities, gaps = (np.concatenate(column) for column in zip(*parts, strict=True))
        columns = {"disparity": _with_nulls(disparities), "gap": _with_nulls(gaps)}
        return pa.table({"n_groups": pa.array(groups, pa.int32()), **columns})

    def _keys(self, concepts: Mapping[str, BoolArray], *, with_group: bool) -> dict[str, pa.Array]:
        """Return the key columns of one model's rows."""
        parts = [_keys(block, concepts[block.attribute], with_group=with_group) for block in self._run.layout.blocks]
        return {name: pa.concat_arrays([part[name] for part in parts]) for name in parts[0]}

    def _of_models(self, name: str, by_model: Mapping[str, pa.Table], keys: Mapping[str, pa.Array]) -> pa.Table:
        """Put the models' own columns one below the other, beside the slug and the keys that all models share."""
        own = pa.concat_tables(by_model.values())
        lengths = [table.num_rows for table in by_model.values()]
        slugs = pa.array(list(by_model), pa.string()).take(pa.array(np.repeat(np.arange(len(lengths)), lengths)))
        shared = {key: pa.concat_arrays([column] * len(lengths)) for key, column in keys.items()}
        columns = {column: own[column].combine_chunks() for column in own.column_names}
        return self.make(name, {"model": slugs, **shared, **columns}, own.num_rows)


def with_gaps(scores: pa.Table, gaps: Sequence[Score]) -> pa.Table:
    """Return a model's own columns of `scores` with the rows of its level's gaps put in, which depend on other models.

    Args:
        scores: columns from `score_columns`.
        gaps: rows of one metric.
    """
    own = score_columns(gaps)
    # Rows are sorted by metric, so the gaps go in where their metric belongs.
    first = pc.sum(pc.less(scores["metric"], own["metric"][0]), min_count=0).as_py() if own.num_rows else 0
    return pa.concat_tables([scores.slice(0, first), own, scores.slice(first)])


def _refusal_row(model: str, row: RefusalRow) -> dict[str, Any]:
    test = row.test
    return {
        "model": model,
        "attribute": row.attribute,
        "q": number(test.q),
        "df": test.df,
        "p": number(test.p),
        "p_adjusted": number(row.p_adjusted),
        "named": row.named,
        "n_concepts": test.n_concepts,
        "n_differing": test.n_differing,
    }


def _pair_columns(one: Comparisons) -> dict[str, pa.Array]:
    """Return the columns of `comparisons` for the pairs of one attribute, or overall, in points."""
    slugs = pa.array(one.found.models, pa.string())
    return {
        "model_a": slugs.take(pa.array(one.found.first)),
        "model_b": slugs.take(pa.array(one.found.second)),
        "attribute": pa.repeat(pa.scalar(one.attribute), len(one.found.first)),
        "difference": numbers(POINTS * one.found.difference),
        "ci_low": numbers(POINTS * one.found.low),
        "ci_high": numbers(POINTS * one.found.high),
        "u_within": numbers(one.u_within),
        "p_within": numbers(one.p_within),
        "u_all": numbers(one.u_all),
        "p_all": numbers(one.p_all),
    }


def _cell_arrays(stack: Stack, attribute: str, shown: BoolArray) -> dict[str, AnyArray]:
    """Return the cells of an attribute's shown concepts, one below the other."""
    rows, concepts = stack.rows, stack.concepts(attribute, shown)
    columns: dict[str, AnyArray] = {
        "mean_value": rows.means,
        "n_scored": rows.n_scored,
        "n_refused": rows.n_refused,
        "n_contested": rows.n_contested,
        "n_error": rows.n_error,
        "unanimous": rows.unanimous,
        "repeated": rows.repeated,
    }
    return {name: values[concepts].ravel() for name, values in columns.items()}


def _pair_arrays(stack: Stack, attribute: str, counted: BoolArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return (scoreable groups, disparity, gap) of every (concept, framing) of an attribute's counted concepts."""
    concepts = stack.concepts(attribute, counted)
    columns: tuple[AnyArray, ...] = (stack.rows.n_groups, stack.found.disparities, stack.found.gaps)
    groups, disparities, gaps = (values[concepts].ravel() for values in columns)
    return groups, disparities, gaps


def _with_nulls(values: FloatArray) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))


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


def score_columns(rows: Sequence[Score]) -> pa.Table:
    """Return the columns of `scores` that differ by model, sorted by metric, attribute and group.

    Args:
        rows: the rows of one model, in any order.
    """
    # Text sorts by code points as its UTF-8 sorts by bytes.
    ordered = sorted(rows, key=lambda row: (row.metric, row.attribute, row.group or ""))
    intervals = [row.interval for row in ordered]
    reals = {
        "estimate": [row.estimate for row in ordered],
        "ci_low": [interval.low for interval in intervals],
        "ci_high": [interval.high for interval in intervals],
        "ci_tail": [interval.tail for interval in intervals],
        "p": [row.p for row in ordered],
        "p_adjusted": [row.p_adjusted for row in ordered],
    }
    wholes = ("n_concepts", "n_cells", "n_rows")
    texts = ("metric", "attribute", "group", "evidence", "flag")
    return pa.table(
        {
            **{name: pa.array([getattr(row, name) for row in ordered], pa.string()) for name in texts},
            **{name: pa.array([getattr(row, name) for row in ordered], pa.int32()) for name in wholes},
            **{name: numbers(np.array(values, np.float64)) for name, values in reals.items()},
        }
    )


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
