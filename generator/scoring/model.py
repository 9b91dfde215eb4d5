"""Every published number of one model, made from its attributes. No other model enters.

See contract: tables, "Scores"; methodology: statistics, "A statistic in a resample".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from generator.schema.bank import Roles
from generator.schema.tables import OVERALL
from generator.scoring.attribute import (
    POINTS,
    AttributeResult,
    Score,
    as_consistency,
    attribute_scores,
    shape_flags,
    too_few,
)
from generator.scoring.controls import control_scores
from generator.stats.bootstrap import (
    FloatArray,
    Interval,
    percentile_interval,
    percentile_intervals,
    ratio,
    several_attributes,
)
from generator.stats.rates import RATES
from generator.stats.tally import Ratio


def overall_scores(results: dict[str, AttributeResult], roles: Roles) -> tuple[list[Score], FloatArray | None]:
    """Return the overall rows of a model.

    Disparity, consistency and worst gap are plain means over the demographic attributes; rates pool the rows of all of
    them. Each needs a value on every one of these attributes, and stands with a null estimate otherwise.

    Args:
        results: the model's attributes by id.
        roles: what the attributes are for.

    Returns:
        The rows, and the replicates of overall disparity, float array (resamples,) on the 0-1 scale; None where an
        attribute has no value.
    """
    measured = [results[a] for a in roles.demographic if a in results]
    rows: list[Score] = []
    draws = None
    for metric in ("disparity", "worst_gap"):
        row, found = _overall_mean(metric, measured, len(roles.demographic))
        rows.append(row)
        if metric == "disparity":
            rows.append(as_consistency(row))
            draws = found
    return rows + _pooled(measured, len(roles.demographic)), draws


def _overall_base(
    metric: str, bases: Sequence[Ratio], gaps: Sequence[frozenset[str]], wanted: int
) -> tuple[Score, bool]:
    """Return an overall row without its numbers, and whether one of the `wanted` attributes lacks a value."""
    # A mean over fewer attributes would be another number under the same name.
    lacking = len(bases) < wanted or not all(b.n_concepts for b in bases)
    row = Score(
        metric,
        OVERALL,
        n_concepts=sum(b.n_concepts for b in bases),
        n_cells=sum(b.n_cells for b in bases),
        n_rows=sum(b.n_rows for b in bases),
        flags=frozenset().union(*gaps, {"incomplete"} if lacking else set()),
    )
    return row, lacking


def _filled(row: Score, estimate: float, interval: Interval, flags: frozenset[str]) -> Score:
    return dataclasses.replace(
        row, estimate=POINTS * estimate, interval=interval.mapped(POINTS, 0.0), flags=row.flags | flags
    )


def _overall_mean(metric: str, measured: Sequence[AttributeResult], wanted: int) -> tuple[Score, FloatArray | None]:
    bases = [r.tally.find(metric) for r in measured]
    row, lacking = _overall_base(metric, bases, [r.gaps for r in measured], wanted)
    if lacking:
        return row, None
    sample = several_attributes([b.n_concepts for b in bases])
    # NaN spreads: a resample in which one attribute has no value has none overall.
    draws = sum_of([r.draws if metric == "disparity" else r.measured.gaps for r in measured]) / len(measured)
    shape = shape_flags(sum(r.tally.positive for r in measured), sample)
    estimate = float(np.mean([b.estimate for b in bases]))
    return _filled(row, estimate, percentile_interval(draws, sample), shape), draws


def sum_of(vectors: Sequence[FloatArray]) -> FloatArray:
    """Return the sum of vectors of one shape, added in their order, so that the last bit is always the same.

    Args:
        vectors: at least one float array.
    """
    total = vectors[0].copy()
    for vector in vectors[1:]:
        total += vector
    return total


def _pooled(measured: Sequence[AttributeResult], wanted: int) -> list[Score]:
    """Return the overall rates: the rows of all attributes pooled."""
    bases = {metric: [r.tally.find(metric) for r in measured] for metric in RATES}
    gaps = [r.row_gaps for r in measured]
    rows = {metric: _overall_base(metric, found, gaps, wanted) for metric, found in bases.items()}
    whole = [metric for metric, (_, lacking) in rows.items() if not lacking]
    samples = [several_attributes([b.n_concepts for b in bases[metric]]) for metric in whole]
    draws = [_pooled_draws(metric, measured) for metric in whole]
    intervals = percentile_intervals(np.array(draws), samples) if whole else []
    for metric, sample, interval in zip(whole, samples, intervals, strict=True):
        estimate = sum(b.hits for b in bases[metric]) / sum(b.total for b in bases[metric])
        row, lacking = rows[metric]
        rows[metric] = _filled(row, estimate, interval, too_few(sample)), lacking
    return [row for row, _ in rows.values()]


def _pooled_draws(metric: str, measured: Sequence[AttributeResult]) -> FloatArray:
    places = [r.tally.index(metric) for r in measured]
    # The sum over attributes of sum_c w a, over the like sum of w d: a resample of all rows pooled, in which an
    # attribute without a denominator adds nothing.
    numerator = sum_of([r.resampled.numerator(i) for r, i in zip(measured, places, strict=True)])
    denominator = sum_of([r.resampled.denominator(i) for r, i in zip(measured, places, strict=True)])
    return ratio(numerator, denominator)


def model_scores(results: dict[str, AttributeResult], roles: Roles) -> tuple[list[Score], FloatArray | None]:
    """Return all rows of a model: by attribute, overall, and against its controls.

    Args:
        results: the model's attributes by id, controls among them.
        roles: what the attributes are for.

    Returns:
        The rows, and the replicates of overall disparity as in `overall_scores`.
    """
    rows = [row for result in results.values() for row in attribute_scores(result)]
    overall, draws = overall_scores(results, roles)
    return rows + overall + control_scores(results, roles), draws
