"""Tables from outside, row by row: Parquet, CSV, JSON Lines. Whole files are bounded, and so is every line.

A fault of a file's form is one line with file and row. Nothing is guessed: no type, no encoding, no separator, and no
text is taken for a missing value but the empty cell of CSV.
"""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from generator.schema.bounded_files import read_bytes
from generator.schema.errors import InputError
from generator.schema.parquet_files import Bounds, read_parquet
from harness.importing.records import Record

MOST_BYTES = 1 << 30
MOST_LINE = 16 << 20
MOST_DOCUMENT = 128 << 20  # of JSON that is parsed whole
MOST_VALUES = 4_000_000  # in one JSON text: each takes up to a hundred bytes of memory, and two bytes of the text
# Read whole, unpacked, and turned into Python's own values.
PARQUET = Bounds(file=256 << 20, rows=5_000_000, distinct=256 << 20, unpacked=256 << 20)
_BATCH = 4096
_FILE = "@file"
_SEPARATORS = {";": "a semicolon", "\t": "a tab", "|": "a bar"}


def read_rows(path: Path, delimiter: str, wanted: Sequence[str]) -> Iterator[Record]:
    """Yield the rows of a table by its ending.

    Args:
        path: `.parquet`, `.csv`, `.tsv` or `.jsonl` (also `.ndjson`).
        delimiter: what stands between the cells of CSV; `.tsv` has tabs.
        wanted: the columns that the map names; of Parquet no others are unpacked.

    Raises:
        InputError: the file cannot be read, is damaged, or is above a bound.
    """
    ending = path.suffix.lower()
    if ending == ".parquet":
        yield from _parquet_rows(path, wanted)
    elif ending in (".csv", ".tsv"):
        yield from _csv_rows(path, "\t" if ending == ".tsv" else delimiter)
    elif ending in (".jsonl", ".ndjson"):
        yield from json_lines(path)
    else:
        raise InputError(
            f"{path}: a table is .parquet, .csv, .tsv or .jsonl; say source.format for another kind of file"
        )


def _parquet_rows(path: Path, wanted: Sequence[str]) -> Iterator[Record]:
    try:
        data = read_bytes(path, PARQUET.file)
    except FileNotFoundError:
        raise InputError(f"{path}: not found") from None
    names = _parquet_names(path, data)
    # A name may lead into a struct: `scores.tone` is of the column `scores`.
    tops = [name for name in names if any(w == name or w.startswith(f"{name}.") for w in wanted)]
    table = read_parquet(data, str(path), tops or names[:1], PARQUET)
    row = 0
    for batch in table.to_batches(max_chunksize=_BATCH):
        columns = [_column_values(batch, name, f"{path}: from row {row + 1} on") for name in batch.schema.names]
        for values in zip(*columns, strict=True):
            row += 1
            yield Record(f"{path}: row {row}", {**dict(zip(batch.schema.names, values, strict=True)), _FILE: path.name})


def _column_values(batch: pa.RecordBatch, name: str, where: str) -> list[Any]:
    """Return a column's values; raises InputError where Python has none such, as of a day in the year 90000."""
    try:
        return list(batch.column(name).to_pylist())
    except (pa.ArrowException, ArithmeticError, ValueError, LookupError) as error:
        said = " ".join(str(error).split())[:120]
        raise InputError(f"{where}, column {name}: a value that cannot be read: {said}; write it as text") from None


def _parquet_names(path: Path, data: bytes) -> list[str]:
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(pa.BufferReader(data)).names
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        said = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{path}: not a Parquet file that can be read: {said}") from None
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise InputError(f"{path}: column {twice[0]!r} stands twice")
    return list(names)


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain file of bounded size; raises InputError where it is none, or cannot be read."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise InputError(f"{path}: not a file of bytes; put a plain file there")
        if size > MOST_BYTES:
            raise InputError(f"{path}: {size:,} bytes; at most {MOST_BYTES:,} are read")
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise InputError(f"{path}: not found") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or os.strerror(error.errno or 0)}") from None


def _text_lines(path: Path, file: IO[bytes]) -> Iterator[str]:
    """Yield the lines of a UTF-8 file with their ends, without the mark that some programs put before the first."""
    for number, line in enumerate(iter(lambda: file.readline(MOST_LINE + 1), b""), 1):
        if len(line) > MOST_LINE:
            raise InputError(f"{path}: line {number}: more than {MOST_LINE:,} bytes")
        if number == 1 and line[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError(f"{path}: UTF-16, not UTF-8; save it as UTF-8 (in a spreadsheet: CSV UTF-8)")
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: line {number}: not UTF-8 at byte {error.start}; save it as UTF-8") from None


def _csv_rows(path: Path, delimiter: str) -> Iterator[Record]:
    # The module's own bound is far below an answer; the readers of lines have one that holds for cells, too.
    before = csv.field_size_limit(MOST_LINE)
    try:
        with opened(path) as file:
            reader = csv.reader(_text_lines(path, file), delimiter=delimiter, strict=True)
            yield from _csv_records(path, reader, delimiter)
    finally:
        csv.field_size_limit(before)


def _csv_records(path: Path, reader: Any, delimiter: str) -> Iterator[Record]:
    try:
        header = next(reader, None)
        if not header:
            raise InputError(f"{path}: empty; the first line names the columns")
        _check_header(path, header, delimiter)
        start = reader.line_num + 1
        for cells in reader:
            line, start = start, reader.line_num + 1
            if not cells:  # an empty line
                continue
            if len(cells) != len(header):
                raise InputError(f"{path}: line {line}: {len(cells):,} cells; the header has {len(header):,}")
            values = {name: cell or None for name, cell in zip(header, cells, strict=True)}
            yield Record(f"{path}: line {line}", {**values, _FILE: path.name})
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}: not CSV: {error}") from None


def _check_header(path: Path, header: list[str], delimiter: str) -> None:
    twice = [name for name, n in Counter(header).items() if n > 1]
    if twice:
        raise InputError(f"{path}: column {twice[0]!r} stands twice")
    other = next((sign for sign in _SEPARATORS if sign != delimiter and len(header) == 1 and sign in header[0]), None)
    if other:
        advice = f"say source.delimiter = {json.dumps(other)}"
        raise InputError(f"{path}: line 1: one column, which holds {_SEPARATORS[other]}; {advice}")


def json_lines(path: Path) -> Iterator[Record]:
    """Yield the objects of a JSON Lines file; empty lines are passed over."""
    with opened(path) as file:
        for number, line in enumerate(_text_lines(path, file), 1):
            if line.strip():
                data = load_json(line, f"{path}: line {number}")
                if not isinstance(data, dict):
                    raise InputError(f"{path}: line {number}: JSON Lines has one object a line; this one is no object")
                yield Record(f"{path}: line {number}", {**data, _FILE: path.name})


def load_json(text: str | bytes, where: str) -> Any:
    """Return what a JSON text holds; NaN stays NaN, a key that stands twice is a fault. Raises InputError."""
    if (values := _values_at_most(text)) > MOST_VALUES:
        raise InputError(f"{where}: up to {values:,} values in one JSON text; at most {MOST_VALUES:,} are read")
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not JSON: {error}") from None


def load_document(path: Path, advice: str) -> Any:
    """Return what a JSON file holds; raises InputError above the bound, with what to do about it."""
    with opened(path) as file:
        data = file.read(MOST_DOCUMENT + 1)
    if len(data) > MOST_DOCUMENT:
        raise InputError(f"{path}: more than {MOST_DOCUMENT:,} bytes; {advice}")
    return load_json(data, str(path))


def _values_at_most(text: str | bytes) -> int:
    """Return how many values a JSON text has at most: each but the first comes after one of three signs."""
    if isinstance(text, str):
        return sum(map(text.count, "[{,"))
    return sum(map(text.count, (b"[", b"{", b",")))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise ValueError(f"key {twice[:80]!r} stands twice in one object")
    return found
