"""The explorer over all rows of a run: its page, and the compact index that its script filters.

Reads the receipts of an edition; yields the page, `rows.json` (the plan of rows and every dictionary) and `rows.bin`.
For each model in the order of `models`, `rows.bin` holds little-endian uint16 `outcome` of every planned row (0: no
such row, else 1 + place in `outcomes`), then uint8 `flags` of every planned row (bits: FLAGS), padded to an even
length. Planned rows stand in the order of the plan: attributes, concepts, framings, groups, repeats as `rows.json`
lists them. So a run of 60,000 rows is about 180 kB, and no text of a prompt or response is in it.

See contract: publication, "Receipt pages".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from generator.edition import paths
from generator.edition.edition import Edition
from generator.html.frame import concept_title, frame, render_page
from generator.runs.reader import read_shard
from generator.runs.vote_checks import vote_columns
from generator.schema.canonical import canonical_json, sha256_hex
from generator.schema.names import shard_name
from generator.schema.verdict import SCORE_TOLERANCE, STATUSES

READER = "set.html"  # beside the explorer (paths.set_reader)
# Bits of a row's flags, lowest first; the script and the address of a filtered view use these names.
FLAGS = ("disagree", "leak", "truncated", "mismatch", "filtered")
# The filters of the page, by the names that the script and the address use.
SELECTS = {
    "model": "Model",
    "attribute": "Attribute",
    "category": "Category",
    "concept": "Concept",
    "group": "Group",
    "framing": "Framing",
    "status": "Status",
    "label": "Final label",
}
BOXES = {
    "disagree": f"whose primary judges disagree (scores: over {SCORE_TOLERANCE} points apart)",
    "contested": "that are contested",
    "leak": "with a mask leak",
    "truncated": "cut at the length limit",
    "mismatch": "whose verdict word and reasoning disagree",
    "filtered": "refused by the vendor’s filter",
}
_COLUMNS = (
    "concept",
    "framing",
    "group",
    "repeat",
    "category",
    "rubric",
    "final_label",
    "value",
    "status",
    "mask_leak",
    "finish_reason",
    "votes",
)
RowOutcome = tuple[str, str | None, float | None]


@dataclass(frozen=True)
class IndexedRows:
    """One model's rows: places in the plan, outcome (status, label, value) of each, and its flags as bits."""

    model: str
    places: npt.NDArray[np.int64]
    outcomes: list[RowOutcome]
    flags: npt.NDArray[np.uint8]


def index_paths(run_id: str) -> tuple[str, str]:
    """Return where `rows.json` and `rows.bin` of a run live, below dist/."""
    folder = paths.explorer_page(run_id).rpartition("/")[0]
    return f"{folder}/rows.json", f"{folder}/rows.bin"


def _flags(table: pa.Table, edition: Edition) -> npt.NDArray[np.uint8]:
    """Return the bits of FLAGS for every row."""
    votes = vote_columns(table, edition.run.bank)
    both = (votes.n >= 2) & (votes.failed[:, 0] == 0) & (votes.failed[:, 1] == 0)
    scores = (votes.score[:, 0] >= 0) & (votes.score[:, 1] >= 0)
    apart = np.abs(votes.score[:, 0] - votes.score[:, 1]) > SCORE_TOLERANCE
    differ = np.where(scores, apart, votes.label[:, 0] != votes.label[:, 1])
    bits = (
        both & differ,
        pc.fill_null(table["mask_leak"], False).to_numpy(zero_copy_only=False),
        pc.fill_null(pc.equal(table["finish_reason"], "length"), False).to_numpy(zero_copy_only=False),
        (votes.matches[:, :2] == 0).any(axis=1),
        pc.equal(table["status"], "refused").to_numpy(zero_copy_only=False) & (votes.n == 0),
    )
    total = np.zeros(table.num_rows, np.uint8)
    for place, bit in enumerate(bits):
        total |= bit.astype(np.uint8) << np.uint8(place)
    return total


def model_rows(edition: Edition, model: str) -> IndexedRows:
    """Read what the index holds of one model; rows of withheld categories are left out."""
    table = read_shard(edition.run, model, _COLUMNS)
    withheld = pa.array(sorted(edition.standing.withheld), pa.string())
    table = table.filter(pc.invert(pc.is_in(table["category"], value_set=withheld)))
    columns = (table[name].to_pylist() for name in ("status", "final_label", "value"))
    places = edition.run.layout.positions(table)
    return IndexedRows(model, places, list(zip(*columns, strict=True)), _flags(table, edition))


def _outcome_order(outcome: RowOutcome) -> tuple[int, str, float]:
    status, label, value = outcome
    return STATUSES.index(status), label or "", -1.0 if value is None else value


def packed(rows: list[IndexedRows], size: int) -> tuple[list[RowOutcome], bytes]:
    """Return the dictionary of outcomes and the bytes of `rows.bin`; `size` is the number of planned rows."""
    outcomes = sorted({o for model in rows for o in model.outcomes}, key=_outcome_order)
    code = {outcome: i + 1 for i, outcome in enumerate(outcomes)}
    parts = []
    for model in rows:
        outcome = np.zeros(size, "<u2")
        outcome[model.places] = [code[o] for o in model.outcomes]
        flags = np.zeros(size + size % 2, np.uint8)
        flags[model.places] = model.flags
        parts += [outcome.tobytes(), flags.tobytes()]
    return outcomes, b"".join(parts)


def _attributes(edition: Edition) -> list[dict[str, Any]]:
    """Return the plan's blocks with what the filters show of them."""
    bank = edition.run.bank
    found = []
    for block in edition.run.layout.blocks:
        groups = {g.id: g.label for g in bank.attribute[block.attribute].groups}
        found.append(
            {
                "id": block.attribute,
                "label": bank.attribute[block.attribute].label,
                "framings": block.framings,
                "groups": [{"id": g, "label": groups[g]} for g in block.groups],
                "concepts": [
                    {"id": c, "title": concept_title(c), "category": bank.concept[c].category} for c in block.concepts
                ],
            }
        )
    return found


def _index(edition: Edition, outcomes: list[RowOutcome], data: bytes) -> dict[str, Any]:
    manifest = edition.run.manifest
    judges = {m.model: m.panel.size for m in manifest.models}
    return {
        "run": manifest.run_id,
        "repeats": manifest.repeats,
        "size": edition.run.layout.size,
        "attributes": _attributes(edition),
        "models": [{"id": m, "judges": judges[m], "shard": shard_name(m)} for m in edition.run.models],
        "outcomes": [{"status": s, "label": label, "value": value} for s, label, value in outcomes],
        "flags": FLAGS,
        "sha256": sha256_hex(data),
        **({"reader": READER} if edition.mode == "files" else {}),
    }


def _counts(rows: IndexedRows) -> list[int]:
    return [sum(o[0] == status for o in rows.outcomes) for status in STATUSES]


def render_explorer(edition: Edition) -> Iterator[tuple[str, bytes]]:
    """Yield (path below dist/, bytes) of the two index files, the explorer's page and, in files mode, the reader's."""
    run_id = edition.run_id
    page, (json_path, bin_path) = paths.explorer_page(run_id), index_paths(run_id)
    rows = [model_rows(edition, model) for model in edition.run.models]
    outcomes, data = packed(rows, edition.run.layout.size)
    files = {json_path: canonical_json(_index(edition, outcomes, data)) + b"\n", bin_path: data}
    yield from files.items()
    context = frame(
        edition,
        page,
        "Receipts",
        description=f"Every answer of run {run_id} with its votes: filter, search and read.",
        section="receipts",
        crumbs=[(edition.run_name, paths.run_index(run_id)), ("Receipts", None)],
        scripts=(),
        modules=("explorer/start.js",),
    )
    models = [
        {"model": m.model, "rows": len(m.outcomes), "counts": _counts(m), "href": context["link"](list_page)}
        for m in rows
        for list_page in (paths.receipts_list(run_id, m.model),)
    ]
    values = {
        "models": models,
        "statuses": STATUSES,
        "selects": SELECTS,
        "boxes": BOXES,
        "total": sum(len(m.outcomes) for m in rows),
        "judges": {m.model: m.panel.size for m in edition.run.manifest.models},
        "index_files": _addresses(context, files),
        "sums": context["link"](paths.data_file(run_id, "SHA256SUMS")),
    }
    yield page, render_page("explorer.html", context, **values)
    if edition.mode == "files":
        yield _reader(edition, files)


def _reader(edition: Edition, files: Mapping[str, bytes]) -> tuple[str, bytes]:
    """Return the page that reads a matched set from the published files."""
    run_id = edition.run_id
    page = paths.set_reader(run_id)
    context = frame(
        edition,
        page,
        "A matched set",
        description=f"Every answer of one model of run {run_id} to one concept, read from the published files.",
        section="receipts",
        crumbs=[(edition.run_name, paths.run_index(run_id)), ("Receipts", paths.explorer_page(run_id)), ("Set", None)],
        scripts=(),
        modules=("explorer/reader.js",),
    )
    values = {"index_files": _addresses(context, files), "sums": context["link"](paths.data_file(run_id, "SHA256SUMS"))}
    return page, render_page("set_reader.html", context, **values)


def _addresses(context: Mapping[str, Any], files: Mapping[str, bytes]) -> list[str]:
    """Return the addresses of the two index files, with their hashes.

    So a browser never joins a stored copy of one with a newer copy of the other.
    """
    return [f"{context['link'](path)}?{sha256_hex(body)[:12]}" for path, body in files.items()]
