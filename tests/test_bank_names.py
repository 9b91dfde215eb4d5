"""The software carries any benchmark: what is particular to this one stands in content/ and in no program.

The words to look for are read from the bank and the site's settings, so that they are always those of the day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.edition.settings import SITE_FILE, read_site
from generator.schema.bank import Bank
from harness.bank.reader import read_bank_folder

ROOT = Path(__file__).parents[1]
PLACES = ("generator", "harness", "site_templates")
TEXTS = {".py", ".pyi", ".js", ".mjs", ".R", ".sql", ".html", ".css", ".json", ".toml", ".md", ".svg", ".yml"}
# Ids that are words of the contract as well: a vote has a key `refusal`; `none` says that there is nothing.
ALSO_OF_THE_CONTRACT = {"none", "refusal"}
# What may know a name of this bank, and why.
ALLOWED = {
    "generator/schema/bank_rules_1.json": "the rules of bank 1.0.0, for snapshots from before banks had rules",
    "generator/edition/numbers.py": "the English words for the numbers up to twelve",
    "harness/simulated/endpoint.py": "where the demonstration's programs lean, by category; any other has a default",
}
COMMENT = re.compile(r"^\s*(#|//|--)|\"\"\"")


def bank_words(bank: Bank) -> tuple[set[str], set[str]]:
    """The ids of a bank that are like no other word, and those that are: these count where they stand in quotes."""
    ids = {a.id for a in bank.attributes} | {g.id for a in bank.attributes for g in a.groups}
    ids |= {c.category for c in bank.concepts} | {r.id for r in bank.rubrics} | set(bank.framings)
    ids -= ALSO_OF_THE_CONTRACT
    named = {name for name in ids if "_" in name}
    return named, ids - named


def patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What finds the names of this benchmark: anywhere, and as a quoted text."""
    bank, site = read_bank_folder(ROOT / "content/bank"), read_site(ROOT / SITE_FILE)
    named, quoted = bank_words(bank)
    controls = {bank.attribute[c].label.partition(" (")[0] for c in bank.roles.controls}
    said = {site.title, "seven", *(a.label for a in bank.attributes), *controls}
    said |= {word.lower() for word in said if " " in word} | {word.replace(" ", "-").lower() for word in controls}
    anywhere = "|".join(re.escape(word) for word in sorted(named | said, key=len, reverse=True) if len(word) > 3)
    literal = "|".join(re.escape(word) for word in sorted(quoted, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{anywhere})(?!\w)"), re.compile(rf"([\"'])(?:{literal})\1")


def found_in(text: str, *, code: bool) -> Iterator[tuple[int, str]]:
    """Yield (line, word) for each name of this benchmark in a text; in code, quotes of a comment say nothing."""
    anywhere, literal = patterns()
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, m.group()) for m in anywhere.finditer(line))
        if not (code and COMMENT.match(line)):
            yield from ((number, m.group()) for m in literal.finditer(line))


def files() -> list[Path]:
    found = (p for place in PLACES for p in sorted((ROOT / place).rglob("*")))
    return [p for p in found if p.suffix in TEXTS and "vendor" not in p.parts and "__pycache__" not in p.parts]


class TestNoProgramKnowsThisBenchmark:
    def test_names_of_the_bank_stand_in_content_alone(self):
        anywhere, literal = patterns()
        wrong = []
        for path in files():
            name = path.relative_to(ROOT).as_posix()
            text = path.read_text(encoding="utf-8")
            if name not in ALLOWED and (anywhere.search(text) or literal.search(text)):
                wrong += [f"{name}:{line}: {word}" for line, word in found_in(text, code=path.suffix != ".md")]
        assert wrong == []

    def test_what_is_allowed_is_needed(self):
        anywhere, literal = patterns()
        for name in ALLOWED:
            text = (ROOT / name).read_text(encoding="utf-8")
            assert anywhere.search(text) or literal.search(text), name

    @pytest.mark.parametrize(
        "line",
        ['x = "stance"', "if attribute == 'age':", "the seven attributes", "# control_tag", "<p>favorite color</p>",
         "with Favorite color (control)", "AIBiasBench is", "race_ethnicity", "the favorite-color control"],
    )  # fmt: skip
    def test_it_would_be_found(self, line):
        assert list(found_in(line, code=True))

    @pytest.mark.parametrize("line", ["aibiasbench verify", 'x = "none"', '# a "white" one', "the age of a file"])
    def test_other_words_are_left_alone(self, line):
        assert not list(found_in(line, code=True))
