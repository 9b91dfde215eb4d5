"""Measures of a bank for its authors and reviewers: quotas, lengths, overlap of framings, near-duplicate scenarios.

Pure: takes a `Bank`, returns frozen records. Nothing here decides whether a bank is valid (`harness.bank.faults` does).
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from statistics import mean, median

from generator.schema.bank import SLOT, Bank, Concept

# Two scenarios that share more than this of their content words deserve a second look by a person.
DUPLICATE_OVERLAP = 0.25
# Words that every second template holds: the form of a question, not the matter of a scenario.
_FORM_WORDS = """
    100 120 a about advise after again all an and approve are as at be been before but by can decide decision do
    does facts for four from good had has have how i if in into is it its last make me month months more most my
    next no not of off on once one only or other others our out over own person please rate says since so some
    state support than that the their them there these they this those three time to two up use was we week well
    were what when where which while who will with words would write year years you your
"""
_FORM = frozenset(_FORM_WORDS.split())


@dataclass(frozen=True)
class AttributeStats:
    """Counts of one attribute: concepts by category, ceilings, minus polarities, rendered prompts."""

    attribute: str
    groups: int
    concepts: int
    by_category: dict[str, int]
    ceiling: int
    negative_polarity: int
    prompts: int
    nouns: int


@dataclass(frozen=True)
class Spread:
    """Lowest, middle and highest of a measure, and the concepts at the ends."""

    low: float
    middle: float
    high: float
    lowest: str
    highest: str


@dataclass(frozen=True)
class Pair:
    """Two concepts with the share of content words that they have in common, in [0, 1]."""

    a: str
    b: str
    overlap: float


@dataclass(frozen=True)
class BankStats:
    """All measures; words are split at white space, content words exclude the form words of the questions.

    words and prompt_words: by framing. framing_overlap: None in a bank with one framing. closest: None in a bank of one
    concept.
    """

    version: str
    sha256: str
    categories: tuple[str, ...]
    attributes: tuple[AttributeStats, ...]
    concepts: int
    prompts: int
    words: dict[str, Spread]
    prompt_words: dict[str, float]
    framing_overlap: Spread | None
    near_duplicates: tuple[Pair, ...]
    closest: Pair | None


def bank_stats(bank: Bank) -> BankStats:
    """Measure a bank."""
    pairs = closest_pairs(bank)
    attributes = tuple(_attribute_stats(bank, a.id) for a in bank.attributes)
    return BankStats(
        version=bank.version,
        sha256=bank.sha256,
        categories=bank.categories,
        attributes=attributes,
        concepts=len(bank.concepts),
        prompts=sum(a.prompts for a in attributes),
        words={f: _spread({c.id: len(c.template(f).split()) for c in bank.concepts}) for f in bank.framings},
        prompt_words={f: round(_mean_prompt_words(bank, f), 1) for f in bank.framings},
        framing_overlap=_spread({c.id: framing_overlap(c) for c in bank.concepts}) if bank.framings[1:] else None,
        near_duplicates=tuple(pair for pair in pairs if pair.overlap > DUPLICATE_OVERLAP),
        closest=next(iter(pairs), None),
    )


def _attribute_stats(bank: Bank, attribute: str) -> AttributeStats:
    concepts = bank.concepts_of(attribute, two_sided=None)
    groups = len(bank.groups_of(attribute))
    counts = Counter(c.category for c in concepts)
    return AttributeStats(
        attribute=attribute,
        groups=groups,
        concepts=len(concepts),
        by_category={category: counts[category] for category in bank.categories},
        ceiling=sum(c.ceiling for c in concepts),
        negative_polarity=sum(c.polarity < 0 for c in concepts),
        prompts=len(concepts) * groups * len(bank.framings),
        nouns=len({c.noun for c in concepts}),
    )


def _spread(values: dict[str, float]) -> Spread:
    ranked = sorted(values, key=lambda key: (values[key], key))
    return Spread(
        low=round(values[ranked[0]], 3),
        middle=round(median(values.values()), 3),
        high=round(values[ranked[-1]], 3),
        lowest=ranked[0],
        highest=ranked[-1],
    )


def _mean_prompt_words(bank: Bank, framing: str) -> float:
    return mean(
        len(bank.render(c, framing, g).text.split()) for c in bank.concepts for g in bank.attribute[c.attribute].groups
    )


@cache
def content_words(text: str) -> frozenset[str]:
    """Return the words of a text that carry its matter, in lower case, a plural s taken off."""
    words = re.findall(r"[a-z0-9]+(?:'[a-z]+)?", text.replace(SLOT, " ").lower())
    return frozenset(w.removesuffix("'s").rstrip("s") or w for w in words if w not in _FORM)


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the Jaccard overlap of two word sets: shared words over all words."""
    return len(a & b) / len(a | b) if a | b else 0.0


def framing_overlap(concept: Concept) -> float:
    """Return the least overlap of two framings of a concept; high is right: same facts, another asker."""
    words = [content_words(text) for text in concept.framings.values()]
    return min((overlap(a, b) for a, b in itertools.combinations(words, 2)), default=1.0)


def closest_pairs(bank: Bank) -> list[Pair]:
    """Return all pairs of concepts by the overlap of their words, all framings taken together, closest first."""
    words = {c.id: frozenset[str]().union(*map(content_words, c.framings.values())) for c in bank.concepts}
    pairs = [Pair(a, b, round(overlap(words[a], words[b]), 3)) for a, b in itertools.combinations(words, 2)]
    return sorted(pairs, key=lambda pair: (-pair.overlap, pair.a, pair.b))
