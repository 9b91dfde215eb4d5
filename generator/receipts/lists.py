"""The plain list of a model's receipts: every set with its counts, and the rows that ended without a label.

See contract: publication, "Receipt pages".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from generator.edition import paths
from generator.edition.edition import Edition
from generator.html.frame import frame, render_page
from generator.runs.reader import read_shard
from generator.schema.verdict import STATUSES

_COLUMNS = ("attribute", "concept", "category", "framing", "group", "repeat", "status", "mask_leak")
_WORDS = {
    "refused": "counted as a refusal",
    "contested": "contested: the judges did not agree",
    "error": "in error: no usable answer or vote",
}


@dataclass(frozen=True)
class ListedSet:
    """One set: how many rows ended in each status (in the order of STATUSES), and mask leaks."""

    concept: str
    category: str
    counts: tuple[int, ...]
    leaks: int


@dataclass(frozen=True)
class ListedAttribute:
    """An attribute's sets."""

    id: str
    label: str
    sets: tuple[ListedSet, ...]


@dataclass(frozen=True)
class ListedRows:
    """Rows that share a property, as (concept, anchor)."""

    text: str
    rows: tuple[tuple[str, str], ...]


def render_list(edition: Edition, model: str) -> tuple[str, bytes]:
    """Return (path below dist/, bytes) of a model's list."""
    run_id, bank = edition.run_id, edition.run.bank
    page = paths.receipts_list(run_id, model)
    table = read_shard(edition.run, model, _COLUMNS)
    withheld = pa.array(sorted(edition.standing.withheld), pa.string())
    table = table.filter(pc.invert(pc.is_in(table["category"], value_set=withheld)))
    sets = _sets(table)
    attributes = tuple(
        ListedAttribute(a.id, a.label, found) for a in bank.attributes if (found := tuple(sets.get(a.id, ())))
    )
    title = f"Receipts of {model}"
    crumbs = ((edition.run_name, paths.run_index(run_id)), (model, paths.model_page(run_id, model)), ("Receipts", None))
    context = frame(
        edition, page, title, description=f"Every answer of {model}, set by set.", section="receipts", crumbs=crumbs
    )
    values = {
        "model": model,
        "rows": table.num_rows,
        "sets": sum(len(a.sets) for a in attributes),
        "attributes": attributes,
        "statuses": STATUSES,
        "unscored": _unscored(table),
    }
    return page, render_page("receipts_list.html", context, **values)


def _sets(table: pa.Table) -> dict[str, list[ListedSet]]:
    columns = (table[name].to_pylist() for name in ("attribute", "concept", "category", "status", "mask_leak"))
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for attribute, concept, category, status, leak in zip(*columns, strict=True):
        counter = counts.setdefault((attribute, concept, category), Counter())
        counter[status] += 1
        counter["leak"] += bool(leak)
    found: dict[str, list[ListedSet]] = {}
    for (attribute, concept, category), counter in counts.items():
        item = ListedSet(concept, category, tuple(counter[s] for s in STATUSES), counter["leak"])
        found.setdefault(attribute, []).append(item)
    return found


def _unscored(table: pa.Table) -> tuple[ListedRows, ...]:
    found = [
        ListedRows(text, _rows(table.filter(pc.equal(table["status"], status)))) for status, text in _WORDS.items()
    ]
    leaks = table.filter(pc.fill_null(table["mask_leak"], False))
    found.append(ListedRows("in which a term of the attribute survived masking", _rows(leaks)))
    return tuple(item for item in found if item.rows)


def _rows(table: pa.Table) -> tuple[tuple[str, str], ...]:
    keys = (table[name].to_pylist() for name in ("concept", "framing", "group", "repeat"))
    return tuple((c, paths.row_anchor(f, g, r)) for c, f, g, r in zip(*keys, strict=True))
