"""Folds text to the plain letters that a person reads, and keeps the way back to the original.

Case, accents, compatibility forms (full width, mathematical, circled), letters of other scripts that look Latin,
combining marks and invisible characters are undone. Dashes become `-`, apostrophes `'`; white space stays.

See contract: verdicts, "Masking".
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

# Markdown marks that may surround or split a term: emphasis, strike-through, code.
EMPHASIS = "*_~`"
# A letter or digit of a folded text: \w without the underscore, which is an emphasis mark.
WORD = r"[^\W_]"

_APOSTROPHES = "'’‘‛ʼʹˈ՚＇′´ꞌ"
_DASHES = "−⁃➖"  # besides the category Pd
# Letters that no decomposition leads back to Latin, by the Latin letter that they look like.
_LOOK_ALIKES = {
    "a": "аАαΑɑаᎪ", "b": "ЬвВΒβᏴƄ", "c": "сСϲϹᴄᏟ", "d": "ԁԀɗđðᎠ", "e": "еЕεΕєҽɛᎬ", "f": "ƒϝꓝ", "g": "ɡցԌɢᏀ",
    "h": "һҺհнНΗᎻ", "i": "іІιΙıɩӀᎥ", "j": "јЈϳᎫ", "k": "кКκΚᏦ", "l": "ӏⅼłʟᏞ", "m": "мМΜᎷ", "n": "ոηΝпɴ",
    "o": "оОοΟօσøᴏ", "p": "рРρΡᏢ", "q": "ԛԚզ", "r": "гɾʀᏒ", "s": "ѕЅʂꜱᏚ", "t": "тТτΤᎢŧ", "u": "υսᴜ", "v": "ѵѴνᴠᏙ",
    "w": "ԝԜωաᴡᏔ", "x": "хХχΧ", "y": "уУүΥγʏ", "z": "ΖᴢᏃ",
}  # fmt: skip
_LATIN = {ord(alike): latin for latin, alikes in _LOOK_ALIKES.items() for alike in alikes}
_OTHER_NUMBER = "\ufffc"


def _fold_one(char: str) -> str:
    """Fold one code point to the letters, digit, mark or space that it reads as; invisible ones to nothing."""
    if char in _APOSTROPHES:
        return "'"
    category = unicodedata.category(char)
    if char in _DASHES or category == "Pd":
        return "-"
    if ord(char) in _LATIN:
        return _LATIN[ord(char)]
    if category[0] == "M" or category == "Cf":
        return ""
    if category[0] == "L" or category in ("Nd", "Nl"):
        return _letters(char)
    if category == "So" and len(plain := unicodedata.normalize("NFKD", char)) == 1 and plain.isalpha():
        return plain.casefold()  # circled and squared letters; a trade mark sign is two letters and ends a word
    return _OTHER_NUMBER if category == "No" else char  # a footnote mark ends a word too


def _letters(char: str) -> str:
    bare = (c for c in unicodedata.normalize("NFKD", char) if unicodedata.category(c)[0] != "M")
    folded = "".join(_LATIN.get(ord(c), c.casefold()) for c in bare)
    return "".join("'" if c in _APOSTROPHES else _LATIN.get(ord(c), c) for c in folded)


class _Folds(dict[int, str]):
    """`_fold_one` by code point, remembered. `uneven` collects characters that fold to none or to several."""

    def __init__(self) -> None:
        super().__init__()
        self.uneven: set[str] = set()

    def __missing__(self, point: int) -> str:
        self[point] = folded = _fold_one(chr(point))
        if len(folded) != 1:
            self.uneven.add(chr(point))
        return folded


_FOLDS = _Folds()
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def _replacement(match: re.Match[str]) -> str:
    return _FOLDS[ord(match[0])]


@dataclass(frozen=True)
class Folded:
    """A folded text with the way back.

    `starts[i]` is the place in `source` that folded character i came from; None where folding kept every place.
    """

    text: str
    source: str
    starts: list[int] | None

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of a match, in code points of the original. Marks on its last letter belong to it.

        Args:
            start, end: the match in the folded text, end exclusive.
        """
        if self.starts is None:
            return start, end
        stop = self.starts[end - 1] + 1
        while stop < len(self.source) and unicodedata.category(self.source[stop])[0] == "M":
            stop += 1
        return self.starts[start], stop


def fold_plain(text: str) -> str:
    """Return the folded text without the way back, for texts that are only searched."""
    if text.isascii():
        return text.lower()
    return _NOT_ASCII.sub(_replacement, text).lower()


def fold(text: str) -> Folded:
    """Fold a text, and remember where each character came from."""
    if text.isascii():
        return Folded(text.lower(), text, None)
    folded = fold_plain(text)
    if _FOLDS.uneven.isdisjoint(_NOT_ASCII.findall(text)):
        return Folded(folded, text, None)
    return Folded(
        folded, text, [i for i, char in enumerate(text) for _ in (char if char < "\x80" else _FOLDS[ord(char)])]
    )
