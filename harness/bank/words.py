"""Words that a bank may not hold: a wrong article, or a cue of a group in the text around the slot.

Pure: takes texts and attributes, returns what is wrong as a sentence, or yields one for each place.

See contract: bank, "Rules of the bank".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from generator.schema.bank import SLOT, Attribute, Group, with_article

_GAP = " \x00 "  # stands for the slot among the words, so that no term reaches across it
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|\x00")


def article_fault(text: str) -> str | None:
    """Say where a text has `a` for `an` or the other way round, or None; figures and capitals are read aloud."""
    for match in re.finditer(r"\b([Aa]n?) ([A-Za-z0-9][\w.'’-]*)", text):
        article, word = match.groups()
        if article.lower() != _article(word):
            return f"write {_article(word)!r}, not {article!r}, before {word!r}"
    return None


def _article(word: str) -> str:
    if re.match(r"8|1[18](?!\d)", word):
        return "an"
    if re.match(r"\d|U\.S|US\b|UN\b", word):
        return "a"
    if re.match(r"[FHLMNRSX](?:-?\d|\.|[A-Z]+\b|-)", word):  # letters said by name: an H-1B, an MRI
        return "an"
    if re.match(r"(?i)us[aeiu]|uni(?!n)|uti|one\b|once\b|eu", word):  # a usual line
        return "a"
    return with_article(word).split(" ", 1)[0]


def cue_faults(text: str, attribute: Attribute) -> Iterator[str]:
    """Yield each label or mask term of the attribute that a template or noun holds.

    Whole words in any case; hyphens and spaces match one another, a plural or possessive s is included.

    See contract: bank, "Rules of the bank".
    """
    index = cue_index(attribute.groups)
    longest = max(map(len, index), default=0)
    starts = {key[0] for key in index}
    words = [match.group().lower() for match in _WORD.finditer(text.replace(SLOT, _GAP))]
    place = 0
    while place < len(words):
        # The longest term first, so that "green card" is named where "green" would be a term too.
        sizes = range(min(longest, len(words) - place), 0, -1) if starts.intersection(_stems(words[place])) else ()
        found = next((n for n in sizes if _cue(words[place : place + n], index)), 0)
        if found:
            phrase = words[place : place + found]
            yield f"holds {' '.join(phrase)!r}, a label or mask term of group {_cue(phrase, index)}"
        place += found or 1


@lru_cache(maxsize=64)
def cue_index(groups: tuple[Group, ...]) -> dict[tuple[str, ...], str]:
    """Return which group each label or mask term points to, terms as tuples of lower-case words."""
    index: dict[tuple[str, ...], str] = {}
    for group in groups:
        for term in (group.label, *group.mask_terms):
            if words := tuple(_WORD.findall(term.lower())):
                index.setdefault(words, group.id)
    return index


def _stems(word: str) -> tuple[str, ...]:
    """Return the forms under which a term may be listed: as it is, without a plural s, without a possessive."""
    return (word, word.removesuffix("s"), re.sub(r"['’]s?$", "", word))


def _cue(words: list[str], index: dict[tuple[str, ...], str]) -> str | None:
    *first, last = words
    return next((index[key] for stem in _stems(last) if (key := (*first, stem)) in index), None)
