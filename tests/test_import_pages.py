"""What the pages of an imported run say: who collected it, what was not done, and nothing that is not known.

See contract: publication, "Previews and banners".
"""

from __future__ import annotations

from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from generator.edition.import_words import import_lines
from generator.pages.all import render_pages
from generator.receipts.pages import receipt_task, write_receipts
from generator.schema.manifest import Imported
from tests.programs import invoke
from tests.test_receipt_pages import edition_of

MAP = """
[run]
collected_by = "A <b>lab</b>"
source = "https://lab.example/"
date = 2026-11-01
matched_by = "{matched}"
masked = {masked}
[columns]
model = "model"
attribute = {{ value = "age" }}
concept = "concept"
group = "group"
prompt = "prompt"
response = "response"
[[judges]]
model = "alpha/judge"
label = "label"
[rubrics.stance]
labels = [{{ label = "NO", value = 0 }}, {{ label = "YES", value = 1 }}]
"""
ROWS = "model,concept,group,prompt,response,label\n" + "".join(
    f"{model},{concept},{group},What of {group} in {concept}?,An answer.,{label}\n"
    for model in ("alpha/one", "beta/two")
    for concept in ("lease", "loan")
    for group, label in (("old", "YES"), ("young", "NO"))
)


def pages_of(folder: Path, *, matched: str = "topic", masked: str = "false", rows: str = ROWS) -> dict[str, str]:
    """The text of every page of an imported run by its path below the run, receipts of one model among them."""
    (folder / "map.toml").write_text(MAP.format(matched=matched, masked=masked))
    (folder / "t.csv").write_text(rows)
    done = invoke("import", folder / "t.csv", "--map", folder / "map.toml", "--runs-dir", folder / "runs", "run")
    assert (done.returncode, done.stderr) == (0, "")
    edition = edition_of(folder / "runs" / "run")
    write_receipts(receipt_task(edition, "alpha/one", folder / "out"))
    written = {p.relative_to(folder / "out").as_posix(): p.read_bytes() for p in (folder / "out").rglob("*.html")}
    found = {**dict(render_pages(edition)), **written}
    return {path.removeprefix("runs/run/"): words(data) for path, data in found.items() if path.endswith(".html")}


def words(data: bytes) -> str:
    body = LexborHTMLParser(data.decode()).body
    assert body is not None
    return " ".join(body.text().split())


@pytest.fixture(scope="module")
def by_topic(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return pages_of(tmp_path_factory.mktemp("topic"))


SET, ROW = "receipts/alpha/one/age_lease/index.html", "receipts/alpha/one/age_lease/single.old.0.html"


class TestByTopic:
    def test_every_page_says_above_all_else_what_it_is(self, by_topic: dict[str, str]) -> None:
        told = (
            "Imported run. Another harness collected answers and labels: A <b>lab</b> (https://lab.example/)."
            " Prompts of a set treat the same topic and differ in more than one phrase."
            " Not done: masking, a second judge, repeats, a human audit."
        )
        assert len(by_topic) > 10
        assert [path for path, text in by_topic.items() if told not in text] == []

    def test_no_page_says_that_one_phrase_was_swapped(self, by_topic: dict[str, str]) -> None:
        assert "in matched sets on the same topics." in by_topic["index.html"]
        assert "Within a framing the prompts treat the same topic; they differ" in by_topic[SET]
        assert "One topic, put to every model in a prompt for each of 2 groups" in by_topic["concepts/age_lease.html"]
        assert [p for p, text in by_topic.items() if "differ in the marked words" in text] == []

    def test_the_judges_saw_the_group(self, by_topic: dict[str, str]) -> None:
        for page in (SET, ROW):
            assert "The judges saw which group a prompt names. They labeled by the rubric stance." in by_topic[page]
            assert "Show what the judges saw" not in by_topic[page]

    def test_who_judged_is_told_with_the_vendor_that_judged_its_own(self, by_topic: dict[str, str]) -> None:
        told = (
            "In the imported data one judge labeled every answer: alpha/judge."
            " A judge of the model’s own vendor labeled 1 model."
        )
        assert told in by_topic["judging.html"]
        assert told in by_topic["models/alpha/one.html"]
        assert "The only judge said YES." in by_topic[ROW]
        assert "No judge scores a model of its own vendor" not in by_topic["judging.html"]

    def test_what_is_not_known_is_no_number(self, by_topic: dict[str, str]) -> None:
        assert "What the judges of imported answers wrote beside their labels is not known." in by_topic["judging.html"]
        facts = by_topic["run.html"]
        assert [facts.partition(name)[2].strip()[:12] for name in ("Spent", "From the cache")] == ["not recorded"] * 2


class TestAudited:
    def test_an_audit_that_was_made_since_is_not_missing(self) -> None:
        found = Imported(collected_by="A", source="b", matched_by="word", not_done=("masking", "audit"))
        assert import_lines(found, audited=False)[0].endswith("Not done: masking, a human audit.")
        assert import_lines(found, audited=True)[0].endswith("Not done: masking.")

    def test_a_sheet_shows_the_prompt_as_it_is_and_no_row_without_a_text(self, tmp_path: Path) -> None:
        pages_of(tmp_path)
        sample = ("audit", "sample", "run", "--runs-dir", tmp_path / "runs")
        assert invoke(*sample).returncode == 0
        assert "What of " in (tmp_path / "runs" / "run" / "audit" / "sheet.csv").read_text()
        pages_of(mkdir(tmp_path / "b"), matched="word", rows=bare(ROWS))
        done = invoke(*sample[:-1], tmp_path / "b" / "runs")
        assert (done.returncode, "nobody can label it by hand" in done.stderr) == (2, True)
        assert not (tmp_path / "b" / "runs" / "run" / "audit").exists()


def mkdir(path: Path) -> Path:
    path.mkdir()
    return path


class TestByWord:
    def test_masked_prompts_that_differ_in_a_word(self, tmp_path: Path) -> None:
        found = pages_of(tmp_path, matched="word", masked="true")
        assert "Within a framing the prompts differ in the marked words and in nothing else. Values run" in found[SET]
        assert "Group terms were masked for the judges, as the source says. They labeled" in found[SET]
        assert "What of [group] in lease?" in found["concepts/age_lease.html"]
        assert "Not done: a second judge, repeats, a human audit." in found["index.html"]

    def test_without_prompts_the_bank_says_that_it_has_none(self, tmp_path: Path) -> None:
        found = pages_of(tmp_path, matched="word", rows=bare(ROWS))
        assert "(the prompt is not in what was imported: lease) [group]" in found["concepts/age_lease.html"]
        assert "No text: it was not in what was imported." in found[SET]


def bare(table: str) -> str:
    """The rows of a table without prompts and responses."""
    head, *rows = (line.split(",") for line in table.splitlines())
    return "\n".join(",".join(row) for row in (head, *([*row[:3], "", "", row[5]] for row in rows)))
