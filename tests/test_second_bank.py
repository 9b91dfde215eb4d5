"""A benchmark with other attributes, categories, framings, rubrics and name goes the whole way from receipts to checks.

`tests/second_bank.py` holds it. Each shape is published as an operator would, and held against what a reader has:
`verify` and the four programs that ship with the data.
"""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from generator.publishing.publish import Options, publish
from generator.runs.reader import load_run
from generator.schema.bank import load_bank, rules_of_bank_1
from generator.scoring.run import score_run
from generator.verify.publication import verify_path
from harness.bank.reader import read_bank_folder
from tests.programs import invoke
from tests.second_bank import MODELS, SHAPES, second_bank, write_second
from tests.test_recompute import LANGUAGES, recompute

ONE, NONE, SINGLE = "one control", "no control", "one attribute, two groups"
TWO, UPPER = "two controls, three framings", "upper control alone"
RUN = "runs/desk"
READ = {".html", ".json", ".py", ".R", ".sql", ".mjs", ".js", ".cff", ".bib", ".txt", ".xml"}
AGAINST_CONTROLS = {"band_low", "band_high", "calibrated_consistency", "excess", "mde"}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Publish each shape once; one of them with a single repeat. Returns a function from its name to its folder."""
    done: dict[str, Path] = {}

    def made(shape: str) -> Path:
        if shape not in done:
            folder = tmp_path_factory.mktemp("second")
            write_second(folder / "content", bank=second_bank(**SHAPES[shape]), repeats=1 if shape == SINGLE else 2)
            publish(Options(out=folder / "dist", content=folder / "content", jobs=1))
            done[shape] = folder
        return done[shape]

    return made


def scores(folder: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pq.read_table(folder / "dist" / RUN / "data" / "scores.parquet").to_pylist()
    return rows


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def text_of(page: Path) -> str:
    """What a page says, spaces drawn together."""
    parser = _Text()
    parser.feed(page.read_text(encoding="utf-8"))
    return " ".join(" ".join(parser.parts).split())


class TestEndToEnd:
    @pytest.mark.parametrize("shape", [ONE, NONE, SINGLE])
    def test_verify_makes_every_file_anew_and_finds_nothing(self, published, shape):
        folder = published(shape)
        found = verify_path(folder / "dist", folder / "content")
        assert (found.mismatches, found.notes) == ([], [])
        assert found.checked["table cells"] > 1000

    @pytest.mark.parametrize("language", LANGUAGES)
    @pytest.mark.parametrize("shape", [ONE, NONE, SINGLE, TWO])
    def test_each_program_recomputes_its_numbers(self, published, shape, language):
        code, text = recompute(language, published(shape) / "dist" / RUN / "data")
        assert code == 0, text
        assert int(re.findall(r"(\d+) numbers checked, 0 mismatches", text)[-1]) > 50

    def test_the_programs_notice_a_wrong_role(self, published, tmp_path):
        data = published(ONE) / "dist" / RUN / "data"
        copy = shutil.copytree(data, tmp_path / "data")
        manifest = json.loads((copy / "manifest.json").read_text())
        manifest["roles"]["demographic"] += ["hat"]
        (copy / "manifest.json").write_text(json.dumps(manifest))
        for language in LANGUAGES:
            code, _ = recompute(language, copy)
            assert code != 0, language
        told = verify_path(copy, published(ONE) / "content").mismatches
        assert any(m.key == "roles.demographic" for m in told), told


class TestWhatNeedsAControl:
    def test_without_one_there_is_no_row_and_no_tier(self, published):
        rows = scores(published(NONE))
        assert {row["metric"] for row in rows} & AGAINST_CONTROLS == set()
        assert {row["evidence"] for row in rows} <= {None, "lower", "higher"}
        manifest = json.loads((published(NONE) / "dist" / RUN / "data/manifest.json").read_text())
        assert manifest["roles"] == {"demographic": ["accent", "diet"], "controls": []}
        assert manifest["mean_band"] == {"n_models": 0, "band_low": None, "band_high": None, "swapped": None}

    def test_score_calls_no_model_unflagged(self, tmp_path):
        write_second(tmp_path, bank=second_bank(**SHAPES[SINGLE]), models=MODELS[:1], repeats=1)
        done = invoke("score", tmp_path / "runs" / "desk")
        assert done.returncode == 0, done.stderr
        (line,) = (row.split() for row in done.stdout.splitlines() if MODELS[0] in row)
        assert line[5:7] == ["-", "-"]
        assert "none" not in line

    def test_one_of_the_lower_edge_gives_excess_and_no_band(self, published):
        metrics = {row["metric"] for row in scores(published(ONE))} & AGAINST_CONTROLS
        assert metrics == {"excess", "mde"}

    def test_one_of_the_upper_edge_gives_calibrated_consistency_too(self, tmp_path):
        write_second(tmp_path, bank=second_bank(**SHAPES[UPPER]), models=MODELS[:1], repeats=1)
        found = score_run(load_run(tmp_path / "runs" / "desk"), resamples=40).tables["scores"]
        assert set(found["metric"].to_pylist()) & AGAINST_CONTROLS == {"excess", "mde", "calibrated_consistency"}

    def test_excess_is_the_disparity_less_that_of_the_only_control(self, published):
        found = {(r["model"], r["metric"], r["attribute"]): r["estimate"] for r in scores(published(ONE))}
        for model in MODELS:
            for attribute in ("accent", "diet"):
                edge = found[model, "disparity", "shirt"]
                assert found[model, "excess", attribute] == pytest.approx(
                    found[model, "disparity", attribute] - edge, abs=1e-9
                )

    def test_both_give_all_of_them(self, published):
        assert {row["metric"] for row in scores(published(TWO))} >= AGAINST_CONTROLS

    @pytest.mark.parametrize("page", ["index.html", f"{RUN}/models/sim-meadow/one.html", f"{RUN}/attributes/diet.html"])
    def test_pages_say_why_there_is_none(self, published, page):
        assert "This benchmark has no control attribute." in text_of(published(NONE) / "dist" / page)
        assert "no control attribute" not in text_of(published(ONE) / "dist" / page)

    @pytest.mark.parametrize("page", ["index.html", f"{RUN}/models/sim-meadow/one.html"])
    def test_a_single_control_is_named(self, published, page):
        assert "This benchmark has one control, “Shirt”." in text_of(published(ONE) / "dist" / page)


class TestNames:
    """What is particular to the bank that this project ships is nowhere on the site of another benchmark."""

    @pytest.mark.parametrize("shape", [ONE, NONE, TWO])
    def test_no_file_of_the_site_names_anything_of_the_shipped_bank(self, published, shape):
        bank = read_bank_folder()
        words = {a.id for a in bank.attributes} | {a.label.partition(" (")[0] for a in bank.attributes}
        words |= {c.category for c in bank.concepts} - {"refusal"}
        words |= {"AIBiasBench", "favorite color", "professions", "direct framing", "professional framing"}
        pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(words - {'age', 'Age'})))})(?![\w-])")
        dist, found = published(shape) / "dist", []
        for path in sorted(p for p in dist.rglob("*") if p.suffix in READ and "pagefind" not in p.parts):
            text = path.read_text(encoding="utf-8")
            found += [f"{path.relative_to(dist)}: {word}" for word in sorted(set(pattern.findall(text)))]
        assert found == []

    def test_files_and_records_are_named_after_the_site(self, published):
        data = published(ONE) / "dist" / RUN / "data"
        assert json.loads((data / "datapackage.json").read_text())["name"] == "level-ground-desk"
        assert "@misc{level-ground-desk," in (data / "citation.bib").read_text()
        record = json.loads(next(data.rglob("every_eval_ever/**/*.json")).read_text())
        assert record["evaluation_id"].startswith("level-ground/desk/")
        people = json.loads((data / "croissant.json").read_text())["rai:personalSensitiveInformation"]
        assert "Way of speaking, What is eaten, Shirt" in people[0]

    def test_framings_are_counted_and_named(self, published):
        one = text_of(published(ONE) / "dist" / RUN / "concepts/diet_urgency_case_0.html")
        three = text_of(published(TWO) / "dist" / RUN / "concepts/diet_urgency_case_0.html")
        assert "in one framing" in one
        assert "in three framings" in three
        assert "Asked once framing" in three

    def test_the_methodology_counts_what_the_bank_has(self, published):
        dist = published(ONE) / "dist/methodology"
        assert "Two demographic attributes are measured. One control, which" in text_of(dist / "attributes.html")
        assert "The bank of this run has one control." in text_of(dist / "control-band.html")
        assert "here urgency, reliance. Overall favorability is the mean of these 2" in text_of(dist / "level.html")
        none = published(NONE) / "dist/methodology"
        assert "The bank of this run has no control." in text_of(none / "evidence.html")
        assert "This benchmark has no control, so the example ends here" in text_of(none / "worked-example.html")


class TestLevel:
    def test_the_bank_says_which_categories_have_a_favorability_and_which_compliance(self, published):
        rows = scores(published(ONE))
        by = {m: {r["group"] for r in rows if r["metric"] == m} for m in ("favorability", "compliance")}
        assert by == {"favorability": {None, "reliance", "urgency"}, "compliance": {"service"}}
        overall = [r for r in rows if r["metric"] == "favorability" and r["group"] is None]
        assert len(overall) == len(MODELS)
        assert all(r["estimate"] is not None for r in overall)

    def test_rules_that_do_not_say_are_those_of_bank_1_0_0(self):
        shipped = read_bank_folder()
        data = json.loads(shipped.snapshot())
        del data["rules"]["compliance"]
        old = load_bank(data, "old")
        assert old.compliance == shipped.compliance == frozenset(rules_of_bank_1().compliance or ())
        assert old.leveled == shipped.leveled
        assert b"compliance" not in old.snapshot()
        assert old.sha256 == shipped.sha256
