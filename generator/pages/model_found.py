"""What was found about one model in one sentence that may be printed alone: its caveat stands inside it.

See contract: publication, "Findings".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from generator.html.frame import plural, score
from generator.pages.views import View
from generator.scoring.findings import ModelFindings, Moved
from generator.scoring.lookup import ScoreRow
from generator.stats.bootstrap import round12


def quotable(view: View, found: ModelFindings) -> Markup:
    """Return the sentence; its numbers stand in the elements that `verify` reads."""
    start = "In a simulated test (no real model), " if view.edition.simulated else ""
    if not found.tested and not found.refusing and not found.apart:
        text = f"{start}nothing can be said of {found.model}: no attribute could be held against its own noise."
        if not view.held:
            moved = f"whether the answers of {found.model} moved with the group beyond its own noise cannot be said"
            text = f"{start}{moved}: this benchmark has no control attribute."
        return escape(text[:1].upper() + text[1:])
    place = "in questions that differ only in the group named, "
    lead = f"{start}{place}" if start else place[:1].upper() + place[1:]
    first, *others = _clauses(found)
    told = first.format(found.model)
    also = [other.format("it") for other in others]
    caveat = _caveat(view, found)
    if found.flagged or not also:
        return Markup("{}{}{}.").format(lead, _listed([told, *also]), caveat)
    # The caveat is about what was not seen, so it is said there.
    return Markup("{}{}{}, and {}.").format(lead, told, caveat, _listed(also))


def _clauses(found: ModelFindings) -> list[Markup]:
    """Return what is said of the model, each with a place for its name or a pronoun."""
    parts = []
    if found.flagged:
        parts.append(_moved(found.flagged))
    elif found.tested:
        weak = Markup(", with weak signs on {} that are no finding").format(_labels(found.suggestive))
        parts.append(
            Markup(
                "this run cannot tell whether the scored answers of {{}} differed by group beyond its own noise"
                " on any of {}{}"
            ).format(plural(found.tested, "attribute"), weak if found.suggestive else "")
        )
    if found.refusing:
        labels = _listed([escape(a.label) for a in found.refusing])
        parts.append(Markup("{{}} refused some groups of {} more often than others").format(labels))
    sides = [one.side for one in found.apart if one.category is None]
    if sides:
        how = "less" if sides[0] == "lower" else "more"
        parts.append(Markup("{{}} favored everybody {} than all other models did").format(how))
    elif found.apart and not parts:
        told = (f"{'less' if one.side == 'lower' else 'more'} in {one.category}" for one in found.apart)
        kinds = _listed([escape(words) for words in told])
        parts.append(Markup("{{}} favored everybody {} than all other models did").format(kinds))
    return parts


def _moved(flagged: Sequence[Moved]) -> Markup:
    most = max(flagged, key=lambda one: round12(one.excess.estimate or 0.0))
    treated = Markup()
    if most.best is not None and most.worst is not None:
        words = (most.best[0].label, most.worst[0].label)
        treated = Markup(", best for “{}” and worst for “{}”").format(*words)
    also = Markup(", most of all by {}").format(most.attribute.label) if len(flagged) > 1 else Markup()
    told = Markup("by {}, beyond its own noise{}{}").format(_labels(flagged), also, treated)
    return Markup("the scored answers of {{}} differed {}").format(told)


def _labels(found: Iterable[Moved]) -> Markup:
    return _listed([escape(one.attribute.label) for one in found])


def _caveat(view: View, found: ModelFindings) -> Markup:
    """Return what must be said with it: what stays open, and that scenarios are not the world."""
    seen = noticed(view, found.model)
    size = Markup()
    if seen is not None:
        low, high = seen
        shown = score(low) if low.estimate == high.estimate else Markup("{} to {}").format(score(low), score(high))
        size = Markup(" (an excess below {} points would probably go unseen)").format(shown)
    if not found.flagged:
        return size if found.tested else Markup(", which is no proof of equal treatment otherwise")
    if not found.unresolved:
        return Markup(", in made-up scenarios that measure no harm done")
    rest = plural(found.unresolved, "other attribute")
    verb = "is" if found.unresolved == 1 else "are"
    return Markup(", in made-up scenarios that measure no harm done, while {} {} unresolved{}").format(rest, verb, size)


def noticed(view: View, model: str) -> tuple[ScoreRow, ScoreRow] | None:
    """Return the smallest and the largest MDE of a model's unresolved attributes, or None without one."""
    open_ = [a.id for a in view.demographic if view.evidence(model, a.id) == "unresolved"]
    rows = [view.book.row(model, "mde", a) for a in open_]
    ranked = sorted((row for row in rows if row.estimate is not None), key=lambda row: row.estimate or 0.0)
    return (ranked[0], ranked[-1]) if ranked else None


def _listed(parts: Sequence[Markup]) -> Markup:
    """Return `a`, `a and b`, `a, b and c`."""
    if len(parts) < 2:
        return Markup().join(parts)
    return Markup("{} and {}").format(Markup(", ").join(parts[:-1]), parts[-1])
