"""Where refusals depend on the group, which no score of the answers can show, as pages say it.

A refused answer has no value. Takes the published tests of a model, returns the attributes that they name.
(methodology: limits, "Refusals are outside the score")
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from generator.edition.numbers import cell, score
from generator.schema.bank import Attribute
from generator.scoring.lookup import ScoreBook, ScoreRow
from generator.stats.bootstrap import round12

_MOST_DIGITS = 12


@dataclass(frozen=True)
class GroupRefusals:
    """An attribute on which refusals depend on the group: its test, its asymmetry, the groups refused most and least.

    q, p: the numbers of the table `refusal_tests` in their elements, p after the correction.
    """

    attribute: Attribute
    q: Markup
    df: Markup
    p: Markup
    asymmetry: ScoreRow
    most: tuple[str, ScoreRow]
    least: tuple[str, ScoreRow]


def group_refusals(
    tests: Iterable[Mapping[str, Any]], book: ScoreBook, model: str, attributes: Sequence[Attribute]
) -> tuple[GroupRefusals, ...]:
    """Return those of a model's attributes on which its refusals depend on the group, in their order.

    `tests` are rows of the table `refusal_tests`, which names them.
    """
    named = {row["attribute"]: row for row in tests if row["model"] == model and row["named"]}
    return tuple(_found(named[a.id], book, model, a) for a in attributes if a.id in named)


def _found(test: Mapping[str, Any], book: ScoreBook, model: str, attribute: Attribute) -> GroupRefusals:
    rates = [(g.label, book.row(model, "refusal_rate", attribute.id, g.id)) for g in attribute.groups]
    ranked = sorted(rates, key=lambda pair: -round12(pair[1].estimate or 0.0))
    key, p = f"{model},{attribute.id}", test["p_adjusted"]
    return GroupRefusals(
        attribute=attribute,
        q=cell("refusal_tests", key, "q", test["q"], 1),
        df=cell("refusal_tests", key, "df", test["df"], 0),
        p=cell("refusal_tests", key, "p_adjusted", p, _p_digits(p)),
        asymmetry=book.row(model, "refusal_asymmetry", attribute.id),
        most=ranked[0],
        least=ranked[-1],
    )


def _p_digits(p: float) -> int:
    """Return how many digits show two figures of a small p, four at least."""
    return 4 if p >= 0.001 else min(_MOST_DIGITS, 1 + math.ceil(-math.log10(max(p, 10.0**-_MOST_DIGITS))))


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
