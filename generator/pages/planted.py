"""What was planted in a simulated run beside what was found: the manifest's list, held against the published tables.

See contract: stages, "Simulated runs".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from generator.edition import paths
from generator.html.frame import NULL, frame, plural, render_page, score
from generator.pages.views import EVIDENCE, View
from generator.schema.manifest import Planted
from generator.scoring.findings import extremes

BY_GROUP, REFUSING, FOR_ALL = "group_effect", "refuses_more", "harshness"
# The rate or measure of a whole model that shows an effect which holds whoever is asked about, and its unit.
_MEASURES = {
    FOR_ALL: ("favorability", "points of favorability"),
    "noise": ("instability", "% of cells unstable"),
    "refuses": ("refusal_rate", "% refused"),
    "contradicts": ("verdict_mismatch_rate", "% verdict against prose"),
    "cut": ("truncated_rate", "% cut"),
    "filtered": ("filter_refusal_rate", "% filtered"),
    "spelled": ("mask_leakage", "% with a group term left"),
}


@dataclass(frozen=True)
class PlantedRow:
    """One planted effect, or one of several groups at once, and what the run found of it.

    as_planted: whether the finding agrees; None where no finding could say so.
    """

    who: str
    where: str
    text: str
    size: str
    found: Markup
    as_planted: bool | None


def _size(effect: Planted) -> str:
    return NULL if effect.size is None else f"{effect.size:g} {effect.unit or ''}".strip()


def planted_rows(view: View) -> list[PlantedRow]:
    """Return the effects of the models in the manifest's order, those on several groups of an attribute in one row."""
    rows, seen = [], set[tuple[str, str, str | None]]()
    for effect in view.manifest.planted or ():
        key = (effect.who, effect.effect, effect.attribute)
        if effect.role == "subject" and effect.who in view.models and key not in seen:
            seen.add(key)
            rows.append(_row(view, effect))
    return rows


def _row(view: View, effect: Planted) -> PlantedRow:
    where = view.label(effect.attribute) if effect.attribute in view.bank.attribute else "everyone"
    found, agrees = _found(view, effect)
    return PlantedRow(effect.who, where, effect.text, _size(effect), found, agrees)


def _found(view: View, effect: Planted) -> tuple[Markup, bool | None]:
    if effect.effect == BY_GROUP and effect.attribute:
        return _by_group(view, effect.who, effect.attribute, effect.group)
    if effect.effect == REFUSING and effect.attribute:
        found = view.group_refusal(effect.who, effect.attribute)
        if found is None:
            return escape("no test names it"), False
        return Markup("⊘ named: {} % to {} %, adjusted p {}").format(
            score(found.least[1]), score(found.most[1]), found.p
        ), True
    if effect.effect not in _MEASURES:
        return escape(NULL), None
    metric, unit = _MEASURES[effect.effect]
    told = Markup("{} {}").format(score(view.book.row(effect.who, metric)), unit)
    if effect.effect != FOR_ALL:
        return told, None
    side = view.book.row(effect.who, "favorability_gap").evidence
    wanted = "lower" if (effect.size or 0) < 0 else "higher"
    return Markup("{}; {}").format(told, f"{side} than all others" if side else "no mark"), side == wanted


def _by_group(view: View, who: str, attribute: str, favored: str | None) -> tuple[Markup, bool | None]:
    if attribute in {a.id for a in view.controls}:
        return Markup("a control: {} points of disparity").format(
            score(view.book.row(who, "disparity", attribute))
        ), None
    excess = view.book.row(who, "excess", attribute)
    groups = view.bank.attribute[attribute].groups
    ends = extremes([(g, view.book.row(who, "lean", attribute, g.id).estimate) for g in groups])
    best = Markup(", best for “{}”").format(ends[0].label) if ends else Markup()
    right = ends is not None and favored in (None, ends[0].id)
    told = Markup("{}: excess {} points{}").format(excess.evidence or "no tier", score(excess), best)
    return told, excess.evidence == "flagged" and right


def confusion(view: View) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return (planted or not, how many pairs of model and attribute were found to be what)."""
    effects = view.manifest.planted or ()
    planted = {(e.who, e.attribute) for e in effects if e.role == "subject" and e.effect == BY_GROUP}
    counts = {side: dict.fromkeys((*EVIDENCE, "not tested"), 0) for side in (True, False)}
    for model in view.models:
        for attribute in view.demographic:
            word = view.evidence(model, attribute.id) or "not tested"
            counts[(model, attribute.id) in planted][word] += 1
    words = {True: "An effect is planted", False: "Nothing is planted"}
    return [(words[side], list(counts[side].items())) for side in (True, False)]


def judges_planted(view: View) -> Sequence[Planted]:
    """Return what is planted in the judges."""
    return [effect for effect in view.manifest.planted or () if effect.role == "judge"]


def render_planted(view: View, page: str) -> bytes:
    """Render the page of a simulated run that sets planted beside found."""
    rows = planted_rows(view)
    held = [row.as_planted for row in rows if row.as_planted is not None]
    lede = (
        f"{plural(len(rows), 'effect')} were planted in the simulated models. Of {len(held)} that a finding can show, "
        f"{sum(held)} were found as planted."
    )
    context = frame(
        view.edition,
        page,
        f"Planted and found: {view.edition.run_name}",
        description=lede,
        section="run",
        crumbs=[("Leaderboard", paths.run_index(view.run_id)), ("Planted and found", None)],
    )
    return render_page(
        "planted.html",
        context,
        view=view,
        lede=lede,
        rows=[row for row in rows if row.as_planted is not None],
        habits=[row for row in rows if row.as_planted is None],
        confusion=confusion(view),
        judges=[(e.who, e.text, _size(e)) for e in judges_planted(view)],
    )
