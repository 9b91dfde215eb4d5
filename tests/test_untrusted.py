"""Untrusted text on a page: nothing runs, nothing hides, nothing is lost."""

from __future__ import annotations

import html
import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.edition.untrusted import marked, visible

SHOWN = re.compile(r'<span class="cp" title="[^"]*">U\+([0-9A-F]{4,6})</span>')


def original(shown: str) -> str:
    """Undo `visible`: what a reader could restore from the page."""
    return html.unescape(SHOWN.sub(lambda found: chr(int(found[1], 16)), shown))


class TestVisible:
    @given(st.text())
    def test_nothing_is_lost_and_nothing_is_markup(self, text):
        shown = str(visible(text))
        assert original(shown) == text
        assert "<" not in SHOWN.sub("", shown)
        assert '"' not in SHOWN.sub("", shown)

    @given(st.text())
    def test_no_control_bidi_or_invisible_character_is_left(self, text):
        left = [c for c in str(visible(text)) if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")]
        assert set(left) <= {"\n"}

    def test_no_format_or_space_character_of_all_unicode_is_missed(self):
        missed = [
            f"U+{p:04X}"
            for p in range(sys.maxunicode + 1)
            if unicodedata.category(chr(p)) in ("Cc", "Cf", "Zl", "Zp", "Zs")
            and chr(p) not in "\n "
            and str(visible(chr(p))) == chr(p)
        ]
        assert missed == []

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("a\u202eb", 'a<span class="cp" title="RIGHT-TO-LEFT OVERRIDE">U+202E</span>b'),
            ("\x00", '<span class="cp" title="CONTROL CHARACTER">U+0000</span>'),
            ("a\u00a0b", 'a<span class="cp" title="NO-BREAK SPACE">U+00A0</span>b'),
            ("\U000e0041", '<span class="cp" title="TAG LATIN CAPITAL LETTER A">U+E0041</span>'),
            ("hi\U000e0101", 'hi<span class="cp" title="VARIATION SELECTOR-18">U+E0101</span>'),
            ("\u3164", '<span class="cp" title="HANGUL FILLER">U+3164</span>'),
            ("❤\ufe0f", "❤\ufe0f"),
            ("<b>&", "&lt;b&gt;&amp;"),
            ("two\nlines", "two\nlines"),
            ("naïve “quotes” 漢字 עברית", "naïve “quotes” 漢字 עברית"),
        ],
    )
    def test_examples(self, text, shown):
        assert visible(text) == shown


class TestMarked:
    def test_spans_are_code_points_also_after_an_astral_character(self):
        assert marked("😀 an old <man>", [(2, 8)]) == '😀 <mark class="swap">an old</mark> &lt;man&gt;'

    def test_a_replacement_stands_for_every_span(self):
        assert marked("a b c", [(0, 1), (4, 5)], css="mask", replacement="[PERSON]") == (
            '<mark class="mask">[PERSON]</mark> b <mark class="mask">[PERSON]</mark>'
        )

    def test_text_without_spans_stays_whole(self):
        assert marked("a<b", []) == "a&lt;b"
