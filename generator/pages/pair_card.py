"""One matched pair for each finding, chosen by a rule that flatters nobody and with its caveat on it.

The rule: of the concepts of the finding on which both groups have a scored answer in one framing, the one with the
median disparity, of two middle ones the smaller. (contract: publication, "Findings")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
from markupsafe import Markup

from generator.html.favor import favor
from generator.html.frame import cell, marked, visible
from generator.pages.views import ConceptResult, View
from generator.runs.reader import read_shard
from generator.schema.bank import Group
from generator.scoring.findings import Moved

_LONGEST = 360  # characters of a response; the receipt has all of it
_COLUMNS = (
    "receipt_id", "concept", "framing", "group", "repeat", "status", "final_label", "value", "prompt", "swap_start",
    "swap_end", "response", "mask_spans",
)  # fmt: skip


@dataclass(frozen=True)
class CardSide:
    """One of the two answers: its group, prompt, response, label with the direction of its chip, and its receipt.

    swapped: the words of the prompt that stand for the group; empty where the run does not say which.
    """

    group: str
    prompt: Markup
    swapped: Markup
    response: Markup
    label: str
    favor: str
    page: str


@dataclass(frozen=True)
class PairCard:
    """A matched pair of a finding: concept, framing, disparity in its element, and both answers, best-treated first.

    count: how many concepts the median was taken of.
    """

    concept: str
    framing: str
    disparity: Markup
    count: int
    sides: tuple[CardSide, CardSide]


def median_concept(results: Sequence[ConceptResult]) -> ConceptResult | None:
    """Return the result with the median disparity, of two middle ones the smaller; equal ones by id; None of none."""
    known = [r for r in results if r.mean is not None]
    ranked = sorted(known, key=lambda r: (round(r.mean or 0.0, 10), r.concept.id.encode()))
    return ranked[(len(ranked) - 1) // 2] if ranked else None


def pair_cards(view: View, model: str) -> dict[str, PairCard]:
    """Return the card of each flagged attribute of a model that has one, by attribute."""
    chosen = {one.attribute.id: found for one in view.findings.of(model).flagged if (found := _choose(view, one))}
    if not chosen:
        return {}
    shard = view.edition.redactions.apply(read_shard(view.edition.run, model, list(_COLUMNS)))
    concepts = {result.concept.id for result, _, _, _ in chosen.values()}
    rows = shard.filter(pc.is_in(shard["concept"], value_set=_strings(concepts))).to_pylist()
    return {a: _card(view, model, rows, *found) for a, found in chosen.items()}


def _strings(values: set[str]) -> Any:
    import pyarrow as pa

    return pa.array(sorted(values), pa.string())


Chosen = tuple[ConceptResult, str, tuple[Group, Group], int]


def _choose(view: View, one: Moved) -> Chosen | None:
    """Return (result, framing, groups best and worst, how many concepts there were to choose from)."""
    if one.best is None or one.worst is None:
        return None
    groups = (one.best[0], one.worst[0])
    both = [
        r for r in view.concept_results(one.model, one.attribute.id) if _framing(view, one.model, r, groups) is not None
    ]
    result = median_concept(both)
    framing = None if result is None else _framing(view, one.model, result, groups)
    return None if result is None or framing is None else (result, framing, groups, len(both))


def _framing(view: View, model: str, result: ConceptResult, groups: tuple[Group, Group]) -> str | None:
    """Return the first framing in which both groups have a scored answer."""
    cells = view.cells.get((model, result.concept.id), {})
    for framing in view.bank.framings:
        counts = [cells.get((framing, group.id), {}).get("n_scored", 0) for group in groups]
        if all(counts):
            return framing
    return None


def _card(
    view: View, model: str, rows: Sequence[dict[str, Any]], result: ConceptResult, framing: str,
    groups: tuple[Group, Group], count: int,
) -> PairCard:  # fmt: skip
    concept = result.concept
    own = [r for r in rows if (r["concept"], r["framing"], r["status"]) == (concept.id, framing, "scored")]
    first, second = (min((r for r in own if r["group"] == g.id), key=lambda r: r["repeat"]) for g in groups)
    value = view.disparities[model, concept.id][framing]["disparity"]
    return PairCard(
        concept=concept.id,
        framing=framing,
        disparity=cell("disparities", f"{model},{concept.id},{framing}", "disparity", value, 1, scale=100),
        count=count,
        sides=(
            _side(view, model, first, groups[0], concept.polarity),
            _side(view, model, second, groups[1], concept.polarity),
        ),
    )


def _side(view: View, model: str, row: dict[str, Any], group: Group, polarity: int) -> CardSide:
    prompt = row["prompt"] or ""
    swap = [] if row["swap_start"] is None else [(row["swap_start"], row["swap_end"])]
    response = row["response"] or ""
    short = response if len(response) <= _LONGEST else f"{response[:_LONGEST]} …"
    return CardSide(
        group=group.label,
        prompt=marked(prompt, swap) if prompt else Markup(),
        swapped=visible(prompt[slice(*swap[0])]) if swap else Markup(),
        response=visible(short),
        label=row["final_label"],
        favor=favor(row["value"], polarity),
        page=view.edition.row_address(model, row["concept"], row["framing"], row["group"], row["repeat"]),
    )
