"""Parquet files from outside, read within stated bounds (contract: receipts, "Bounds").

A few kilobytes of Parquet can stand for gigabytes: pages are compressed, and a column can name one long text in every
row. What a file unpacks to is therefore worked out first: from its footer, then from the header of each page, then, for
columns of text kept by dictionary, from the length of each entry times the rows that name it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from generator.schema.bounded_files import read_bytes
from generator.schema.errors import InputError
from generator.schema.parquet_pages import (
    BOOLEAN,
    BOUNDED,
    BY_DICTIONARY,
    BYTE_ARRAY,
    DICTIONARY,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    INT96,
    Chunk,
    PageError,
    pages_of,
    read_footer,
)

# Bytes that Arrow keeps of a value; of a text, its letters aside, where it ends.
_WIDTHS = {BOOLEAN: 1, INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8, BYTE_ARRAY: 4}
_BATCH = 4096


@dataclass(frozen=True)
class Bounds:
    """The most that is read of one Parquet file.

    file: bytes as it lies on the disk. rows: rows. distinct: bytes of all pages once decompressed, where a text that
    many rows share counts once. unpacked: bytes of all values, where it counts for each row.
    """

    file: int
    rows: int
    distinct: int
    unpacked: int


SHARD = Bounds(file=256 << 20, rows=1_000_000, distinct=256 << 20, unpacked=256 << 20)
TABLE = Bounds(file=1 << 30, rows=20_000_000, distinct=1 << 30, unpacked=2 << 30)
# What Arrow raises on a file that is damaged, or that asks for more memory than there is.
_FAULTS = (pa.ArrowException, OSError, MemoryError, ValueError)


def read_parquet(
    source: Path | bytes, where: str, columns: Sequence[str] | None = None, bounds: Bounds = SHARD
) -> pa.Table:
    """Return a Parquet file as a table, all columns or some; raises InputError on any fault, and above the bounds.

    `source` is a path or the bytes of a file; `where` names it in the fault. Raises FileNotFoundError for a path of
    nothing.
    """
    data = source if isinstance(source, bytes) else read_bytes(source, bounds.file)
    try:
        fault = _fault(data, bounds)
        if fault is None:
            table = pq.read_table(pa.BufferReader(data), columns=columns and list(columns)).combine_chunks()
            # Parquet lets text through that is not UTF-8, and reading it fails only where somebody looks at it.
            fault = next(
                (f"column {name}: {odd}" for name in table.column_names if (odd := unsound(table[name]))), None
            )
            if fault is None:
                return table
    except PageError as error:
        fault = f"not a Parquet file that can be read: {error}"
    except _FAULTS as error:
        fault = f"not a Parquet file that can be read: {(str(error) or 'it asks for too much memory').splitlines()[0]}"
    raise InputError(f"{where}: {fault}") from None


def unsound(column: pa.ChunkedArray) -> str | None:
    """Return why the values of a column cannot be used, or None: text that is not UTF-8, broken offsets."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        return f"not readable: {str(error).splitlines()[0]}"
    return None


def _fault(data: bytes, bounds: Bounds) -> str | None:
    """Say which bound a file exceeds, or None; raises PageError or what Arrow raises when it is damaged."""
    if len(data) > bounds.file:
        return f"{len(data):,} bytes; at most {bounds.file:,} are read"
    footer = read_footer(memoryview(data))
    if footer.rows > bounds.rows:
        return f"{footer.rows:,} rows; at most {bounds.rows:,} are read"
    chunks = [_size(data, chunk) for chunk in footer.chunks]
    distinct = sum(chunk.distinct for chunk in chunks)
    if distinct > bounds.distinct:
        return f"unpacks to {distinct:,} bytes of pages; at most {bounds.distinct:,} are read"
    if odd := next((chunk for chunk in chunks if not chunk.encodings <= BOUNDED), None):
        return (
            f"column {odd.path}: encoding {min(odd.encodings - BOUNDED)}, whose size in memory has no bound; "
            "write the file with plain or dictionary encoding"
        )
    unpacked = sum(chunk.fixed for chunk in chunks)
    # Few columns can come near the bound; the entries of only those are counted one by one.
    near = sorted({chunk.path for chunk in chunks if chunk.most > bounds.unpacked // 64})
    unpacked += sum(chunk.most for chunk in chunks if chunk.path not in near)
    for path in near:
        if unpacked > bounds.unpacked:
            break
        unpacked += _text_bytes(data, path, bounds.unpacked - unpacked)
    if unpacked > bounds.unpacked:
        return f"holds more than {bounds.unpacked:,} bytes of values once unpacked, the most that is read"
    return None


@dataclass(frozen=True)
class _Size:
    """A column of a row group by its page headers.

    distinct: bytes of its pages decompressed. fixed: bytes of its values without the letters of texts. most: the most
    that those letters can come to.
    """

    path: str
    encodings: frozenset[int]
    distinct: int
    fixed: int
    most: int


def _size(data: bytes, chunk: Chunk) -> _Size:
    pages = list(pages_of(memoryview(data), chunk))
    values = [page for page in pages if page.kind != DICTIONARY]
    most = 0
    if chunk.type == BYTE_ARRAY:
        longest = sum(page.unpacked for page in pages if page.kind == DICTIONARY)
        coded = sum(page.values for page in values if page.encoding in BY_DICTIONARY)
        most = coded * longest + sum(page.unpacked for page in values if page.encoding not in BY_DICTIONARY)
    return _Size(
        chunk.path,
        frozenset(page.encoding for page in pages),
        sum(page.unpacked for page in pages),
        _WIDTHS.get(chunk.type, chunk.length) * sum(page.values for page in values),
        most,
    )


def _text_bytes(data: bytes, path: str, most: int) -> int:
    """Return the bytes of all texts of a column, read as a dictionary; stops counting above `most`."""
    total = 0
    with pq.ParquetFile(pa.BufferReader(data), read_dictionary=[path]) as file:
        for batch in file.iter_batches(batch_size=_BATCH, columns=[path], use_threads=False):
            total += _letters(batch.column(0))
            if total > most:
                break
    return total


def _letters(array: pa.Array) -> int:
    while pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_struct(array.type):
        array = array.flatten()[0] if pa.types.is_struct(array.type) else array.flatten()
    if not pa.types.is_dictionary(array.type):
        return int(array.nbytes)
    lengths = pc.fill_null(pc.binary_length(array.dictionary), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    places = array.indices.drop_null().to_numpy(zero_copy_only=False)
    return int(lengths @ np.bincount(places, minlength=len(lengths))) if len(lengths) else 0
