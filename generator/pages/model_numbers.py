"""The page behind a model's page: its other measures, all its rates, and every concept of every attribute.

See contract: publication, "Pages".
"""

from __future__ import annotations

from dataclasses import dataclass

from generator.edition import paths
from generator.html.frame import frame, render_page
from generator.pages.model import disparity_cell, rates
from generator.pages.model_level import levels
from generator.pages.views import ConceptResult, Footnotes, View
from generator.schema.bank import Attribute
from generator.schema.tables import OVERALL
from generator.scoring.lookup import ScoreRow

# The columns of the table of other measures, in its order.
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


@dataclass(frozen=True)
class NumbersPart:
    """A model's other measures on one attribute, and its concepts.

    `more` follows the columns of the table, None where a measure does not apply.
    """

    id: str
    label: str
    consistency: ScoreRow
    excess: ScoreRow
    more: tuple[ScoreRow | None, ...]
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


def more_metrics(view: View) -> tuple[str, ...]:
    """Return the metrics of the table of other measures: calibrated consistency needs the control of the upper edge."""
    return tuple(m for m in _MORE if m != "calibrated_consistency" or view.bank.roles.band_upper is not None)


def _more(view: View, model: str, attribute: str) -> tuple[ScoreRow | None, ...]:
    rows = (view.book.row(model, metric, attribute) for metric in more_metrics(view))
    return tuple(row if view.book.has(model, row.metric, attribute) else None for row in rows)


def _part(view: View, model: str, attribute: Attribute) -> NumbersPart:
    return NumbersPart(
        id=attribute.id,
        label=attribute.label,
        consistency=view.book.row(model, "consistency", attribute.id),
        excess=view.book.row(model, "excess", attribute.id),
        more=_more(view, model, attribute.id),
        results=tuple(view.concept_results(model, attribute.id)),
    )


def render_numbers(view: View, model: str) -> bytes:
    """Render the page behind a model's page."""
    page = paths.numbers_page(view.run_id, model)
    context = frame(
        view.edition,
        page,
        f"All numbers of {model}",
        description=f"Every measure of {model}, and every concept behind its scores.",
        section="leaderboard",
        crumbs=[
            ("Leaderboard", paths.run_index(view.run_id)),
            (model, paths.model_page(view.run_id, model)),
            ("All numbers", None),
        ],
    )
    return render_page(
        "numbers.html",
        context,
        view=view,
        model=model,
        entry=view.manifest.model(model),
        fn=Footnotes(page),
        whole={"id": OVERALL, "label": "Overall", "more": _more(view, model, OVERALL)},
        attributes=[_part(view, model, a) for a in view.demographic],
        controls=[_part(view, model, a) for a in view.controls],
        more_metrics=more_metrics(view),
        disparity=disparity_cell(view, model),
        rates=rates(view, model, _RATES),
        levels=levels(view, model),
        asked=view.asked[model],
    )
