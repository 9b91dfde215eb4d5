"""A model's attributes as its page shows them: evidence, whom the answers favor, what a size means, refusals by group.

See contract: publication, "Pages"; methodology: scoring, "What a point means".
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from generator.html.chart_scale import Domain
from generator.html.charts import Line, bar
from generator.pages.group_refusals import GroupRefusals
from generator.pages.views import ConceptResult, View
from generator.schema.bank import Attribute
from generator.scoring.evidence_signs import suggestive_signs
from generator.scoring.findings import extremes
from generator.scoring.lookup import ScoreRow

FOUND = ("flagged", "suggestive")
_STEP = 5.0  # points; the lean bars of a run reach to a multiple of it


@dataclass(frozen=True)
class GroupLean:
    """One group of an attribute: its lean, drawn around zero, and its refusal rate."""

    id: str
    label: str
    row: ScoreRow
    refusal: ScoreRow
    bar: Markup


@dataclass(frozen=True)
class AttributePart:
    """A model's numbers on one attribute.

    `signs` say what made it suggestive; `refusing` is there where refusals depend on the group.
    `worst_gap` is the distance of the two groups farthest apart.
    """

    id: str
    label: str
    consistency: ScoreRow
    excess: ScoreRow
    disparity: ScoreRow
    signs: tuple[str, ...]
    mde: ScoreRow
    lean: tuple[GroupLean, ...]
    refusing: GroupRefusals | None
    results: tuple[ConceptResult, ...]
    worst_gap: ScoreRow

    @property
    def left_out(self) -> int:
        """Rows of the attribute without a value."""
        return sum(r.left_out for r in self.results)

    @property
    def treated(self) -> tuple[GroupLean, GroupLean] | None:
        """The groups treated best and worst by their lean, or None without two that have one."""
        return extremes([(g, g.row.estimate) for g in self.lean])


def lean_span(view: View) -> float:
    """Return how far the lean bars of a run reach: a multiple of 5 points that holds every estimate and interval."""
    largest = _STEP
    for model in view.models:
        for attribute in view.demographic:
            for group in attribute.groups:
                row = view.book.row(model, "lean", attribute.id, group.id)
                largest = max([largest, *(abs(v) for v in (row.estimate, row.ci_low, row.ci_high) if v is not None)])
    return -(-largest // _STEP) * _STEP


def lean_domain(view: View) -> Domain:
    """Return the scale of the lean bars on every model's page of a run."""
    span = lean_span(view)
    return Domain(-span, span, span)


def group_lean(view: View, model: str, attribute: Attribute, domain: Domain) -> tuple[GroupLean, ...]:
    """Return a model's lean by group in the bank's order; empty for a control."""
    found = []
    for group in attribute.groups:
        row = view.book.row(model, "lean", attribute.id, group.id)
        line = Line(group.label, row.estimate, row.ci_low, row.ci_high, None, None, "plain")
        refusal = view.book.row(model, "refusal_rate", attribute.id, group.id)
        found.append(GroupLean(group.id, group.label, row, refusal, bar(line, domain)))
    return tuple(found)


def attribute_part(view: View, model: str, attribute: Attribute, domain: Domain) -> AttributePart:
    """Return a model's numbers on an attribute; `domain` is the scale of its lean bars."""
    excess, disparity = (view.book.row(model, metric, attribute.id) for metric in ("excess", "disparity"))
    edge = view.book.row(model, "disparity", view.edge(model) or "")
    results = view.concept_results(model, attribute.id)
    return AttributePart(
        id=attribute.id,
        label=attribute.label,
        consistency=view.book.row(model, "consistency", attribute.id),
        excess=excess,
        disparity=disparity,
        signs=suggestive_signs(excess, disparity, edge),
        mde=view.book.row(model, "mde", attribute.id),
        lean=group_lean(view, model, attribute, domain) if attribute.kind == "demographic" else (),
        refusing=view.group_refusal(model, attribute.id),
        results=tuple(results),
        worst_gap=view.book.row(model, "worst_gap", attribute.id),
    )
