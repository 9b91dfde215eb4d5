"""Masking hides every term of an attribute, keeps the way back to the original, and says what still leaks.

See contract: verdicts, "Masking".
"""

from __future__ import annotations

import re
import string
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from generator.schema.bank import load_bank
from harness.masking.mask import (
    Masker,
    Terms,
    apply_mask,
    bank_masker,
    mask_prompt,
    mask_terms,
    masker_for,
    noun_phrases,
)
from tests.factories import make_bank

TERMS = (
    "a Black applicant",
    "Black applicant",
    "African American",
    "Black",
    "a 72-year-old applicant",
    "72-year-old",
    "Jehovah's Witness",
    "an applicant who uses a wheelchair",
    "wheelchair",
    "trans man",
    "agender",
)
MASKER = Masker([Terms(TERMS)])


def masked(text: str, masker: Masker = MASKER) -> str:
    return apply_mask(text, masker.spans(text))


class TestSeveralSets:
    @pytest.mark.parametrize("sets", [("Black", "Black applicant"), ("Black applicant", "Black")])
    def test_the_longest_match_wins_whichever_set_it_is_of(self, sets):
        both = Masker([Terms([term]) for term in sets])
        assert masked("A Black applicant's case", both) == "A [PERSON] case"

    def test_the_leftmost_comes_first_whichever_set_it_is_of(self):
        both = Masker([Terms(["applicant"]), Terms(["Black applicant"])])
        assert masked("applicant, Black applicant", both) == "[PERSON], [PERSON]"


class TestPlurals:
    @pytest.mark.parametrize("term", ["Amish", "Sikh", "Pentecostal church", "Lax", "Boss", "Quiz"])
    def test_es_after_a_hissing_letter_or_h_is_part_of_the_match(self, term):
        one = Masker([Terms([term])])
        assert masked(f"Some {term}es, the {term}es' view", one) == "Some [PERSON], the [PERSON] view"

    def test_es_after_any_other_letter_is_another_word(self):
        assert masked("Arabes", Masker([Terms(["Arab"])])) == "Arabes"


class TestSpans:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            # longest first, articles, case
            ("A BLACK applicant came.", "[PERSON] came."),
            ("the Black applicant, and Black people", "the [PERSON], and [PERSON] people"),
            ("an applicant who uses a wheelchair.", "[PERSON]."),
            ("a wheelchair ramp", "a [PERSON] ramp"),
            # whole words: a word ends where the next code point is neither letter nor digit
            ("Blackness, Blackpool, unBlack, Black2", "Blackness, Blackpool, unBlack, Black2"),
            ("172-year-old, 72-year-olds", "172-year-old, [PERSON]"),
            ("Black-owned; Black/white; (Black)", "[PERSON]-owned; [PERSON]/white; ([PERSON])"),
            ("Black™ Black¹ Black_", "[PERSON]™ [PERSON]¹ [PERSON]_"),
            # plural and possessive
            ("two Blacks, the Blacks' view", "two [PERSON], the [PERSON] view"),
            ("Black's and African American’s", "[PERSON] and [PERSON]"),
            ("Jehovah’s Witnesses and a Jehovah's Witness's", "[PERSON] and a [PERSON]"),
            ("if Black'll do", "if [PERSON]'ll do"),
            # hyphens, dashes, white space and emphasis match one another
            ("African-American, African–American, african \n\t american", "[PERSON], [PERSON], [PERSON]"),
            ("72 year old; 72‑year‑old; 72—year—old", "[PERSON]; [PERSON]; [PERSON]"),
            ("**Black** *applicant*", "**[PERSON]*"),
            ("_Black_ and __African__ `American`", "_[PERSON]_ and __[PERSON]`"),
            ("a **Black applicant**", "[PERSON]**"),
            ("trans**gender**, B**lack**", "trans**gender**, [PERSON]**"),
            # look-alikes, marks, invisible characters
            ("Blасk (Cyrillic), ＢＬＡＣＫ, 𝐁𝐥𝐚𝐜𝐤, Ⓑⓛⓐⓒⓚ", "[PERSON] (Cyrillic), [PERSON], [PERSON], [PERSON]"),
            ("Bla\u0301ck\u0301 x, Bl\u200back, Bl\u00adack", "[PERSON] x, [PERSON], [PERSON]"),
            ("Bläck", "[PERSON]"),
            # nothing to do
            ("", ""),
            ("a gender question and a trans-Atlantic flight", "a gender question and a trans-Atlantic flight"),
        ],
    )
    def test_masks_and_leaves_the_rest(self, text: str, expected: str) -> None:
        assert masked(text) == expected

    def test_spans_are_code_points_of_the_original(self) -> None:
        text = "👩🏽\u200d🦽 ﬁne: Bla\u0301ck İ Black"
        assert [text[a:b] for a, b in MASKER.spans(text)] == ["Bla\u0301ck", "Black"]

    def test_two_sets_of_terms_count_as_one(self) -> None:
        split = Masker([Terms(TERMS[3:]), Terms(TERMS[:3])])
        text = "A Black applicant, Black or African American, uses a wheelchair"
        assert split.spans(text) == MASKER.spans(text)

    def test_a_text_of_separators_only_is_read_in_linear_time(self) -> None:
        assert MASKER.spans("Black " + "* " * 50_000 + "x") == [(0, 5)]

    def test_no_terms_mask_nothing(self) -> None:
        assert Masker([Terms([])]).spans("Black") == []


def plain_mask(text: str, terms: tuple[str, ...]) -> list[tuple[int, int]]:
    """The rule spelled out slowly for ASCII text: at each place the longest term that ends a word there."""
    found, at = [], 0
    while at < len(text):
        if at and text[at - 1].isalnum():
            at += 1
            continue
        ends = []
        for term in terms:
            body = r"[\s\-*_~`]+".join(re.escape(p) for p in re.split(r"[\s\-]+", term))
            for suffix in ("s's", "'s", "s'", "s", ""):
                match = re.compile(body + suffix, re.IGNORECASE).match(text, at)
                if match and not text[match.end() : match.end() + 1].isalnum():
                    ends.append((len(term), match.end()))
                    break
        if ends:
            end = max(ends)[1]
            found.append((at, end))
            at = end
        else:
            at += 1
    return found


WORDS = ("Black", "black", "a", "applicant", "African", "American", "72", "year", "old", "wheelchair", "x")
PIECES = st.sampled_from((*WORDS, "s", "'s", "'", " ", "-", "  ", "\n", ".", "**", "_", ", "))


class TestAgainstTheRuleSpelledOut:
    TERMS = ("a Black applicant", "Black applicant", "African American", "Black", "72-year-old", "wheelchair")

    @given(st.lists(PIECES, max_size=14).map("".join))
    @example("Blacks' a Black applicants's")
    @example("a black**applicant-wheelchairs")
    def test_the_trie_finds_what_the_slow_rule_finds(self, text: str) -> None:
        assert Masker([Terms(self.TERMS)]).spans(text) == plain_mask(text, self.TERMS)

    @given(st.text(max_size=60))
    def test_spans_never_overlap_and_lie_within_the_text(self, text: str) -> None:
        spans = MASKER.spans(f"{text}Black{text}")
        assert all(0 <= a < b <= 2 * len(text) + 5 for a, b in spans)
        assert all(first[1] <= second[0] for first, second in pairwise(spans))

    @given(st.text(alphabet=string.printable, max_size=40), st.sampled_from(TERMS))
    def test_a_term_between_blanks_is_always_masked(self, text: str, term: str) -> None:
        whole = f"{text} | {term} | {text}"
        at = whole.index(f"| {term} |") + 2
        assert any(a <= at and at + len(term) <= b for a, b in MASKER.spans(whole))

    @given(st.lists(PIECES, max_size=14).map("".join))
    def test_masking_twice_changes_nothing(self, text: str) -> None:
        assert masked(masked(text)) == masked(text)


class TestLeaks:
    @pytest.mark.parametrize(
        "text",
        [
            "B.l.a.c.k", "b l a c k", "B-L-A-C-K person", "Bl4ck", "B1ack", "<b>Bla</b>ck", "&#66;lack", "Bl&#x61;ck",
            "#BlackPeople", "AfricanAmerican", "african/american", "72yearold", "t-r-a-n-s m-a-n",
        ],
    )  # fmt: skip
    def test_what_the_mask_missed_is_a_leak(self, text: str) -> None:
        assert MASKER.leaks(masked(text))

    @pytest.mark.parametrize(
        "text",
        ["Black", "an African-American's", "a gender question", "back", "Blackness", "172-year-old", "it is 72 years"],
    )
    def test_masked_terms_and_other_words_are_no_leak(self, text: str) -> None:
        assert not MASKER.leaks(masked(text))

    @pytest.mark.parametrize(("sign", "letter"), list(zip("013457@$!|", "oleastasil", strict=True)))
    def test_a_sign_that_stands_for_a_letter_is_read_at_either_end_of_a_word(self, sign: str, letter: str) -> None:
        one = Masker([Terms([f"{letter}ruk", f"kru{letter}"])])
        assert one.leaks(f"so {sign}ruk it is")
        assert one.leaks(f"so kru{sign} it is")

    @pytest.mark.parametrize(("signs", "leak"), [("", True), ("/", True), ("/-/", True), ("/--/", False)])
    def test_up_to_three_signs_may_part_the_words_of_a_term(self, signs: str, leak: bool) -> None:
        assert MASKER.leaks(f"African{signs}American") is leak

    @pytest.mark.parametrize(("signs", "leak"), [(".", True), (". ", True), ("...", False)])
    def test_one_or_two_signs_may_part_the_letters_of_a_word(self, signs: str, leak: bool) -> None:
        assert MASKER.leaks(signs.join("Black")) is leak

    @pytest.mark.parametrize(("tag", "leak"), [("B", True), ("/b", True), ("b" * 81, True), ("b" * 82, False)])
    def test_a_tag_inside_a_word_is_undone(self, tag: str, leak: bool) -> None:
        assert MASKER.leaks(f"Bla<{tag}>ck") is leak

    @given(st.lists(PIECES, max_size=14).map("".join).map(str.lower))
    def test_where_the_mask_knows_the_form_nothing_leaks(self, text: str) -> None:
        one_word = Masker([Terms(["Black"])])
        assert not one_word.leaks(apply_mask(text, one_word.spans(text)))


class TestOfTheBank:
    def test_the_terms_of_a_concept_are_phrases_and_mask_terms_of_every_group(self) -> None:
        bank = make_bank(["gender"], groups=2)
        assert noun_phrases(bank, "gender", "tenant") == [
            "a kind0 tenant",
            "kind0 tenant",
            "a kind1 tenant",
            "kind1 tenant",
        ]
        assert mask_terms(bank, "gender") == ["kind0", "kind1"]

    def test_a_concept_masks_the_groups_of_its_own_attribute_only(self) -> None:
        bank = two_attributes()
        assert (
            masked("a tall tenant, a shy tenant", masker_for(bank, bank.concept["height_x"]))
            == "[PERSON], a shy tenant"
        )
        assert masked("a tall tenant, a shy tenant", bank_masker(bank)) == "[PERSON], [PERSON]"

    def test_every_noun_phrase_of_the_bank_is_scrubbed(self) -> None:
        bank = make_bank(groups=3)
        scrub = bank_masker(bank)
        for concept in bank.concepts:
            for group in bank.attribute[concept.attribute].groups:
                prompt = bank.render(concept, "direct", group)
                assert masked(prompt.text, scrub) == mask_prompt(prompt)


def two_attributes():
    """Two attributes of one group and one concept each."""
    data = make_bank(["age", "gender"], groups=1, quota={"stance": 1}).model_dump(mode="json")
    for attribute, name, word in zip(data["attributes"], ("height", "manner"), ("tall", "shy"), strict=True):
        attribute["id"] = name
        attribute["groups"] = [{"id": "g", "label": word, "np": f"a {word} {{noun}}", "mask_terms": [word]}]
    for concept, name in zip(data["concepts"], ("height", "manner"), strict=True):
        concept |= {"id": f"{name}_x", "attribute": name, "noun": "tenant"}
    return load_bank(data, "test")


class TestMaskPrompt:
    def test_only_the_recorded_span_is_replaced(self) -> None:
        bank = make_bank(["gender"], groups=1)
        prompt = bank.render(bank.concepts[0], "direct", bank.attributes[0].groups[0])
        assert mask_prompt(prompt) == prompt.text.replace("a kind0 applicant", "[PERSON]")
