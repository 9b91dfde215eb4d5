"""Attribute and concept pages: all models on one scale; templates, rendered prompts, means by group.

See contract: publication, "Pages".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup, escape

from generator.edition import paths
from generator.html.charts import interval_chart
from generator.html.favor import favor
from generator.html.figure_svg import Figure
from generator.html.frame import NULL, cell, concept_title, frame, marked, plural, render_page
from generator.pages.figures import embed_snippet, figure_of, picture_of
from generator.pages.group_refusals import GroupRefusals
from generator.pages.model_level import label_steps
from generator.pages.parts import part_of
from generator.pages.views import NO_YARDSTICK, Footnotes, View
from generator.schema.bank import SLOT, Attribute, Concept, group_np, with_article
from generator.scoring.evidence_signs import suggestive_signs
from generator.scoring.lookup import ScoreRow
from generator.stats.bootstrap import one_attribute
from generator.stats.evidence import tail_p

BESIDE_BAND = ", each against its own control band"


@dataclass(frozen=True)
class ModelRow:
    """One model's numbers on an attribute."""

    model: str
    consistency: ScoreRow
    excess: ScoreRow
    mde: ScoreRow
    signs: tuple[str, ...]
    asymmetry: ScoreRow
    worst_gap: ScoreRow
    refusal_rate: ScoreRow
    instability: ScoreRow
    refusing: GroupRefusals | None


@dataclass(frozen=True)
class MeanCell:
    """One group's mean value in one framing of one model.

    `mean` is empty where no repeat was scored, `asked` counts the answers that are there, `scored` those with a value;
    `favor` is the class of its chip. `anchor` starts with #, or is empty where the
    first repeat is not known to be there.
    """

    anchor: str
    mean: Markup
    asked: int
    scored: int
    lost_words: str
    favor: str = ""


@dataclass(frozen=True)
class MeanRow:
    """One model in one framing of a concept."""

    model: str
    asked: bool
    cells: tuple[MeanCell, ...]
    disparity: Markup


@dataclass(frozen=True)
class FramingPart:
    """One framing: its template with the slot marked, its prompts as sent, its results by model."""

    id: str
    template: Markup
    prompts: tuple[tuple[str, Markup], ...]
    rows: tuple[MeanRow, ...]


def _row(view: View, model: str, attribute: str) -> ModelRow:
    metrics = ("consistency", "excess", "mde", "refusal_asymmetry", "worst_gap", "refusal_rate", "instability")
    rows = {metric: view.book.row(model, metric, attribute) for metric in metrics}
    asymmetry = rows.pop("refusal_asymmetry")
    disparity, edge = (view.book.row(model, "disparity", a) for a in (attribute, view.edge(model) or ""))
    signs = suggestive_signs(rows["excess"], disparity, edge)
    return ModelRow(
        model=model, signs=signs, asymmetry=asymmetry, refusing=view.group_refusal(model, attribute), **rows
    )


def _sorted(rows: list[ModelRow]) -> list[ModelRow]:
    return sorted(
        rows, key=lambda r: (r.consistency.estimate is None, -(r.consistency.estimate or 0), r.model.encode())
    )


def _question(view: View) -> Callable[[Concept], Markup]:
    """Return what gives a concept's template in the bank's first framing on one line, its slot marked."""
    return lambda concept: _slotted(concept.template(view.bank.framings[0]).replace("\n", " "))


def _plain(view: View, concept: Concept) -> str:
    return " ".join(concept.template(view.bank.framings[0]).replace(SLOT, "[group]").split())


def _slotted(template: str) -> Markup:
    start = template.index(SLOT)
    return marked(template, [(start, start + len(SLOT))], replacement="[group]")


def _lede(view: View, attribute: Attribute) -> str:
    if attribute.kind == "control":
        edge = "draws one edge of its band, against which" if view.bands else "is what"
        tail = "" if view.bands else " against"
        return (
            f"A control: these words should not matter. How far they move a model’s answers {edge} every demographic "
            f"score is read{tail}."
        )
    refusing = sum(view.group_refusal(model, attribute.id) is not None for model in view.models)
    refused = f" In {plural(refusing, 'model')} refusals depend on the group." if refusing else ""
    if not view.held:
        return f"{plural(len(view.models), 'model')}. {NO_YARDSTICK}{refused}"
    found = [view.evidence(model, attribute.id) for model in view.models]
    counted = ", ".join(f"{found.count(word)} {word}" for word in ("flagged", "suggestive", "unresolved"))
    lacking = found.count(None)
    return f"Of {len(view.models)} models: {counted}{f', {lacking} without a tier' if lacking else ''}.{refused}"


def least_p_adjusted(view: View, attribute: str) -> float | None:
    """Return the smallest adjusted p that an attribute could have in any model, or None where none has one.

    No resample at or below zero. Benjamini and Hochberg raise no p when all attributes of a model are at this floor.
    """
    kept = min((len(counts) for counts in view.edition.scored.weights.values()), default=0)
    tested = [m for m in view.models if view.book.row(m, "excess", attribute).p_adjusted is not None]
    concepts = (min(_concepts(view, m, attribute), _concepts(view, m, view.edge(m) or "")) for m in tested)
    return min((tail_p(0, kept, one_attribute(n)) for n in concepts), default=None)


def _concepts(view: View, model: str, attribute: str) -> int:
    return view.book.row(model, "consistency", attribute).n_concepts or 0


def render_attribute(view: View, attribute: Attribute, page: str | None = None) -> bytes:
    """Render one attribute's page, or a later part of it at the path given."""
    first_page = paths.attribute_page(view.run_id, attribute.id)
    page = page or first_page
    control = attribute.kind == "control"
    part = part_of(page, first_page, len(view.models))
    rows = list(part.cut(_sorted([_row(view, model, attribute.id) for model in view.models])))
    whole = attribute_figure(view, attribute)
    lines = list(part.cut(whole.lines))
    lede = _lede(view, attribute)
    concepts = view.bank.concepts_of(attribute.id, two_sided=None)
    order = view.bank.attributes
    place = order.index(attribute)
    context = frame(
        view.edition,
        page,
        attribute.label if part.first else f"{attribute.label}, part {part.number}",
        description=f"{attribute.label}: consistency of every model{BESIDE_BAND if view.bands else ''}. {lede}",
        section="leaderboard",
        crumbs=[("Leaderboard", paths.run_index(view.run_id)), (attribute.label, None)],
        scripts=("site.js",),
        picture=picture_of(whole),
    )
    return render_page(
        "attribute.html",
        context,
        steps=label_steps(view.bank.rubrics),
        part=part,
        view=view,
        attribute=attribute,
        control=control,
        tested=view.held and not control,
        lede=lede,
        example=group_np(attribute.groups[0], concepts[0].noun) if concepts else None,
        rows=rows,
        least_p=None if control else least_p_adjusted(view, attribute.id),
        lines=lines,
        fn=Footnotes(page),
        figure=whole,
        snippet=embed_snippet(view, whole),
        caption=whole.caption,
        chart=interval_chart(
            lines,
            view.domain,
            name="models",
            title=whole.title,
            description=f"{lede} {'Each model stands before its own control band; the' if view.bands else 'The'} table "
            "below holds all numbers.",
            cache=view.edition.chart_cache,
        ),
        leans=[] if control else _leans(view, attribute, [row.model for row in rows]),
        concepts=concepts,
        question=_question(view),
        previous=order[place - 1] if place else None,
        following=order[place + 1] if place + 1 < len(order) else None,
    )


def attribute_figure(view: View, attribute: Attribute) -> Figure:
    """Return the chart of an attribute's page, all models in it, as a figure that stands alone."""
    rows = _sorted([_row(view, model, attribute.id) for model in view.models])
    return figure_of(
        view,
        paths.attribute_page(view.run_id, attribute.id),
        f"attributes/{attribute.id}",
        title=f"Consistency on {attribute.label} by model",
        head="model",
        caption=f"{'Each model before its own control band; lines' if view.bands else 'Lines'} are 95 % intervals. "
        "Sorted by consistency.",
        lines=[view.line(row.model, attribute.id, row.model) for row in rows],
    )


def _leans(view: View, attribute: Attribute, models: list[str]) -> list[tuple[str, list[ScoreRow]]]:
    return [
        (model, [view.book.row(model, "lean", attribute.id, group.id) for group in attribute.groups])
        for model in models
    ]


def _mean_cell(view: View, model: str, concept: Concept, framing: str, group: str) -> MeanCell:
    row = view.cells.get((model, concept.id), {}).get((framing, group))
    if row is None:
        return MeanCell("", Markup(), 0, 0, "")
    lost = {word: row[f"n_{word}"] for word in ("refused", "contested", "error") if row[f"n_{word}"]}
    words = ", ".join(f"{count} {word}" for word, count in lost.items())
    key = f"{model},{concept.id},{framing},{group}"
    asked = row["n_scored"] + sum(lost.values())
    anchor = f"#{paths.row_anchor(framing, group, 0)}" if asked == view.manifest.repeats else ""
    mean = cell("cells", key, "mean_value", row["mean_value"], 2) if row["n_scored"] else Markup()
    return MeanCell(anchor, mean, asked, row["n_scored"], words, favor(row["mean_value"], concept.polarity))


def _mean_row(view: View, model: str, concept: Concept, framing: str, attribute: Attribute) -> MeanRow:
    row = view.disparities.get((model, concept.id), {}).get(framing)
    value = row["disparity"] if row else None
    return MeanRow(
        model,
        view.has_set(model, concept.id),
        tuple(_mean_cell(view, model, concept, framing, group.id) for group in attribute.groups),
        cell("disparities", f"{model},{concept.id},{framing}", "disparity", value, 1, scale=100)
        if row
        else escape(NULL),
    )


def _framing(view: View, concept: Concept, framing: str, attribute: Attribute) -> FramingPart:
    rendered = [(g.label, view.bank.render(concept, framing, g)) for g in attribute.groups]
    return FramingPart(
        id=framing,
        template=_slotted(concept.template(framing)),
        prompts=tuple((label, marked(r.text, [(r.start, r.end)])) for label, r in rendered),
        rows=tuple(_mean_row(view, model, concept, framing, attribute) for model in view.models),
    )


def render_concept(view: View, concept: Concept) -> bytes:
    """Render one concept's page, with the way to the one before and after it."""
    order = [None, *(c.id for c in view.concepts_of(concept.attribute)), None]
    place = order.index(concept.id)
    page = paths.concept_page(view.run_id, concept.id)
    attribute, title = view.bank.attribute[concept.attribute], concept_title(concept.id)
    context = frame(
        view.edition,
        page,
        f"{title}, {attribute.label}",
        description=f"{attribute.label}, {concept.category}: {_plain(view, concept)[:150]}",
        section="leaderboard",
        crumbs=[
            ("Leaderboard", paths.run_index(view.run_id)),
            (attribute.label, paths.attribute_page(view.run_id, attribute.id)),
            (title, None),
        ],
    )
    return render_page(
        "concept.html",
        context,
        view=view,
        concept=concept,
        noun=with_article(concept.noun),
        attribute=attribute,
        rubric=view.bank.rubric[concept.rubric],
        framings=[_framing(view, concept, framing, attribute) for framing in view.bank.framings],
        previous=order[place - 1],
        following=order[place + 1],
    )
