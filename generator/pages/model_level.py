"""A model's level by kind of task: how good its answers are for the person, which labels they got, how many it refused.

See contract: publication, "Pages"; methodology: level, "Favorability".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from generator.html.chart_scale import Domain
from generator.html.charts import Line, bar
from generator.pages.views import View
from generator.schema.bank import Rubric
from generator.scoring.lookup import ScoreRow

LEVEL_DOMAIN = Domain(0, 100, 25)
_PALEST, _DARKEST = 0.18, 0.9  # of the labels of a rubric, lowest and highest


@dataclass(frozen=True)
class LevelPart:
    """One kind of task, or all of them (`category` None).

    level: favorability, for the category without one the compliance; `turned` tells which. gap: less the median of the
    other models. shares: of each label among the scored answers, lowest label first. signed: favorability where yes
    is good for the person, and where no is, of a category that has both.
    """

    category: str | None
    level: ScoreRow
    turned: bool
    gap: ScoreRow
    bar: Markup
    shares: tuple[tuple[str, ScoreRow], ...]
    stack: Markup
    refused: ScoreRow
    signed: tuple[ScoreRow, ScoreRow] | None

    @property
    def apart(self) -> str | None:
        """Lower or higher where the level stands apart from all other models'."""
        return self.gap.evidence


def levels(view: View, model: str) -> tuple[LevelPart, ...]:
    """Return a model's levels, overall first, then by category in the order of the rubrics; what has no row is out."""
    found = [_part(view, model, category) for category in (None, *view.bank.categories)]
    return tuple(part for part in found if part is not None)


def _part(view: View, model: str, category: str | None) -> LevelPart | None:
    turned = view.book.has(model, "favorability", group=category)
    if not turned and not view.book.has(model, "compliance", group=category):
        return None
    level = view.book.row(model, "favorability" if turned else "compliance", group=category)
    gap = view.book.row(model, "favorability_gap", group=category)
    shares = _shares(view, model, category) if category else ()
    # A category whose concepts all have one polarity has one number, which is its level.
    sides = [view.book.row(model, f"favorability_{side}", group=category) for side in ("positive", "negative")]
    both = category is not None and all(side.estimate is not None for side in sides)
    return LevelPart(
        category=category,
        level=level,
        turned=turned,
        gap=gap,
        bar=bar(Line("", level.estimate, level.ci_low, level.ci_high, None, None, "plain"), LEVEL_DOMAIN),
        shares=shares,
        stack=_stack([row.estimate for _, row in shares]),
        refused=view.book.row(model, "refusal_rate", group=category),
        signed=(sides[0], sides[1]) if both else None,
    )


def _shares(view: View, model: str, category: str) -> tuple[tuple[str, ScoreRow], ...]:
    rubric = next((view.bank.rubric[c.rubric] for c in view.bank.concepts if c.category == category), None)
    names: Sequence[str] = rubric.names if rubric else ()
    rows = [(name, view.book.row(model, "label_share", group=f"{category}.{name}")) for name in names]
    return tuple((name, row) for name, row in rows if row.estimate is not None)


def _stack(shares: Sequence[float | None]) -> Markup:
    """Return shares in percent as one bar, from the lowest label on the left; hidden from screen readers."""
    if not shares:
        return Markup()
    parts, start, steps = [], 0.0, max(1, len(shares) - 1)
    for place, share in enumerate(shares):
        width, shade = share or 0.0, _PALEST + (_DARKEST - _PALEST) * place / steps
        box = Markup('<rect x="{:.2f}%" width="{:.2f}%" height="100%" fill-opacity="{:.2f}"/>')
        parts.append(box.format(start, width, shade))
        start += width
    return Markup('<svg class="stack" aria-hidden="true" focusable="false">{}</svg>').format(Markup().join(parts))


@dataclass(frozen=True)
class LabelSteps:
    """The labels of a rubric, each with its value in points, low to high; none for a score from 0 to 100."""

    category: str
    labels: tuple[tuple[str, float], ...]

    @property
    def steps(self) -> tuple[tuple[str, str, float], ...]:
        """From each label to the next, and how many points that is."""
        return tuple((a, b, round(y - x, 10)) for (a, x), (b, y) in zip(self.labels, self.labels[1:], strict=False))


def label_steps(rubrics: Sequence[Rubric]) -> tuple[LabelSteps, ...]:
    """Return how many points lie between neighboring labels, rubric by rubric."""
    return tuple(LabelSteps(r.id, tuple((item.label, 100 * item.value) for item in r.labels)) for r in rubrics)
