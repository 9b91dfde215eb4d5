"""Arrow text worked on as bytes, a whole column at a time: where texts begin, escapes, rare characters, spans.

A column is one run of UTF-8 with the places where each text begins. Nearly every text needs no change, so each function
looks for the bytes that matter first, and copies nothing where there are none.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa

Ints = np.ndarray[Any, np.dtype[np.int32]]
Longs = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
ESCAPES = ((b"&", b"&amp;"), (b"<", b"&lt;"), (b">", b"&gt;"), (b'"', b"&#34;"), (b"'", b"&#39;"))
_CONTINUES = 0xC0, 0x80  # a byte inside a code point, by mask and value
_SPACE = 0x20  # the first byte that is no control character
_ASCII = 0x80  # the first byte beyond


def edges_of(texts: pa.Array) -> Ints:
    """Return where each text of an Arrow string array begins in its bytes, and where the last one ends."""
    edges: Ints = np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1, texts.offset * 4)
    return edges


def cut(texts: pa.Array, edges: Ints) -> pa.Array:
    """Return the bytes of a string array as other texts, that begin and end at `edges`; copies none of them."""
    return pa.StringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges.tobytes()), texts.buffers()[2])


def _bytes_of(texts: pa.Array, edges: Ints) -> Bytes:
    return np.frombuffer(texts.buffers()[2] or b"", np.uint8)[edges[0] : edges[-1]]


def escaped(texts: pa.Array) -> pa.Array:
    """Return a string array with its texts escaped as Jinja does; null stays null."""
    if len(texts) == 0:
        return texts
    edges = edges_of(texts)
    data = _bytes_of(texts, edges)
    found = [(raw, entity, np.flatnonzero(data == raw[0])) for raw, entity in ESCAPES]
    found = [item for item in found if len(item[2])]
    if not found:
        return texts
    begins = edges.astype(np.int64) - edges[0]
    longer, text = np.zeros(len(begins), np.int64), data.tobytes()
    for raw, entity, places in found:  # the ampersand first: the other entities hold one
        longer += np.searchsorted(places, begins) * (len(entity) - 1)
        text = text.replace(raw, entity)
    valid = texts.is_valid().buffers()[1] if texts.null_count else None
    moved = pa.py_buffer((begins + longer).astype(np.int32).tobytes())
    return pa.StringArray.from_buffers(len(texts), moved, pa.py_buffer(text), valid)


@functools.cache
def _first_bytes(points: frozenset[int]) -> tuple[Flags, int, int]:
    """Return which bytes begin a code point, and bounds between which none does: `low` to below `high`."""
    table = np.zeros(256, np.bool_)
    table[[chr(point).encode()[0] for point in points]] = True
    found = np.flatnonzero(table)
    return table, int(found[found < _SPACE].max(initial=-1)) + 1, int(found[found >= _SPACE].min(initial=256))


def holding(texts: pa.Array, points: frozenset[int]) -> Flags:
    """Return which texts hold one of some code points: bool array (texts,), False for null.

    Meant for code points that are rare: control characters, and what lies beyond ASCII.
    """
    edges = edges_of(texts)
    data = _bytes_of(texts, edges)
    found = np.zeros(len(texts), np.bool_)
    table, low, high = _first_bytes(points)
    places = np.flatnonzero((data < low) | (data >= high))
    places = places[table[data[places]]]
    # Few of the bytes that begin such a code point are left: those are decoded.
    if len(places):
        hits = places[np.isin(_code_points(data, places), np.array(sorted(points)))]
        found[np.searchsorted(edges.astype(np.int64) - edges[0], hits, side="right") - 1] = True
    if texts.null_count:
        found &= texts.is_valid().to_numpy(zero_copy_only=False)
    return found


def _code_points(data: Bytes, places: Longs) -> Longs:
    """Return the code points that begin at some places of sound UTF-8."""
    lead = data[places].astype(np.int64)
    length = 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)
    points = np.where(length == 1, lead, lead & (0xFF >> (length + 1)))
    for more in (1, 2, 3):
        own = length > more
        points[own] = points[own] << 6 | data[places[own] + more] & 0x3F
    return points


def byte_places(texts: pa.Array, owners: Longs, points: Longs | Ints) -> Longs:
    """Return where code points of texts lie in the bytes of their array.

    Args:
        texts: string array without nulls.
        owners: which text each is of, int array (n,).
        points: code points counted from the text's start, int array (n,); its length names its end.
    """
    edges = edges_of(texts).astype(np.int64)
    data = _bytes_of(texts, edges_of(texts))
    mask, value = _CONTINUES
    inner = np.flatnonzero(data & mask == value) if len(data) and data.max() >= _ASCII else np.zeros(0, np.int64)
    begins = edges[:-1] - edges[0]
    # Counted over the whole array: how many code points begin before each text, then before each place.
    ranks = (begins - np.searchsorted(inner, begins))[owners] + points
    found: Longs = edges[0] + ranks + np.searchsorted(inner - np.arange(len(inner)), ranks, side="right")
    return found
