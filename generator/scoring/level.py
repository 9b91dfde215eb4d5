"""A model's favorability level by category, its label shares and refusal rates: rows of attribute `overall`.

The other models enter in `level_gaps` alone.

See methodology: level, "Favorability".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from generator.schema.tables import OVERALL
from generator.scoring.attribute import POINTS, SPARSE_CONCEPTS, Score, too_few
from generator.stats.bootstrap import (
    BoolArray,
    FloatArray,
    IntArray,
    Interval,
    Resamples,
    Sample,
    one_attribute,
    percentile_interval,
    percentile_intervals,
    ratio,
    rounded,
    several_attributes,
)
from generator.stats.cells import REFUSED, Rows
from generator.stats.level import apart, concept_level, favorable, others_median
from generator.stats.range_test import Ranges, error_ranges

_SIDES = (("", 0), ("_positive", 1), ("_negative", -1))


@dataclass(frozen=True)
class Category:
    """What is fixed about a category of concepts before any model is read.

    Attributes:
        name: id of the category.
        measure: what the mean of its values is: favorability, or compliance, which is not turned by polarity.
        labels: (name, code) of the labels of its rubric, codes as the rows count labels.
        polarities: those that a concept of the bank has in this category.
        withheld: whether the category is left out; it has no concepts then.
        resamples: draws of its demographic concepts, those of each attribute from the attribute's own draws.
    """

    name: str
    measure: Literal["favorability", "compliance"]
    labels: tuple[tuple[str, int], ...]
    polarities: frozenset[int]
    withheld: bool
    resamples: Resamples


@dataclass(frozen=True)
class LevelRows:
    """A model's rows of one category, concept by concept.

    All arrays are (concepts,), `labels` is (concepts, labels). `turned` and `plain` are x_c on the 0-1 scale, NaN =
    none: with values turned by polarity and as they are. `cells` and `valid_cells` count framings with a scored row,
    and with a scored or refused one; the other arrays count rows.
    """

    turned: FloatArray
    plain: FloatArray
    polarity: IntArray
    cells: IntArray
    scored: IntArray
    labels: IntArray
    refused: IntArray
    valid_cells: IntArray
    absent: IntArray

    @classmethod
    def of(cls, parts: Sequence[Rows], labels: Sequence[tuple[str, int]]) -> LevelRows:
        """Put the category's concepts of several attributes one after the other.

        Args:
            parts: the rows of each attribute, its concepts of the category only.
            labels: (name, code) of the labels to count.
        """
        each = [_columns(rows, [code for _, code in labels]) for rows in parts]
        return cls(**{name: np.concatenate([columns[name] for columns in each]) for name in each[0]})


def _columns(rows: Rows, codes: Sequence[int]) -> dict[str, FloatArray | IntArray]:
    valid = rows.scored | (rows.status == REFUSED)
    hits = [(rows.scored & (rows.label == code)).sum(axis=(1, 2, 3)) for code in codes]
    return {
        "turned": concept_level(favorable(rows.means, rows.polarity)),
        "plain": concept_level(rows.means),
        "polarity": rows.polarity.astype(np.int64),
        "cells": np.asarray((rows.n_groups > 0).sum(axis=1)),
        "scored": np.asarray(rows.n_scored.sum(axis=(1, 2))),
        "labels": np.stack(hits, axis=1) if hits else np.empty((len(rows.values), 0), np.int64),
        "refused": np.asarray(rows.n_refused.sum(axis=(1, 2))),
        "valid_cells": np.asarray(valid.any(axis=(2, 3)).sum(axis=1)),
        "absent": rows.absent,
    }


@dataclass(frozen=True)
class Level:
    """What a model's gap to the others starts from, on one category.

    `estimate` is its favorability, `by_concept` the x_c behind it, NaN = none: float array (concepts,). Both on the 0-1
    scale.
    """

    estimate: float
    by_concept: FloatArray
    flags: frozenset[str]


@dataclass(frozen=True)
class _Line:
    """One ratio of a category before it becomes a row: numerators and denominators (concepts,), counts and flags."""

    metric: str
    group: str
    over: FloatArray
    under: FloatArray
    cells: int
    rows: int
    flags: frozenset[str]

    @cached_property
    def sample(self) -> Sample:
        """Its concepts with a denominator, and one degree of freedom less."""
        return one_attribute(int((self.under > 0).sum()))

    @property
    def estimate(self) -> float:
        """The number on the 0-1 scale, NaN without a denominator."""
        total = float(self.under.sum())
        return float(self.over.sum()) / total if total > 0 else float("nan")


def level_shape(values: FloatArray) -> frozenset[str]:
    """Return the flags that warn of an interval over x_c (methodology: statistics, "Flags").

    Args:
        values: x_c of the concepts, float array (concepts,), NaN = none.

    Returns:
        `degenerate` where all of two or more x_c are equal, otherwise `sparse` for one to eight of them.
    """
    known = rounded(values[~np.isnan(values)])
    if len(known) >= 2 and (known == known[0]).all():
        return frozenset({"degenerate"})
    return frozenset({"sparse"} if 1 <= len(known) <= SPARSE_CONCEPTS else ())


def _mean_line(metric: str, category: Category, rows: LevelRows, values: FloatArray, use: BoolArray) -> _Line:
    """Return a mean of x_c over some concepts of a category."""
    kept = np.where(use, values, np.nan)
    present = ~np.isnan(kept)
    gaps = _gaps(category, missing=bool((rows.absent[use] > 0).any() or present.sum() < use.sum()))
    cells, n_rows = int(rows.cells[use].sum()), int(rows.scored[use].sum())
    return _Line(
        metric, category.name, np.where(present, kept, 0.0), present.astype(np.float64), cells, n_rows,
        gaps | level_shape(kept),
    )  # fmt: skip


def _gaps(category: Category, *, missing: bool) -> frozenset[str]:
    return frozenset([*(["incomplete"] if missing else []), *(["withheld"] if category.withheld else [])])


def _share_lines(category: Category, rows: LevelRows) -> list[_Line]:
    """Return a category's refusal rate, and the share of each of its labels, over all its concepts and by polarity."""
    missing = _gaps(category, missing=bool((rows.absent > 0).any()))
    valid = (rows.refused + rows.scored).astype(np.float64)
    refused = _Line(
        "refusal_rate", category.name, rows.refused.astype(np.float64), valid,
        int(rows.valid_cells.sum()), int(valid.sum()), missing,
    )  # fmt: skip
    found = [dataclasses.replace(refused, flags=missing | too_few(refused.sample))]
    for suffix, side in _SIDES:
        if side and side not in category.polarities:
            continue
        use = (rows.polarity == side) | (side == 0)
        gaps = _gaps(category, missing=bool((rows.absent[use] > 0).any()))
        under = np.where(use, rows.scored, 0).astype(np.float64)
        cells = int(rows.cells[use].sum())
        for place, (label, _) in enumerate(category.labels):
            over = np.where(use, rows.labels[:, place], 0).astype(np.float64)
            line = _Line(f"label_share{suffix}", f"{category.name}.{label}", over, under, cells, int(under.sum()), gaps)
            found.append(dataclasses.replace(line, flags=gaps | too_few(line.sample)))
    return found


def _lines(category: Category, rows: LevelRows) -> list[_Line]:
    everything = np.ones(len(rows.absent), np.bool_)
    found = []
    if category.measure == "favorability":
        for suffix, side in _SIDES:
            if side == 0 or side in category.polarities:
                use = everything if side == 0 else rows.polarity == side
                found.append(_mean_line(f"favorability{suffix}", category, rows, rows.turned, use))
    else:
        found.append(_mean_line("compliance", category, rows, rows.plain, everything))
    return found + _share_lines(category, rows)


def level_scores(
    categories: Sequence[Category], rows: Mapping[str, LevelRows], wanted: int
) -> tuple[list[Score], dict[str, Level]]:
    """Return a model's rows of all categories.

    Args:
        categories: the categories of the run.
        rows: by category, the model's rows.
        wanted: how many categories with a favorability the bank should have; overall it takes all of them.

    Returns:
        The rows with the overall row last, and by category (and `overall`) what the gaps to other models start from.
    """
    scores: list[Score] = []
    levels, whole, draws = {}, [], []
    for category in categories:
        lines = _lines(category, rows[category.name])
        over, under = np.array([line.over for line in lines]), np.array([line.under for line in lines])
        replicates = ratio(category.resamples.sums(over), category.resamples.sums(under))
        intervals = percentile_intervals(replicates, [line.sample for line in lines])
        scores += [_row(*pair) for pair in zip(lines, intervals, strict=True)]
        if category.measure == "favorability":
            levels[category.name] = Level(lines[0].estimate, rows[category.name].turned, lines[0].flags)
            whole.append((category, lines[0]))
            draws.append(replicates[0])
    overall = _overall(whole, draws, wanted)
    levels[OVERALL] = Level(overall.estimate / POINTS, np.empty(0), overall.flags)
    return [*scores, overall], levels


def _row(line: _Line, interval: Interval) -> Score:
    return Score(
        metric=line.metric,
        attribute=OVERALL,
        group=line.group,
        estimate=POINTS * line.estimate,
        interval=interval.mapped(POINTS, 0.0),
        n_concepts=line.sample.n,
        n_cells=line.cells,
        n_rows=line.rows,
        flags=line.flags,
    )


def _overall(whole: Sequence[tuple[Category, _Line]], draws: Sequence[FloatArray], wanted: int) -> Score:
    """Return overall favorability, the mean over the categories not withheld; null where one has no value."""
    left = [(line, row) for (category, line), row in zip(whole, draws, strict=True) if not category.withheld]
    lacking = len(whole) < wanted or not left or any(line.sample.n == 0 for line, _ in left)
    flags = frozenset().union(*(line.flags & {"incomplete", "withheld"} for _, line in whole))
    row = Score(
        "favorability",
        OVERALL,
        n_concepts=sum(line.sample.n for _, line in whole),
        n_cells=sum(line.cells for _, line in whole),
        n_rows=sum(line.rows for _, line in whole),
        flags=flags | ({"incomplete"} if lacking else frozenset()),
    )
    if lacking:
        return row
    sample = several_attributes([line.sample.n for line, _ in left])
    shape = {"sparse"} if sample.n <= SPARSE_CONCEPTS else set[str]()
    if all("degenerate" in line.flags for line, _ in left):
        shape = {"degenerate"}
    estimate = float(np.mean([line.estimate for line, _ in left]))
    interval = percentile_interval(np.mean([row for _, row in left], axis=0), sample).mapped(POINTS, 0.0)
    return dataclasses.replace(row, estimate=POINTS * estimate, interval=interval, flags=row.flags | shape)


@dataclass(frozen=True)
class _Family:
    """The models that can be compared with each other: their places among all, estimates (members,) and replicates."""

    members: IntArray
    estimates: FloatArray
    draws: FloatArray
    sample: Sample

    def gaps(self) -> list[Score]:
        """Return each member's gap to the median of the others, and whether it stands apart."""
        found = percentile_intervals(self.draws - others_median(self.draws), [self.sample] * len(self.members))
        middle = others_median(self.estimates[:, None])[:, 0]
        marks = apart(self.estimates, Ranges(error_ranges(self.estimates, self.draws), self.sample))
        return [
            Score(
                "favorability_gap",
                OVERALL,
                estimate=POINTS * gap,
                interval=interval.mapped(POINTS, 0.0),
                evidence=mark[0] if mark else None,
                p=mark[1] if mark else float("nan"),
            )
            for gap, interval, mark in zip((self.estimates - middle).tolist(), found, marks, strict=True)
        ]


def level_gaps(categories: Sequence[Category], models: Sequence[Mapping[str, Level]]) -> list[list[Score]]:
    """Return the rows of each model's gap to the median of the other models, by category and overall.

    A model belongs to the family of a category if it has a value on every concept on which any model has one, and to
    the overall family if it belongs to that of every category. Others get null rows.

    Args:
        categories: the categories of the run.
        models: by category, what `level_scores` returned for each model.

    Returns:
        A list of rows for each model, in the order of `models`.
    """
    found: list[list[Score]] = [[] for _ in models]
    families: list[_Family | None] = []
    total: FloatArray | None = None
    for category in (c for c in categories if c.measure == "favorability"):
        family = _family(category, [m[category.name] for m in models])
        _put(found, family, [m[category.name] for m in models], category.name)
        if not category.withheld:
            families.append(family)
            total = _added(total, family, len(models))
    _put(found, _overall_family(families, total, [m[OVERALL] for m in models]), [m[OVERALL] for m in models], None)
    return found


def _put(found: list[list[Score]], family: _Family | None, levels: Sequence[Level], group: str | None) -> None:
    """Add a family's rows to the lists of its members, and null rows to the lists of all others."""
    rows = dict(zip(family.members.tolist(), family.gaps(), strict=True)) if family is not None else {}
    for place, (own, level) in enumerate(zip(found, levels, strict=True)):
        flags = level.flags - {"degenerate"} | (frozenset() if place in rows else {"incomplete"})
        row = rows.get(place) or Score("favorability_gap", OVERALL)
        n = family.sample.n if family is not None and place in rows else 0
        own.append(dataclasses.replace(row, group=group, n_concepts=n, flags=frozenset(flags)))


def _family(category: Category, levels: Sequence[Level]) -> _Family | None:
    values = np.array([level.by_concept for level in levels])
    asked = ~np.isnan(values).all(axis=0) if values.size else np.zeros(values.shape[1:], np.bool_)
    members = np.flatnonzero(~np.isnan(values[:, asked]).any(axis=1))
    n = int(asked.sum())
    if len(members) < 2 or n < 2:
        return None
    own = values[members]
    use = np.where(asked, 1.0, 0.0)[None]
    # Concepts on which no model has a value weigh nothing, for all members alike.
    draws = ratio(category.resamples.sums(np.where(asked, own, 0.0)), category.resamples.sums(use))
    return _Family(members, np.array([levels[i].estimate for i in members.tolist()]), draws, one_attribute(n))


def _added(total: FloatArray | None, family: _Family | None, models: int) -> FloatArray | None:
    """Add a family's replicates to those of earlier categories: (models, resamples), NaN outside a family."""
    if family is None:
        return total
    full = np.full((models, family.draws.shape[1]), np.nan) if total is None else total
    if total is None:
        full[family.members] = family.draws
        return full
    outside = np.setdiff1d(np.arange(models), family.members)
    full[family.members] += family.draws
    # Whoever is outside one category's family has no overall level to compare.
    full[outside] = np.nan
    return full


def _overall_family(
    families: Sequence[_Family | None], total: FloatArray | None, levels: Sequence[Level]
) -> _Family | None:
    whole = [family for family in families if family is not None]
    if total is None or len(whole) < len(families):
        return None
    members = np.array([i for i, level in enumerate(levels) if not np.isnan(level.estimate)], np.int64)
    for family in whole:
        members = np.intersect1d(members, family.members)
    if len(members) < 2:
        return None
    estimates = np.array([levels[i].estimate for i in members.tolist()])
    sample = several_attributes([family.sample.n for family in whole])
    return _Family(members, estimates, total[members] / len(whole), sample)
