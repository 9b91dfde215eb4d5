"""Which two models differ, and where: a matrix of every pair, and a page that sets any two side by side.

The matrices show the published table `comparisons`. Side by side needs one page a run: a script lays the pages of two
models beside each other, so there is no page for each pair.

See contract: publication, "Pages"; methodology: evidence, "Comparing two models".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from generator.edition import paths
from generator.html.frame import frame, plural, render_page
from generator.pages.views import View
from generator.schema.tables import OVERALL
from generator.stats.bootstrap import round12

MOST_MODELS = 60  # a matrix of more is not read; above, models are held against those of their own tier
DIFFERENT_AT = 0.05
# By state of a pair, seen from the row: its shape, and what it says.
SHAPES = {
    "more": ("▲", "more consistent than the column’s, over all attributes at once"),
    "less": ("▼", "less consistent than the column’s, over all attributes at once"),
    "more-here": ("△", "more consistent, within this attribute alone"),
    "less-here": ("▽", "less consistent, within this attribute alone"),
    "same": ("·", "not told apart, which is not the same as equal"),
    "none": ("–", "not compared"),
}


@dataclass(frozen=True)
class Matrix:
    """The models of a matrix, each against each: rows of (model, states), states in the order of the models."""

    attribute: str
    label: str
    rows: tuple[tuple[str, tuple[str | None, ...]], ...]


@dataclass(frozen=True)
class PairBlock:
    """Models that are held against each other, with a matrix overall and for each attribute."""

    heading: str
    models: tuple[str, ...]
    matrices: tuple[Matrix, ...]


PairRows = Mapping[tuple[str, str, str], Mapping[str, Any]]


def state(row: Mapping[str, Any] | None, *, turned: bool) -> str:
    """Return the state of a pair by its row of `comparisons`; turned: the row's second model is the one asked about.

    Overall rows have no p over all attributes, and are not in need of one.
    """
    if row is None or row["p_within"] is None:
        return "none"
    if round12(row["p_within"]) > DIFFERENT_AT:
        return "same"
    side = "more" if (row["difference"] > 0) != turned else "less"
    here = row["attribute"] != OVERALL and (row["p_all"] is None or round12(row["p_all"]) > DIFFERENT_AT)
    return f"{side}-here" if here else side


def _matrix(pairs: PairRows, attribute: str, label: str, models: Sequence[str]) -> Matrix:
    def cell(one: str, other: str) -> str | None:
        if one == other:
            return None
        turned = one.encode() > other.encode()
        key = (other, one, attribute) if turned else (one, other, attribute)
        return state(pairs.get(key), turned=turned)

    return Matrix(attribute, label, tuple((one, tuple(cell(one, other) for other in models)) for one in models))


def blocks(view: View) -> list[PairBlock]:
    """Return every model against each, or above MOST_MODELS those of a tier against each other."""
    pairs = {(row["model_a"], row["model_b"], row["attribute"]): row for row in view.comparisons}
    ranked = [row["model"] for row in view.tiers if row["rank"] is not None]
    order = [*ranked, *(model for model in view.models if model not in ranked)]
    if len(order) <= MOST_MODELS:
        families = [("All models", order)]
    else:
        numbers = sorted({row["tier"] for row in view.tiers if row["tier"] is not None})
        families = [
            (f"Tier {n}", [row["model"] for row in view.tiers if row["tier"] == n][:MOST_MODELS]) for n in numbers
        ]
    fields = [(OVERALL, "Overall"), *((a.id, a.label) for a in view.demographic)]
    return [
        PairBlock(heading, tuple(models), tuple(_matrix(pairs, a, label, models) for a, label in fields))
        for heading, models in families
        if len(models) > 1
    ]


def side_query(one: str, other: str) -> str:
    """Return what follows the address of the page side by side for two models."""
    return f"?a={quote(one, safe='/')}&b={quote(other, safe='/')}"


def told_apart(view: View, attribute: str) -> tuple[int, int]:
    """Return how many pairs differ on an attribute, within it, and how many were compared."""
    rows = [row for row in view.comparisons if row["attribute"] == attribute and row["p_within"] is not None]
    return sum(round12(row["p_within"]) <= DIFFERENT_AT for row in rows), len(rows)


def render_pairs(view: View, page: str) -> bytes:
    """Render the matrices of a run."""
    found = blocks(view)
    differ, compared = told_apart(view, OVERALL)
    lede = f"{differ} of {plural(compared, 'pair')} of models differ in overall consistency."
    context = frame(
        view.edition,
        page,
        f"Which two models differ: {view.edition.run_name}",
        description=lede,
        section="leaderboard",
        crumbs=[("Leaderboard", paths.run_index(view.run_id)), ("Which two differ", None)],
    )
    return render_page(
        "pairs.html",
        context,
        view=view,
        lede=lede,
        blocks=found,
        shapes=SHAPES,
        told={a.id: told_apart(view, a.id) for a in view.demographic} | {OVERALL: (differ, compared)},
        side_query=side_query,
        whole=len(view.models) <= MOST_MODELS,
        most=MOST_MODELS,
    )


def render_side(view: View, page: str) -> bytes:
    """Render the page that sets two models side by side; without a script it links what there is of each."""
    context = frame(
        view.edition,
        page,
        f"Two models side by side: {view.edition.run_name}",
        description="Any two models of the run side by side: attributes, groups, levels and answers.",
        section="leaderboard",
        crumbs=[
            ("Leaderboard", paths.run_index(view.run_id)),
            ("Which two differ", paths.run_page(view.run_id, "pairs")),
            ("Side by side", None),
        ],
        scripts=("site.js", "side.js"),
    )
    return render_page("side.html", context, view=view)
