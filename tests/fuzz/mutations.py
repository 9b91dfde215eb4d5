"""Ways to spoil a file: bytes, text, parsed JSON, columns of Parquet. Each draws from the dice it is handed."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Mutation = Callable[[bytes, random.Random], bytes]

TEXTS = (
    "", " ", "\x00", "\x1b[31m", "\x1f", "\u202e", "\ud800", "\ufeff", "é" * 40, "a" * 70_000, "../../etc/passwd",
    "a/b/c", "con", "sim-x/y", "NaN", "-0", "1e999", "9" * 5_000, "2026-02-30", "<script>", "=1+1", "{group_np}",
    "REFUSAL", "\n", "null",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**64, 10**30, -(2**63), 0.1, 1e308, float("nan"), float("inf"), [], {},
    [[]], [None], {"": None}, {"a": {"a": {"a": []}}}, *TEXTS,
)  # fmt: skip
PIECES = (
    b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\r", b"\n" * 50, b'"', b"'", b"[" * 3_000, b"{" * 300, b"\\ud800",
    b"1e999", b"9" * 5_000, b"NaN", b"-", b",", b"=", b"#", b"\xef\xbb\xbf", b'"""', b"a.b.c.d = 1\n", b"[[models]]\n",
    b"\x1b]0;x\x07",
)  # fmt: skip


def spoiled_bytes(data: bytes, dice: random.Random) -> bytes:
    """Flip, cut, double, move or put in bytes at a few places."""
    found = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 5, 30))):
        at = dice.randrange(len(found) + 1)
        end = min(len(found), at + dice.choice((1, 2, 8, 100, 5_000)))
        match dice.randrange(6):
            case 0 if at < len(found):
                found[at] ^= 1 << dice.randrange(8)
            case 1:
                del found[at:end]
            case 2:
                found[at:at] = found[at:end]
            case 3:
                found[at:at] = dice.choice(PIECES)
            case 4:
                found[at:end] = dice.randbytes(end - at)
            case _ if dice.random() < 0.1:
                del found[at:]
    return bytes(found)


def spoiled_json(data: bytes, dice: random.Random) -> bytes:
    """Replace, remove, add or double values of a JSON document."""
    document = json.loads(data)
    for _ in range(dice.choice((1, 1, 1, 3))):
        document = _changed(document, dice)
    return json.dumps(document).encode("utf-8", "surrogatepass")


def _changed(value: Any, dice: random.Random) -> Any:
    if isinstance(value, dict) and value and dice.random() < 0.9:
        key = dice.choice(list(value))
        match dice.randrange(8):
            case 0:
                return {k: v for k, v in value.items() if k != key}
            case 1:
                return {**value, dice.choice(TEXTS): value[key]}
            case _:
                return {**value, key: _changed(value[key], dice)}
    if isinstance(value, list) and value and dice.random() < 0.9:
        at = dice.randrange(len(value))
        match dice.randrange(8):
            case 0:
                return [*value[:at], *value[at + 1 :]]
            case 1:
                return [*value, value[at]]
            case _:
                return [*value[:at], _changed(value[at], dice), *value[at + 1 :]]
    return dice.choice(VALUES)


def spoiled_parquet(data: bytes, dice: random.Random) -> bytes:
    """Change columns and rows of a Parquet file: values, nulls, types, names, order."""
    table = pq.read_table(pa.BufferReader(data))
    for _ in range(dice.choice((1, 1, 2))):
        table = _changed_table(table, dice)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression=dice.choice(("zstd", "snappy", "none")), use_dictionary=dice.random() < 0.8)
    return sink.getvalue()


def _changed_table(table: pa.Table, dice: random.Random) -> pa.Table:
    if table.num_columns == 0:
        return table
    at = dice.randrange(table.num_columns)
    name, rows = table.column_names[at], table.num_rows
    match dice.randrange(7):
        case 0:
            return table.remove_column(at)
        case 1:
            return table.rename_columns([dice.choice(TEXTS[:12]) if n == name else n for n in table.column_names])
        case 2:
            return table.take(pa.array([dice.randrange(rows) for _ in range(rows)], pa.int64())) if rows else table
        case 3:
            return table.slice(dice.randrange(rows + 1))
        case 4:
            column = pa.nulls(rows, table.schema.field(at).type)
            return table.set_column(at, table.schema.field(at).with_nullable(True), column)
        case _:
            return table.set_column(at, name, _changed_column(table.column(at), dice))


def _changed_column(column: pa.ChunkedArray, dice: random.Random) -> pa.Array:
    values = column.to_pylist()
    for _ in range(min(len(values), dice.choice((1, 3, len(values))))):
        place = dice.randrange(len(values))
        values[place] = _changed(values[place], dice) if dice.random() < 0.5 else dice.choice(VALUES)
    for kind in (column.type, pa.string(), pa.float64()):
        try:
            return pa.array(values, kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError, UnicodeError):
            continue
    return pa.array([str(value).encode("utf-8", "replace").decode()[:100] for value in values])


def either(*mutations: Mutation) -> Mutation:
    """Return a mutation that is one of several, by the dice."""

    def chosen(data: bytes, dice: random.Random) -> bytes:
        try:
            return dice.choice(mutations)(data, dice)
        except (pa.ArrowException, UnicodeError):  # what cannot be written is spoiled as bytes
            return spoiled_bytes(data, dice)

    return chosen
