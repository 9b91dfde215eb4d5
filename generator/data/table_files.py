"""Tables as published files: Parquet with deterministic bytes and CSV, split where one would pass 25 MiB.

A table too large for one file is split by attribute (`cells__age.parquet`), and an attribute that is still too large
into numbered parts (`cells__age__2.parquet`). Both forms of a table are always split alike. CSV files stand apart in
`csv/`: a folder of Parquet files holds nothing else, and reads as one table.

See contract: tables, "Files".
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from generator.data.csv_text import csv_bytes, csv_columns, csv_within
from generator.schema.columns import Column, arrow_schema

SIZE_LIMIT = 25 * 1024 * 1024  # the smallest cap of a host (contract: publication, "Hosts and modes")
_ROW_GROUP = 65_536
_CSV = "csv/"


@dataclass(frozen=True)
class DataFile:
    """One published file.

    `name` is relative to the data folder; `table` the table it holds, or "" for a file that is no table; `part` what of
    it ("" for all, an attribute, or an attribute and a number). `rows` is None where there is no table; `fields` are
    the columns of this very file, so of the flattened form for a CSV.
    """

    name: str
    description: str
    bytes: int
    sha256: str
    rows: int | None = None
    fields: tuple[Column, ...] = ()
    table: str = ""
    part: str = ""

    @property
    def columns(self) -> int | None:
        """How many columns the file has; None where it is no table."""
        return len(self.fields) if self.rows is not None else None

    @property
    def ending(self) -> str:
        """The file's ending, without the dot; empty when it has none."""
        return Path(self.name).suffix[1:]


def csv_name(parquet: str) -> str:
    """Return the name of the CSV form of a Parquet file."""
    return f"{_CSV}{parquet.removesuffix('parquet')}csv"


def stem_of(name: str) -> str:
    """Return what the two forms of a table have in common: the name of the Parquet file without its ending."""
    return name.removeprefix(_CSV).rpartition(".")[0]


@dataclass(frozen=True)
class TableFile:
    """A table to publish: where (`name` without ending), what it is, its columns and rows."""

    name: str
    description: str
    columns: tuple[Column, ...]
    rows: pa.Table
    table: str


def write_bytes(folder: Path, name: str, data: bytes, description: str, *, table: str = "") -> DataFile:
    """Write one file below the data folder and return what is published of it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return DataFile(name, description, len(data), hashlib.sha256(data).hexdigest(), table=table)


def parquet_bytes(rows: pa.Table, columns: Sequence[Column], notes: Mapping[str, str]) -> bytes:
    """Return a table as zstd Parquet; the same rows and notes give the same bytes.

    `notes` go into the file's key-value metadata beside `columns`, a JSON list of every column's name, description,
    unit and null meaning, so that readers without Arrow see them, too.
    """
    described = [{"name": c.name, "description": c.description, "unit": c.unit, "null": c.null} for c in columns]
    metadata = {**notes, "columns": json.dumps(described, ensure_ascii=False, separators=(",", ":"))}
    schema = arrow_schema(tuple(columns)).with_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, compression="zstd", version="2.6") as writer:
        writer.write_table(rows.cast(schema), row_group_size=_ROW_GROUP)
    return bytes(sink.getvalue())


def write_table(
    folder: Path, item: TableFile, notes: Mapping[str, str], *, parquet: bytes | None = None, limit: int = SIZE_LIMIT
) -> tuple[DataFile, ...]:
    """Write a table as Parquet and CSV, in one part or several.

    `parquet` is the Parquet form where it exists already (a receipts shard, published as the harness wrote it); it is
    replaced when the table has to be split.
    """
    csv = csv_within(item.rows, item.columns, limit)
    if csv is not None:
        whole = parquet_bytes(item.rows, item.columns, notes) if parquet is None else parquet
        if len(whole) <= limit:
            return _write_pair(folder, item, "", (whole, csv))
    files: list[DataFile] = []
    for part, rows in parts_of(item.rows, item.columns, limit=limit):
        piece = TableFile(item.name, item.description, item.columns, rows, item.table)
        pair = (parquet_bytes(rows, item.columns, {**notes, "part": part}), csv_bytes(rows, item.columns))
        files.extend(_write_pair(folder, piece, part, pair))
    return tuple(files)


def part_text(description: str, part: str) -> str:
    """Return the description of a part of a table."""
    return f"{description} Part: {part}." if part else description


def _write_pair(folder: Path, item: TableFile, part: str, pair: tuple[bytes, bytes]) -> tuple[DataFile, ...]:
    stem = f"{item.name}__{part}" if part else item.name
    what = part_text(item.description, part)
    forms = ((f"{stem}.parquet", item.columns), (csv_name(f"{stem}.parquet"), csv_columns(item.columns)))
    files = []
    for (name, fields), data in zip(forms, pair, strict=True):
        file = write_bytes(folder, name, data, what, table=item.table)
        files.append(dataclasses.replace(file, rows=item.rows.num_rows, fields=fields, part=part))
    return tuple(files)


def parts_of(rows: pa.Table, columns: Sequence[Column], *, limit: int = SIZE_LIMIT) -> Iterator[tuple[str, pa.Table]]:
    """Yield (part, rows): one part an attribute, or numbered parts where even that is too large for one CSV file.

    The CSV decides: it is always the larger form. Rows keep their order within a part.
    """
    if "attribute" not in rows.column_names:
        yield from _numbered("", rows, columns, limit)
        return
    for attribute in sorted(set(rows["attribute"].to_pylist()), key=str.encode):
        chosen = rows.filter(pc.equal(rows["attribute"], attribute))
        yield from _numbered(attribute, chosen, columns, limit)


def _numbered(part: str, rows: pa.Table, columns: Sequence[Column], limit: int) -> Iterator[tuple[str, pa.Table]]:
    pieces = list(_halved(rows, columns, limit))
    if part and len(pieces) == 1:
        yield part, rows
        return
    for number, piece in enumerate(pieces, 1):
        yield f"{part}__{number}" if part else str(number), piece


def _halved(rows: pa.Table, columns: Sequence[Column], limit: int) -> Iterator[pa.Table]:
    """Yield the rows in halves of halves until each fits; a single row is never split, however long."""
    if rows.num_rows <= 1 or csv_within(rows, columns, limit) is not None:
        yield rows
        return
    middle = rows.num_rows // 2
    yield from _halved(rows.slice(0, middle), columns, limit)
    yield from _halved(rows.slice(middle), columns, limit)


def weight_columns(concepts: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of a weights file: how often each concept was drawn in a resample, one row a resample."""
    return tuple(Column(c, pa.uint8(), f"Times that {c} was drawn.", "draws", raw=True) for c in concepts)


def sha256sums(files: Sequence[DataFile]) -> bytes:
    """Return the text that `sha256sum -c` reads, sorted by name as bytes."""
    ordered = sorted(files, key=lambda f: f.name.encode())
    return "".join(f"{f.sha256}  {f.name}\n" for f in ordered).encode()
