"""Scores a run: receipts in, every published table out (SPEC 4, 5 and 6).

Shards are read one at a time; of a model only its counts, its cells and one vector of replicates are kept.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from generator.audit_scores import Coverage, Strata, audit_rows
from generator.model_rows import ModelRows, read_model
from generator.model_scores import BAND, POINTS, AttributeResult, Score, model_scores
from generator.schema.bank import CONTROLS, DEMOGRAPHIC
from generator.schema.layout import Block
from generator.schema.names import vendor_of
from generator.schema.tables import OVERALL, RUN_WIDE
from generator.score_tables import TableMaker, number
from generator.shards import Run
from generator.stats.agreement import agreement
from generator.stats.bootstrap import (
    RESAMPLES,
    BoolArray,
    CountArray,
    FloatArray,
    Resamples,
    concept_counts,
    one_attribute,
    percentile_interval,
    round12,
)
from generator.stats.cells import IntArray
from generator.stats.tally import replicates, reversal, tally
from generator.stats.tiers import Ranked, Standing, comparisons, tiers
from generator.vote_checks import REFUSED

_THREADS = 4

# Applies a task to every slug and returns the results in the same order.
Each = Callable[[Callable[[str], Any], Sequence[str]], list[Any]]


@dataclass(frozen=True)
class Scored:
    """A run's scores.

    tables: by name, exactly the schemas of `generator.schema.tables`. weights: counts (resamples, concepts) by
    attribute. mean_band: the control band over models, for the manifest. coverage: of the human audit, or None.
    """

    run_id: str
    tables: dict[str, pa.Table]
    weights: dict[str, CountArray]
    mean_band: dict[str, Any]
    coverage: Coverage | None
    withheld: frozenset[str]


@dataclass(frozen=True)
class AttributePlan:
    """What is fixed about an attribute before any model is read; masks run over the block's concepts."""

    block: Block
    counts: CountArray
    single: BoolArray
    withheld: BoolArray
    reversal_counts: CountArray | None

    @property
    def kept(self) -> BoolArray:
        """Concepts that enter disparities, leans and rates."""
        return self.single & ~self.withheld

    @cached_property
    def resamples(self) -> Resamples:
        """The draws of the kept concepts: a withheld one has weight 0, numerator and denominator."""
        return Resamples.of(self.counts).kept(~self.withheld[self.single])

    @cached_property
    def reversal(self) -> Resamples | None:
        """The draws of the two_sided concepts that are not withheld, None where there are none."""
        if self.reversal_counts is None or self.withheld[~self.single].all():
            return None
        return Resamples.of(self.reversal_counts).kept(~self.withheld[~self.single])


def attribute_plans(run: Run, withheld: frozenset[str], resamples: int) -> dict[str, AttributePlan]:
    """Return the plan of every attribute, with its portable draws."""
    plans = {}
    for block in run.layout.blocks:
        items = [run.bank.concept[name] for name in block.concepts]
        single = np.array([not c.two_sided for c in items], np.bool_)
        n_single = int(single.sum())
        n_double = len(items) - n_single
        sha = run.manifest.bank_sha256
        plans[block.attribute] = AttributePlan(
            block=block,
            counts=concept_counts(sha, block.attribute, n_single, resamples),
            single=single,
            withheld=np.array([c.category in withheld for c in items], np.bool_),
            reversal_counts=concept_counts(sha, block.attribute, n_double, resamples) if n_double else None,
        )
    return plans


def _result(plan: AttributePlan, model: ModelRows) -> AttributeResult:
    rows = model.rows[plan.block.attribute]
    found = tally(rows.of(plan.kept), plan.block.groups, lean=plan.block.kind == "demographic")
    turned = None
    if plan.reversal is not None:
        base = reversal(rows.of(~plan.single & ~plan.withheld))
        turned = (base.ratios[0], replicates(base, plan.reversal).values()[0])
    return AttributeResult(
        attribute=plan.block.attribute,
        kind=plan.block.kind,
        tally=found,
        resampled=replicates(found, plan.resamples),
        withheld=bool(plan.withheld.any()),
        reversal=turned,
    )


@dataclass(frozen=True)
class _ModelScores:
    """What is kept of a model once it is scored: everything but its rows.

    controls: disparity, replicates and concepts of each control, empty unless both have a value.
    """

    model: str
    scores: list[Score]
    overall: Score
    cells: pa.Table
    disparities: pa.Table
    ranked: Ranked | None
    controls: dict[str, tuple[float, FloatArray, int]]
    pairs: IntArray
    strata: Strata


def score_run(
    run: Run, *, withheld: frozenset[str] = frozenset(), resamples: int = RESAMPLES, each: Each | None = None
) -> Scored:
    """Score a run; `withheld` names categories that no score may use.

    Models are scored by a few threads, each with one shard at a time; the results stand in the order of the slugs.
    `each` maps the task over the slugs elsewhere: on other machines, say.
    """
    plans = attribute_plans(run, withheld, resamples)
    shown, counted = {n: ~p.withheld for n, p in plans.items()}, {n: p.kept for n, p in plans.items()}
    maker = TableMaker(run, shown, counted)
    models = (each or _in_threads)(functools.partial(_score_shard, run, plans, maker), run.models)
    lacking = any(plans[c].withheld.any() for c in CONTROLS if c in plans)
    mean_band, band_rows = _mean_band({m.model: m.controls for m in models if m.controls}, withheld=lacking)
    overall = {m.model: m.overall for m in models}
    audited, summary, coverage = _audit(run, {m.model: m.strata for m in models})
    tables = {
        "scores": maker.scores({RUN_WIDE: band_rows, **{m.model: m.scores for m in models}}),
        "cells": pa.concat_tables([m.cells for m in models]).combine_chunks(),
        "disparities": pa.concat_tables([m.disparities for m in models]).combine_chunks(),
        "agreement": maker.agreement(_agreements(run, plans, {m.model: m.pairs for m in models})),
        "tiers": maker.tiers(tiers([_standing(row, slug) for slug, row in overall.items()]), overall),
        "comparisons": maker.comparisons(comparisons({m.model: m.ranked for m in models if m.ranked})),
        "human_audit": maker.from_rows("human_audit", audited),
        "audit_summary": maker.from_rows("audit_summary", summary),
    }
    weights = {name: plan.counts for name, plan in plans.items()}
    return Scored(run.manifest.run_id, tables, weights, mean_band, coverage, withheld)


def _audit(run: Run, strata: dict[str, Strata]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Coverage | None]:
    return audit_rows(run, strata) if run.audit is not None else ([], [], None)


def _standing(row: Score, slug: str) -> Standing:
    return Standing(slug, row.estimate / POINTS, row.interval.mapped(1 / POINTS, 0.0))


def _in_threads(task: Callable[[str], Any], slugs: Sequence[str]) -> list[Any]:
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
        return list(pool.map(task, slugs))


def _score_shard(run: Run, plans: dict[str, AttributePlan], maker: TableMaker, slug: str) -> _ModelScores:
    return _score_model(read_model(run, slug), plans, maker)


def _score_model(model: ModelRows, plans: dict[str, AttributePlan], maker: TableMaker) -> _ModelScores:
    results = {name: _result(plan, model) for name, plan in plans.items()}
    rows, draws = model_scores(results)
    controls = {c: results[c] for c in CONTROLS if c in results and results[c].has_value}
    return _ModelScores(
        model=model.model,
        scores=rows,
        overall=next(r for r in rows if r.metric == "consistency" and r.attribute == OVERALL),
        cells=maker.cells(model.model, model.rows),
        disparities=maker.disparities(model.model, model.rows),
        ranked=None if draws is None else _ranked(model.model, results, draws),
        controls={c: (r.disparity.estimate, r.draws, r.disparity.n_concepts) for c, r in controls.items()}
        if len(controls) == len(CONTROLS)
        else {},
        pairs=model.pairs,
        strata=model.strata,
    )


def _ranked(model: str, results: dict[str, AttributeResult], draws: FloatArray) -> Ranked:
    seven = [results[a].disparity for a in DEMOGRAPHIC]
    return Ranked(model, sum(d.estimate for d in seven) / len(seven), draws, tuple(d.n_concepts for d in seven))


def _mean_band(
    models: dict[str, dict[str, tuple[float, FloatArray, int]]], *, withheld: bool
) -> tuple[dict[str, Any], list[Score]]:
    """Return the band averaged over models, resample by resample: for the manifest, and as run-wide score rows."""
    if not models:
        return {"n_models": 0, "band_low": None, "band_high": None, "swapped": None}, []
    edges = []
    for control in CONTROLS:
        found = [models[slug][control] for slug in sorted(models, key=str.encode)]
        mean = float(np.mean([estimate for estimate, _, _ in found]))
        draws = np.mean([d for _, d, _ in found], axis=0)
        interval = percentile_interval(draws, one_attribute(min(n for _, _, n in found)))
        edges.append((control, POINTS - POINTS * mean, interval.mapped(-POINTS, POINTS), min(n for _, _, n in found)))
    swapped = round12(edges[1][1] / POINTS) < round12(edges[0][1] / POINTS)
    if swapped:
        edges.reverse()
    flags = frozenset([*(["swapped"] if swapped else []), *(["withheld"] if withheld else [])])
    rows = [
        Score(metric, OVERALL, None, estimate, interval, n_concepts=n, flags=flags)
        for metric, (_, estimate, interval, n) in zip(BAND, edges, strict=True)
    ]
    band: dict[str, Any] = {"n_models": len(models), "swapped": swapped}
    for metric, (control, estimate, interval, _) in zip(BAND, edges, strict=True):
        band[metric] = {
            "control": control,
            "estimate": estimate,
            "ci_low": number(interval.low),
            "ci_high": number(interval.high),
            "ci_tail": number(interval.tail),
        }
    return band, rows


def _agreements(run: Run, plans: dict[str, AttributePlan], pairs: dict[str, IntArray]) -> list[Any]:
    """Return (rubric, vendor, agreement) of every rubric with concepts: `*` for all subjects, then by vendor."""
    resamples = np.concatenate([_placed(plan) for plan in plans.values()])
    single = np.concatenate([plan.single for plan in plans.values()])
    concepts = [run.bank.concept[name] for plan in plans.values() for name in plan.block.concepts]
    vendors: dict[str, list[IntArray]] = {RUN_WIDE: []}
    for slug, found in pairs.items():
        vendors[RUN_WIDE].append(found)
        vendors.setdefault(vendor_of(slug), []).append(found)
    rows = []
    for rubric in run.bank.rubrics:
        places = np.flatnonzero(single & np.array([c.rubric == rubric.id for c in concepts]))
        if not len(places):
            continue
        k = len(rubric.names)
        for vendor, parts in vendors.items():
            tables = _contingency(np.concatenate(parts), len(concepts), k)[places]
            rows.append((rubric, vendor, agreement(tables, Resamples(resamples[places]))))
    return rows


def _placed(plan: AttributePlan) -> FloatArray:
    """Return the counts over all concepts of the block, two_sided ones 0: (concepts, resamples)."""
    full = np.zeros((len(plan.single), len(plan.counts)))
    full[plan.single] = plan.counts.T
    return full


def _contingency(pairs: IntArray, n_concepts: int, k: int) -> FloatArray:
    """Count pairs of codes by concept, REFUSAL last: (concepts, k+1, k+1). Codes above k are of longer scales: cut."""
    codes = np.where(pairs[:, 1:] == REFUSED, k, pairs[:, 1:])
    fits = (codes <= k).all(axis=1)
    flat = (pairs[fits, 0] * (k + 1) + codes[fits, 0]) * (k + 1) + codes[fits, 1]
    return np.bincount(flat, minlength=n_concepts * (k + 1) ** 2).reshape(n_concepts, k + 1, k + 1).astype(np.float64)
