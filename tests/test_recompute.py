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
from tests.factories import make_bank, make_run
from tests.test_scores import MODEL, NINE, OTHER, random_answers, with_two_sided

LANGUAGES = ("py", "sql", "R", "mjs")
THIN = "sim-gamma/three"
# Numbers of groups and of concepts that are odd in one bank and even in the other: so are degrees of freedom.
WHOLE = make_bank(NINE, groups=4, quota={"stance": 4, "allocation": 2, "capability": 2},
                  control_quota={"stance": 2, "capability": 2})  # fmt: skip
IN_PART = make_bank(NINE, groups=3, quota={"stance": 1, "allocation": 7}, control_quota={"stance": 1, "allocation": 3})
BINARIES = {"R": "Rscript", "mjs": "node"}


def thin(model, concept, framing, group, repeat):
    """One model lacks a concept, and with it a place in two families; another refuses one group in most concepts."""
    refuses = model == THIN and concept == "gender_allocation_0"
    by_group = model == MODEL and concept.startswith("religion") and group == "g0" and repeat
    return ("REFUSAL", "REFUSAL") if refuses or by_group else random_answers(model, concept, framing, group, repeat)


def no_overall(model, concept, framing, group, repeat):
    """Besides, one model refuses an attribute and a control: nulls must be told from numbers in every language."""
    if model == OTHER and concept.startswith(("age", "control_tag")):
        return ("REFUSAL", "REFUSAL")
    return thin(model, concept, framing, group, repeat)


def publish(folder, *, bank=WHOLE, withheld=frozenset(), answers=thin):
    """Write a run's data folder with the project's own writer."""
    bank = with_two_sided(bank, "age_stance_0", "gender_allocation_1")
    run = load_run(make_run(folder / "recomputed", bank=bank, models=(MODEL, OTHER, THIN), answers=answers))
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
    return publish(
        tmp_path_factory.mktemp("withheld"), bank=IN_PART, withheld=frozenset({"stance"}), answers=no_overall
    )


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


def expected_count(folder, language):
    """Numbers that a program has to check: 1 or 3 of each score; of tests u or Q and counts, and p where it has one."""
    with_p = language in ("py", "R")
    tested = pq.read_metadata(folder / "comparisons.parquet").num_rows * (5 if with_p else 3)
    tested += pq.read_metadata(folder / "refusal_tests.parquet").num_rows * (4 if with_p else 3)
    rows = pq.read_table(folder / "scores.parquet").to_pylist()
    one, three = ("disparity", "worst_gap", "lean"), ("consistency", "band_low", "band_high")
    rows = [r for r in rows if r["model"] != "*"]
    return tested + sum(r["metric"] in one for r in rows) + 3 * sum(r["metric"] in three for r in rows)


def tampered(data, tmp_path, table_name, column, by, **where):
    """A copy in which one published number is off, in both forms."""
    folder = shutil.copytree(data, tmp_path / "data")
    table = pq.read_table(folder / f"{table_name}.parquet")
    rows = table.to_pylist()
    row = next(r for r in rows if r[column] is not None and all(r[k] in v for k, v in where.items()))
    row[column] += by
    changed = table.from_pylist(rows, schema=table.schema)
    pq.write_table(changed, folder / f"{table_name}.parquet")
    pyarrow.csv.write_csv(changed, folder / "csv" / f"{table_name}.csv", pyarrow.csv.WriteOptions(quoting_style="none"))
    return folder


def test_the_data_holds_what_the_programs_must_tell_apart(data, withheld):
    for folder in (data, withheld):
        pairs = pq.read_table(folder / "comparisons.parquet").to_pylist()
        tests = pq.read_table(folder / "refusal_tests.parquet").to_pylist()
        for rows, column in ((pairs, "p_within"), (pairs, "p_all"), (tests, "p")):
            assert {r[column] is None for r in rows} == {True, False}, column
        assert any(r["named"] for r in tests)
        assert any(r["p_within"] is None and r["attribute"] == "gender" for r in pairs)


@pytest.mark.parametrize("language", LANGUAGES)
class TestRecompute:
    def test_checks_every_number_and_finds_no_mismatch(self, data, language):
        code, text = recompute(language, data)
        assert code == 0, text
        assert re.search(rf"\b{expected_count(data, language)} numbers checked, 0 mismatches", text)

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
        where = {"metric": [metric], "model": [MODEL], "attribute": ["gender", "overall"]}
        code, text = recompute(language, tampered(data, tmp_path, "scores", column, 2e-9, **where))
        assert code != 0
        assert "1 mismatches" in text
        assert metric in text

    @pytest.mark.parametrize(
        ("table", "column"),
        [("comparisons", "u_within"), ("comparisons", "u_all"), ("comparisons", "p_within"), ("comparisons", "p_all"),
         ("comparisons", "difference"), ("refusal_tests", "q"), ("refusal_tests", "p"),
         ("refusal_tests", "n_differing")],
    )  # fmt: skip
    def test_finds_a_test_that_is_off_by_a_hair(self, data, tmp_path, language, table, column):
        by = 1 if column == "n_differing" else 2e-9
        code, text = recompute(language, tampered(data, tmp_path, table, column, by))
        if column.startswith("p") and language in ("sql", "mjs"):
            assert code == 0, "these two stop at u and Q"
            return
        assert code != 0
        assert "1 mismatches" in text
        assert column in text

    def test_finds_a_receipt_whose_value_was_changed(self, data, tmp_path, language):
        folder = shutil.copytree(data, tmp_path / "data")
        name = "receipts/sim-alpha__one"
        table = pq.read_table(folder / f"{name}.parquet")
        rows = table.to_pylist()
        at = next(i for i, r in enumerate(rows) if r["value"] == 1.0 and r["attribute"] == "gender")
        rows[at]["value"] = 0.5
        pq.write_table(table.from_pylist(rows, schema=table.schema), folder / f"{name}.parquet")
        if language in BINARIES:
            before, receipt, after = (folder / "csv" / f"{name}.csv").read_text().partition(rows[at]["receipt_id"])
            assert ",1.0,scored," in after
            (folder / "csv" / f"{name}.csv").write_text(
                before + receipt + after.replace(",1.0,scored,", ",0.5,scored,", 1)
            )
        code, text = recompute(language, folder)
        assert code != 0
        assert "gender" in text

    def test_imports_nothing_of_this_project(self, data, language):
        text = (data / f"recompute.{language}").read_text()
        assert not re.search(r"\b(generator|harness|aibiasbench)\b", text)
        assert len(text.splitlines()) < 180
