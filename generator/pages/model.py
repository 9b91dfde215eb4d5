"""Model pages: chart against the own band, evidence, other measures, lean, concepts and panel.

See contract: publication, "Pages".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from generator.edition import paths
from generator.edition.import_words import panel_words
from generator.html.chart_scale import Domain
from generator.html.charts import Line, bar, interval_chart
from generator.html.frame import NULL, cell, frame, plural, render_page
from generator.pages.group_refusals import GroupRefusals, lean_anchor, refusal_sentence
from generator.pages.leaderboard import mean_band, unranked
from generator.pages.views import ConceptResult, Footnotes, View
from generator.schema.bank import Attribute
from generator.schema.tables import OVERALL
from generator.scoring.evidence_signs import suggestive_signs
from generator.scoring.findings import extremes
from generator.scoring.lookup import ScoreRow
from generator.stats.bootstrap import several_attributes
from generator.stats.range_test import range_p

MOVED = 10
NAMED = 2  # so many attributes with evidence fit into a sentence together with whom they favor
# What the chart shows behind its lines, by whether there is a band.
_DRAWN = {True: "The control band is shaded behind every line.", False: "There is no control band."}
# The columns of the second table, in its order, and where each makes sense.
_MORE = (
    "worst_gap",
    "calibrated_consistency",
    "refusal_rate",
    "refusal_asymmetry",
    "instability",
    "crossfit_disparity",
)
# Rates of the whole model, and what the explorer shows as their rows where it has such a filter.
_RATES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("Contested", "contested_rate", {"status": "contested"}),
    ("Errors, of planned answers", "error_rate", {"status": "error"}),
    ("Refused, of answered", "refusal_rate", {"status": "refused"}),
    ("Refused by the vendor’s filter", "filter_refusal_rate", {"filtered": "1"}),
    ("Cut at the length limit", "truncated_rate", {"truncated": "1"}),
    ("Group term left after masking", "mask_leakage", {"leak": "1"}),
    ("Verdict word against the prose", "verdict_mismatch_rate", {"mismatch": "1"}),
    ("Unstable cells (repeats differ)", "instability", {}),
    ("Role reversal", "role_reversal", {}),
)
# The model's level, in points: how well it treats everybody, and less the median of the other models.
_LEVEL = (
    ("Favorability, over four kinds of task", "favorability"),
    ("The same, less the others’ median", "favorability_gap"),
)


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
    """All of a model's numbers on one attribute.

    `more` follows the second table's columns, None where none applies; `signs` say what made it suggestive;
    `refusing` is there where refusals depend on the group.
    """

    id: str
    label: str
    consistency: ScoreRow
    excess: ScoreRow
    disparity: ScoreRow
    signs: tuple[str, ...]
    mde: ScoreRow
    more: tuple[ScoreRow | None, ...]
    lean: tuple[GroupLean, ...]
    refusing: GroupRefusals | None
    results: tuple[ConceptResult, ...]

    @property
    def left_out(self) -> int:
        """Rows of the attribute without a value."""
        return sum(r.left_out for r in self.results)

    @property
    def lost(self) -> list[tuple[str, int]]:
        """Rows without a value by status, those that occur."""
        counted = [(word, sum(getattr(r, word) for r in self.results)) for word in ("refused", "contested", "error")]
        return [(word, count) for word, count in counted if count]

    @property
    def unasked(self) -> int:
        """Concepts without any answer."""
        return sum(not r.asked for r in self.results)

    @property
    def uncounted(self) -> list[ConceptResult]:
        """Concepts that were asked and have a framing that does not count."""
        return [r for r in self.results if r.asked and r.missing]

    @property
    def treated(self) -> tuple[GroupLean, GroupLean] | None:
        """The groups treated best and worst by their lean, or None without two that have one."""
        return extremes([(g, g.row.estimate) for g in self.lean])


@dataclass(frozen=True)
class ModelComparison:
    """A paired comparison, seen from the page's model."""

    other: str
    difference: Markup
    low: Markup
    high: Markup
    p: Markup


def lean_span(view: View) -> float:
    """Return how far the lean bars of a run reach: a multiple of 5 points that holds every estimate and interval."""
    largest = 5.0
    for model in view.models:
        for attribute in view.demographic:
            for group in attribute.groups:
                row = view.book.row(model, "lean", attribute.id, group.id)
                largest = max([largest, *(abs(v) for v in (row.estimate, row.ci_low, row.ci_high) if v is not None)])
    return -(-largest // 5) * 5.0


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


def _more(view: View, model: str, attribute: str) -> tuple[ScoreRow | None, ...]:
    rows = (view.book.row(model, metric, attribute) for metric in _MORE)
    return tuple(row if view.book.has(model, row.metric, attribute) else None for row in rows)


def _part(view: View, model: str, attribute: Attribute, domain: Domain) -> AttributePart:
    excess, disparity = (view.book.row(model, metric, attribute.id) for metric in ("excess", "disparity"))
    edge = view.book.row(model, "disparity", view.edge(model) or "")
    return AttributePart(
        id=attribute.id,
        label=attribute.label,
        consistency=view.book.row(model, "consistency", attribute.id),
        excess=excess,
        disparity=disparity,
        signs=suggestive_signs(excess, disparity, edge),
        mde=view.book.row(model, "mde", attribute.id),
        more=_more(view, model, attribute.id),
        lean=group_lean(view, model, attribute, domain) if attribute.kind == "demographic" else (),
        refusing=view.group_refusal(model, attribute.id),
        results=tuple(view.concept_results(model, attribute.id)),
    )


def _whole(view: View, model: str) -> dict[str, Any]:
    return {"id": OVERALL, "label": "Overall", "more": _more(view, model, OVERALL)}


def summary(view: View, model: str) -> str:
    """Say in two sentences what the evidence about a model's scored answers comes to."""
    found_on = {word: [a for a in view.demographic if view.evidence(model, a.id) == word] for word in FOUND}
    few = sum(map(len, found_on.values())) <= NAMED
    names = {w: [a.label + (_direction(view, model, a) if few else "") for a in on] for w, on in found_on.items()}
    parts = [f"{word}: {', '.join(found)}" for word, found in names.items() if found]
    open_ = view.evidence_counts(model)["unresolved"]
    if not parts and not open_:
        return "Nothing follows about this model: no attribute could be tested against its own noise."
    if parts:
        first = f"In its scored answers, {'; '.join(parts)}."
    else:
        first = "On no attribute do this model’s scored answers show more than its own noise."
    if not open_:
        return first
    return f"{first} {plural(open_, 'attribute')} unresolved, which is not the same as clean."


def _direction(view: View, model: str, attribute: Attribute) -> str:
    """Return whom an attribute's lean favors most and least, in brackets, or nothing where it is not known."""
    rows = [(g.label, view.book.row(model, "lean", attribute.id, g.id).estimate) for g in attribute.groups]
    found = extremes(rows)
    return f" (treated best: {found[0]}, worst: {found[1]})" if found else ""


def _opened(view: View, model: str) -> list[str]:
    """Return the attributes whose lean a reader wants to see at once: those that are named first, or else the first."""
    refusing = [f.attribute.id for f in view.group_refusals[model]]
    found = [a.id for a in view.demographic if view.evidence(model, a.id) in FOUND or a.id in refusing]
    return found or [a.id for a in view.demographic[:1]]


FOUND = ("flagged", "suggestive")


def _comparisons(view: View, model: str) -> list[ModelComparison]:
    found = []
    for row in _overall_pairs(view, model):
        key = f"{row['model_a']},{row['model_b']},{OVERALL}"
        turned = row["model_b"] == model
        columns = ("ci_high", "ci_low") if turned else ("ci_low", "ci_high")
        sign = -1 if turned else 1
        found.append(
            ModelComparison(
                other=row["model_a"] if turned else row["model_b"],
                difference=cell("comparisons", key, "difference", row["difference"], 1, scale=sign),
                low=cell("comparisons", key, columns[0], row[columns[0]], 1, scale=sign),
                high=cell("comparisons", key, columns[1], row[columns[1]], 1, scale=sign),
                p=cell("comparisons", key, "p_within", row["p_within"], 4),
            )
        )
    return found


def _overall_pairs(view: View, model: str) -> list[dict[str, Any]]:
    return [
        row for row in view.comparisons if row["attribute"] == OVERALL and model in (row["model_a"], row["model_b"])
    ]


def least_p(view: View, model: str) -> float | None:
    """Return the smallest p that an overall comparison of a model could have, or None where none has a p.

    No resample in which the models' errors lie as far apart; a model of the family has a value on all its concepts.
    """
    if all(row["p_within"] is None for row in _overall_pairs(view, model)):
        return None
    kept = min((len(counts) for counts in view.edition.scored.weights.values()), default=0)
    ns = [view.book.row(model, "consistency", a.id).n_concepts or 0 for a in view.demographic]
    return range_p(0, kept, several_attributes(ns))


def _disparity(view: View, model: str) -> Any:
    """Return the function with which the template writes D(c, f) of a concept on 0-100."""

    def written(result: ConceptResult, framing: str) -> Markup:
        key = f"{model},{result.concept.id},{framing}"
        row = view.disparities.get((model, result.concept.id), {}).get(framing)
        if not result.asked:
            return Markup('<span class="none">{}</span>').format(NULL)
        if row is None or row["disparity"] is None:
            return Markup('<span class="none" title="fewer than two groups with a scored answer">{}</span>').format(
                "not counted" if row else NULL
            )
        return cell("disparities", key, "disparity", row["disparity"], 1, scale=100)

    return written


def caption(view: View, model: str) -> Markup:
    """Return the sentence under a model's chart."""
    low, high = view.band(model)
    if low.estimate is None or high.estimate is None:
        return Markup(
            "The model has no control band: one of its controls has no value. Points are consistency, lines 95 % "
            "intervals; a point without a line rests on too little for an interval."
        )
    swapped = " Its controls are swapped: the tag control is the noisier." if "swapped" in low.flags else ""
    return Markup(
        "Shaded: the model’s own control band. Points are consistency, lines 95 % intervals; squares are the controls "
        "that draw the band. It holds real effects of professions, too, and its ends are estimates: their intervals "
        "are those of the squares.{}"
    ).format(swapped)


def render_model(view: View, model: str, scale: Domain) -> bytes:
    """Render one model's page."""
    page = paths.model_page(view.run_id, model)
    lines = view.lines(model)
    tier = view.tier[model]
    overall = view.book.row(model, "consistency")
    low, high = view.band(model)
    refusals = refusal_sentence(view.group_refusals[model])
    told = summary(view, model)
    words = f"{told} {refusals.striptags()}".rstrip()
    context = frame(
        view.edition,
        page,
        model,
        description=f"{model}: {words}",
        section="leaderboard",
        crumbs=[("Leaderboard", paths.run_index(view.run_id)), (model, None)],
        scripts=("site.js",),
        modules=("check/start.js",),
    )
    demographic = [_part(view, model, a, scale) for a in view.demographic]
    results = [r for part in demographic for r in part.results if r.mean is not None]
    results.sort(key=lambda r: (-round(r.mean or 0, 10), r.concept.id.encode()))
    return render_page(
        "model.html",
        context,
        view=view,
        model=model,
        entry=view.manifest.model(model),
        judges=view.judges(model),
        imported=panel_words(view.manifest) if view.manifest.imported else None,
        fn=Footnotes(page),
        summary=told,
        refusals=refusals,
        overall=overall,
        low=low,
        high=high,
        mean_band=mean_band(view),
        tier=tier,
        tiers=max((row["tier"] or 0 for row in view.tiers), default=0),
        why_unranked=dict(unranked(view)).get(model, ""),
        contested=view.book.row(model, "contested_rate"),
        chart=interval_chart(
            lines,
            view.domain,
            name="attributes",
            title=f"Consistency of {model} by attribute",
            description=f"{words} {_DRAWN[low.estimate is not None]} The table below holds all numbers.",
            cache=view.edition.chart_cache,
        ),
        caption=caption(view, model),
        lines=lines,
        attributes=demographic,
        controls=[_part(view, model, a, scale) for a in view.controls],
        whole=_whole(view, model),
        edge=view.edge(model),
        edge_disparity=view.book.row(model, "disparity", view.edge(model) or ""),
        found=FOUND,
        lean_anchor=lean_anchor,
        opened=_opened(view, model),
        lean_domain=scale,
        lean_span=scale.high,
        moved=[r for r in results if r.mean][:MOVED],
        disparity=_disparity(view, model),
        rates=[
            (label, view.book.row(model, metric), where)
            for label, metric, where in _RATES
            if view.book.has(model, metric)
        ],
        level=[(label, view.book.row(model, metric)) for label, metric in _LEVEL],
        comparisons=_comparisons(view, model),
        least_p=least_p(view, model),
        asked=view.asked[model],
        alone=sum(row["tier"] == tier["tier"] for row in view.tiers) == 1,
        more_metrics=_MORE,
    )
