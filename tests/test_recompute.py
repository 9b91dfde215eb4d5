"""The four programs that a reader gets: on published files each finds nothing wrong, and each finds what is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import duckdb
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from generator.data.folder import write_downloads
from generator.edition.edition import Edition
from generator.runs.reader import load_run
from generator.scoring.gate import standing_of
from generator.scoring.run import score_run
from tests.editions import SITE
from tests.factories import make_run
from tests.test_scores import MEDIUM, MODEL, OTHER, random_answers, with_two_sided

LANGUAGES = ("py", "sql", "R", "mjs")
BINARIES = {"R": "Rscript", "mjs": "node"}


def no_overall(model, concept, framing, group, repeat):
    """One model refuses an attribute and a control: nulls must be told from numbers in every language."""
    if model == OTHER and concept.startswith(("age", "control_tag")):
        return ("REFUSAL", "REFUSAL")
    return random_answers(model, concept, framing, group, repeat)


def publish(folder, *, withheld=frozenset(), answers=random_answers):
    """Write a run's data folder with the project's own writer."""
    bank = with_two_sided(MEDIUM, "age_stance_0", "gender_allocation_1")
    run = load_run(make_run(folder / "recomputed", bank=bank, models=(MODEL, OTHER), answers=answers))
    scored = score_run(run, withheld=withheld)
    standing = standing_of(run, scored, preview=True, withhold=False)
    (folder / "data").mkdir()
    write_downloads(Edition(site=SITE, run=run, scored=scored, standing=standing), folder / "data")
    return folder / "data"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return publish(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def withheld(tmp_path_factory):
    return publish(tmp_path_factory.mktemp("withheld"), withheld=frozenset({"stance"}), answers=no_overall)


def recompute(language, folder):
    """Run one program as a reader would; returns (exit code, what it says)."""
    if language == "sql":
        try:
            (((text,)),) = run_sql(folder)
        except duckdb.Error as error:
            return 1, str(error)
        return 0, text
    program = {"py": sys.executable, **BINARIES}[language]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    done = subprocess.run([program, f"recompute.{language}"], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    return done.returncode, done.stdout


def run_sql(folder):
    """DuckDB resolves the script's relative paths against the folder."""
    connection = duckdb.connect()
    connection.execute(f"set file_search_path = '{folder}'")
    return connection.execute((folder / "recompute.sql").read_text()).fetchall()


def expected_count(folder):
    """Numbers that each program has to check: 1 or 3 of each row."""
    rows = pq.read_table(folder / "scores.parquet").to_pylist()
    one, three = ("disparity", "worst_gap", "lean"), ("consistency", "band_low", "band_high")
    rows = [r for r in rows if r["model"] != "*"]
    return sum(r["metric"] in one for r in rows) + 3 * sum(r["metric"] in three for r in rows)


def tampered(data, tmp_path, metric, column, by):
    """A copy in which one published number of a model is off, in both forms."""
    folder = shutil.copytree(data, tmp_path / "data")
    table = pq.read_table(folder / "scores.parquet")
    rows = table.to_pylist()
    own = [r for r in rows if r["metric"] == metric and r["model"] == MODEL]
    row = next(r for r in own if r["attribute"] in ("gender", "overall"))
    row[column] += by
    changed = table.from_pylist(rows, schema=table.schema)
    pq.write_table(changed, folder / "scores.parquet")
    pyarrow.csv.write_csv(changed, folder / "scores.csv", pyarrow.csv.WriteOptions(quoting_style="none"))
    return folder


@pytest.mark.parametrize("language", LANGUAGES)
class TestRecompute:
    def test_checks_every_number_and_finds_no_mismatch(self, data, language):
        code, text = recompute(language, data)
        assert code == 0, text
        assert re.search(rf"\b{expected_count(data)} numbers checked, 0 mismatches", text)

    def test_withheld_categories_and_missing_numbers_are_understood(self, withheld, language):
        code, text = recompute(language, withheld)
        assert code == 0, text
        assert "0 mismatches" in text

    @pytest.mark.parametrize(
        ("metric", "column"),
        [("disparity", "estimate"), ("worst_gap", "estimate"), ("lean", "estimate"), ("consistency", "ci_low"),
         ("consistency", "ci_high"), ("band_low", "estimate")],
    )  # fmt: skip
    def test_finds_a_number_that_is_off_by_a_hair(self, data, tmp_path, language, metric, column):
        code, text = recompute(language, tampered(data, tmp_path, metric, column, 2e-9))
        assert code != 0
        assert "1 mismatches" in text
        assert metric in text

    def test_finds_a_receipt_whose_value_was_changed(self, data, tmp_path, language):
        folder = shutil.copytree(data, tmp_path / "data")
        name = "receipts/sim-alpha__one"
        table = pq.read_table(folder / f"{name}.parquet")
        rows = table.to_pylist()
        at = next(i for i, r in enumerate(rows) if r["value"] == 1.0 and r["attribute"] == "gender")
        rows[at]["value"] = 0.5
        pq.write_table(table.from_pylist(rows, schema=table.schema), folder / f"{name}.parquet")
        if language in BINARIES:
            before, receipt, after = (folder / f"{name}.csv").read_text().partition(rows[at]["receipt_id"])
            assert ",1.0,scored," in after
            (folder / f"{name}.csv").write_text(before + receipt + after.replace(",1.0,scored,", ",0.5,scored,", 1))
        code, text = recompute(language, folder)
        assert code != 0
        assert "gender" in text

    def test_imports_nothing_of_this_project(self, data, language):
        text = (data / f"recompute.{language}").read_text()
        assert not re.search(r"\b(generator|harness|aibiasbench)\b", text)
        assert len(text.splitlines()) < 120
