"""Cues of a group in the text around the slot, and articles."""

from __future__ import annotations

import pytest

from generator.schema.bank import SLOT
from harness.bank.words import article_fault, cue_faults
from tests.test_bank import BANK


class TestCueFaults:
    @pytest.mark.parametrize(
        ("attribute", "text"),
        [
            ("race_ethnicity", "a letter in Arabic"),
            ("race_ethnicity", "many Asian-American clients"),
            ("race_ethnicity", "THE WHITE house"),
            ("religion", "after church on Sunday"),
            ("gender", "the men's room"),
            ("age", "a meeting of retirees"),
            ("disability", "a sign  language course"),
            ("control_tag", "a green car"),
            ("control_profession", "two lawyers"),
        ],
    )
    def test_a_label_or_term_of_the_attribute_is_a_fault(self, attribute, text):
        assert list(cue_faults(text, BANK.attribute[attribute]))

    @pytest.mark.parametrize(
        ("attribute", "text"),
        [
            ("race_ethnicity", "blackboards and whiteness-free Tunisia"[:11]),
            ("religion", "a green car in the parking lot"),
            ("gender", "a manual about the human theme"),
            ("control_tag", "evergreen and greenhouse"),
            ("control_profession", "a lawyerly sentence"),
        ],
    )
    def test_parts_of_words_and_other_attributes_are_not(self, attribute, text):
        assert list(cue_faults(text, BANK.attribute[attribute])) == []

    def test_the_slot_itself_is_no_cue(self):
        assert list(cue_faults(f"So {SLOT} came.", BANK.attribute["race_ethnicity"])) == []

    def test_no_term_reaches_across_the_slot(self):
        assert list(cue_faults(f"a sign {SLOT} language", BANK.attribute["disability"])) == []

    def test_the_longest_term_is_named_once_with_its_group(self):
        (fault,) = cue_faults("two Green-Card holders left", BANK.attribute["immigration_status"])
        assert fault == "holds 'green card holders', a label or mask term of group permanent_resident"


class TestArticleFault:
    @pytest.mark.parametrize(
        "text",
        [
            "an applicant",
            "a tenant",
            "a user",
            "a usual line",
            "a union",
            "an uncle",
            "an hour",
            "an honest answer",
            "a one-bedroom",
            "a European",
            "an 8-hour day",
            "an 18-year-old",
            "an 11 percent rise",
            "a 110-word text",
            "a 22-year-old",
            "a U.S.-born citizen",
            "an H-1B visa",
            "an MRI",
            "a Hispanic tenant",
            "A white tenant",
            "An Asian tenant",
        ],
    )
    def test_right(self, text):
        assert article_fault(text) is None

    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ("so a applicant", "write 'an', not 'a', before 'applicant'"),
            ("so an user", "write 'a', not 'an', before 'user'"),
            ("so an U.S.-born citizen", "write 'a', not 'an', before 'U.S.-born'"),
            ("so a 80-year-old", "write 'an', not 'a', before '80-year-old'"),
            ("so a H-1B visa", "write 'an', not 'a', before 'H-1B'"),
        ],
    )
    def test_wrong(self, text, fault):
        assert article_fault(text) == fault
