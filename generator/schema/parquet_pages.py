"""What a Parquet file holds by its own words, read before anything is unpacked: rows, columns and pages.

The footer states sizes, but whoever reads a page allocates by the page's header, and the two can differ. So both are
read here (Apache Parquet, `parquet.thrift`: `FileMetaData`, `PageHeader`). Arrow's own view of the footer does not
serve: of some damaged footers it ends the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from generator.schema.thrift_compact import Struct, StructReader, ThriftError, Value

MAGIC = b"PAR1"
DATA, INDEX, DICTIONARY, DATA_V2 = range(4)
BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY = range(8)
# Encodings by number. These write out each value, or a value's place in a dictionary; the others build a value from
# the one before it, so that a few bytes can stand for many.
PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, DELTA_BINARY, DELTA_LENGTH, RLE_DICTIONARY, BYTE_STREAM_SPLIT = (
    0, 2, 3, 4, 5, 6, 8, 9,
)  # fmt: skip
BY_DICTIONARY = frozenset((PLAIN_DICTIONARY, RLE_DICTIONARY))
BOUNDED = BY_DICTIONARY | {PLAIN, RLE, BIT_PACKED, DELTA_BINARY, DELTA_LENGTH, BYTE_STREAM_SPLIT}
# A footer is parsed into Python's numbers, each of them many times its size in the file.
MOST_FOOTER = 16 << 20
# Where each kind of page keeps its own header, and there its encoding: field numbers of PageHeader.
_OWN_HEADER = {DATA: (5, 2), DICTIONARY: (7, 2), DATA_V2: (8, 4)}


@dataclass(frozen=True)
class Chunk:
    """One column of one row group. length: bytes of a value where the type has one length, else 0."""

    path: str
    type: int
    length: int
    values: int
    start: int
    size: int


@dataclass(frozen=True)
class Footer:
    """What is read of a footer."""

    rows: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True)
class Page:
    """One page: its kind, its bytes packed and unpacked, the values it holds and how they are encoded."""

    kind: int
    unpacked: int
    packed: int
    values: int
    encoding: int


class PageError(ValueError):
    """The bytes are not those of a Parquet file."""


def read_footer(data: memoryview) -> Footer:
    """Return what the footer of a Parquet file says; raises PageError."""
    if len(data) < 12 or bytes(data[:4]) != MAGIC or bytes(data[-4:]) != MAGIC:
        raise PageError("it does not begin and end as one")
    size = int.from_bytes(data[-8:-4], "little")
    if not 0 < size <= min(len(data) - 12, MOST_FOOTER):
        raise PageError(f"a footer of {size:,} bytes")
    try:
        return _footer(StructReader(data[-8 - size : -8]).struct())
    except ThriftError as error:
        raise PageError(f"footer: {error}") from None


def pages_of(data: memoryview, chunk: Chunk) -> Iterator[Page]:
    """Yield the pages of a column, until they hold its values; raises PageError where they leave the column."""
    at, end, seen = chunk.start, chunk.start + chunk.size, 0
    if at < 0 or chunk.size < 0 or end > len(data):
        raise PageError(f"column {chunk.path} lies outside the file")
    while at < end and seen < chunk.values:
        reader = StructReader(data[:end], at)
        try:
            page = _page(reader.struct())
        except ThriftError as error:
            raise PageError(f"column {chunk.path}: page header: {error}") from None
        at = reader.at + page.packed
        if at > end:
            raise PageError(f"column {chunk.path}: a page is longer than its column")
        # A dictionary page holds distinct values and no rows.
        seen += page.values if page.kind in (DATA, DATA_V2) else 0
        yield page


def _number(struct: Struct, field: int, default: int | None = None) -> int:
    value = struct.get(field, default)
    if not isinstance(value, int):
        raise PageError("a number is missing in a header")
    return value


def _structs(value: Value | None) -> list[Struct]:
    if not isinstance(value, list):
        raise PageError("a list is missing in a header")
    if not all(isinstance(item, dict) for item in value):
        raise PageError("a list in a header holds something else than structs")
    return [item for item in value if isinstance(item, dict)]


def _footer(meta: Struct) -> Footer:
    # Schema elements that are columns have a type; the others are the root and the groups of nested columns.
    leaves = [element for element in _structs(meta.get(2)) if 1 in element]
    chunks: list[Chunk] = []
    for group in _structs(meta.get(4)):
        columns = _structs(group.get(1))
        if len(columns) != len(leaves):
            raise PageError("a row group has other columns than the file")
        chunks += [_chunk(column, leaf) for column, leaf in zip(columns, leaves, strict=True)]
    return Footer(_number(meta, 3), tuple(chunks))


def _chunk(column: Struct, leaf: Struct) -> Chunk:
    meta = column.get(3)
    if not isinstance(meta, dict):
        raise PageError("a column lies in another file")
    path, kind = meta.get(3), _number(leaf, 1)
    if not isinstance(path, list) or kind != _number(meta, 1) or kind > FIXED_LEN_BYTE_ARRAY:
        raise PageError("a column without a name, or of two types")
    data_page, dictionary = _number(meta, 9), _number(meta, 11, 0)
    return Chunk(
        path=".".join(part.decode(errors="replace") for part in path if isinstance(part, bytes)),
        type=kind,
        length=_number(leaf, 2) if kind == FIXED_LEN_BYTE_ARRAY else 0,
        values=_number(meta, 5),
        # A dictionary page stands before the data pages.
        start=dictionary if 0 < dictionary < data_page else data_page,
        size=_number(meta, 7),
    )


def _page(header: Struct) -> Page:
    kind, unpacked, packed = (_number(header, field) for field in (1, 2, 3))
    field, encoding_field = _OWN_HEADER.get(kind, (0, 0))
    own = header.get(field, {})
    if not isinstance(own, dict):
        raise PageError("a page header lacks its own part")
    values, encoding = _number(own, 1, 0), _number(own, encoding_field, PLAIN)
    if min(unpacked, packed, values, encoding) < 0:
        raise PageError("a page header holds a size below 0")
    return Page(kind, unpacked, packed, values, encoding)
