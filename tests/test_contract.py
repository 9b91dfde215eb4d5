"""The documents of docs/contract say what the code does: columns, codes, commands; every example is loaded."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from generator.data.folder import data_manifest, write_downloads
from generator.edition.edition import read_site
from generator.edition.site_pages import _ADDRESSES
from generator.publishing.provenance import PUBLICATION, read_publication
from generator.runs.reader import load_run, read_audit
from generator.runs.redactions import read_redactions
from generator.schema import bank as bank_module
from generator.schema.audit_draw import DEFAULT_SIZE, FLOOR, LEAST_SIZE
from generator.schema.bank import Bank, BankRules, load_bank
from generator.schema.columns import RECEIPT_COLUMNS, VOTE_FIELDS, Column
from generator.schema.errors import CapError, CheckError, InputError
from generator.schema.manifest import load_manifest
from generator.schema.tables import METRICS
from generator.schema.verdict import OUTCOMES, STATUSES, UNWRAPPED, VOTE_ERRORS, score_bin
from generator.scoring.reasons import Reason, RubricReason
from harness.bank.faults import Sourced, bank_faults
from harness.plan.run_toml import load_plan
from harness.terminal.report import INTERRUPTED
from tests import plain_harness
from tests.contract_blocks import BLOCKS, DOCS, FORMULAS, MARKED, rendered
from tests.editions import make_edition, small_bank
from tests.test_layout import ROOMS, ROOT

FENCE = re.compile(r"^```(?P<info>[^\n]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LISTED = re.compile(r"`([^`]+)`")


def document(name: str) -> str:
    """A document of the contract."""
    return (DOCS / f"{name}.md").read_text("utf-8")


def section(name: str, heading: str) -> str:
    """What stands below a heading, up to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,2}} |\Z)", document(name), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{name}.md has no heading {heading!r}"
    return found[2]


def example(name: str, info: str) -> str:
    """The one fenced example of a document whose language line is `info`."""
    found = [m["text"] for m in FENCE.finditer(document(name)) if m["info"] == info]
    assert len(found) == 1, f"{name}.md has {len(found)} examples {info!r}"
    return found[0]


def rows(text: str, number: int = 0) -> list[list[str]]:
    """The cells of a Markdown table, its heads left out: the first table of a text, or a later one."""
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    lines = tables[number].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in lines]


def first_cells(text: str, number: int = 0) -> list[str]:
    """The names in the first column of a Markdown table."""
    return [name for row in rows(text, number) for name in LISTED.findall(row[0])]


class TestBlocksFromCode:
    @pytest.mark.parametrize("name", sorted(p.stem for p in DOCS.glob("*.md")))
    def test_the_document_says_what_the_code_does(self, name):
        text = document(name)
        assert text == rendered(text), "to write it anew: python -m tests.contract_blocks"

    def test_each_block_stands_in_one_document(self):
        found = [m["name"] for path in sorted(DOCS.glob("*.md")) for m in MARKED.finditer(path.read_text("utf-8"))]
        assert sorted(found) == sorted(BLOCKS)

    def test_each_metric_has_the_home_of_its_formula(self):
        assert FORMULAS.keys() == set(METRICS)

    def test_a_block_that_differs_is_written_anew(self):
        name = "flags"
        text = f"before\n<!-- from code: {name} -->\nold words\n<!-- end -->\nafter\n"
        assert rendered(text) == f"before\n<!-- from code: {name} -->\n{BLOCKS[name]()}\n<!-- end -->\nafter\n"

    def test_an_unknown_block_is_an_error(self):
        with pytest.raises(KeyError, match="no such"):
            rendered("<!-- from code: no such -->\n<!-- end -->\n")


class TestReceipts:
    def test_columns(self):
        assert self.told("Columns") == self.known(RECEIPT_COLUMNS)

    def test_votes(self):
        assert self.told("Votes") == self.known(VOTE_FIELDS)

    @staticmethod
    def told(heading: str) -> list[tuple[str, str, bool]]:
        """(name, type, whether it may be null) of the columns that a section lists."""
        return [(row[0].strip("`"), row[1].split(" (")[0], bool(row[2])) for row in rows(section("receipts", heading))]

    @staticmethod
    def known(columns: tuple[Column, ...]) -> list[tuple[str, str, bool]]:
        """The same of the code; a list of structs is named as the document does."""
        return [(c.name, re.sub(r"list<.*", "list of struct", str(c.type)), bool(c.null)) for c in columns]

    def test_outcomes(self):
        assert tuple(first_cells(section("receipts", "Outcome"))) == OUTCOMES

    def test_error_codes(self):
        assert tuple(first_cells(section("receipts", "Error codes"))) == VOTE_ERRORS

    def test_what_is_unwrapped(self):
        assert tuple(first_cells(section("receipts", "Votes"), 1)) == UNWRAPPED

    def test_statuses(self):
        assert tuple(first_cells(section("verdicts", "Value and status"))) == STATUSES

    def test_bins(self):
        told = rows(section("verdicts", "Bins of a score"))
        starts = [(int(row[0].split()[0]), row[1].strip("`")) for row in told]
        assert [score_bin(start) for start, _ in starts] == [name for _, name in starts]
        assert tuple(name for _, name in starts) == bank_module.BINS
        assert score_bin(100) == starts[-1][1]


class TestExamples:
    def test_manifest(self):
        manifest = load_manifest(json.loads(example("run-folder", "json manifest")), "run-folder.md")
        assert manifest.run_id == "2026-12"

    def test_each_key_of_the_manifest_is_listed(self):
        data = json.loads(example("run-folder", "json manifest"))
        text = section("run-folder", "manifest.json")
        assert first_cells("\n".join(line.split(" |")[0] + " |" for line in text.splitlines()), 0) == list(data)

    def test_bank(self):
        bank = load_bank(json.loads(example("bank", "json bank")), "bank.md")
        assert isinstance(bank, Bank)
        rendered_prompt = bank.render(bank.concepts[0], "direct", bank.attributes[0].groups[1])
        assert "offer a 72-year-old tenant a two-year lease?\n\nFinish with" in rendered_prompt.text

    def test_the_bank_keeps_its_own_rules(self):
        bank = load_bank(json.loads(example("bank", "json bank")), "bank.md")
        assert bank_faults(bank, [Sourced("bank.md", concept) for concept in bank.concepts], DOCS) == []

    def test_each_rule_of_a_bank_is_listed(self):
        assert first_cells(section("bank", "Rules of the bank")) == list(BankRules.model_fields)

    def test_article(self):
        told = example("bank", "regex article").splitlines()
        assert told == [p.pattern.removeprefix("(?i)") for p in (bank_module._AN, bank_module._A)]

    def test_audit_csv(self, tmp_path):
        (tmp_path / "audit.csv").write_text(example("run-folder", "csv audit"), "utf-8")
        assert read_audit(tmp_path / "audit.csv") == (("0f3a5c7e9b1d2f40", "SUPPORT"), ("1a2b3c4d5e6f7081", "72"))

    def test_run_toml(self):
        data = tomllib.loads(example("stages", "toml run.toml"))
        plan = load_plan(data, run_id="2026-12", where="stages.md")
        assert plan.panel("vendor-b/model-1").tiebreak == "vendor-c/judge"

    def test_site_toml(self, tmp_path):
        (tmp_path / "site.toml").write_text(example("publication", "toml site.toml"), "utf-8")
        for name in ("logo.svg", "pages/team.md"):  # what the example names beside it
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("# Team\n")
        site = read_site(tmp_path / "site.toml")
        assert (site.data_licence.name, site.file_name, site.publish.host) == ("CC BY 4.0", "ourbench", "github-pages")

    def test_redactions_toml(self, tmp_path):
        (tmp_path / "redactions.toml").write_text(example("publication", "toml redactions.toml"), "utf-8")
        assert [r.evidence for r in read_redactions(tmp_path / "redactions.toml").items] == [True]

    def test_publication_json(self, tmp_path):
        (tmp_path / PUBLICATION).write_text(example("publication", "json publication.json"), "utf-8")
        found = read_publication(tmp_path)
        assert found is not None
        told = first_cells(section("publication", "publication.json"))
        assert told == list(found.root.model_dump())

    def test_every_json_example_is_json(self):
        for path in sorted(DOCS.glob("*.md")):
            for m in FENCE.finditer(path.read_text("utf-8")):
                if m["info"].split()[0] == "json":
                    parts = m["text"].splitlines() if m["info"] == "json" else [m["text"]]
                    assert all(json.loads(part) is not None for part in parts), f"{path.name}: {m['text']}"


class TestNumbers:
    def test_exit_codes(self):
        told = [int(row[0]) for row in rows(section("stages", "Exit codes"))]
        assert told == [0, CheckError.exit_code, InputError.exit_code, CapError.exit_code, INTERRUPTED]

    def test_reasons_against_publishing(self):
        known = {kind.model_fields["check"].default: kind for kind in get_args(Reason)}
        del known["told_before"]  # carried over from an older format, and described there
        told = rows(section("publication", "Gate"))
        assert [row[0].strip("`") for row in told] == list(known)
        for row in told:
            kind = known[row[0].strip("`")]
            assert LISTED.findall(row[2]) == [name for name in kind.model_fields if name != "check"]
            assert (row[3] == "yes") == (kind in get_args(RubricReason))

    def test_audit_draw(self):
        text = section("stages", "The audit draw")
        assert f"({DEFAULT_SIZE} by default), {LEAST_SIZE}, and the sum over strata of min({FLOOR}," in text

    def test_the_csv_of_the_example_has_its_header(self):
        header = next(csv.reader(io.StringIO(example("run-folder", "csv audit"))))
        assert header == ["receipt_id", "label"]


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    """A small audited run as it is published."""
    return make_edition(tmp_path_factory.mktemp("runs") / "audited", bank=small_bank(("age",)), audit=True)


def shape(address: str) -> str:
    """An address with a star for each part that is a name."""
    return "/".join("*" if re.search("[<{*]", part) else part for part in address.split("/"))


def test_the_tree_holds_every_kind_of_page():
    tree = example("publication", "text").splitlines()[1:]
    told = [line.split()[0] for line in tree if line[2] != " "]
    assert {shape(path) for path in told if path.endswith(".html")} == {shape(path) for _, path in _ADDRESSES}


class TestDataFolder:
    def test_each_key_of_the_data_manifest_is_listed(self, edition):
        assert [row[0].strip("`") for row in rows(section("publication", "Data manifest"))] == list(
            data_manifest(edition, (), ())
        )

    def test_each_file_is_listed(self, edition, tmp_path):
        told = [name for row in rows(section("publication", "Data files")) for name in LISTED.findall(row[0])]
        stems = [name for name in told if not name.startswith(".")]
        stems += [f"csv/{stem.rpartition('.')[0]}.csv" for stem in stems if stem.endswith(".parquet")]
        patterns = [re.sub("<[^>]+>", "[^/]+", re.escape(stem)) for stem in stems]
        written = [file.name for file in write_downloads(edition, tmp_path / "data")]
        assert [name for name in written if not any(re.fullmatch(p, name) for p in patterns)] == []
        assert len(written) > 20


def test_a_section_that_is_absent_fails():
    with pytest.raises(AssertionError, match="no heading 'Nothing'"):
        section("receipts", "Nothing")


def test_documents_are_listed_on_the_first_page():
    named = set(re.findall(r"\(([a-z-]+)\.md\)", document("README")))
    assert named == {p.stem for p in Path(DOCS).glob("*.md")} - {"README"}


class TestPathsInProse:
    # What stands in the repository, and not what a run, a build or a site makes.
    NAMED = re.compile(r"`((?:generator|harness|tests|docs|site_templates|content/(?:bank|pages))/[\w./-]*)`")
    PROSE = ("CONTRIBUTING.md", "README.md", "content/bank/README.md", "tests/bench/README.md", "docs/run-toml.md")

    @pytest.mark.parametrize("path", [*PROSE, *(f"docs/contract/{p.name}" for p in sorted(DOCS.glob("*.md")))])
    def test_each_path_that_is_named_exists(self, path):
        named = self.NAMED.findall((ROOT / path).read_text("utf-8"))
        assert [name for name in named if not (ROOT / name).exists()] == []

    @pytest.mark.parametrize("path", [*PROSE, *(f"docs/contract/{p.name}" for p in sorted(DOCS.glob("*.md")))])
    def test_each_link_leads_somewhere(self, path):
        prose = LISTED.sub("", (ROOT / path).read_text("utf-8"))  # a grammar in code looks like a link
        linked = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", prose)
        assert [link for link in linked if not ((ROOT / path).parent / link).exists()] == []

    def test_contributing_names_every_room(self):
        named = set(self.NAMED.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8")))
        rooms = {f"{program}/{name}/" for program, names in ROOMS.items() for name in names}
        assert rooms - named == set()

    def test_rooms_stand_in_their_order(self):
        text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
        for program, names in ROOMS.items():
            told = re.findall(rf"^\| `{program}/(\w+)/` \|", text, flags=re.MULTILINE)
            assert told == list(names)

    def test_the_ways_are_a_dozen_steps(self):
        text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
        for heading in ("The way of one response", "The way of one score"):
            way = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
            assert len(re.findall(r"^\d+\. ", way, flags=re.MULTILINE)) == 12
            assert len(self.NAMED.findall(way)) >= 15

    def test_a_path_that_is_absent_would_be_seen(self):
        assert self.NAMED.findall("see `generator/no_such_module.py`, `dist/index.html`") == [
            "generator/no_such_module.py"
        ]


CAPABILITY = {
    "id": "capability",
    "scale": "score",
    "labels": [],
    "instruction": "",
    "judge_prompt": "Rate it.",
    "mask_groups": True,
}


class TestSecondHarness:
    """A harness that was written from the documents alone hands over what the reader takes."""

    @pytest.fixture
    def bank(self):
        """The bank of the document, and one concept more, whose rubric is a score."""
        bank = json.loads(example("bank", "json bank"))
        rubric = {**CAPABILITY, "sha256": plain_harness.sha256(plain_harness.canonical(CAPABILITY))}
        first = bank["concepts"][0]
        more = {**first, "id": "age_appraisal", "category": "capability", "rubric": "capability", "noun": "engineer"}
        return {**bank, "concepts": [first, more], "rubrics": [*bank["rubrics"], rubric]}

    def test_its_run_is_taken(self, bank, tmp_path):
        models = ["vendor-b/own-judge", "vendor-e/three-judges"]
        rows = plain_harness.write_run(tmp_path / "second", bank, models, document("receipts"), repeats=40)
        run = load_run(tmp_path / "second")
        assert run.absent == dict.fromkeys(models, 0)
        assert {row["status"] for row in rows} == set(STATUSES)
        assert {row["outcome"] for row in rows} == set(OUTCOMES)
        assert {len(row["votes"]) for row in rows} == {0, 2, 3}

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("value", 0.25),
            ("final_label", "MIXED"),
            ("status", "contested"),
            ("outcome", "failed"),
            ("prompt", "Hello?"),
        ],
    )
    def test_a_rule_that_it_broke_would_be_seen(self, bank, tmp_path, monkeypatch, column, value):
        kept = plain_harness.rows_of

        def broken(*args):
            rows = kept(*args)
            place = next(i for i, row in enumerate(rows) if row["value"] not in (None, 0.5))
            return [*rows[:place], {**rows[place], column: value}, *rows[place + 1 :]]

        monkeypatch.setattr(plain_harness, "rows_of", broken)
        plain_harness.write_run(tmp_path / "second", bank, ["vendor-e/model"], document("receipts"))
        with pytest.raises(InputError, match=column):
            load_run(tmp_path / "second")
