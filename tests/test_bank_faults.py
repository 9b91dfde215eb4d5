"""Each rule of a bank, broken once: the fault names the place and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.schema.bank import SLOT, Bank, Group
from harness.bank.faults import (
    Sourced,
    bank_faults,
    concept_faults,
    group_faults,
    pronoun_faults,
    template_faults,
)
from tests.test_bank import BANK

CONCEPT = BANK.concept["race_lease_noise"]
GROUP = BANK.attribute["age"].groups[0]
WORDS = BANK.rules.words
FILLER = " ".join(["word"] * 45)


def faults(bank):
    """All faults of a bank whose concepts come from one file each attribute."""
    return bank_faults(bank, [Sourced(f"{c.attribute}.toml", c) for c in bank.concepts], Path("bank"))


def rebuilt(**changes):
    """The shipped bank with some fields replaced, its look-up tables built anew."""
    return Bank(**{**{name: getattr(BANK, name) for name in Bank.model_fields}, **changes})


def with_concept(**changes):
    """The shipped bank with its first race concept changed."""
    changed = tuple(c.model_copy(update=changes) if c.id == CONCEPT.id else c for c in BANK.concepts)
    return rebuilt(concepts=changed)


def with_direct(template):
    """The concept with another direct template."""
    return CONCEPT.model_copy(update={"framings": {**CONCEPT.framings, "direct": template}})


def with_attribute(name, **changes):
    """The shipped bank with one attribute changed."""
    changed = tuple(a.model_copy(update=changes) if a.id == name else a for a in BANK.attributes)
    return rebuilt(attributes=changed)


def with_rubric(name, **changes):
    """The shipped bank with one rubric changed."""
    changed = tuple(r.model_copy(update=changes) if r.id == name else r for r in BANK.rubrics)
    return rebuilt(rubrics=changed)


class TestBankFaults:
    def test_the_shipped_bank_has_none(self):
        assert faults(BANK) == []

    @pytest.mark.parametrize("version", ["1.0", "v1.0.0", "1.0.0 ", "one", ""])
    def test_a_version_is_three_numbers(self, version):
        found = faults(rebuilt(version=version))
        assert found == [f"bank/bank.toml: version {version!r}: use three numbers, such as 1.0.0"]

    def test_a_concept_id_is_used_once(self):
        twin = CONCEPT.model_copy(update={"attribute": "gender"})
        found = faults(rebuilt(concepts=(*BANK.concepts, twin)))
        assert "bank/concepts: concept id 'race_lease_noise' is used 2 times; ids are unique" in found

    def test_a_quota_that_is_missed_names_the_file_and_the_category(self):
        short = rebuilt(concepts=tuple(c for c in BANK.concepts if c.id != CONCEPT.id))
        assert faults(short) == ["bank/concepts/race_ethnicity.toml: 4 stance concepts, must be 5"]

    def test_a_two_sided_concept_does_not_fill_a_quota(self):
        found = faults(with_concept(two_sided=True))
        assert found == ["bank/concepts/race_ethnicity.toml: 4 stance concepts, must be 5"]

    def test_more_ceilings_than_the_cap(self):
        first = [c.id for c in BANK.concepts_of("control_tag")][:4]
        changed = tuple(c.model_copy(update={"ceiling": True}) if c.id in first else c for c in BANK.concepts)
        (found,) = faults(rebuilt(concepts=changed))
        assert found.startswith("bank/concepts/control_tag.toml: ")
        assert found.endswith("of 10 concepts are ceiling, at most 30 % may be")

    def test_three_ceilings_of_ten_are_within_the_cap(self):
        tag = [c for c in BANK.concepts_of("control_tag") if not c.ceiling][:2]
        changed = tuple(c.model_copy(update={"ceiling": True}) if c in tag else c for c in BANK.concepts)
        assert faults(rebuilt(concepts=changed)) == []

    def test_a_missing_attribute(self):
        rest = tuple(a for a in BANK.attributes if a.id != "age")
        found = faults(rebuilt(attributes=rest))
        assert "bank/attributes.toml: attribute age is missing" in found
        assert any(f.endswith("attribute 'age' is not in attributes.toml") for f in found)

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"kind": "control"}, "kind is 'control', must be 'demographic'"),
            ({"groups": BANK.attribute["age"].groups[:4]}, "has 4 groups, must have 5 to 6"),
            ({"groups": ()}, "has 0 groups, must have 5 to 6"),
            ({"groups": BANK.attribute["age"].groups[:1] * 5}, "group id 'age_22' is used 5 times; ids are unique"),
        ],
    )
    def test_an_attribute_out_of_shape(self, changes, expected):
        assert f"bank/attributes.toml: attribute age: {expected}" in faults(with_attribute("age", **changes))

    @pytest.mark.parametrize(
        ("rubric", "changes", "expected"),
        [
            ("stance", {"labels": BANK.rubric["stance"].labels[::-1]}, "labels must be (('OPPOSE', 0.0)"),
            ("stance", {"scale": "score"}, "scale is 'score', must be 'ordinal'"),
            (
                "stance",
                {"instruction": ""},
                "prompts must end with 'Answer briefly, in two to four sentences, and finish",
            ),
            (
                "regard",
                {"instruction": "Be brief."},
                "prompts must end without an instruction; instruction is 'Be brief.'",
            ),
            ("regard", {"mask_groups": False}, "mask_groups must be true"),
            ("refusal", {"judge_prompt": "Label it."}, "judge_prompt does not name [PERSON]"),
            ("refusal", {"judge_prompt": "Label it."}, "judge_prompt does not name DEFLECT"),
            ("capability", {"judge_prompt": "Label it."}, 'judge_prompt does not name "score"'),
            ("capability", {"judge_prompt": "Label it."}, "judge_prompt does not name REFUSAL"),
        ],
    )
    def test_a_rubric_out_of_shape(self, rubric, changes, expected):
        found = faults(with_rubric(rubric, **changes))
        assert any(f.startswith(f"bank/rubrics.toml: rubric {rubric}: ") and expected in f for f in found)

    def test_a_missing_and_an_unknown_rubric(self):
        found = faults(with_rubric("regard", id="esteem"))
        assert "bank/rubrics.toml: rubric regard is missing" in found
        assert any(f.startswith("bank/rubrics.toml: rubric esteem: unknown") for f in found)


class TestConceptFaults:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"id": "Race-1"}, "id 'Race-1': use [a-z0-9_]{1,48}"),
            ({"id": "con"}, "id 'con' is a reserved file name"),
            ({"category": "mood"}, "category 'mood' is unknown"),
            ({"rubric": "mood"}, "rubric 'mood' is unknown; the bank has stance, allocation"),
            ({"noun": "Tenant"}, "noun 'Tenant': one to four words in lower-case letters"),
            ({"noun": "a tenant, maybe"}, "noun 'a tenant, maybe'"),
            ({"noun": "latino tenant"}, "noun: holds 'latino', a label or mask term of group hispanic"),
            ({"attribute": "height"}, "attribute 'height' is not in attributes.toml"),
        ],
    )
    def test_a_field_out_of_shape(self, changes, expected):
        found = concept_faults(CONCEPT.model_copy(update=changes), BANK)
        assert any(fault.startswith(expected) for fault in found)

    def test_two_framings_the_same(self):
        same = with_direct(CONCEPT.framings["professional"])
        assert concept_faults(same, BANK) == ["framings direct and professional are the same text"]

    def test_a_fault_names_its_framing(self):
        assert concept_faults(with_direct("Hello."), BANK)[0].startswith("framing direct: has 0 {group_np}")

    @pytest.mark.parametrize("cut", range(8))
    def test_no_part_of_a_word_before_the_slot_is_read_as_an_article(self, cut):
        found = concept_faults(with_direct(f"A plan for {'x' * (29 + cut)} by {SLOT} came. {FILLER}"), BANK)
        assert [fault for fault in found if "before 'for'" in fault] == []

    @pytest.mark.parametrize("article", ["a", "the", "an", "this", "every"])
    def test_an_article_before_the_slot(self, article):
        found = concept_faults(with_direct(f"So {article} {SLOT} came. {FILLER}"), BANK)
        assert any("stands before {group_np}, which brings its own" in fault for fault in found)

    @pytest.mark.parametrize("after", ["who came late", "with a dog", "and a friend", "whose lease ends"])
    def test_words_after_a_who_clause_attach_to_the_wrong_noun(self, after):
        concept = with_direct(f"So {SLOT} {after} asks. {FILLER}").model_copy(update={"attribute": "disability"})
        found = concept_faults(concept, BANK)
        assert any("attach to the wrong noun; end the phrase after {group_np}" in fault for fault in found)

    def test_the_same_words_after_an_adjective_are_fine(self):
        assert concept_faults(with_direct(f"So {SLOT} with a dog asks. {FILLER}"), BANK) == []

    def test_a_wrong_article_in_the_template(self):
        found = concept_faults(with_direct(f"So {SLOT} has a old dog. {FILLER}"), BANK)
        assert found == ["framing direct: write 'an', not 'a', before 'old'"]


class TestTemplateFaults:
    @pytest.mark.parametrize(
        "start",
        ["", "Come in. ", "Really? ", "Go! ", "The case: ", 'He left." ', "Come in.\n\n", "Come in. (", 'Come in. "'],
    )
    def test_the_slot_at_the_start_of_a_sentence(self, start):
        text = start.replace("He left", "It ended")
        assert list(template_faults(f"{text}{SLOT} came. {FILLER}", WORDS)) == [
            "{group_np} stands at the start of a sentence; put it in the middle"
        ]

    @pytest.mark.parametrize("start", ["So ", "At 5 p.m, ", "One, two, ", "The $1.50 from ", 'They said that "'])
    def test_the_slot_in_the_middle(self, start):
        assert list(template_faults(f"{start}{SLOT} came. {FILLER}", WORDS)) == []

    @pytest.mark.parametrize("count", [0, 2, 3])
    def test_the_slot_is_there_once(self, count):
        text = f"So {' '.join([SLOT] * count)} came. {FILLER}"
        assert list(template_faults(text, WORDS)) == [f"has {count} {{group_np}}, must have exactly one"]

    @pytest.mark.parametrize("brace", ["{noun}", "{", "}", "{group}"])
    def test_no_other_brace(self, brace):
        assert list(template_faults(f"So {SLOT} came {brace} home. {FILLER}", WORDS)) == [
            "holds a brace outside its slot"
        ]

    @pytest.mark.parametrize(("words", "fault"), [(39, True), (40, False), (110, False), (111, True)])
    def test_length(self, words, fault):
        text = f"So {SLOT} " + " ".join(["word"] * (words - 2))
        expected = [f"has {words} words, must have 40 to 110"] if fault else []
        assert list(template_faults(text, WORDS)) == expected

    @pytest.mark.parametrize("word", ["he", "She", "HER", "himself", "Mr.", "ma'am"])
    def test_a_gendered_word(self, word):
        (fault,) = pronoun_faults(f"So {SLOT} came and {word} left. {FILLER}")
        assert "which fits some groups only; repeat the role noun" in fault

    @pytest.mark.parametrize("word", ["there", "other", "this", "they", "hers'ed"[:3] + "mit", "sirloin"])
    def test_a_word_that_only_looks_gendered(self, word):
        assert list(pronoun_faults(f"So {SLOT} came and {word} left. {FILLER}")) == []


class TestGroupFaults:
    def group(self, **changes):
        return Group(**{"id": "x", "label": "X", "np": "a tall {noun}", "mask_terms": ("tall",), **changes})

    def test_shipped_groups_have_none(self):
        assert [list(group_faults(g)) for a in BANK.attributes for g in a.groups if list(group_faults(g))] == []

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"id": "X"}, "id 'X': use [a-z0-9_]{1,48}"),
            ({"label": " "}, "label is empty"),
            ({"np": "a tall person"}, "use exactly one {noun} or {a_noun}"),
            ({"np": "a {noun} or {noun}"}, "use exactly one {noun} or {a_noun}"),
            ({"np": "a {adj} {noun}"}, "use exactly one {noun} or {a_noun}"),
            ({"np": "a tall  {noun}"}, "single spaces, none at the ends"),
            ({"np": "tall {noun}"}, "begin with 'a ', 'an ' or {a_noun}"),
            ({"np": "a {a_noun} who is tall"}, "{a_noun} brings its own article"),
            ({"np": "a old {noun}"}, "write 'an', not 'a', before 'old'"),
            ({"np": "an 22-year-old {noun}"}, "write 'a', not 'an', before '22-year-old'"),
            ({"np": "a 81-year-old {noun}"}, "write 'an', not 'a', before '81-year-old'"),
            ({"mask_terms": ()}, "has no mask term"),
            ({"mask_terms": ("a",)}, "mask term 'a': two letters or digits at least"),
            ({"mask_terms": ("tall ",)}, "mask term 'tall '"),
            ({"mask_terms": ("{word} man",)}, "mask term '{word} man'"),
            ({"mask_terms": ("tall", "Tall")}, "mask term 'tall' is used 2 times"),
        ],
    )
    def test_a_group_out_of_shape(self, changes, expected):
        assert any(expected in fault for fault in group_faults(self.group(**changes)))
