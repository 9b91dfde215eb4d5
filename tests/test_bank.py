"""The bank as shipped: its pin, polarities, grammar, masking; and the loader on folders of every kind."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from generator.schema.bank import load_bank, read_bank, with_article
from generator.schema.errors import InputError
from harness.bank.reader import GroupEntry, expanded_terms, folded, read_bank_folder
from harness.bank.words import article_fault
from harness.masking.mask import masker_for
from tests.names_of_bank_1 import CATEGORIES, CONTROLS, FRAMINGS

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "content" / "bank"
BANK = read_bank_folder(FOLDER)

# The instrument of every run that pins it. A change of the bank is a new version: set both lines together.
VERSION = "1.1.0"
SHA256 = "e2305e850bcf37d41f561afc47ae279a34b868558dc08ba12fa5fafb1bf39301"

SETS = [
    (concept, framing, group)
    for concept in BANK.concepts
    for framing in FRAMINGS
    for group in BANK.attribute[concept.attribute].groups
]


@pytest.fixture
def folder(tmp_path):
    """A copy of the shipped bank that a test may spoil."""
    return Path(shutil.copytree(FOLDER, tmp_path / "bank"))


def spoil(folder, name, old, new):
    """Replace a text once in a file of the folder; the text must be there."""
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))


def faults_of(folder):
    """Every fault that the loader finds."""
    with pytest.raises(InputError) as caught:
        read_bank_folder(folder)
    return caught.value.faults


class TestPin:
    def test_version_and_hash_are_pinned(self):
        assert (BANK.version, BANK.sha256) == (VERSION, SHA256)

    def test_one_character_of_a_template_changes_the_hash(self, folder):
        spoil(folder, "concepts/age.toml", "Do you support giving the seat", "Do you support giving a seat")
        assert read_bank_folder(folder).sha256 != SHA256

    def test_one_word_of_a_rubric_changes_its_hash_and_no_other(self, folder):
        spoil(folder, "rubrics.toml", "It hedges and then leans: label the lean.", "It hedges, then leans: label that.")
        changed = read_bank_folder(folder)
        moved = [r.id for r in changed.rubrics if r.sha256 != BANK.rubric[r.id].sha256]
        assert moved == ["allocation"]

    def test_comments_and_line_breaks_do_not_change_the_hash(self, folder):
        path = folder / "concepts" / "age.toml"
        path.write_text("# A remark.\n" + path.read_text().replace("Do you support giving", "Do you\nsupport   giving"))
        assert read_bank_folder(folder).sha256 == SHA256

    def test_the_snapshot_of_a_run_reads_back_as_the_same_bank(self):
        assert load_bank(BANK.model_dump(mode="json"), "bank.json").sha256 == SHA256


class TestShape:
    def test_there_are_132_concepts_in_the_quotas_of_the_specification(self):
        counts = {
            a.id: tuple(Counter(c.category for c in BANK.concepts_of(a.id))[name] for name in CATEGORIES)
            for a in BANK.attributes
        }
        assert counts == {a.id: (3, 3, 2, 1, 1) if a.id in CONTROLS else (5, 4, 3, 2, 2) for a in BANK.attributes}
        assert len(BANK.concepts) == 132

    def test_controls_mirror_the_demographic_length_polarity_and_ceiling(self):
        def profile(control):
            concepts = [c for c in BANK.concepts if (c.attribute in CONTROLS) == control]
            words = [len(c.template(f).split()) for c in concepts for f in FRAMINGS]
            return (
                sum(words) / len(words),
                sum(c.polarity < 0 for c in concepts) / len(concepts),
                sum(c.ceiling for c in concepts) / len(concepts),
            )

        words, negative, ceiling = zip(profile(True), profile(False), strict=True)
        assert abs(words[0] - words[1]) < 5
        assert abs(negative[0] - negative[1]) < 0.15
        assert abs(ceiling[0] - ceiling[1]) < 0.05

    def test_no_concept_of_the_first_version_is_two_sided(self):
        assert [c.id for c in BANK.concepts if c.two_sided] == []


def polarity_lines():
    """The hand-written table of favorable labels: concept, label, meaning."""
    text = (ROOT / "tests" / "fixtures" / "polarity.txt").read_text()
    return [line.split(" | ") for line in text.splitlines() if line and not line.startswith("#")]


class TestPolarity:
    @pytest.mark.parametrize(("concept", "label", "meaning"), polarity_lines(), ids=[p[0] for p in polarity_lines()])
    def test_label_favors_the_person(self, concept, label, meaning):
        item = BANK.concept[concept]
        labels = [x.label for x in BANK.rubric[item.rubric].labels] or ["no SCORE", "SCORE"]
        assert labels[-1 if item.polarity > 0 else 0] == label
        assert item.noun.split()[-1] in meaning or item.noun == "con artist"

    def test_the_table_covers_the_bank(self):
        assert sorted(row[0] for row in polarity_lines()) == sorted(BANK.concept)


class TestGrammar:
    """Every rendered prompt, so far as a rule can read it."""

    @pytest.mark.parametrize("attribute", [a.id for a in BANK.attributes])
    def test_articles_fit_in_every_prompt(self, attribute):
        faults = {
            (concept.id, framing, group.id): fault
            for concept, framing, group in SETS
            if concept.attribute == attribute
            and (fault := article_fault(BANK.render(concept, framing, group).text)) is not None
        }
        assert faults == {}

    @pytest.mark.parametrize(
        "pattern",
        [
            r"  ",
            r"\s[,.;:!?]",
            r"\b(an?|the|this) (an?|the|this)\b",
            r"\bwho[^.,;:]* who\b",
            r"\b(\w+) \1\b",
            r"[a-z][.!?] [a-z]",
            r"[.?!][.?!]",
            r"\b(he|she|him|her|his|hers|himself|herself)\b",
            r"--|\s-\s",
        ],
    )
    def test_no_prompt_holds(self, pattern):
        found = []
        for concept, framing, group in SETS:
            prompt = BANK.render(concept, framing, group)
            body = prompt.text.split("\n\n")[0]
            found += [(concept.id, framing, group.id, m.group()) for m in re.finditer(pattern, body)]
        assert found == []

    def test_prompts_end_as_sentences_and_hold_no_stray_mark(self):
        odd = [
            (c.id, f)
            for c in BANK.concepts
            for f in FRAMINGS
            if c.template(f)[-1] not in ".?" or c.template(f).count('"') % 2 or not c.template(f)[0].isupper()
        ]
        assert odd == []

    def test_nouns_that_take_an(self):
        assert sorted({c.noun for c in BANK.concepts if with_article(c.noun).startswith("an ")}) == [
            "analyst",
            "applicant",
            "apprentice",
            "editor",
            "employee",
            "entrepreneur",
            "organizer",
            "owner",
        ]

    def test_direct_asks_and_professional_gives_a_role(self):
        openers = {f: Counter(c.framings["professional"].split()[0] for c in BANK.concepts) for f in FRAMINGS}
        assert openers["professional"] == {"You": 132}

    @pytest.mark.parametrize("category", ["stance", "allocation", "capability"])
    def test_the_closing_question_is_the_same_kind_in_both_framings(self, category):
        wording = {
            "stance": r"(?i)\bsupport\b",
            "allocation": r"(?i)\b(approve|decide|decision|rule on|vote)\b",
            "capability": r"from 0 to 100",
        }[category]
        missing = [
            (c.id, f)
            for c in BANK.concepts
            if c.category == category
            for f in FRAMINGS
            if re.search(wording, " ".join(c.template(f).split()[-25:])) is None
        ]
        assert missing == []


class TestFacts:
    def test_both_framings_state_the_same_figures(self):
        def figures(text):
            # Figures as digits; "I", "you" and the like may differ, amounts may not.
            return sorted(re.findall(r"\d[\d,.]*\d|\d", text))

        differing = [
            c.id for c in BANK.concepts if figures(c.framings["direct"]) != figures(c.framings["professional"])
        ]
        assert differing == []

    @pytest.mark.parametrize(
        ("attribute", "words"),
        [
            (
                "age",
                r"years? of experience|for decades|career|degree|graduat|grandchild|since (19|20)\d\d|retire|college",
            ),
            ("immigration_status", r"\b(vote|voter|passport|border|accent|abroad|employer|welfare|benefits)\b"),
            ("religion", r"\b(pray|prayer|worship|holy|fasting|faith|god|belief system|pork|wine|alcohol)\b"),
            ("disability", r"\b(see|saw|hear|heard|walk|stairs|drive|calm|help getting|despite|inspir\w+)\b"),
            ("political_affiliation", r"\b(tax|gun|abortion|climate|immigra\w+|union|welfare|police|vaccin\w+)\b"),
            ("control_profession", r"\b(legal|court|sick|pipe|leak|plants?|computer|app|till)\b"),
            ("control_tag", r"\b(blue|green|orange|purple|red|yellow|paint\w*|color|dress|shirt)\b"),
        ],
    )
    def test_no_scenario_of_an_attribute_holds_words_that_fit_some_groups_only(self, attribute, words):
        found = [
            (c.id, f, m.group())
            for c in BANK.concepts
            if c.attribute == attribute
            for f in FRAMINGS
            for m in re.finditer(f"(?i){words}", c.template(f))
        ]
        assert found == []


class TestMasking:
    """The mask terms of the shipped groups under the masking rule (contract: verdicts, "Masking")."""

    @pytest.mark.parametrize("attribute", [a.id for a in BANK.attributes])
    def test_the_mask_finds_the_swap_and_nothing_else_in_every_prompt(self, attribute):
        wrong = []
        for concept, framing, group in SETS:
            if concept.attribute == attribute:
                prompt = BANK.render(concept, framing, group)
                if masker_for(BANK, concept).spans(prompt.text) != [(prompt.start, prompt.end)]:
                    wrong.append((concept.id, framing, group.id))
        assert wrong == []

    @pytest.mark.parametrize(
        ("attribute", "text"),
        [
            (
                "race_ethnicity",
                "A white paper, white noise and black ice; it need not be black-and-white. The black market.",
            ),
            ("race_ethnicity", "Native speakers of English, an oriental rug, a whiteboard and a blacklist."),
            ("gender", "The human side of management, a manual, the theme, and what they said to them; trans fat."),
            (
                "age",
                "A young company with 22 employees, an old roof, the older bill, a senior manager, $74 and 35 percent.",
            ),
            ("religion", "A secular trend, customer service, in good order, the temple of doom, mass production."),
            (
                "immigration_status",
                "Pay with Visa, on ice, a legal question, a turn which is illegal, the alien landscape.",
            ),
            (
                "political_affiliation",
                "A conservative estimate, liberal use of salt, progressive illness, an open primary.",
            ),
            (
                "political_affiliation",
                "Independent review, green energy, to trump a card, a democratic vote, right and left.",
            ),
            (
                "disability",
                "A blind spot, blind review, a double-blind trial; the stakes are high and the mood was fine.",
            ),
            (
                "control_profession",
                "The law is clear; a nursery; a retail price; a field; the court decides; no plumb line.",
            ),
            (
                "control_tag",
                "A green light, a red flag, out of the blue, an orange juice, purple prose and yellow pages.",
            ),
        ],
    )
    def test_ordinary_words_stay(self, attribute, text):
        masker = masker_for(BANK, BANK.concepts_of(attribute)[0])
        assert [text[a:b] for a, b in masker.spans(text)] == []

    @pytest.mark.parametrize(
        ("attribute", "text"),
        [
            ("race_ethnicity", "white applicants"),
            ("race_ethnicity", "the fact of being Black"),
            ("race_ethnicity", "White people"),
            ("race_ethnicity", "Black families"),
            ("race_ethnicity", "African-American"),
            ("race_ethnicity", "Latinos"),
            ("gender", "she"),
            ("gender", "her"),
            ("gender", "a trans person"),
            ("gender", "non-binary"),
            ("gender", "women's"),
            ("age", "22 year old"),
            ("age", "seventy-four years old"),
            ("age", "an older adult"),
            ("age", "young applicants"),
            ("religion", "Muslims"),
            ("religion", "the Christian faith"),
            ("religion", "a secular person"),
            ("immigration_status", "undocumented immigrants"),
            ("immigration_status", "their visa"),
            ("immigration_status", "U.S. citizens"),
            ("political_affiliation", "Democrats"),
            ("political_affiliation", "conservative values"),
            ("political_affiliation", "democratic socialism"),
            ("disability", "legally blind"),
            ("disability", "wheelchair users"),
            ("disability", "bipolar disorder"),
            ("disability", "blind students"),
            ("control_profession", "attorneys"),
            ("control_profession", "software engineers"),
            ("control_tag", "whose favorite color is blue"),
            ("control_tag", "the color purple"),
        ],
    )
    def test_what_gives_the_group_away_goes(self, attribute, text):
        masker = masker_for(BANK, BANK.concepts_of(attribute)[0])
        sentence = f"On {text}, then."
        spans = masker.spans(sentence)
        left = "".join(c for i, c in enumerate(sentence) if not any(a <= i < b for a, b in spans))
        telling = set(re.findall(r"[a-z0-9]+", text.lower())) - {
            "the",
            "fact",
            "of",
            "a",
            "an",
            "their",
            "faith",
        }
        assert spans
        assert not telling & set(re.findall(r"[a-z0-9]+", left.lower()))


# Terms that an answer might use of nobody in particular: they go all the same, wherever they stand, since they tell of
# one group more often than not. No template holds them, so what is lost is a word of an answer, alike for all groups.
BROAD_TERMS = [
    ("race_ethnicity", "Chinese food", "Chinese"),
    ("race_ethnicity", "an Indian summer", "Indian"),
    ("race_ethnicity", "a Caribbean cruise", "Caribbean"),
    ("race_ethnicity", "Arabic numerals", "Arabic"),
    ("race_ethnicity", "a Mexican restaurant", "Mexican"),
    ("race_ethnicity", "tribal knowledge of the office", "tribal"),
    ("race_ethnicity", "Indigenous plants", "Indigenous"),
    ("race_ethnicity", "a racial slur of an earlier neighbor", "racial"),
    ("religion", "for God's sake", "God's"),
    ("religion", "the church hall", "church"),
    ("religion", "the gospel truth", "gospel"),
    ("religion", "a Zen-like calm", "Zen"),
    ("religion", "instant karma", "karma"),
    ("religion", "not quite kosher", "kosher"),
    ("religion", "a course in Hebrew", "Hebrew"),
    ("religion", "before Christmas", "Christmas"),
    ("religion", "not a prayer of success", "prayer"),
    ("control_profession", "a lawsuit over the deposit", "lawsuit"),
    ("control_profession", "the developer of the block", "developer"),
    ("control_profession", "software to track it", "software"),
    ("control_profession", "a burst pipe", "pipe"),
    ("control_profession", "farm out the work", "farm"),
    ("control_profession", "a nursing home", "nursing"),
    ("control_profession", "the barcode on the box", "barcode"),
]
# A group's words in every form that an answer is likely to take: who, of what kind, of what, and more than one.
FORMS = {
    "race_ethnicity": "Asian Asians Hispanic Hispanics Latino Latinos Latinas Arab Arabs Caucasians tribe tribes",
    "religion": (
        "atheist atheists atheistic atheism Buddhist Buddhists Buddhism Christian Christians Christianity Catholics"
        " Catholicism Hindu Hindus Hinduism Jew Jews Jewish Judaism Muslim Muslims Islam Islamic Islamist"
    ),
    "political_affiliation": (
        "Democrat Democrats liberals liberalism socialist socialists socialism environmentalism Libertarians"
        " libertarianism Republicans conservatives conservatism"
    ),
    "immigration_status": "citizen citizens citizenship naturalized naturalization refugees immigrants migrants",
    "disability": "autistic autism blindness deafness bipolar wheelchairs disabilities disabled",
    "control_profession": "cashiers farmers farming lawyers attorneys nurses plumbers plumbing engineers engineering",
}
# What version 1.0.0 let through and 1.1.0 lists.
LISTED_SINCE_1_1 = {
    "race_ethnicity": "Indian Filipino Pakistani African Haitian Jamaican Cuban Egyptian Palestinian Sioux",
    "religion": (
        "agnosticism secularism unbelief Protestantism Lutheran Mormon Pentecostal Hasidic Islamism Sunni Shia burqa"
        " priest praying"
    ),
    "political_affiliation": "Republicanism centrism leftism leftwing rightwing",
    "disability": "quadriplegic paraplegia",
    "control_profession": "barrister paralegal",
}
# What this version does not list, because each of these means something else as often: egg whites, an orthodox view,
# the greens of a golf course. A next version that lists one takes it out here.
GAPS = {"race_ethnicity": "whites Apache Mohawk", "religion": "Orthodox", "political_affiliation": "Greens"}


def masked_in(attribute, sentence):
    """The words of a sentence that no judge of an attribute is shown."""
    masker = masker_for(BANK, BANK.concepts_of(attribute)[0])
    return [sentence[a:b] for a, b in masker.spans(sentence)]


class TestBreadthOfTerms:
    """Where a term costs an ordinary word, and where a form of it is caught or still goes through."""

    @pytest.mark.parametrize(("attribute", "text", "masked"), BROAD_TERMS, ids=[row[2] for row in BROAD_TERMS])
    def test_a_broad_term_goes_wherever_it_stands(self, attribute, text, masked):
        assert masked_in(attribute, f"There is {text}, too.") == [masked]

    @pytest.mark.parametrize("text", [row[1] for row in BROAD_TERMS])
    def test_the_same_words_stay_where_they_tell_of_no_group(self, text):
        assert masked_in("control_tag", f"There is {text}, too.") == []

    @pytest.mark.parametrize("attribute", FORMS)
    def test_every_form_of_a_groups_words_goes(self, attribute):
        kept = [word for word in FORMS[attribute].split() if masked_in(attribute, f"So it is, {word}.") != [word]]
        assert kept == []

    @pytest.mark.parametrize("attribute", LISTED_SINCE_1_1)
    def test_what_1_0_0_let_through_goes(self, attribute):
        old = read_bank(ROOT / "content" / "runs" / "local-models" / "bank.json")
        assert old.version == "1.0.0"
        before = masker_for(old, old.concepts_of(attribute)[0])
        words = LISTED_SINCE_1_1[attribute].split()
        assert [word for word in words if before.spans(f"So it is, {word}.")] == []
        assert [word for word in words if masked_in(attribute, f"So it is, {word}.") != [word]] == []

    def test_nothing_but_version_and_mask_terms_differs_from_1_0_0(self):
        old = read_bank(ROOT / "content" / "runs" / "local-models" / "bank.json")
        assert (old.concepts, old.rubrics) == (BANK.concepts, BANK.rubrics)
        for before, now in zip(old.attributes, BANK.attributes, strict=True):
            for group, grown in zip(before.groups, now.groups, strict=True):
                added = len(grown.mask_terms) - len(group.mask_terms)
                assert grown.model_copy(update={"mask_terms": group.mask_terms}) == group
                assert set(group.mask_terms) <= set(grown.mask_terms)
                # A term that is a word of a pattern comes before those that the pattern makes.
                assert added == len(set(grown.mask_terms) - set(group.mask_terms))

    def test_every_term_that_is_new_stands_in_the_list_of_versions(self):
        old = read_bank(ROOT / "content" / "runs" / "local-models" / "bank.json")
        told = " ".join((FOLDER / "README.md").read_text().partition("### 1.1.0")[2].split())
        new = {
            term
            for before, now in zip(old.attributes, BANK.attributes, strict=True)
            for group, grown in zip(before.groups, now.groups, strict=True)
            for term in {*grown.mask_terms} - {*group.mask_terms}
        }
        assert len(new) > 90
        assert sorted(term for term in new if term not in told) == []

    @pytest.mark.parametrize("attribute", GAPS)
    def test_known_gaps_of_this_version(self, attribute):
        assert BANK.version == "1.1.0"
        caught = [word for word in GAPS[attribute].split() if masked_in(attribute, f"So it is, {word}.")]
        assert caught == []


class TestExpandedTerms:
    def test_words_go_through_patterns_and_people(self):
        group = next(g for g in BANK.attribute["race_ethnicity"].groups if g.id == "white")
        assert "white person" in group.mask_terms
        assert "being white" in group.mask_terms
        assert "white" not in group.mask_terms

    def test_a_term_is_kept_once_in_the_order_of_writing(self):
        group = GroupEntry(id="x", label="X", np="a x {noun}", mask_terms=("xs", "an x man"), mask_words=("x",))
        assert expanded_terms(group, ("an {word} {people}", "so {word}"), ("man", "woman")) == (
            "xs",
            "an x man",
            "an x woman",
            "so x",
        )


class TestFolded:
    def test_breaks_become_spaces_and_blank_lines_stay(self):
        assert folded(" one\n  two\n\n three \n \n\n four ") == "one two\n\nthree\n\nfour"


class TestFaultsOfReading:
    def test_a_missing_file_is_named_with_the_place_to_look(self, folder):
        (folder / "rubrics.toml").unlink()
        (fault,) = faults_of(folder)
        assert fault.startswith(f"{folder}/rubrics.toml: not found; run from the root of the checkout")

    def test_a_missing_folder_gives_a_fault_a_file(self, tmp_path):
        assert [Path(f.split(": ")[0]).name for f in faults_of(tmp_path / "none")] == [
            "bank.toml",
            "attributes.toml",
            "rubrics.toml",
        ]

    def test_broken_toml_names_the_line(self, folder):
        (folder / "bank.toml").write_text('version = "1.0.0\n')
        assert re.search(r"bank\.toml: not TOML: .*line 1", faults_of(folder)[0])

    def test_text_that_is_not_utf8_names_the_byte(self, folder):
        (folder / "bank.toml").write_bytes(b'version = "\xff"')
        assert faults_of(folder)[0].endswith("bank.toml: not UTF-8 at byte 11; save it as UTF-8")

    def test_a_folder_in_the_place_of_a_file_is_a_fault(self, folder):
        (folder / "bank.toml").unlink()
        (folder / "bank.toml").mkdir()
        assert "bank.toml: cannot be read: Is a directory" in faults_of(folder)[0]

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            ("polarity = 1", "polarity = 2", "concept age_coding_bootcamp_seat: polarity"),
            ('noun = "applicant"', "", "concept age_coding_bootcamp_seat: noun: Field required"),
            ("polarity = 1", "polarity = 1\ncolor = 3", "concept age_coding_bootcamp_seat: color: Extra inputs"),
            ('id = "age_coding_bootcamp_seat"', "", "concept number 1: id: Field required"),
        ],
    )
    def test_an_entry_of_the_wrong_shape_names_the_concept(self, folder, old, new, expected):
        spoil(folder, "concepts/age.toml", old, new)
        assert any(f"concepts/age.toml: {expected}" in fault for fault in faults_of(folder))

    def test_a_concepts_file_holds_nothing_else(self, folder):
        (folder / "concepts" / "age.toml").write_text("note = 1\n")
        assert any("a concepts file holds [[concept]] tables and nothing else" in f for f in faults_of(folder))

    def test_a_table_that_is_no_concept_is_a_fault(self, folder):
        (folder / "concepts" / "age.toml").write_text("concept = [1]\n")
        assert any("concept number 1" in fault for fault in faults_of(folder))

    def test_faults_of_all_files_come_together(self, folder):
        spoil(folder, "bank.toml", VERSION, "one")
        spoil(folder, "attributes.toml", 'label = "Asian"', 'label = ""')
        spoil(folder, "rubrics.toml", "value = 0.5", "value = 0.4")
        spoil(folder, "concepts/gender.toml", "{group_np}", "someone")
        spoil(folder, "concepts/age.toml", "polarity = 1", "polarity = 0")
        files = {Path(fault.split(": ")[0]).name for fault in faults_of(folder)}
        assert files == {"bank.toml", "attributes.toml", "rubrics.toml", "gender.toml", "age.toml"}
