"""Folding undoes what a person reads over, and keeps the way back to the original."""

from __future__ import annotations

import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.masking.folding import fold, fold_plain


class TestFoldPlain:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("ABC xyz 09", "abc xyz 09"),
            ("Ünïcödé", "unicode"),
            ("straße ﬁne Ĳ", "strasse fine ij"),
            ("сосо (Cyrillic), ΑΒΕ (Greek)", "coco (cyrillic), abe (greek)"),
            ("ＡＢ 𝕏𝒴 Ⓩ 🄰", "ab xy z a"),
            ("a\u200bb\u00adc\u2060d\u202ee\ufefff", "abcdef"),
            ("a‐b‑c–d—e−f", "a-b-c-d-e-f"),
            ("a’b‘cʼd`e", "a'b'c'd`e"),
            ("x¹ y™ z²", "x\ufffc y™ z\ufffc"),
            ("İstanbul ŉ", "istanbul 'n"),
            ("日本語 עברית", "日本語 עברית"),
        ],
    )
    def test_reads_as_a_person_would(self, text: str, expected: str) -> None:
        assert fold_plain(text) == expected

    def test_every_letter_has_look_alikes_that_read_as_it(self) -> None:
        for letter in string.ascii_lowercase:
            alike = [char for char in map(chr, range(0x80, 0x600)) if fold_plain(char) == letter]
            assert alike, letter
        assert fold_plain("кмуԛ ΚΜΥԚ") == "kmyq kmyq"

    @given(st.text(max_size=50))
    def test_folding_twice_changes_nothing(self, text: str) -> None:
        assert fold_plain(fold_plain(text)) == fold_plain(text)


class TestOriginal:
    @given(st.text(max_size=50))
    def test_every_folded_character_leads_back_to_where_it_came_from(self, text: str) -> None:
        folded = fold(text)
        for i, char in enumerate(folded.text):
            start, end = folded.original(i, i + 1)
            assert 0 <= start < end <= len(text)
            assert char in fold_plain(text[start:end])

    def test_a_mark_on_the_last_letter_belongs_to_the_match(self) -> None:
        folded = fold("ab\u0301\u0302 c")
        assert folded.original(0, 2) == (0, 4)

    def test_an_ascii_text_keeps_every_place(self) -> None:
        assert fold("Abc").starts is None

    def test_the_marks_that_belong_are_those_of_unicode(self) -> None:
        assert unicodedata.category("\u0301") == "Mn"


class TestEveryCodePoint:
    def test_folding_is_settled_after_once(self) -> None:
        strange = [c for c in map(chr, range(0x20000)) if not c.isascii() and fold_plain(c) != c]
        assert [c for c in strange if fold_plain(fold_plain(c)) != fold_plain(c)] == []
        assert len(strange) > 3000
