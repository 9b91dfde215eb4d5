"""Scores a run: receipts in, every published table out (SPEC 4, 5 and 6).

Shards are read one at a time; of a model only its counts, its cells and one vector of replicates are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
        turned = (base.ratios[0], replicates(base, plan.reversal).values[0])
    return AttributeResult(
        attribute=plan.block.attribute,
        kind=plan.block.kind,
        tally=found,
        resampled=replicates(found, plan.resamples),
        withheld=bool(plan.withheld.any()),
        reversal=turned,
    )


@dataclass
class _Collected:
    """What is kept of the models read so far."""

    scores: dict[str, list[Score]] = field(default_factory=dict)
    cells: list[pa.Table] = field(default_factory=list)
    disparities: list[pa.Table] = field(default_factory=list)
    ranked: dict[str, Ranked] = field(default_factory=dict)
    standings: list[Standing] = field(default_factory=list)
    controls: dict[str, dict[str, tuple[float, FloatArray, int]]] = field(default_factory=dict)
    pairs: dict[str, IntArray] = field(default_factory=dict)
    strata: dict[str, Strata] = field(default_factory=dict)


def score_run(run: Run, *, withheld: frozenset[str] = frozenset(), resamples: int = RESAMPLES) -> Scored:
    """Score a run; `withheld` names categories that no score may use."""
    plans = attribute_plans(run, withheld, resamples)
    maker = TableMaker(run)
    kept = _Collected()
    for slug in run.models:
        _score_model(read_model(run, slug), plans, maker, kept)
    mean_band, band_rows = _mean_band(
        kept.controls, withheld=any(plans[c].withheld.any() for c in CONTROLS if c in plans)
    )
    kept.scores[RUN_WIDE] = band_rows
    tables = {
        "scores": maker.scores(kept.scores),
        "cells": pa.concat_tables(kept.cells).combine_chunks(),
        "disparities": pa.concat_tables(kept.disparities).combine_chunks(),
        "agreement": maker.agreement(_agreements(run, plans, kept.pairs)),
        "tiers": maker.tiers(tiers(kept.standings)),
        "comparisons": maker.comparisons(comparisons(kept.ranked)),
    }
    coverage = None
    audited: list[dict[str, Any]] = []
    summary: list[dict[str, Any]] = []
    if run.audit is not None:
        audited, summary, coverage = audit_rows(run, kept.strata)
    tables["human_audit"] = maker.from_rows("human_audit", audited)
    tables["audit_summary"] = maker.from_rows("audit_summary", summary)
    weights = {name: plan.counts for name, plan in plans.items()}
    return Scored(run.manifest.run_id, tables, weights, mean_band, coverage, withheld)


def _score_model(model: ModelRows, plans: dict[str, AttributePlan], maker: TableMaker, kept: _Collected) -> None:
    slug = model.model
    results = {name: _result(plan, model) for name, plan in plans.items()}
    rows, draws = model_scores(results)
    kept.scores[slug] = rows
    overall = next(r for r in rows if r.metric == "consistency" and r.attribute == OVERALL)
    kept.standings.append(Standing(slug, overall.estimate / POINTS, overall.interval.mapped(1 / POINTS, 0.0)))
    if draws is not None:
        ns = tuple(results[a].disparity.n_concepts for a in DEMOGRAPHIC)
        mean = float(np.mean([results[a].disparity.estimate for a in DEMOGRAPHIC]))
        kept.ranked[slug] = Ranked(slug, mean, draws, ns)
    controls = {c: results[c] for c in CONTROLS if c in results and results[c].has_value}
    if len(controls) == len(CONTROLS):
        kept.controls[slug] = {c: (r.disparity.estimate, r.draws, r.disparity.n_concepts) for c, r in controls.items()}
    for name, plan in plans.items():
        kept.cells.append(maker.cells(slug, plan.block, model.rows[name], ~plan.withheld))
        kept.disparities.append(maker.disparities(slug, plan.block, model.rows[name], plan.kept))
    kept.pairs[slug] = model.pairs
    kept.strata[slug] = model.strata


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
