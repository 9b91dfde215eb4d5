"""The numbers that read a model against its controls: band, calibrated consistency, excess with evidence, MDE.

See methodology: control-band, "Control band"; methodology: evidence, "Evidence".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from generator.schema.bank import Roles
from generator.schema.tables import OVERALL
from generator.scoring.attribute import POINTS, AttributeResult, Score, as_consistency, of_ratio, too_few
from generator.stats.bootstrap import NO_INTERVAL, Interval, Sample, tail_intervals
from generator.stats.controls import controls_swapped
from generator.stats.evidence import benjamini_hochberg, evidence_tier, excess_p, minimum_detectable, standard_error

BAND = ("band_low", "band_high")


@dataclass(frozen=True)
class _Difference:
    """Disparity on an attribute less that on a control: interval and one-sided p of the paired replicates."""

    interval: Interval
    p: float


def _differences(results: Sequence[AttributeResult], control: AttributeResult) -> dict[str, _Difference]:
    """Return the differences of the attributes that have a value, by attribute."""
    present = [r for r in results if r.has_value]
    if not present:
        return {}
    # Resample b of the attribute is paired with resample b of the control. The edge is not chosen again inside a
    # resample.
    draws = np.array([r.draws for r in present]) - control.draws
    samples = [_paired_sample(r, control) for r in present]
    ps = [excess_p(row, sample) for row, sample in zip(draws, samples, strict=True)]
    intervals = tail_intervals(draws, samples)
    return {r.attribute: _Difference(i, p) for r, i, p in zip(present, intervals, ps, strict=True)}


def control_scores(results: dict[str, AttributeResult], roles: Roles) -> list[Score]:
    """Return the rows that read a model against its controls.

    They are the band, calibrated consistency, excess with its evidence, and the minimum detectable effect: those of
    them for which the bank has the controls (contract: tables, "Scores"). A row whose control has no value stands with
    a null estimate and the flag `incomplete`.

    Args:
        results: all attributes of the model by id, controls among them.
        roles: what the attributes are for.
    """
    controls = [results.get(c) if c else None for c in (roles.band_lower, roles.band_upper)]
    usual_lower, usual_upper = (c if c is not None and c.has_value else None for c in controls)
    demographic = [r for r in results.values() if r.kind == "demographic"]
    beside_upper = {} if usual_upper is None else _differences(demographic, usual_upper)
    rows: list[Score] = []
    if len(roles.controls) == 2:
        rows += band_scores(usual_lower, usual_upper, _withheld(*controls))
    if roles.band_upper is not None:
        lacking = _withheld(controls[1])
        rows += [_calibrated(r, usual_upper, beside_upper.get(r.attribute), lacking) for r in demographic]
    if not roles.controls:
        return rows
    edge = _edge(usual_lower, usual_upper, roles)
    if edge is None:
        return rows + [_null(metric, r, _withheld(*controls)) for metric in ("excess", "mde") for r in demographic]
    # The differences from the control of the upper edge are there already, for calibrated consistency.
    found = beside_upper if edge is usual_upper else _differences(demographic, edge)
    return rows + _excesses(demographic, edge, found) + [_mde(r, edge) for r in demographic]


def _edge(
    usual_lower: AttributeResult | None, usual_upper: AttributeResult | None, roles: Roles
) -> AttributeResult | None:
    """Return the control with the larger disparity: the harder of the two comparisons. None where one has no value."""
    known = [control for control in (usual_lower, usual_upper) if control is not None]
    if len(known) < len(roles.controls):
        return None
    swapped = len(known) == 2 and controls_swapped(known[0].disparity.estimate, known[1].disparity.estimate)
    return known[1 if swapped else 0]


def _withheld(*controls: AttributeResult | None) -> frozenset[str]:
    """Return the flag `withheld` where one of the controls that a number needs lacks a category, otherwise nothing."""
    return frozenset({"withheld"} if any(c is not None and c.withheld for c in controls) else ())


def _null(metric: str, result: AttributeResult, withheld: frozenset[str]) -> Score:
    base = result.disparity
    return Score(
        metric,
        result.attribute,
        n_concepts=base.n_concepts,
        n_cells=base.n_cells,
        n_rows=base.n_rows,
        flags=result.gaps | frozenset({"incomplete"}) | withheld,
    )


def band_scores(
    usual_lower: AttributeResult | None, usual_upper: AttributeResult | None, withheld: frozenset[str] = frozenset()
) -> list[Score]:
    """Return the control band, lower end first (methodology: control-band, "What it is").

    Each end carries the interval of its own control. Where the upper edge's control is the noisier one, the ends
    change places and both rows say `swapped`.

    Args:
        usual_lower, usual_upper: the controls at the band's edges by the bank's rules, None where one has no value.
        withheld: flag of a band that is not there, because it would have needed both controls.
    """
    if usual_lower is None or usual_upper is None:
        return [Score(metric, OVERALL, flags=frozenset({"incomplete"}) | withheld) for metric in BAND]
    edges = [usual_lower, usual_upper]
    swapped = controls_swapped(usual_lower.disparity.estimate, usual_upper.disparity.estimate)
    if swapped:
        # The band runs from the lower consistency to the higher one, whichever control that is.
        edges.reverse()
    rows = []
    for metric, control in zip(BAND, edges, strict=True):
        row = as_consistency(of_ratio(control.disparity, OVERALL, control.interval, control.gaps | control.shape))
        flags = row.flags | (frozenset({"swapped"}) if swapped else frozenset())
        rows.append(dataclasses.replace(row, metric=metric, flags=flags))
    return rows


def _paired_sample(result: AttributeResult, control: AttributeResult) -> Sample:
    n = min(result.disparity.n_concepts, control.disparity.n_concepts)
    return Sample(n, n - 1)


def _calibrated(
    result: AttributeResult, usual_upper: AttributeResult | None, found: _Difference | None, withheld: frozenset[str]
) -> Score:
    """Return the row of calibrated consistency, 100 (1 - max(0, D(A) - D(upper control))), with its interval.

    Without an interval the row is never `degenerate`, and `sparse` only for a single concept.
    """
    if usual_upper is None or found is None:
        return _null("calibrated_consistency", result, withheld)
    beyond = max(0.0, result.disparity.estimate - usual_upper.disparity.estimate)
    plain = found.interval
    # Clip, then mirror: [100 (1 - max(0, u)), 100 (1 - max(0, l))].
    clipped = dataclasses.replace(plain, low=_floor(plain.low), high=_floor(plain.high))
    sample = _paired_sample(result, usual_upper)
    flags = result.gaps | usual_upper.gaps | (result.shape if sample.enough else too_few(sample))
    row = of_ratio(result.disparity, result.attribute, NO_INTERVAL, flags)
    return dataclasses.replace(
        row,
        metric="calibrated_consistency",
        estimate=POINTS * (1 - beyond),
        interval=clipped.mapped(-POINTS, POINTS),
    )


def _floor(value: float) -> float:
    return value if math.isnan(value) else max(0.0, value)


def _excesses(
    demographic: Sequence[AttributeResult], edge: AttributeResult, found: dict[str, _Difference]
) -> list[Score]:
    """Return the rows of excess, E = D(A) - D(edge), with p, p adjusted within the model, and evidence tier."""
    # Adjusted within the model only, over its demographic attributes.
    ps = [found[r.attribute].p if r.attribute in found else math.nan for r in demographic]
    rows = []
    for result, p, adjusted in zip(demographic, ps, benjamini_hochberg(ps), strict=True):
        # No disparity here, so no excess either; the row stays, with nulls.
        if result.attribute not in found:
            rows.append(_null("excess", result, _withheld(edge)))
            continue
        interval = found[result.attribute].interval
        tier = evidence_tier(
            excess=interval,
            p=p,
            p_adjusted=adjusted,
            lower=result.interval.low,
            # A disparity of 0 on every concept of the edge is no yardstick.
            edge=edge.disparity.estimate,
            degenerate="degenerate" in edge.shape,
        )
        flags = result.gaps | edge.gaps | too_few(_paired_sample(result, edge))
        row = of_ratio(result.disparity, result.attribute, interval, flags)
        excess = POINTS * (result.disparity.estimate - edge.disparity.estimate)
        rows.append(dataclasses.replace(row, metric="excess", estimate=excess, p=p, p_adjusted=adjusted, evidence=tier))
    return rows


def _mde(result: AttributeResult, edge: AttributeResult) -> Score:
    if not result.has_value:
        return _null("mde", result, _withheld(edge))
    sample = _paired_sample(result, edge)
    spread = minimum_detectable(
        standard_error(result.draws), result.disparity.n_concepts, standard_error(edge.draws), edge.disparity.n_concepts
    )
    flags = result.gaps | edge.gaps | too_few(sample)
    return of_ratio(result.disparity, result.attribute, NO_INTERVAL, flags, metric="mde", estimate=spread)
