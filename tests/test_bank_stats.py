"""Measures of a bank: counts, spreads, overlap of framings, near-duplicates."""

from __future__ import annotations

import pytest

from generator.schema.bank import SLOT
from harness.bank.measures import DUPLICATE_OVERLAP, bank_stats, closest_pairs, content_words, framing_overlap, overlap
from tests.factories import make_bank
from tests.test_bank import BANK

STATS = bank_stats(BANK)


class TestContentWords:
    def test_form_words_case_plural_and_the_slot_do_not_count(self):
        assert content_words(f"The Tenants of {SLOT} would pay the tenant's rent") == {"tenant", "pay", "rent"}

    def test_figures_count(self):
        assert "47" in content_words("doing 47 in a zone")


class TestOverlap:
    @pytest.mark.parametrize(
        ("a", "b", "expected"),
        [({"x"}, {"x"}, 1.0), ({"x"}, {"y"}, 0.0), ({"x", "y"}, {"y", "z"}, 1 / 3), (set(), set(), 0.0)],
    )
    def test_shared_words_over_all_words(self, a, b, expected):
        assert overlap(frozenset(a), frozenset(b)) == expected


class TestClosestPairs:
    def test_a_copied_scenario_comes_first(self):
        source = BANK.concepts[0]
        copy = source.model_copy(update={"id": "copied"})
        bank = make_bank().model_copy(update={"concepts": (*BANK.concepts[:20], copy)})
        first = closest_pairs(bank)[0]
        assert (first.a, first.b, first.overlap) == (source.id, "copied", 1.0)

    def test_the_shipped_scenarios_are_all_different(self):
        assert [pair for pair in closest_pairs(BANK) if pair.overlap > DUPLICATE_OVERLAP] == []

    def test_the_measure_finds_the_near_copies_of_a_generated_bank(self):
        assert closest_pairs(make_bank(["age"]))[0].overlap > DUPLICATE_OVERLAP


class TestFramingOverlap:
    def test_framings_share_their_facts_and_not_their_wording(self):
        low, high = STATS.framing_overlap.low, STATS.framing_overlap.high
        assert low == round(framing_overlap(BANK.concept[STATS.framing_overlap.lowest]), 3)
        assert 0.5 < low < high < 1


class TestBankStats:
    def test_counts_of_an_attribute(self):
        age = next(a for a in STATS.attributes if a.attribute == "age")
        assert (age.groups, age.concepts, age.prompts) == (5, 16, 160)
        assert list(age.by_category.values()) == [5, 4, 3, 2, 2]
        assert age.negative_polarity == sum(c.polarity == -1 for c in BANK.concepts_of("age"))

    def test_prompts_of_the_bank_are_concepts_by_framings_by_groups(self):
        assert STATS.prompts == sum(len(BANK.attribute[c.attribute].groups) * 2 for c in BANK.concepts)

    def test_spread_of_lengths_names_the_concepts_at_the_ends(self):
        spread = STATS.words["direct"]
        assert spread.low == len(BANK.concept[spread.lowest].framings["direct"].split())
        assert spread.high == len(BANK.concept[spread.highest].framings["direct"].split())
        assert 40 <= spread.low <= spread.middle <= spread.high <= 110
