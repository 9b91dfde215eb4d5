"""`aibiasbench score RUN` as it is typed: tables on disk, the leaderboard, JSON, and one clear line for bad input."""

from __future__ import annotations

import json
import sys

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from generator import cli
from generator.commands.score import command
from generator.runs.reader import load_run
from generator.schema.tables import TABLES
from generator.scoring.run import score_run
from tests.factories import make_run
from tests.test_scores import MEDIUM, MODEL, OTHER, random_answers


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    return make_run(runs / "scored", bank=MEDIUM, models=(MODEL, OTHER), answers=random_answers)


def score(*words):
    return CliRunner().invoke(command, [str(w) for w in words], catch_exceptions=False)


@pytest.fixture(scope="module")
def printed(folder):
    """The output of a first scoring into the run folder."""
    done = score("scored", "--runs-dir", folder.parent)
    assert done.exit_code == 0
    return done.output


@pytest.mark.usefixtures("printed")
class TestScore:
    def test_writes_every_table_in_both_forms_beside_the_run(self, folder):
        below = folder / "scores"
        names = {p.relative_to(below).as_posix() for p in below.rglob("*") if p.is_file()}
        assert names == {name for table in TABLES for name in (f"{table}.parquet", f"csv/{table}.csv")}

    def test_the_files_hold_the_scores(self, folder):
        scored = score_run(load_run(folder))
        for name in TABLES:
            assert pq.read_table(folder / f"scores/{name}.parquet").equals(scored.tables[name])

    def test_twice_gives_the_same_bytes(self, folder, tmp_path):
        assert score(folder, "--out", tmp_path / "again").exit_code == 0
        for name in [n for table in TABLES for n in (f"{table}.parquet", f"csv/{table}.csv")]:
            assert (folder / "scores" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()

    def test_the_leaderboard_says_what_a_reader_must_know(self, printed):
        first = printed.splitlines()[0]
        assert "SIMULATED" in first
        assert MODEL in printed
        assert "(3 judges)" in printed
        assert "gate stance: kappa" in printed
        assert "against publication: the human audit is missing" in printed

    def test_json_holds_the_same_numbers(self, folder, tmp_path):
        found = json.loads(score(folder, "--out", tmp_path / "x", "--json").output)
        tiers = pq.read_table(folder / "scores/tiers.parquet").to_pylist()
        assert [m["model"] for m in found["models"]] == [t["model"] for t in tiers]
        assert [m["consistency"]["estimate"] for m in found["models"]] == [t["estimate"] for t in tiers]
        assert found["kind"] == "simulated"

    def test_withhold_leaves_a_category_out(self, folder, tmp_path):
        assert score(folder, "--out", tmp_path / "w", "--withhold", "stance").exit_code == 0
        concepts = pq.read_table(tmp_path / "w/cells.parquet")["concept"].to_pylist()
        assert not any("stance" in c for c in concepts)


class TestBadInput:
    def run_program(self, monkeypatch, capsys, *words):
        monkeypatch.setattr(sys, "argv", ["aibiasbench", "score", *(str(w) for w in words)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return caught.value.code, capsys.readouterr().err

    def test_an_unknown_run_names_the_known_ones(self, folder, monkeypatch, capsys):
        code, message = self.run_program(monkeypatch, capsys, "nope", "--runs-dir", folder.parent)
        assert code == 2
        assert "run 'nope': no such folder" in message
        assert "runs there: scored" in message

    def test_an_unknown_category_names_the_known_ones(self, folder, monkeypatch, capsys):
        code, message = self.run_program(monkeypatch, capsys, folder, "--withhold", "moods")
        assert code == 2
        assert "--withhold moods: no such category; the bank has allocation, capability, stance" in message

    def test_a_tampered_shard_stops_it_before_anything_is_written(self, monkeypatch, capsys, tmp_path):
        copy = make_run(tmp_path / "scored", bank=MEDIUM, models=(MODEL,))
        path = copy / "receipts/sim-alpha__one.parquet"
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        code, message = self.run_program(monkeypatch, capsys, copy)
        assert code == 2
        assert "Traceback" not in message
        assert not (copy / "scores").exists()
