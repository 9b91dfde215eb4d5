"""Hides who a response is about (SPEC 2, "Masking"): spans of group terms, the masked text, and what still leaks.

A text is folded first: lower case, one code point to none or some, look-alikes and marks undone (`harness.folding`).
One regular expression per attribute and noun, a trie of all terms, runs over the folded text; matches are carried
back to code points of the original. The leak test reads the masked text more loosely than the mask did.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from generator.schema.bank import PERSON, Bank, Concept, Rendered, group_np
from harness.folding import EMPHASIS, WORD, fold, fold_plain

Span = tuple[int, int]

_ARTICLE = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)
_SEPARATOR = rf"[\s\-{EMPHASIS}]+"
_SEPARATORS = re.compile(_SEPARATOR)
# Plural and possessive: Muslims, Witnesses, Muslim's, Muslims', and James' after a final s.
_SUFFIX = r"(?:(?<=[shxz])es'?|s?'s|s'?|(?<=s)')?"
_MARKS = f"[{EMPHASIS}]*"
_INSIDE_WORD = re.compile(rf"{WORD}[{EMPHASIS}]+{WORD}")
_BREAK = "\x00"

Trie = dict[str, "Trie"]


def terms_of(bank: Bank, attribute: str, nouns: Iterable[str]) -> list[str]:
    """Return what gives an attribute's groups away: np, np without article, mask terms, of every group."""
    found: dict[str, None] = {}
    for group in bank.attribute[attribute].groups:
        for noun in nouns:
            np = group_np(group, noun)
            found[np] = None
            found[_ARTICLE.sub("", np, count=1) if _ARTICLE.match(np) else np] = None
        found.update(dict.fromkeys(group.mask_terms))
    return list(found)


class Masker:
    """Finds and replaces a fixed set of terms; built once per attribute and noun."""

    def __init__(self, terms: Iterable[str]) -> None:
        folded = sorted({_canonical_term(term) for term in terms} - {""})
        trie = _trie(folded)
        self._strict = _whole_word(_pattern(trie, separator=_SEPARATOR))
        self._marked = _whole_word(_pattern(trie, separator=_SEPARATOR, between=_MARKS))
        self._joined = _whole_word(_pattern(trie, separator=r"[\W_]{0,3}"))
        self._spelled = _whole_word(_pattern(trie, separator=r"[\W_]{0,3}", between=r"[\W_]{1,2}"))

    def spans(self, text: str) -> list[Span]:
        """Return the matches as [start, end) in code points of `text`, left to right, longest first at each place."""
        folded = fold(text)
        finder = self._marked if _INSIDE_WORD.search(folded.text) else self._strict
        return [folded.original(m.start(), m.end()) for m in finder.finditer(folded.text)]

    def leaks(self, masked: str) -> bool:
        """Tell whether a term is still there in a masked text, read as loosely as a person would.

        Beyond the mask: tags and entities undone, words run together or spelled out letter by letter, digits and
        signs that stand for letters.
        """
        return any(self._joined.search(view) or self._spelled.search(view) for view in _views(masked))


@lru_cache(maxsize=4096)
def _masker(terms: tuple[str, ...]) -> Masker:
    return Masker(terms)


def masker_for(bank: Bank, concept: Concept) -> Masker:
    """Return the masker of a concept's attribute and noun; one object per set of terms."""
    return _masker(tuple(terms_of(bank, concept.attribute, [concept.noun])))


def bank_masker(bank: Bank) -> Masker:
    """Return the masker of the whole bank: every np, np without article and mask term (SPEC 5, the audit sheet)."""
    terms: dict[str, None] = {}
    for attribute in bank.attributes:
        nouns = sorted({c.noun for c in bank.concepts if c.attribute == attribute.id})
        terms.update(dict.fromkeys(terms_of(bank, attribute.id, nouns)))
    return _masker(tuple(terms))


def apply_mask(text: str, spans: Sequence[Span]) -> str:
    """Return `text` with each span replaced by `[PERSON]`; spans are sorted and do not overlap."""
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], PERSON]
        at = end
    return "".join((*parts, text[at:]))


def mask_prompt(prompt: Rendered) -> str:
    """Return the prompt with its swap span masked."""
    return prompt.text[: prompt.start] + PERSON + prompt.text[prompt.end :]


def _canonical_term(term: str) -> str:
    """Fold a term as a text is folded, its separators single spaces."""
    return _SEPARATORS.sub(" ", fold_plain(term)).strip()


def _trie(terms: Iterable[str]) -> Trie:
    root: Trie = {}
    for term in terms:
        node = root
        for char in term:
            node = node.setdefault(char, {})
        node[""] = {}
    return root


def _pattern(node: Trie, *, separator: str, between: str = "") -> str:
    """Return the expression of a trie; deeper branches come first, so that the longest term wins.

    `between` may stand between any two letters of a term, `separator` stands for its own separators.
    """
    branches = []
    for char, child in sorted(node.items(), reverse=True):
        if char == "":
            branches.append(_SUFFIX + rf"(?!{WORD})")
            continue
        head = separator if char == " " else re.escape(char)
        gap = "" if char == " " or not (child.keys() - {"", " "}) else between
        # A gap leads only to further letters; where the term may also end here, the end stands beside it.
        rest = {c: n for c, n in child.items() if c not in ("", " ")}
        ends = {c: n for c, n in child.items() if c in ("", " ")}
        tails = [gap + _pattern(rest, separator=separator, between=between)] if rest else []
        tails += [_pattern(ends, separator=separator, between=between)] if ends else []
        branches.append(head + (tails[0] if len(tails) == 1 else f"(?:{'|'.join(tails)})"))
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def _whole_word(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!{WORD})(?:{pattern})" if pattern else r"(?!)")


_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,80}>")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SUBSTITUTED = re.compile(r"[a-z][0-9@$!|]|[0-9@$!|][a-z]")
_LEET = str.maketrans("013457@$!|", "oleastasil")


def _views(masked: str) -> Iterable[str]:
    text = masked.replace(PERSON, _BREAK)
    if "<" in text:
        text = _TAG.sub("", text)
    if "&" in text:
        text = html.unescape(text)
    plain = fold_plain(text)
    yield plain
    if _CAMEL.search(text):
        yield fold_plain(_CAMEL.sub(" ", text))
    if _SUBSTITUTED.search(plain):
        yield plain.translate(_LEET)
