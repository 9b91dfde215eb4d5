"""Columns of text worked on as bytes, held against Python's own way with each text by itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from generator.html.text_bytes import byte_places, escaped, holding

TEXTS = st.lists(
    st.one_of(st.none(), st.text(st.one_of(st.sampled_from("&<>\"'; a\u200bé日😀\x00"), st.characters()), max_size=12)),
    max_size=8,
)
POINTS = frozenset((0x0, 0x26, 0xE9, 0x200B, 0x1F600, 0xE0100))


@st.composite
def columns(draw):
    """A column as Arrow hands it on: all of an array, or a part of one, whose bytes begin elsewhere."""
    texts = draw(TEXTS)
    start = draw(st.integers(0, len(texts)))
    stop = draw(st.integers(start, len(texts)))
    return pa.array(texts, pa.string()).slice(start, stop - start), texts[start:stop]


class TestEscaped:
    @given(columns())
    def test_equals_the_escape_of_each_text(self, column):
        array, texts = column
        found = escaped(array)
        found.validate(full=True)
        assert found.to_pylist() == [None if t is None else str(escape(t)) for t in texts]

    def test_nothing_to_escape_copies_nothing(self):
        array = pa.array(["plain", None, "naïve"])
        assert escaped(array) is array

    def test_null_over_bytes_that_need_an_escape(self):
        # Arrow lets a null slot have bytes; they must not shift the texts after it.
        bytes_of = pa.array(["a<b", "x&y", "z"])
        array = pa.StringArray.from_buffers(3, bytes_of.buffers()[1], bytes_of.buffers()[2], pa.py_buffer(b"\x05"))
        assert escaped(array).to_pylist() == ["a&lt;b", None, "z"]


class TestHolding:
    @given(columns())
    def test_equals_a_search_of_each_text(self, column):
        array, texts = column
        expected = [any(ord(c) in POINTS for c in t or "") for t in texts]
        assert holding(array, POINTS).tolist() == expected


class TestBytePlaces:
    @given(columns(), st.data())
    def test_equals_the_length_of_the_encoded_start(self, column, data):
        array, texts = column
        texts = ["" if t is None else t for t in texts]
        places = [(i, data.draw(st.integers(0, len(t)))) for i, t in enumerate(texts)]
        owners, points = (np.array([p[k] for p in places], np.int64) for k in (0, 1))
        array = array.fill_null("")
        start = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(texts)]
        expected = [int(start[i]) + len(texts[i][:k].encode()) for i, k in places]
        assert byte_places(array, owners, points).tolist() == expected
