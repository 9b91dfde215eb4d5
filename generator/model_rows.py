"""A model's shard as arrays over the bank's plan: the one step between receipts and statistics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from generator.audit_scores import Strata, strata_of
from generator.schema.bank import Bank
from generator.schema.layout import Block, Layout
from generator.schema.verdict import STATUSES
from generator.shards import Run, read_shard
from generator.stats.cells import ABSENT, IntArray, Rows
from generator.vote_checks import VoteColumns, vote_columns

COLUMNS = (
    "attribute", "concept", "framing", "group", "repeat", "rubric", "value", "status", "final_label", "finish_reason",
    "mask_leak", "votes", "receipt_id",
)  # fmt: skip
CUT = "length"


@dataclass(frozen=True)
class ModelRows:
    """One model's rows.

    rows: by attribute. pairs: (rows, 3) of concept place, first and second primary's label code for each row with two
    valid primary votes; a code is the index on the rubric's scale, or REFUSED. strata: its part in the audit's draw,
    empty where there is no audit.
    """

    model: str
    rows: dict[str, Rows]
    pairs: IntArray
    strata: Strata


def concept_places(layout: Layout) -> dict[str, int]:
    """Return each concept's place when the attributes' concepts stand one after the other."""
    names = [name for block in layout.blocks for name in block.concepts]
    return {name: i for i, name in enumerate(names)}


def read_model(run: Run, model: str) -> ModelRows:
    """Read a shard and spread it over the plan."""
    table = read_shard(run, model, COLUMNS)
    positions = run.layout.positions(table)
    votes = vote_columns(table, run.bank)
    flat = _spread(table, positions, votes, run.layout.size)
    rows = {block.attribute: _block_rows(flat, block, run.bank) for block in run.layout.blocks}
    strata = Strata() if run.audit is None else strata_of(run, table)
    return ModelRows(model, rows, _pairs(table, votes, run.layout), strata)


def _spread(table: pa.Table, positions: IntArray, votes: VoteColumns, size: int) -> dict[str, np.ndarray]:
    """Return the arrays of `Rows` over the whole plan, absent rows at their empty value."""
    status_of = {name: code for code, name in enumerate(STATUSES)}
    status = table["status"].combine_chunks().dictionary_encode()
    codes = np.array([status_of[s] for s in status.dictionary.to_pylist()], np.int8)[status.indices.to_numpy()]
    label = table["final_label"].combine_chunks().dictionary_encode()
    says = votes.matches[:, :2] >= 0
    columns: dict[str, tuple[np.ndarray, object]] = {
        "values": (table["value"].to_numpy(), np.nan),
        "status": (codes, ABSENT),
        "label": (pc.fill_null(label.indices, -1).to_numpy().astype(np.int16), -1),
        "answered": (pc.is_valid(table["finish_reason"]).to_numpy(), False),
        "cut": (pc.fill_null(pc.equal(table["finish_reason"], CUT), False).to_numpy(), False),
        "leaked": (table["mask_leak"].to_numpy(), False),
        "filtered": ((codes == status_of["refused"]) & (votes.n == 0), False),
        "verdict_votes": (says.sum(axis=1).astype(np.int8), 0),
        "mismatches": ((votes.matches[:, :2] == 0).sum(axis=1).astype(np.int8), 0),
    }
    flat = {}
    for name, (values, empty) in columns.items():
        flat[name] = np.full(size, empty, values.dtype)
        flat[name][positions] = values
    return flat


def _block_rows(flat: dict[str, np.ndarray], block: Block, bank: Bank) -> Rows:
    polarity = np.array([bank.concept[name].polarity for name in block.concepts], np.int8)
    return Rows(polarity=polarity, **{name: values[block.rows].reshape(block.shape) for name, values in flat.items()})


def _pairs(table: pa.Table, votes: VoteColumns, layout: Layout) -> IntArray:
    """Return (concept place, code, code) of the rows with two valid primary votes."""
    valid = (votes.n >= 2) & (votes.failed[:, :2] == 0).all(axis=1)
    coded = table["concept"].combine_chunks().dictionary_encode()
    places = concept_places(layout)
    place = np.array([places[name] for name in coded.dictionary.to_pylist()], np.int64)[coded.indices.to_numpy()]
    return np.asarray(np.column_stack([place, votes.label[:, 0], votes.label[:, 1]])[valid])
