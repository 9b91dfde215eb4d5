"""The map is read whole or refused whole; the command writes over nothing that it was not told to.

See contract: stages, "Import".
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generator.runs.reader import load_run
from generator.schema.errors import InputError
from harness.importing.import_map import load_map, read_map
from harness.importing.names import concept_id, item_id, short_names
from harness.importing.records import CellError
from harness.stages.receipts import write_aside
from tests.factories import make_bank, make_run
from tests.programs import invoke

MAP = """
[run]
collected_by = "A lab"
source = "https://lab.example/"
date = 2026-11-01
matched_by = "topic"

[columns]
model = "model"
attribute = { value = "age" }
concept = "concept"
group = "group"

[[judges]]
model = "lab/judge"
label = "label"

[rubrics.stance]
labels = [{ label = "NO", value = 0 }, { label = "YES", value = 1 }]
"""
ROWS = "model,concept,group,label\nlab/one,lease,old,YES\nlab/one,lease,young,NO\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "map.toml").write_text(MAP)
    (tmp_path / "t.csv").write_text(ROWS)
    return tmp_path


def importing(folder: Path, *options: str, name: str = "run"):
    return invoke(
        "import", folder / "t.csv", "--map", folder / "map.toml", "--runs-dir", folder / "runs", name, *options
    )


class TestMap:
    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ('collected_by = "A lab"', "", "run.collected_by: Field required"),
            ("date = 2026-11-01", 'date = "2026-11-01"', "run.date: Input should be a valid date"),
            ('"topic"', '"words"', "run.matched_by: Input should be 'word' or 'topic' (saw 'words')"),
            ("[columns]", '[columns]\nmodl = "m"', "columns.modl: unknown key; docs/how-to/import.md lists the keys"),
            ('model = "model"', "model = { }", "columns.model: needs one of column, columns or value"),
            ('model = "model"', 'model = { column = "a", value = "b" }', "columns.model: needs one of column, columns"),
            ('{ value = "age" }', '{ value = "age", default = "b" }', "a constant value has neither values nor"),
            ('group = "group"', 'group = "group"\nrepeat = { }', "repeat: needs one of column, value or count"),
            ('group = "group"', 'group = "group"\nrepeat = { value = 1, count = true }', "repeat: needs one of"),
            ('model = "lab/judge"', 'model = "Judge"', "judges.0.model: model 'Judge': use vendor/name in lower case"),
            ('model = "lab/judge"', 'model = "sim-a/judge"', "vendors that begin with sim- are those"),
            ('label = "label"', "", "judges.0.label: missing; there is a rubric of scale ordinal"),
            ('label = "label"', 'label = "label"\ntiebreak = true', "judges: one judge, two, or two and a third"),
            ("[rubrics.stance]", '[[judges]]\nmodel = "lab/judge"\n[rubrics.stance]', "lab/judge is listed"),
            ("[rubrics.stance]", "[rubrics.Stance]", "rubrics.Stance: id 'Stance': use [a-z0-9_]{1,48}"),
            ("value = 1 }", "value = 2 }", "rubrics.stance.labels.1.value: Input should be less than or equal to 1"),
            ("value = 1 }", "value = 0 }", "labels: values [0.0, 0.0]; labels stand from low to high"),
            ('label = "YES"', 'label = "REFUSAL"', "labels: REFUSAL is the class of refusals"),
            ('label = "YES"', 'label = "NO"', "labels: NO stands twice"),
            (', { label = "YES", value = 1 }', "", "rubrics.stance: labels: at least two"),
            ("value = 1 }]", 'value = 1 }]\nrefusal = ["NO"]', "rubrics.stance: text 'NO' has two meanings"),
            ("value = 1 }]", 'value = 1 }]\nerrors = { A = "bad" }', "errors: 'A' is 'bad'; allowed: blocked, cut"),
            ("value = 1 }]", 'value = 1 }]\nscale = "score"', "labels: a score has none; its labels are the five bins"),
            ("value = 1 }]", "value = 1 }]\n[attributes.Age]", "attributes.Age: id 'Age'"),
            (
                "value = 1 }]",
                'value = 1 }]\n[attributes.age.groups]\na = { texts = ["x"] }\nb = { texts = ["x"] }',
                "attributes.age: text 'x' means two groups",
            ),
            (
                "value = 1 }]",
                'value = 1 }]\n[attributes]\na = { role = "band_lower" }\nb = { role = "band_lower" }',
                "attributes: 2 have the role band_lower; one at most",
            ),
            ('"A lab"', '"A \\u001b lab"', "run.collected_by: control character U+001B"),
            ("[run]", "[run", "not TOML"),
        ],
    )  # fmt: skip
    def test_a_fault_names_its_place(self, folder: Path, old: str, new: str, words: str) -> None:
        assert old in MAP
        (folder / "map.toml").write_text(MAP.replace(old, new))
        with pytest.raises(InputError) as caught:
            read_map(folder / "map.toml")
        assert words in str(caught.value)
        assert str(caught.value).startswith(str(folder / "map.toml"))

    def test_all_faults_are_told_together(self) -> None:
        with pytest.raises(InputError) as caught:
            load_map({"run": {}, "judges": [], "rubrics": {}}, "m")
        assert len(caught.value.faults) >= 6

    def test_there_is_no_map(self, folder: Path) -> None:
        (folder / "map.toml").unlink()
        done = importing(folder)
        assert (done.returncode, "not found; an import needs a map (docs/how-to/import.md)" in done.stderr) == (2, True)


class TestNames:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [("Old people", "old_people"), ("Café-Owner!", "cafe_owner"), ("  25+ ", "25"), ("ＡＢＣ", "abc")],
    )
    def test_a_text_becomes_an_id(self, text: str, expected: str) -> None:
        assert item_id(text) == expected

    @pytest.mark.parametrize("text", ["", "!!!", "中国", "con", "x" * 49])
    def test_a_text_of_which_none_can_be_made(self, text: str) -> None:
        with pytest.raises(CellError, match="makes no id"):
            item_id(text)


class TestConceptIds:
    def test_they_begin_with_the_first_word_of_the_attribute(self) -> None:
        shorts = short_names(["race_ethnicity", "age", "control_tag", "control_profession"])
        assert shorts == {
            "age": "age",
            "race_ethnicity": "race",
            "control_tag": "controltag",
            "control_profession": "controlprofession",
        }
        made = [
            concept_id("race", "race_ethnicity", text) for text in ("jobs", "race_jobs", "race_ethnicity_jobs", "race")
        ]
        assert made == ["race_jobs", "race_jobs", "race_jobs", "race_race"]

    def test_one_that_gets_too_long_is_refused(self, folder: Path) -> None:
        (folder / "t.csv").write_text(ROWS.replace("lease", "l" * 46))
        done = importing(folder)
        assert done.returncode == 2
        assert "t.csv: line 2: concept 'age_lll" in done.stderr
        assert "give it a shorter id with values" in done.stderr


class TestCommand:
    def test_check_writes_nothing(self, folder: Path) -> None:
        done = importing(folder, "--check", "--json")
        told = json.loads(done.stdout)
        assert (told["written"], told["rows"], told["concepts"]) == (False, 2, 1)
        assert not (folder / "runs").exists()
        assert "everything is right; nothing was written" in importing(folder, "--check").stdout

    def test_an_import_is_replaced_only_when_told_and_models_that_left_go(self, folder: Path) -> None:
        importing(folder)
        (folder / "t.csv").write_text(ROWS.replace("lab/one", "lab/two"))
        done = importing(folder)
        assert (done.returncode, "holds an import already; --replace writes over it" in done.stderr) == (2, True)
        assert importing(folder, "--replace").returncode == 0
        assert load_run(folder / "runs" / "run").models == ("lab/two",)

    def test_another_run_is_never_written_over(self, folder: Path) -> None:
        make_run(folder / "runs" / "run", bank=make_bank(("age",), groups=2), models=("sim-a/one",), repeats=1)
        before = sorted(path.name for path in (folder / "runs" / "run").rglob("*"))
        done = importing(folder, "--replace")
        assert (done.returncode, "holds another run; give the import a name of its own" in done.stderr) == (2, True)
        assert sorted(path.name for path in (folder / "runs" / "run").rglob("*")) == before

    def test_a_folder_with_a_plan_is_another_run_too(self, folder: Path) -> None:
        (folder / "runs" / "run").mkdir(parents=True)
        (folder / "runs" / "run" / "run.toml").write_text("")
        assert "holds another run" in importing(folder).stderr

    def test_a_name_that_is_no_run_id(self, folder: Path) -> None:
        done = importing(folder, name="Run_1")
        assert (done.returncode, "run id 'Run_1'" in done.stderr) == (2, True)

    def test_an_import_cut_short_leaves_the_one_before(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        importing(folder)
        files = {path: path.read_bytes() for path in (folder / "runs").rglob("*") if path.is_file()}
        (folder / "t.csv").write_text(ROWS.replace("YES", "NO"))

        def full(path: Path, data: bytes) -> None:
            if path.name == "manifest.json":
                raise OSError(28, "No space left on device", str(path))
            write_aside(path, data)

        monkeypatch.setattr("harness.importing.write.write_aside", full)
        with pytest.raises(OSError, match="No space left on device"):
            importing(folder, "--replace")
        assert {path: path.read_bytes() for path in (folder / "runs").rglob("*") if path.is_file()} == files
