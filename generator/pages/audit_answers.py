"""The audited answers on which reviewer and panel differ, each with its place: an audit's way to its receipts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from generator.html.receipt_words import vote_text
from generator.pages.views import View
from generator.runs.reader import read_shard

_PLACE = ("concept", "framing", "group", "repeat")


@dataclass(frozen=True)
class Differing:
    """One audited answer with two labels, each judge's vote in a word, and the page of its receipt."""

    receipt_id: str
    model: str
    concept: str
    framing: str
    group_label: str
    repeat: int
    page: str
    rubric: str
    final_label: str
    human_label: str
    votes: tuple[str, ...]


def differing(view: View) -> list[Differing]:
    """Return the answers on which they differ, by rubric, then model, then place; withheld categories have no pages."""
    rows = {r["receipt_id"]: r for r in view.edition.scored.tables["human_audit"].to_pylist() if not r["agrees"]}
    ids = pa.array(rows, pa.string())
    found = [one for model in (view.models if rows else ()) for one in _of_model(view, model, rows, ids)]
    order = {rubric.id: place for place, rubric in enumerate(view.bank.rubrics)}
    return sorted(found, key=lambda one: order[one.rubric])


def _of_model(view: View, model: str, rows: Mapping[str, Mapping[str, Any]], ids: pa.Array) -> list[Differing]:
    table = read_shard(view.edition.run, model, ["receipt_id", *_PLACE, "votes"])
    found = []
    for own in table.filter(pc.is_in(table["receipt_id"], value_set=ids)).to_pylist():
        concept = view.bank.concept[own["concept"]]
        if concept.category in view.withheld:
            continue
        row, labels = rows[own["receipt_id"]], {g.id: g.label for g in view.bank.attribute[concept.attribute].groups}
        found.append(
            Differing(
                receipt_id=own["receipt_id"],
                model=model,
                concept=concept.id,
                framing=own["framing"],
                group_label=labels[own["group"]],
                repeat=own["repeat"],
                page=view.edition.row_address(model, *(own[name] for name in _PLACE)),
                rubric=row["rubric"],
                final_label=row["final_label"],
                human_label=row["human_label"],
                votes=tuple(vote_text(vote) for vote in own["votes"]),
            )
        )
    return found
