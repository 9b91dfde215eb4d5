"""Scores a run: receipts in, every published table out.

Shards are read one at a time, and only what the run's tables need is kept of a model. So memory does not grow with the
number of receipts.

See contract: tables, "Published tables".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from generator.machine.workers import local_workers, processors
from generator.runs.reader import Each, Run, in_threads
from generator.schema.bank import Roles
from generator.schema.names import vendor_of
from generator.schema.tables import OVERALL, RUN_WIDE
from generator.scoring.attribute import POINTS, Score, too_few
from generator.scoring.audit import Coverage, Strata, audit_rows
from generator.scoring.comparisons import compare
from generator.scoring.controls import BAND
from generator.scoring.judges import judge_rows
from generator.scoring.level import Category, level_gaps
from generator.scoring.lookup import ScoreBook
from generator.scoring.shard import AttributePlan, ModelScores, Prepared, ShardTask
from generator.scoring.tables import number, score_columns, with_gaps
from generator.stats.agreement import agreement
from generator.stats.bootstrap import (
    RESAMPLES,
    CountArray,
    FloatArray,
    IntArray,
    Resamples,
    one_attribute,
    percentile_interval,
)
from generator.stats.controls import controls_swapped
from generator.stats.tiers import OverallConsistency, tiers, too_many_errors

MANY_MODELS = 100  # from here on processes gain more than they cost to start


@dataclass(frozen=True)
class Scored:
    """The scores of one run.

    Attributes:
        run_id: the run's id.
        tables: the published tables by name, with exactly the schemas of `generator.schema.tables`.
        weights: how often each resample draws each concept, by attribute: uint8 arrays (resamples, concepts).
        mean_band: the control band averaged over models, as the published manifest has it, in points.
        coverage: the models that the human audit covers; None without an audit.
        withheld: the categories that no score uses.
    """

    run_id: str
    tables: dict[str, pa.Table]
    weights: dict[str, CountArray]
    mean_band: dict[str, Any]
    coverage: Coverage | None
    withheld: frozenset[str]

    @cached_property
    def book(self) -> ScoreBook:
        """Index the table `scores`, once for all pages."""
        return ScoreBook(self.tables["scores"])


def score_run(
    run: Run, *, withheld: frozenset[str] = frozenset(), resamples: int = RESAMPLES, each: Each | None = None
) -> Scored:
    """Score a run.

    Args:
        run: the run as read and checked.
        withheld: categories that no score may use.
        resamples: resamples of the bootstrap.
        each: maps the task over the slugs elsewhere, in other processes or on other machines, results in the same
            order. Without it a few threads of this process score one shard each.

    Raises:
        InputError: the labels of the human audit are not its draw.
    """
    own = Prepared.of(run, withheld, resamples)
    models = each(ShardTask.of(run, withheld, resamples), run.models) if each else in_threads(own.score, run.models)
    plans, maker = own.plans, own.maker
    roles = run.bank.roles
    lacking = frozenset(c for c in roles.controls if c in plans and plans[c].withheld.any())
    mean_band, band_rows = _mean_band({m.model: m.controls for m in models if m.controls}, roles, withheld=lacking)
    overall = {m.model: m.overall for m in models}
    audited, summary, coverage = _audit(run, {m.model: m.strata for m in models})
    tables = {
        "scores": maker.scores({RUN_WIDE: score_columns(band_rows), **_with_levels(own.categories, models)}),
        "cells": maker.cells({m.model: m.cells for m in models}),
        "disparities": maker.disparities({m.model: m.disparities for m in models}),
        "agreement": maker.agreement(_agreements(run, plans, {m.model: m.votes for m in models})),
        "judges": maker.from_rows("judges", judge_rows(_judges(run), [m.judges for m in models])),
        "tiers": maker.tiers(
            tiers([_standing(row, slug) for slug, row in overall.items()], unranked=_in_error(run, models)), overall
        ),
        "comparisons": maker.comparisons(
            compare(
                [m.compared for m in models], {name: plan.resamples for name, plan in plans.items()}, roles.demographic
            )
        ),
        "refusal_tests": maker.refusal_tests({m.model: m.refusals for m in models}),
        "human_audit": maker.from_rows("human_audit", audited),
        "audit_summary": maker.from_rows("audit_summary", summary),
    }
    weights = {name: plan.counts for name, plan in plans.items()}
    return Scored(run.manifest.run_id, tables, weights, mean_band, coverage, withheld)


def score_here(run: Run, *, withheld: frozenset[str] = frozenset(), resamples: int = RESAMPLES) -> Scored:
    """Score a run on this machine: a few models in threads, many in processes, which do not wait for one lock.

    Arguments and exceptions are those of `score_run`.
    """
    if len(run.models) < MANY_MODELS:
        return score_run(run, withheld=withheld, resamples=resamples)
    with local_workers(processors(), preload=ShardTask.__module__) as workers:
        return score_run(run, withheld=withheld, resamples=resamples, each=workers.each)


def _with_levels(categories: Sequence[Category], models: Sequence[ModelScores]) -> dict[str, pa.Table]:
    """Return each model's own columns of `scores`, with its gaps to the level of the other models."""
    ordered = sorted(models, key=lambda m: m.model.encode())
    gaps = level_gaps(categories, [m.levels for m in ordered])
    return {m.model: with_gaps(m.scores, own) for m, own in zip(ordered, gaps, strict=True)}


def _audit(run: Run, strata: dict[str, Strata]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Coverage | None]:
    return audit_rows(run, strata) if run.audit is not None else ([], [], None)


def _judges(run: Run) -> tuple[str, ...]:
    return run.manifest.judges.all


def _in_error(run: Run, models: Iterable[ModelScores]) -> frozenset[str]:
    """Return the models of a live run with too many planned rows in error to be ranked."""
    if run.manifest.kind != "live":
        return frozenset()
    # `cells` lacks withheld categories, and so do the errors counted in it.
    planned = {m.model: m.cells.num_rows * run.manifest.repeats for m in models}
    errors = {m.model: pc.sum(m.cells["n_error"]).as_py() or 0 for m in models}
    return frozenset(model for model, n in errors.items() if too_many_errors(n, planned[model]))


def _standing(row: Score, slug: str) -> OverallConsistency:
    return OverallConsistency(slug, row.estimate / POINTS, row.interval.mapped(1 / POINTS, 0.0))


def _mean_band(
    models: dict[str, dict[str, tuple[float, FloatArray, int]]], roles: Roles, *, withheld: frozenset[str]
) -> tuple[dict[str, Any], list[Score]]:
    """Return the control band averaged over models, for the manifest and as run-wide rows of `scores`.

    It is averaged resample by resample (methodology: control-band, "The run's mean band").

    Args:
        models: by slug and control, the disparity, its replicates (resamples,) and its concepts, 0-1 scale.
        roles: what the attributes are for.
        withheld: the controls that lack a category.
    """
    if not models:
        return {"n_models": 0, "band_low": None, "band_high": None, "swapped": None}, []
    edges, means = [], []
    for control in roles.controls:
        found = [models[slug][control] for slug in sorted(models, key=str.encode)]
        mean = float(np.mean([estimate for estimate, _, _ in found]))
        means.append(mean)
        # A resample in which one of the models has no value has none either: NaN spreads.
        draws = np.mean([d for _, d, _ in found], axis=0)
        sample = one_attribute(min(n for _, _, n in found))
        interval = percentile_interval(draws, sample).mapped(-POINTS, POINTS)
        flags = too_few(sample) | ({"withheld"} if control in withheld else set())
        edges.append((control, Score("", OVERALL, None, POINTS - POINTS * mean, interval, sample.n, flags=flags)))
    # By the averages: single models may have it the other way round.
    swapped = controls_swapped(*means)
    if swapped:
        edges = [(control, replace(row, flags=row.flags | {"swapped"})) for control, row in reversed(edges)]
    rows = [replace(row, metric=metric) for metric, (_, row) in zip(BAND, edges, strict=True)]
    band: dict[str, Any] = {"n_models": len(models), "swapped": swapped}
    for metric, (control, row) in zip(BAND, edges, strict=True):
        band[metric] = {
            "control": control,
            "estimate": row.estimate,
            "ci_low": number(row.interval.low),
            "ci_high": number(row.interval.high),
            "ci_tail": number(row.interval.tail),
        }
    return band, rows


def _agreements(run: Run, plans: dict[str, AttributePlan], votes: dict[str, IntArray]) -> list[Any]:
    """Return (rubric, vendor, agreement) of each rubric with concepts: vendor `*` for all, then each vendor."""
    resamples = np.concatenate([_placed(plan) for plan in plans.values()])
    single = np.concatenate([plan.single for plan in plans.values()])
    concepts = [run.bank.concept[name] for plan in plans.values() for name in plan.block.concepts]
    vendors: dict[str, IntArray] = {}
    for slug, found in votes.items():
        for vendor in (RUN_WIDE, vendor_of(slug)):
            # Counts of pairs add up, so a vendor's table is the sum of those of its models.
            vendors[vendor] = vendors.get(vendor, 0) + found
    rows = []
    for rubric in run.bank.rubrics:
        places = np.flatnonzero(single & np.array([c.rubric == rubric.id for c in concepts]))
        if not len(places):
            continue
        codes = [*range(len(rubric.names)), -1]  # the rubric's own scale, REFUSAL last
        for vendor, counted in vendors.items():
            tables = counted[np.ix_(places, codes, codes)].astype(np.float64)
            rows.append((rubric, vendor, agreement(tables, Resamples(resamples[places]))))
    return rows


def _placed(plan: AttributePlan) -> FloatArray:
    """Return an attribute's draws over all concepts of its block, 0 for two-sided ones: (concepts, resamples)."""
    full = np.zeros((len(plan.single), len(plan.counts)))
    full[plan.single] = plan.counts.T
    return full
