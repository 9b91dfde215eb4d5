"""Every check of a shard of receipts against manifest, bank and voting rules, one column at a time.

Nothing is read here: a table comes in, faults go out. Arrays run over the rows as they stand in the file.

See contract: run-folder, "What a reader checks".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from generator.runs.outcome_checks import check_outcomes
from generator.runs.vote_checks import HASH, check_votes
from generator.schema.bank import Bank
from generator.schema.canonical import id_ending, receipt_ids, sha256_hex
from generator.schema.columns import LATEST_FORMAT, RECEIPT_SCHEMA, receipt_columns
from generator.schema.layout import Layout
from generator.schema.manifest import Manifest
from generator.schema.parquet_files import unsound
from generator.schema.verdict import STATUSES

BoolArray = npt.NDArray[np.bool_]
SHOWN_ROWS = 3
# What follows from the bank's template, but where prompts of a set only treat the same topic.
_OF_A_PROMPT = ("group_np", "prompt", "prompt_sha256", "swap_start", "swap_end")
_SAID = 64


@dataclass
class ShardFaults:
    """The faults of one shard. A check that fails on many rows names the first three and counts the others."""

    file: str
    ids: pa.ChunkedArray
    faults: list[str] = field(default_factory=list)

    def rows(self, bad: BoolArray, column: str, say: Callable[[int], str]) -> None:
        """Record rows that fail a check.

        Args:
            bad: which rows fail, bool array (rows,).
            column: name of the column at fault.
            say: tells of a row, counted from 0, what was seen and what is allowed.
        """
        found = np.flatnonzero(bad)
        for row in found[:SHOWN_ROWS]:
            name = self.ids[int(row)].as_py()
            self.faults.append(f"{self.file}: row {row + 1} ({name}), column {column}: {say(int(row))}")
        if len(found) > SHOWN_ROWS:
            self.faults.append(f"{self.file}: column {column}: {len(found) - SHOWN_ROWS:,} more rows with this fault")

    def __bool__(self) -> bool:
        """Whether anything was found."""
        return bool(self.faults)


@dataclass(frozen=True)
class RowExpectations:
    """What a run's manifest and bank say about every planned row."""

    manifest: Manifest
    bank: Bank
    layout: Layout

    @cached_property
    def expected(self) -> pa.Table:
        """The columns that follow from the bank alone: a row per prompt, in canonical order.

        Repeats of a prompt differ in nothing that the bank knows: a planned row's place divided by the repeats is the
        place of its prompt.
        """
        bank, rows = self.bank, []
        for block in self.layout.blocks:
            groups = bank.groups_of(block.attribute)
            for name in block.concepts:
                concept = bank.concept[name]
                rubric = bank.rubric[concept.rubric]
                for framing in block.framings:
                    for group in groups:
                        prompt = bank.render(concept, framing, group)
                        rows.append(
                            {
                                "attribute": block.attribute,
                                "category": concept.category,
                                "rubric": rubric.id,
                                "rubric_sha256": rubric.sha256,
                                "group_np": prompt.np,
                                "prompt": prompt.text,
                                "prompt_sha256": sha256_hex(prompt.text),
                                "swap_start": prompt.start,
                                "swap_end": prompt.end,
                                "polarity": concept.polarity,
                                "two_sided": concept.two_sided,
                            }
                        )
        names = list(rows[0]) if rows else []
        return pa.Table.from_pylist(rows, schema=pa.schema([RECEIPT_SCHEMA.field(n) for n in names]))

    def receipt_ids(self, model: str, positions: Iterable[int]) -> list[str]:
        """Return the receipt ids that rows must have (contract: receipts, "Receipt id").

        Args:
            model: slug of the model.
            positions: places of the rows in the plan, see `Layout`.
        """
        manifest, endings = self.manifest, self.id_endings
        return receipt_ids(
            run_id=manifest.run_id,
            bank_sha256=manifest.bank_sha256,
            model=model,
            endings=(endings[position] for position in positions),
        )

    @cached_property
    def id_endings(self) -> tuple[bytes, ...]:
        """What of a receipt id's hash is the same for every model: an ending for every planned row."""
        return tuple(id_ending(*key[1:]) for key in self.layout.keys)


def check_columns(table: pa.Table, manifest: Manifest, file: str) -> list[str]:
    """Return the faults of a shard's columns: missing, unknown, of another type, unreadable, or null where none may be.

    The columns are those of the manifest's format. Only an imported run may lack what its source did not have
    (contract: receipts, "Imported runs").
    """
    columns = receipt_columns(manifest.format)
    faults = _format_faults(table, manifest, file)
    for column in columns:
        if column.name not in table.column_names:
            faults.append(f"{file}: column {column.name} is missing; it is {column.type}")
            continue
        found = table.column(column.name)
        if found.type != column.type:
            faults.append(f"{file}: column {column.name} has type {found.type}; it is {column.type}")
        elif found.null_count and (not column.null or (column.imported and manifest.imported is None)):
            row = pc.index(pc.is_null(found), value=True).as_py()
            but = " of a run that is not imported" if column.imported and column.null else ""
            faults.append(f"{file}: row {row + 1}, column {column.name}: null; every row{but} needs a value")
        elif fault := _unsound(found):
            faults.append(f"{file}: column {column.name}: {fault}")
    known = {column.name for column in columns}
    faults += [f"{file}: unknown column {name}" for name in table.column_names if name not in known]
    faults += [f"{file}: column {name} stands twice" for name in known if table.column_names.count(name) > 1]
    return faults


def _format_faults(table: pa.Table, manifest: Manifest, file: str) -> list[str]:
    """Compare the format in a shard's metadata with that of the manifest. Shards of format 1 name none."""
    told = (table.schema.metadata or {}).get(b"format", b"1").decode(errors="replace")
    if told == str(manifest.format):
        return []
    return [f"{file}: metadata: format is {told[:_SAID]!r}; the manifest is of format {manifest.format}"]


def _unsound(column: pa.ChunkedArray) -> str | None:
    """Return why a column cannot be used, or None: Parquet lets text that is not UTF-8 and null items through."""
    if odd := unsound(column):
        return odd
    if pa.types.is_list(column.type) and pc.list_flatten(column).null_count:
        return "a list with a null in it; every item needs a value"
    return None


def check_rows(table: pa.Table, model: str, plan: RowExpectations, file: str) -> list[str]:
    """Return the faults of a shard whose columns are right.

    Args:
        table: the shard with the columns of the latest format.
        model: slug of the model whose shard it is.
        plan: what the run says about every row.
        file: the path that faults name.
    """
    found = ShardFaults(file, table["receipt_id"])
    positions = plan.layout.positions(table)
    _check_constants(table, model, plan, found)
    _check_keys(table, positions, found)
    # Without right keys a row cannot be matched with the plan, and every later check would only repeat the fault.
    if found:
        return found.faults
    _check_bank_columns(table, positions, plan, found)
    ids = pa.array(plan.receipt_ids(model, positions), pa.string())
    _check_equal(table["receipt_id"], ids, "receipt_id", found)
    _check_answers(table, found, imported=plan.manifest.imported is not None)
    if not found and plan.manifest.format >= LATEST_FORMAT:
        check_outcomes(table, found, imported=plan.manifest.imported is not None)
    if not found:
        check_votes(table, plan, plan.manifest.model(model).panel, found)
    return found.faults


def _say(seen: Any, allowed: Any) -> str:
    return f"saw {str(seen)[:_SAID]!r}, expected {str(allowed)[:_SAID]!r}"


def _check_equal(seen: pa.ChunkedArray, expected: Any, column: str, found: ShardFaults) -> None:
    bad = pc.fill_null(pc.not_equal(seen, expected), False).to_numpy()  # nulls were judged with the columns
    if isinstance(expected, pa.Scalar):
        found.rows(bad, column, lambda row: _say(seen[row].as_py(), expected.as_py()))
    else:
        found.rows(bad, column, lambda row: _say(seen[row].as_py(), expected[row].as_py()))


def _check_constants(table: pa.Table, model: str, plan: RowExpectations, found: ShardFaults) -> None:
    manifest = plan.manifest
    constants = {
        "run_id": manifest.run_id,
        "bank_version": manifest.bank_version,
        "bank_sha256": manifest.bank_sha256,
        "harness_sha": manifest.harness_sha,
        "model": model,
    }
    for column, value in constants.items():
        _check_equal(table[column], pa.scalar(value), column, found)


def _check_keys(table: pa.Table, positions: npt.NDArray[np.int64], found: ShardFaults) -> None:
    """Find rows that are not of the bank, and rows that stand twice."""

    def key(row: int) -> str:
        return ", ".join(f"{c} {table[c][row].as_py()!r}" for c in ("concept", "framing", "group", "repeat"))

    found.rows(positions < 0, "concept", lambda row: f"the bank has no such row: {key(row)}")
    order = np.argsort(positions, kind="stable")
    again = np.zeros(len(positions), np.bool_)
    ordered = positions[order]
    # A stable order keeps the first of equal rows first, so the later one is the fault.
    again[order[1:]] = (ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)
    found.rows(again, "receipt_id", lambda row: f"the row stands twice: {key(row)}")
    late = np.flatnonzero(np.diff(positions) < 0) + 1
    if not found and len(late):  # one row that moved puts the others out of place too: only the first is of use
        first = np.arange(len(positions)) == late[0]
        rule = "rows stand in the order of attribute, concept, framing, group, repeat, ids by their bytes"
        found.rows(first, "concept", lambda row: f"out of place, it belongs further up: {key(row)}; {rule}")


def _check_bank_columns(
    table: pa.Table, positions: npt.NDArray[np.int64], plan: RowExpectations, found: ShardFaults
) -> None:
    imported = plan.manifest.imported
    free = _OF_A_PROMPT if imported is not None and imported.matched_by == "topic" else ()
    expected = plan.expected.take(positions // plan.layout.repeats)
    for column in (name for name in expected.column_names if name not in free):
        _check_equal(table[column], expected[column], column, found)
    # These prompts do not follow from the bank, so each is held against its own hash alone.
    if free:
        texts = table["prompt"].to_pylist()
        right = pa.array([None if text is None else sha256_hex(text) for text in texts], pa.string())
        _check_equal(table["prompt_sha256"], right, "prompt_sha256", found)


def _check_answers(table: pa.Table, found: ShardFaults, *, imported: bool) -> None:
    """Check what concerns the response alone: status, value range, mask spans, token counts, cost."""
    status = table["status"]
    bad = pc.invert(pc.is_in(status, pa.array(STATUSES))).to_numpy()
    found.rows(bad, "status", lambda row: _say(status[row].as_py(), ", ".join(STATUSES)))
    key = table["response_key"]
    odd = pc.fill_null(pc.invert(pc.match_substring_regex(key, HASH)), False).to_numpy()
    found.rows(odd, "response_key", lambda row: _say(key[row].as_py(), "64 hex digits or null"))
    missing = pc.not_equal(pc.is_null(table["response"]), pc.is_null(table["finish_reason"])).to_numpy()
    found.rows(
        missing & ~np.bool_(imported),
        "finish_reason",
        lambda _: "response and finish_reason are null together, where the call failed",
    )
    value = table["value"].to_numpy()
    outside = ~np.isnan(value) & ~((value >= 0) & (value <= 1))
    # In Arrow NaN is a value and no null; to_numpy shows both as NaN.
    nan = pc.fill_null(pc.is_nan(table["value"]), False).to_numpy()
    found.rows(outside | nan, "value", lambda row: f"saw {value[row]}, allowed 0 to 1 or null")
    for column in ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cost_usd"):
        numbers = table[column]
        low = pc.fill_null(pc.less(numbers, 0), False).to_numpy()
        infinite = ~np.isfinite(numbers.to_numpy()) & ~pc.is_null(numbers).to_numpy()
        found.rows(low | infinite, column, lambda row, n=numbers: f"saw {n[row].as_py()}, allowed from 0")  # type: ignore[misc]
    _check_spans(table, found)


def _check_spans(table: pa.Table, found: ShardFaults) -> None:
    """Find mask spans that are out of order, overlap, are empty, or lie outside the response."""
    spans = table["mask_spans"].combine_chunks()
    counts = pc.fill_null(pc.list_value_length(spans), 0).to_numpy()
    # One entry for each span, saying whose it is.
    row = np.repeat(np.arange(len(counts)), counts)
    flat = spans.flatten()
    start, end = (pc.fill_null(pc.struct_field(flat, f), -1).to_numpy() for f in ("start", "end"))
    length = pc.fill_null(pc.utf8_length(table["response"]), 0).to_numpy()
    # Where the span before belongs to another row, the response begins at 0.
    before = np.where(np.diff(row, prepend=-1) == 0, np.roll(end, 1), 0)
    wrong = (start < before) | (end <= start) | (end > length[row])
    bad = np.zeros(len(counts), np.bool_)
    bad[row[wrong]] = True
    found.rows(
        bad, "mask_spans", lambda r: f"saw {spans[r].as_py()}; spans are in order, apart and inside the response"
    )
