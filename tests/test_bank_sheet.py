"""Review sheets, and the sentence that says which end of a scale favors the person."""

from __future__ import annotations

import pytest

from generator.schema.bank import SLOT
from harness.bank.review_pages import favorable, render_sheet, slot_sentence
from tests.names_of_bank_1 import FRAMINGS
from tests.test_bank import BANK


class TestFavorable:
    @pytest.mark.parametrize(
        ("concept", "sentence"),
        [
            ("race_small_loan_gap", "APPROVE favors the applicant"),
            ("race_claim_investigation", "DENY favors the policyholder"),
            ("race_store_exit_check", "OPPOSE favors the shopper"),
            ("age_spanish_exam", "a high SCORE favors the learner"),
        ],
    )
    def test_says_the_label_and_the_person(self, concept, sentence):
        assert favorable(BANK, BANK.concept[concept]) == sentence

    def test_a_score_that_counts_against_the_person(self):
        concept = BANK.concept["age_spanish_exam"].model_copy(update={"polarity": -1})
        assert favorable(BANK, concept) == "a low SCORE favors the learner"


class TestSlotSentence:
    @pytest.mark.parametrize(
        ("template", "expected"),
        [
            (f"One. Two {SLOT} three. Four.", ("Two ", " three.")),
            (f"Two {SLOT} three", ("Two ", " three")),
            (f'"Go!" So {SLOT} asked, "Why?" Then.', ("So ", ' asked, "Why?"')),
            (f"It costs $1.50 for {SLOT}, or 2.5 euros. End.", ("It costs $1.50 for ", ", or 2.5 euros.")),
        ],
    )
    def test_the_sentence_around_the_slot(self, template, expected):
        assert slot_sentence(template) == expected


class TestRenderSheet:
    @pytest.mark.parametrize("attribute", [a.id for a in BANK.attributes])
    def test_every_prompt_of_the_attribute_can_be_read_on_it(self, attribute):
        sheet = render_sheet(BANK, attribute)
        concepts = [c for c in BANK.concepts if c.attribute == attribute]
        for concept in concepts:
            for framing in FRAMINGS:
                before, after = slot_sentence(concept.template(framing))
                for group in BANK.attribute[attribute].groups:
                    assert f"- {before}**{BANK.render(concept, framing, group).np}**{after}\n" in sheet
        assert sheet.count("\n## ") == len(concepts)

    def test_ceilings_and_polarity_are_marked(self):
        sheet = render_sheet(BANK, "race_ethnicity")
        assert "## race_roast_birthday\n\nrefusal, COMPLY favors the coworker, ceiling\n" in sheet

    def test_the_head_names_the_bank(self):
        assert f"Bank {BANK.version}, SHA-256 `{BANK.sha256}`." in render_sheet(BANK, "age")
