"""Holds published tables against recomputed ones, cell by cell, keyed as pages key them.

See contract: publication, "Numbers on pages".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from generator.data.csv_text import csv_bytes, csv_columns
from generator.data.table_files import csv_name
from generator.schema.columns import Column, arrow_schema
from generator.schema.errors import InputError
from generator.schema.parquet_files import TABLE, read_parquet
from generator.schema.parquet_pages import PageError, read_footer
from generator.verify.findings import ABSENT, TOLERANCE, Findings


def table_files(names: Sequence[str], stem: str) -> tuple[str, ...]:
    """Return the Parquet files that hold a table, in the order of its parts; none when the table is not there."""
    own = [n for n in names if n == f"{stem}.parquet" or (n.startswith(f"{stem}__") and n.endswith(".parquet"))]
    return tuple(sorted(own, key=_part_order))


def _part_order(name: str) -> tuple[bytes, int]:
    stem = name.removesuffix(".parquet")
    head, _, number = stem.rpartition("__")
    return (head.encode(), int(number)) if number.isdigit() else (stem.encode(), 0)


def read_table(path: Path) -> pa.Table:
    """Read a Parquet file; raises InputError when it is none, or above the bounds of a table."""
    try:
        return read_parquet(path, str(path), bounds=TABLE)
    except FileNotFoundError:
        raise InputError(f"{path}: not found") from None


def row_count(data: bytes, where: str) -> int:
    """Return the rows of a Parquet file by its footer; raises InputError when it is none."""
    try:
        return read_footer(memoryview(data)).rows
    except PageError as error:
        raise InputError(f"{where}: not a Parquet file that can be read: {error}") from None


def file_notes(path: Path) -> dict[str, str]:
    """Return what a Parquet file says of itself in its metadata; raises InputError when it is none."""
    data = path.read_bytes()
    row_count(data, str(path))
    try:
        notes = pq.read_schema(pa.BufferReader(data)).metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file: {str(error).splitlines()[0]}") from None
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in notes.items()}


def csv_form(folder: Path, parquet: str) -> tuple[Path, str]:
    """Return path and name of the CSV form of a Parquet file; earlier releases had it right beside."""
    name, beside = csv_name(parquet), f"{parquet.removesuffix('parquet')}csv"
    older = (folder / beside).is_file() and not (folder / name).is_file()
    return (folder / beside, beside) if older else (folder / name, name)


def check_csv(path: Path, name: str, table: pa.Table, columns: Sequence[Column], findings: Findings) -> None:
    """Hold a CSV file against the Parquet file of the same part: the same text, byte for byte."""
    findings.checked["csv files"] += 1
    if not path.is_file():
        findings.add(name, "file", ABSENT, "the CSV form of its Parquet file")
        return
    try:
        published, expected = path.read_bytes(), csv_bytes(table, columns)
    except (ValueError, TypeError, pa.ArrowException) as error:  # NaN, infinities, types that no such table has
        findings.add(name, "its Parquet file", "values that have no CSV form", str(error).splitlines()[0])
        return
    if published == expected:
        return
    before = 0
    for line, (seen, right) in enumerate(zip(published.split(b"\n"), expected.split(b"\n"), strict=False), 1):
        if seen != right:
            cell = _first_cell(seen, right, columns)
            findings.add(name, f"line {line}{cell}", seen.decode(errors="replace"), right.decode())
            return
        before = line
    findings.add(name, f"line {before + 1}", f"{len(published)} bytes", f"{len(expected)} bytes")


def _first_cell(seen: bytes, right: bytes, columns: Sequence[Column]) -> str:
    """Name the column of the first cell that differs, where neither line holds a quoted cell."""
    if b'"' in seen or b'"' in right:
        return ""
    pairs = zip(csv_columns(columns), seen.split(b","), right.split(b","), strict=False)
    return next((f", column {c.name}" for c, a, b in pairs if a != b), "")


def check_table(
    name: str,
    published: pa.Table,
    recomputed: pa.Table,
    columns: Sequence[Column],
    findings: Findings,
    *,
    keys: Sequence[str],
    ordered: bool = True,
) -> None:
    """Hold one table against its recomputation: columns, types, rows by key, every cell.

    `ordered` is false for a table that was split by attribute: its parts run in another order than the whole.
    """
    expected = arrow_schema(tuple(columns))
    if published.schema.names != expected.names or published.schema.types != expected.types:
        findings.add(name, "columns", _schema_text(published.schema), _schema_text(expected))
        return
    seen, right = _keys(published, keys), _keys(recomputed, keys)
    if seen != right:
        places = {key: row for row, key in enumerate(right)}
        found = {key: row for row, key in enumerate(seen)}
        for key in right:
            if key not in found:
                findings.add(name, key, ABSENT, "a row")
        for key in seen:
            if key not in places:
                findings.add(name, key, "a row", ABSENT)
        if len(found) != len(seen):
            findings.add(name, "rows", len(seen), f"{len(found)} different keys")
        both = [key for key in right if key in found]
        if ordered and seen != right and sorted(seen) == sorted(right):
            place = next(i for i, (a, b) in enumerate(zip(seen, right, strict=True)) if a != b)
            findings.add(name, f"order of rows, row {place}", seen[place], right[place])
        published = published.take(pa.array([found[key] for key in both], pa.int64()))
        recomputed = recomputed.take(pa.array([places[key] for key in both], pa.int64()))
        right = both
    findings.checked["table cells"] += published.num_rows * published.num_columns
    for column in columns:
        for row in unequal_rows(published[column.name], recomputed[column.name]):
            key = f"{right[row]}|{column.name}"
            findings.add(name, key, published[column.name][row].as_py(), recomputed[column.name][row].as_py())


def _schema_text(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _keys(table: pa.Table, keys: Sequence[str]) -> list[str]:
    columns = [table[key].to_pylist() for key in keys]
    return [",".join("" if part is None else str(part) for part in row) for row in zip(*columns, strict=True)]


def unequal_rows(a: pa.ChunkedArray, b: pa.ChunkedArray) -> Iterator[int]:
    """Yield the rows in which two columns of one type differ; floats may differ by the tolerance, null equals null."""
    near = pa.types.is_floating(a.type)
    same = pc.less_equal(pc.abs(pc.subtract(a, b)), TOLERANCE) if near else pc.equal(a, b)
    both_null = pc.and_(a.is_null(), b.is_null())
    right = pc.if_else(both_null, True, pc.fill_null(same, False))
    yield from pc.indices_nonzero(pc.invert(right)).to_pylist()


def rows_by_key(table: pa.Table, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return a table's rows by the key that a page writes."""
    return dict(zip(_keys(table, keys), table.to_pylist(), strict=True))
