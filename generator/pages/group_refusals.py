"""Where refusals depend on the group, which no score of the answers can show.

A refused answer has no value. Takes the published scores of a model, returns the attributes to be named.

See methodology: scoring, "Refusal rate and refusal asymmetry".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from generator.edition.numbers import score
from generator.schema.bank import CONTROLS, Attribute
from generator.scoring.lookup import ScoreBook, ScoreRow
from generator.stats.bootstrap import round12


@dataclass(frozen=True)
class GroupRefusals:
    """An attribute on which refusals depend on the group: its asymmetry, and the groups refused most and least."""

    attribute: Attribute
    asymmetry: ScoreRow
    most: tuple[str, ScoreRow]
    least: tuple[str, ScoreRow]


def group_refusals(book: ScoreBook, model: str, attributes: Sequence[Attribute]) -> tuple[GroupRefusals, ...]:
    """Return those of a model's demographic attributes on which its refusals depend on the group, in their order.

    Named is an attribute when the interval of its refusal asymmetry lies above 0 and above the asymmetry of each
    control that has one, as the interval of a disparity does that makes an attribute suggestive. A difference between
    extremes is above 0 by chance alone, so without any control nothing is named; nor is what has no interval.
    """
    known = [value for c in CONTROLS if (value := book.row(model, "refusal_asymmetry", c).estimate) is not None]
    if not known:
        return ()
    bar = round12(max(0.0, *known))
    found = (_found(book, model, a) for a in attributes if a.kind == "demographic")
    return tuple(f for f in found if f.asymmetry.ci_low is not None and round12(f.asymmetry.ci_low) > bar)


def _found(book: ScoreBook, model: str, attribute: Attribute) -> GroupRefusals:
    rates = [(g.label, book.row(model, "refusal_rate", attribute.id, g.id)) for g in attribute.groups]
    known = [pair for pair in rates if pair[1].estimate is not None] or rates
    ranked = sorted(known, key=lambda pair: -round12(pair[1].estimate or 0.0))
    return GroupRefusals(attribute, book.row(model, "refusal_asymmetry", attribute.id), ranked[0], ranked[-1])


def refusal_sentence(found: Sequence[GroupRefusals]) -> Markup:
    """Say on which attributes refusals depend on the group, each linked to its rates; empty where on none."""
    if not found:
        return Markup()
    parts = (
        Markup('<a href="#{}">{}</a>, {} points between {} ({} %) and {} ({} %)').format(
            lean_anchor(f.attribute.id), f.attribute.label, score(f.asymmetry),
            f.most[0], score(f.most[1]), f.least[0], score(f.least[1]),
        )
        for f in found
    )  # fmt: skip
    return Markup("Refusals depend on the group: {}.").format(Markup("; ").join(parts))


def lean_anchor(attribute: str) -> str:
    """Return the id of an attribute's lean and refusal rates on a model's page."""
    return f"lean-{attribute}"
