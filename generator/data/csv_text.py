r"""Arrow tables as CSV text (contract: tables, "CSV"): RFC 4180 with `\n`, the same table always giving the same bytes.

Null is an empty unquoted cell and the empty string is `""`, so a reader can tell them apart. Floats are in the
shortest form that reads back to the same double (Python's `repr`). Work is done a column at a time in Arrow: 60,000
receipts take a second or two, where a loop over cells would take half a minute.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from generator.html.text_bytes import Flags, edges_of
from generator.schema.columns import MASK_SPANS, Column, vote_fields

# Position in `votes` and what its flattened columns are called: votes stand in panel order
# (contract: receipts, "Votes").
VOTE_PREFIXES = ("judge_1", "judge_2", "tiebreak")
# A spreadsheet runs a cell that begins so; the apostrophe itself is in the list so that taking the guard off is exact.
_FORMULA = b"=+-@\t\r'"
_NEEDS_QUOTES = r'[",\r\n]'
_BATCH_ROWS = 16_384


def csv_columns(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns of a table's CSV form: `votes` flattened, one column a field of each place in the panel."""
    flat: list[Column] = []
    for column in columns:
        if fields := vote_fields(column.type):
            flat.extend(_vote_column(prefix, field) for prefix in VOTE_PREFIXES for field in fields)
        elif column.type == MASK_SPANS:
            flat.append(dataclasses.replace(column, type=pa.string(), raw=True))
        else:
            flat.append(column)
    return tuple(flat)


def _vote_column(prefix: str, field: Column) -> Column:
    null = f"no such vote, or {field.null}" if field.null else "no such vote"
    return dataclasses.replace(field, name=f"{prefix}_{field.name}", null=null)


def csv_bytes(table: pa.Table, columns: Sequence[Column]) -> bytes:
    """Return a table as one CSV file with its header.

    `columns` describes the table: same names, same order. Raises ValueError when they differ, or on a NaN or infinity
    (missing is null, never NaN).
    """
    return b"".join(csv_chunks(table, columns))


def csv_within(table: pa.Table, columns: Sequence[Column], limit: int) -> bytes | None:
    """Return `csv_bytes` of a table, or None as soon as it passes `limit` bytes: memory stays below that."""
    parts, size = [], 0
    for chunk in csv_chunks(table, columns):
        size += len(chunk)
        if size > limit:
            return None
        parts.append(chunk)
    return b"".join(parts)


def csv_chunks(table: pa.Table, columns: Sequence[Column]) -> Iterator[bytes]:
    """Yield the header and then the rows in blocks: the parts of `csv_bytes`, for tables too large to hold twice."""
    expected = [column.name for column in columns]
    if table.column_names != expected:
        raise ValueError(f"the table has columns {table.column_names}, its description {expected}")
    yield (",".join(column.name for column in csv_columns(columns)) + "\n").encode()
    for start in range(0, table.num_rows, _BATCH_ROWS):
        cells: list[pa.Array] = []
        for column in columns:
            block = table[column.name].slice(start, _BATCH_ROWS).combine_chunks()
            values = block.combine_chunks() if isinstance(block, pa.ChunkedArray) else block
            cells.extend(_cells(values, column))
        lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*cells, ","), "", "\n")
        # The texts of a column lie one after the other: with its line feed each, that is the file.
        yield bytes(memoryview(lines.buffers()[2])[: edges_of(lines)[-1]])


def unguard(text: str) -> str:
    """Take the formula guard off a cell of a guarded column: one leading apostrophe, where there is one."""
    return text[1:] if text.startswith("'") else text


def _cells(values: pa.Array, column: Column) -> list[pa.Array]:
    """Return the text cells of one column, no nulls; `votes` gives one array for each flattened column."""
    if fields := vote_fields(column.type):
        return _vote_cells(values, fields)
    if column.type == MASK_SPANS:
        return [pa.array([_spans(item) for item in values.to_pylist()], pa.string())]
    return [_scalar_cells(values, raw=column.raw)]


def _scalar_cells(values: pa.Array, *, raw: bool) -> pa.Array:
    if pa.types.is_floating(values.type):
        text = _float_text(values)
    elif pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        text = _string_text(values.cast(pa.string()), raw=raw)
    elif pa.types.is_boolean(values.type) or pa.types.is_integer(values.type):
        text = values.cast(pa.string())
    else:
        raise ValueError(f"no CSV form for the type {values.type}")
    return pc.fill_null(text, "")


def _float_text(values: pa.Array) -> pa.Array:
    """Format each distinct number once: values of receipts and cells repeat a great deal."""
    coded = values.cast(pa.float64()).dictionary_encode()
    numbers = coded.dictionary.to_pylist()
    if not pc.all(pc.is_finite(coded.dictionary), min_count=0).as_py():
        raise ValueError("a table to publish holds NaN or infinity; missing is null")
    return pa.array([repr(number) for number in numbers], pa.string()).take(coded.indices)


def _string_text(values: pa.Array, *, raw: bool) -> pa.Array:
    if not raw and (guarded := _starting(values, _FORMULA)).any():
        values = _between(values, pa.array(["", "'"]).take(pa.array(guarded.astype(np.int8))), "")
    quoted = pc.or_(pc.match_substring_regex(values, _NEEDS_QUOTES), pc.equal(values, ""))
    if not pc.any(quoted).as_py():
        return values
    mark = pa.array(["", '"']).take(pc.cast(quoted, pa.int8()))
    return _between(pc.replace_substring(values, '"', '""'), mark, mark)


def _between(values: pa.Array, before: pa.Array, after: pa.Array | str) -> pa.Array:
    """Return texts with something before and after each; null stays null."""
    return pc.binary_join_element_wise(before, values, after, "")


def _starting(values: pa.Array, characters: bytes) -> Flags:
    """Return which texts begin with one of some ASCII characters: bool array (texts,), False for null."""
    edges = edges_of(values)
    data = np.frombuffer(values.buffers()[2] or b"\0", np.uint8)
    first = data[np.minimum(edges[:-1], len(data) - 1)]
    found: Flags = np.isin(first, np.frombuffer(characters, np.uint8)) & (np.diff(edges) > 0)
    found &= values.is_valid().to_numpy(zero_copy_only=False)
    return found


def _vote_cells(values: pa.Array, fields: Sequence[Column]) -> list[pa.Array]:
    """Flatten `votes` (list of struct) to a text array for each place in the panel and field.

    Raises ValueError when a row has more votes than the panel has places, so that none is dropped unseen.
    """
    lengths = pc.fill_null(pc.list_value_length(values), 0)
    if len(values) and pc.max(lengths).as_py() > len(VOTE_PREFIXES):
        raise ValueError(f"a row has {pc.max(lengths).as_py():,} votes; a panel has at most {len(VOTE_PREFIXES)}")
    flat = values.flatten()
    starts = pc.subtract(pc.cumulative_sum(lengths), lengths)
    cells: list[pa.Array] = []
    for place in range(len(VOTE_PREFIXES)):
        present = pc.greater(lengths, place)
        index = pc.if_else(present, pc.add(starts, place), pa.scalar(None, starts.type))
        votes = flat.take(index)
        cells.extend(_scalar_cells(pc.struct_field(votes, field.name), raw=field.raw) for field in fields)
    return cells


def _spans(spans: list[dict[str, int]] | None) -> str:
    """Return `start-end;start-end`; no span is an empty cell."""
    return ";".join(f"{span['start']}-{span['end']}" for span in spans or ())
