"""Model pages: what was found, chart against the own band, groups, levels, comparison, concepts, panel.

See contract: publication, "Pages".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from generator.edition import paths
from generator.edition.import_words import panel_words
from generator.html.chart_scale import Domain
from generator.html.charts import interval_chart
from generator.html.figure_svg import Figure
from generator.html.frame import NULL, cell, frame, plural, render_page
from generator.pages.figures import embed_snippet, figure_of, picture_of
from generator.pages.findings import level_words, moved_words
from generator.pages.group_refusals import lean_anchor, refusal_sentence
from generator.pages.leaderboard import mean_band, unranked
from generator.pages.model_found import noticed, quotable
from generator.pages.model_groups import FOUND, attribute_part
from generator.pages.model_level import LEVEL_DOMAIN, label_steps, levels
from generator.pages.pair_card import pair_cards
from generator.pages.pairs import side_query
from generator.pages.views import NO_YARDSTICK, ConceptResult, Footnotes, View
from generator.schema.bank import Attribute
from generator.schema.tables import OVERALL
from generator.scoring.findings import ModelFindings, extremes
from generator.scoring.lookup import ScoreRow
from generator.stats.bootstrap import round12, several_attributes
from generator.stats.range_test import range_p

MOVED = 5  # so many concepts stand on the page; all of them stand on the page of numbers
NOT_TESTED = "Nothing follows about this model: no attribute could be tested against its own noise."
NAMED = 2  # so many attributes with evidence fit into a sentence together with whom they favor
# What the chart shows behind its lines, by whether there is a band.
_DRAWN = {True: "The control band is shaded behind every line.", False: "There is no control band."}
# Rates of the whole model that say how far its labels carry, and what the explorer shows as their rows.
_RATES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("Contested", "contested_rate", {"status": "contested"}),
    ("Errors, of planned answers", "error_rate", {"status": "error"}),
    ("Refused, of answered", "refusal_rate", {"status": "refused"}),
)


@dataclass(frozen=True)
class ModelComparison:
    """A paired comparison, seen from the page's model."""

    other: str
    query: str
    difference: Markup
    low: Markup
    high: Markup
    p: Markup


def summary(view: View, model: str) -> str:
    """Say in two sentences what the evidence about a model's scored answers comes to."""
    found_on = {word: [a for a in view.demographic if view.evidence(model, a.id) == word] for word in FOUND}
    few = sum(map(len, found_on.values())) <= NAMED
    names = {w: [a.label + (_direction(view, model, a) if few else "") for a in on] for w, on in found_on.items()}
    parts = [f"{word}: {', '.join(found)}" for word, found in names.items() if found]
    open_ = view.evidence_counts(model)["unresolved"]
    if not parts and not open_:
        return NOT_TESTED if view.held else f"{NO_YARDSTICK} Consistency, lean and refusals are described below."
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


def _opened(found: ModelFindings) -> str | None:
    """Return the attribute that the page opens: where the excess is largest, else where refusals depend on the group.

    A suggestive one comes after these; None where nothing was found.
    """
    if found.flagged:
        return max(found.flagged, key=lambda one: round12(one.excess.estimate or 0.0)).attribute.id
    others = (*found.refusing, *(one.attribute for one in found.suggestive))
    return others[0].id if others else None


def _comparisons(view: View, model: str) -> list[ModelComparison]:
    found = []
    for row in _overall_pairs(view, model):
        key = f"{row['model_a']},{row['model_b']},{OVERALL}"
        turned = row["model_b"] == model
        columns = ("ci_high", "ci_low") if turned else ("ci_low", "ci_high")
        sign = -1 if turned else 1
        other = row["model_a"] if turned else row["model_b"]
        found.append(
            ModelComparison(
                other=other,
                query=side_query(model, other),
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


def disparity_cell(view: View, model: str) -> Callable[[ConceptResult, str], Markup]:
    """Return the function with which a template writes D(c, f) of a concept on 0-100."""

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
        why = view.yardstick or "The model has no control band: one of its controls has no value."
        return Markup(
            "{} Points are consistency, lines 95 % intervals; a point without a line rests on too little for an "
            "interval."
        ).format(why)
    swapped = Markup(" Its controls are swapped: {} is the noisier.").format(view.controls[-1].label)
    return Markup(
        "Shaded: the model’s own control band, between the squares; real effects of the controls are in it, too, and "
        "its ends are estimates. Points are consistency, lines 95 % intervals.{}"
    ).format(swapped if "swapped" in low.flags else "")


def model_figure(view: View, model: str) -> Figure:
    """Return the chart of a model's page as a figure that stands alone."""
    return figure_of(
        view,
        paths.model_page(view.run_id, model),
        f"models/{model}",
        title=f"Consistency of {model} by attribute",
        head="attribute",
        caption=caption(view, model).striptags(),
        lines=view.lines(model),
    )


def moved_most(view: View, model: str) -> list[ConceptResult]:
    """Return the concepts of a model that have a disparity above 0, largest first, equal ones by id."""
    found = [r for a in view.demographic for r in view.concept_results(model, a.id) if r.mean]
    return sorted(found, key=lambda r: (-round(r.mean or 0, 10), r.concept.id.encode()))


def rates(view: View, model: str, listed: Any = _RATES) -> list[tuple[str, ScoreRow, dict[str, str]]]:
    """Return those rates of a model that the run has, with the filter that shows their rows."""
    return [
        (label, view.book.row(model, metric), where) for label, metric, where in listed if view.book.has(model, metric)
    ]


def render_model(view: View, model: str, scale: Domain) -> bytes:
    """Render one model's page."""
    page = paths.model_page(view.run_id, model)
    figure = model_figure(view, model)
    low, high = view.band(model)
    found = view.findings.of(model)
    refusals = refusal_sentence(view.group_refusals[model])
    words = f"{summary(view, model)} {refusals.striptags()}".rstrip()
    quoted = quotable(view, found)
    context = frame(
        view.edition,
        page,
        model,
        description=quoted.striptags(),
        section="leaderboard",
        crumbs=[("Leaderboard", paths.run_index(view.run_id)), (model, None)],
        scripts=("site.js",),
        modules=("check/start.js",),
        picture=picture_of(figure),
    )
    return render_page(
        "model.html",
        context,
        view=view,
        model=model,
        entry=view.manifest.model(model),
        judges=view.judges(model),
        imported=panel_words(view.manifest) if view.manifest.imported else None,
        fn=Footnotes(page),
        quoted=quoted,
        found=found,
        noticed=noticed(view, model),
        refusals=refusals,
        overall=view.book.row(model, "consistency"),
        low=low,
        high=high,
        mean_band=mean_band(view),
        tier=view.tier[model],
        tiers=max((row["tier"] or 0 for row in view.tiers), default=0),
        why_unranked=dict(unranked(view, [row for row in view.tiers if row["model"] == model])).get(model, ""),
        chart=interval_chart(
            figure.lines,
            view.domain,
            name="attributes",
            title=figure.title,
            description=f"{words} {_DRAWN[low.estimate is not None]} The table below holds all numbers.",
            cache=view.edition.chart_cache,
        ),
        caption=caption(view, model),
        figure=figure,
        snippet=embed_snippet(view, figure),
        attributes=[attribute_part(view, model, a, scale) for a in view.demographic],
        controls=[attribute_part(view, model, a, scale) for a in view.controls],
        edge=view.edge(model),
        edge_disparity=view.book.row(model, "disparity", view.edge(model) or ""),
        evident=FOUND,
        cards=pair_cards(view, model),
        moved_words=moved_words,
        level_words=level_words,
        lean_anchor=lean_anchor,
        opened=_opened(found),
        lean_domain=scale,
        lean_span=scale.high,
        levels=levels(view, model),
        level_domain=LEVEL_DOMAIN,
        steps=label_steps(view.bank.rubrics),
        moved=moved_most(view, model)[:MOVED],
        disparity=disparity_cell(view, model),
        rates=rates(view, model),
        comparisons=_comparisons(view, model),
        least_p=least_p(view, model),
        asked=view.asked[model],
        alone=sum(row["tier"] == view.tier[model]["tier"] for row in view.tiers) == 1,
    )
