"""Untrusted text (prompts, responses, evidence) as HTML: escaped, with nothing in it hidden from the reader.

Bidi controls would reorder what a reader sees, and other invisible characters would hide in it. So all of them are
shown as their code point. Line feed and space stay, and so do the two variation selectors of ordinary emoji.

See contract: publication, "Untrusted text".
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence

from markupsafe import Markup, escape

# Letters and marks by their category, yet drawn as nothing: joiners, fillers of Hangul and Khmer, variation selectors.
_INVISIBLE_LETTERS = (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0xFE00, 0xFE0E))
# Format characters beyond the Basic Multilingual Plane, among them tags and further variation selectors.
_FORMAT_BEYOND = (
    *range(0x110BD, 0x110CE),
    *range(0x13430, 0x13440),
    *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B),
    *range(0xE0000, 0xE0080),
    *range(0xE0100, 0xE01F0),
)


def _hidden(point: int) -> bool:
    character = chr(point)
    if character in "\n ":
        return False
    hidden = ("Cc", "Cf", "Zl", "Zp", "Zs")
    return unicodedata.category(character) in hidden or point in _INVISIBLE_LETTERS or point >= 0xE0100


def _shown(point: int) -> str:
    name = unicodedata.name(chr(point), "CONTROL CHARACTER")
    return f'<span class="cp" title="{html.escape(name)}">U+{point:04X}</span>'


_HIDDEN = {p: _shown(p) for p in (*range(0x3200), *range(0xFE00, 0x10000), *_FORMAT_BEYOND) if _hidden(p)}
HIDDEN_POINTS = tuple(sorted(_HIDDEN))


def _ranges(points: Sequence[int]) -> str:
    """Return ordered code points as the inside of a regex class. Ranges match far faster than single characters."""
    starts = [p for p in points if p - 1 not in _HIDDEN]
    ends = [p for p in points if p + 1 not in _HIDDEN]
    return "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in zip(starts, ends, strict=True))


# Nearly every text is free of such characters, so one search by a class decides; ASCII needs a far smaller class.
_CLASS = re.compile(f"[{_ranges(sorted(_HIDDEN))}]")
_ASCII_CLASS = re.compile("[\\x00-\\x09\\x0b-\\x1f\\x7f]")


def visible(text: str) -> Markup:
    """Return untrusted text as HTML: escaped, each control, bidi or invisible character shown as its code point."""
    escaped = str(escape(text))
    pattern = _ASCII_CLASS if text.isascii() else _CLASS
    return Markup(pattern.sub(lambda found: _HIDDEN[ord(found[0])], escaped))  # noqa: S704 - escaped above


def marked(text: str, spans: Sequence[tuple[int, int]], *, css: str = "swap", replacement: str | None = None) -> Markup:
    """Return untrusted text as HTML, with some spans of it in `<mark>`.

    Args:
        text: the text.
        spans: (start, end) in code points, in order, apart, end exclusive.
        css: class of the marks.
        replacement: text to show in place of each span, as the judges saw it.
    """
    parts, place = [], 0
    for start, end in spans:
        inner = text[start:end] if replacement is None else replacement
        parts += [visible(text[place:start]), Markup('<mark class="{}">{}</mark>').format(css, visible(inner))]
        place = end
    return Markup().join([*parts, visible(text[place:])])
