"""What a vendor calls its filter becomes one short clean line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from generator.schema.verdict import FILTER_WORD_LENGTH, filter_word


class TestFilterWord:
    def test_a_plain_word_stays(self) -> None:
        assert filter_word("content_filter") == "content_filter"

    def test_control_and_direction_characters_go(self) -> None:
        assert filter_word("\x1b[31mPROHIBITED\u202e\n CONTENT\x00") == "[31mPROHIBITED CONTENT"

    def test_nothing_is_no_word(self) -> None:
        assert filter_word(" \n\u200b") is None

    @given(st.text())
    def test_every_word_is_short_printable_and_stays_as_it_is(self, text: str) -> None:
        word = filter_word(text)
        assert word is None or (0 < len(word) <= FILTER_WORD_LENGTH and word.isprintable())
        assert word is None or filter_word(word) == word
