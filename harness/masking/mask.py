"""Hides who a response is about: spans of group terms, the masked text, and what still leaks.

A text is folded first (`folding`): lower case, one code point to none or some, look-alikes and marks undone. Two
regular expressions run over the folded text together, one for the terms of the attribute and one for the phrases of a
noun, each made from a trie. Matches are carried back to code points of the original. The leak test reads the masked
text more loosely than the mask did.

See contract: verdicts, "Masking"; methodology: judging, "What counts as a leak".
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache

from generator.schema.bank import PERSON, Bank, Concept, Rendered, group_np
from harness.masking.folding import EMPHASIS, WORD, fold, fold_plain

Span = tuple[int, int]

_ARTICLE = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)
_SEPARATOR = rf"[\s\-{EMPHASIS}]+"
_SEPARATORS = re.compile(_SEPARATOR)
# Plural and possessive: Muslims, Witnesses, Muslim's, Muslims', and James' after a final s.
_SUFFIX = r"(?:(?<=[shxz])es'?|s?'s|s'?|(?<=s)')?"
_ANY_OR_NONE = r"[\W_]{0,3}"
_INSIDE_WORD = re.compile(rf"{WORD}[{EMPHASIS}]+{WORD}")
_BREAK = "\x00"

Trie = dict[str, "Trie"]


def noun_phrases(bank: Bank, attribute: str, noun: str) -> list[str]:
    """Return each group's noun phrase for a noun, with and without its article, each once.

    Args:
        bank: the bank.
        attribute: id of the attribute whose groups are meant.
        noun: the role noun of a concept, such as `applicant`.

    Raises:
        KeyError: the bank has no such attribute.
    """
    found: dict[str, None] = {}
    for group in bank.attribute[attribute].groups:
        np = group_np(group, noun)
        found |= {np: None, _ARTICLE.sub("", np, count=1): None}
    return list(found)


def mask_terms(bank: Bank, attribute: str) -> list[str]:
    """Return the mask terms of all groups of an attribute, each once, in the bank's order."""
    return list(dict.fromkeys(term for group in bank.attribute[attribute].groups for term in group.mask_terms))


class Terms:
    """A set of terms as regular expressions over folded text, each compiled when it is first needed."""

    def __init__(self, terms: Iterable[str]) -> None:
        self._trie = _trie({_canonical_term(term) for term in terms} - {""})

    @cached_property
    def plain(self) -> re.Pattern[str]:
        """How the mask reads: terms as whole words, any separators between their words."""
        return _whole_word(_pattern(self._trie, separator=_SEPARATOR))

    @cached_property
    def marked(self) -> re.Pattern[str]:
        """The same, with emphasis marks allowed inside a word. It is slower and rarely needed."""
        return _whole_word(_pattern(self._trie, separator=_SEPARATOR, between=f"[{EMPHASIS}]*"))

    @cached_property
    def joined(self) -> re.Pattern[str]:
        """How the leak test reads: words of a term run together, or parted by any other signs."""
        return _whole_word(_pattern(self._trie, separator=_ANY_OR_NONE))

    @cached_property
    def spelled(self) -> re.Pattern[str]:
        """How the leak test reads, too: a term spelled out letter by letter."""
        return _whole_word(_pattern(self._trie, separator=_ANY_OR_NONE, between=r"[\W_]{1,2}"))


class Masker:
    """Finds terms in responses, and says what leaked. Several sets of terms count as one."""

    def __init__(self, sets: Sequence[Terms]) -> None:
        self._sets = tuple(sets)

    def spans(self, text: str) -> list[Span]:
        """Return the terms in a text, left to right; the longest wins at each place (contract: verdicts, "Masking").

        Returns:
            [start, end) in code points of `text`, sorted, without overlap.
        """
        folded = fold(text)
        marked = _INSIDE_WORD.search(folded.text) is not None
        patterns = [terms.marked if marked else terms.plain for terms in self._sets]
        return [folded.original(start, end) for start, end in _matches(patterns, folded.text)]

    def leaks(self, masked: str) -> bool:
        """Tell whether a term can still be read in a masked text (methodology: judging, "What counts as a leak").

        It reads more loosely than the mask: tags and entities undone, words run together or spelled out, digits and
        signs for letters.
        """
        return any(t.joined.search(view) or t.spelled.search(view) for view in _views(masked) for t in self._sets)


def _matches(patterns: Sequence[re.Pattern[str]], text: str) -> Iterator[Span]:
    """Yield the matches of several expressions in one pass: the leftmost first, and of those the longest."""
    found = [pattern.search(text) for pattern in patterns]
    while live := [match.span() for match in found if match]:
        start, end = min(live, key=lambda span: (span[0], -span[1]))
        yield start, end
        found = [
            match if match is None or match.start() >= end else pattern.search(text, end)
            for pattern, match in zip(patterns, found, strict=True)
        ]


@lru_cache(maxsize=4096)
def _terms(terms: tuple[str, ...]) -> Terms:
    return Terms(terms)


def masker_for(bank: Bank, concept: Concept) -> Masker:
    """Return the masker of a concept.

    Its terms are the mask terms of the attribute's groups, and each group's phrase for the concept's noun.
    """
    phrases = noun_phrases(bank, concept.attribute, concept.noun)
    return Masker([_terms(tuple(mask_terms(bank, concept.attribute))), _terms(tuple(phrases))])


def bank_masker(bank: Bank) -> Masker:
    """Return the masker of the whole bank, which hides groups of every attribute from a human reviewer.

    See contract: stages, "The review sheet".
    """
    found: dict[str, None] = {}
    for attribute in bank.attributes:
        found |= dict.fromkeys(mask_terms(bank, attribute.id))
        for noun in sorted({c.noun for c in bank.concepts}):
            found |= dict.fromkeys(noun_phrases(bank, attribute.id, noun))
    return Masker([_terms(tuple(found))])


def apply_mask(text: str, spans: Sequence[Span]) -> str:
    """Return a text with each span replaced by `[PERSON]`.

    Args:
        text: the text.
        spans: [start, end) in code points, sorted, without overlap.
    """
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], PERSON]
        at = end
    return "".join((*parts, text[at:]))


def mask_prompt(prompt: Rendered) -> str:
    """Return a prompt with its swap span masked. The span is known from rendering, so no term has to be found."""
    return prompt.text[: prompt.start] + PERSON + prompt.text[prompt.end :]


def _canonical_term(term: str) -> str:
    """Fold a term the way texts are folded, with single spaces between its words."""
    return _SEPARATORS.sub(" ", fold_plain(term)).strip()


def _trie(terms: Iterable[str]) -> Trie:
    root: Trie = {}
    for term in terms:
        node = root
        for char in term:
            node = node.setdefault(char, {})
        # The empty string marks the end of a term.
        node[""] = {}
    return root


def _pattern(node: Trie, *, separator: str, between: str = "", gap: str = "") -> str:
    """Return the expression of a trie. Deeper branches come first, so that the longest term wins.

    Args:
        node: the trie.
        separator: expression for what may stand between the words of a term.
        between: expression for what may stand between two letters of a word.
        gap: `between` where the node follows a letter, empty at the start of a word.
    """
    branches = []
    for char, child in sorted(node.items()):
        if char == " ":
            branches.append(separator + _pattern(child, separator=separator, between=between))
        elif char:
            after = _pattern(child, separator=separator, between=between, gap=between)
            branches.append(gap + re.escape(char) + after)
    inner = branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
    return "" if not branches else f"(?:{inner})?" if "" in node else inner


def _whole_word(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!{WORD}){pattern}{_SUFFIX}(?!{WORD})" if pattern else r"(?!)")


_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,80}>")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SUBSTITUTED = re.compile(r"[a-z][0-9@$!|]|[0-9@$!|][a-z]")
_LEET = str.maketrans("013457@$!|", "oleastasil")


def _views(masked: str) -> Iterable[str]:
    # The letters of `[PERSON]` are no part of the answer and must not be read as part of a term.
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
