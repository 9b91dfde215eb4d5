"""The demonstration: the whole pass by the commands themselves, marked as simulated, twice the same bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from generator.runs.reader import load_run
from generator.schema.names import simulated
from harness.bank.reader import read_bank_folder
from harness.commands import audit, judge
from harness.commands import eval as evaluation
from harness.commands.demo import lend_words, start_afresh
from harness.plan.run_toml import read_plan
from harness.simulated.demo import FULL, MARK, SMALL, run_toml
from harness.simulated.planted import described, respondents

ROOT = Path(__file__).parent.parent
BANK = ROOT / "content" / "bank"


def demo(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `aibiasbench demo --small` in a folder of its own."""
    command = [sys.executable, "-m", "generator", "demo", "--small", "--no-publish", "--bank", str(BANK), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A small demonstration: its run folder, and what the command printed."""
    folder = tmp_path_factory.mktemp("demo")
    result = demo(folder, "--runs-dir", "runs")
    assert result.returncode == 0, result.stderr
    return folder / "runs" / SMALL.run_id, result


class TestDemo:
    def test_it_runs_the_commands_that_an_operator_would_type(
        self, done: tuple[Path, subprocess.CompletedProcess[str]]
    ) -> None:
        shown = [line.split()[2:4] for line in done[1].stderr.splitlines() if line.startswith("$ ")]
        assert [words[0] for words in shown] == ["eval", "judge", "audit", "audit", "audit", "score"]

    def test_the_run_is_whole_audited_and_simulated(self, done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
        run = load_run(done[0])
        assert run.manifest.simulated
        assert [simulated(m) for m in run.models] == [True] * 3
        assert set(run.absent.values()) <= {0}
        assert run.audit is not None
        assert len(run.audit) == 150
        assert [m.panel.tiebreak is None for m in run.manifest.models] == [True, False, False]

    def test_it_holds_a_few_of_everything_that_can_go_wrong(
        self, done: tuple[Path, subprocess.CompletedProcess[str]]
    ) -> None:
        table = pq.read_table(done[0] / "receipts" / "sim-grus__garnet.parquet").to_pandas()
        assert set(table["status"]) == {"scored", "refused", "contested", "error"}
        assert {"stop", "length", "content_filter"} <= set(table["finish_reason"].dropna())
        assert table["mask_leak"].any()
        manifest = json.loads((done[0] / "manifest.json").read_text())
        assert manifest["spend"]["total_usd"] > 0

    def test_its_stages_typed_again_ask_nothing(self, done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
        for command in (evaluation.command, judge.command):
            result = CliRunner().invoke(command, [str(done[0]), "--bank", str(BANK), "--json"])
            summary = json.loads(result.stdout)
            assert (summary["asked"], summary["left"]) == (0, 0)
        spend = json.loads((done[0] / "manifest.json").read_text())["spend"]
        assert summary["spent_usd"] == pytest.approx(spend["total_usd"])

    def test_twice_gives_the_same_bytes(
        self, done: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
    ) -> None:
        folder = tmp_path / SMALL.run_id
        folder.mkdir()
        (folder / "run.toml").write_text(run_toml(SMALL, read_bank_folder(BANK)))
        with_bank = ("--bank", str(BANK), "--cache", str(tmp_path / "cache.sqlite"))
        labels = str(tmp_path / "labels.csv")
        for command, words in (
            (evaluation.command, (str(folder), *with_bank)),
            (judge.command, (str(folder), *with_bank)),
            (audit.command, ("sample", str(folder))),
            (audit.command, ("review", str(folder), labels)),
            (audit.command, ("import", str(folder), labels)),
        ):
            result = CliRunner().invoke(command, words)
            assert result.exit_code == 0, result.output
        names = ["run.toml", "manifest.json", "bank.json", "audit.csv", "audit/draw.json", "audit/sheet.html"]
        names += [f"receipts/{path.name}" for path in (done[0] / "receipts").iterdir()]
        assert len(names) == 9
        assert [n for n in names if (folder / n).read_bytes() != (done[0] / n).read_bytes()] == []


class TestInterrupt:
    def test_ctrl_c_lets_the_stage_end_in_its_own_words(self, tmp_path: Path) -> None:
        command = [sys.executable, "-m", "generator", "demo", "--no-publish", "--bank", str(BANK)]
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        cache = tmp_path / ".cache" / f"{FULL.run_id}.sqlite"
        while not cache.exists():
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the program and to its stage
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "interrupted: " in err
        assert f"`aibiasbench eval {FULL.run_id}` goes on from here" in err
        assert "Traceback" not in err


class TestStartAfresh:
    def test_its_own_folder_goes_with_its_cache(self, tmp_path: Path) -> None:
        run, cache = tmp_path / "demo", tmp_path / "demo.sqlite"
        run.mkdir()
        (run / "run.toml").write_text(f"{MARK}\n")
        (run / "ledger.sqlite").touch()
        for name in ("demo.sqlite", "demo.sqlite-wal", "demo-small.sqlite"):
            (tmp_path / name).touch()
        start_afresh(run, cache)
        assert [path.name for path in tmp_path.iterdir()] == ["demo-small.sqlite"]

    def test_an_operators_folder_of_that_name_stays(self, tmp_path: Path) -> None:
        run = tmp_path / "runs" / SMALL.run_id
        run.mkdir(parents=True)
        (run / "run.toml").write_text('kind = "live"\n')
        result = demo(tmp_path, "--runs-dir", "runs")
        assert result.returncode == 2
        assert "exists and was not written by `aibiasbench demo`; rename it, or use --runs-dir" in result.stderr
        assert [path.name for path in run.iterdir()] == ["run.toml"]

    def test_a_runs_dir_that_publish_cannot_find_is_refused_first(self, tmp_path: Path) -> None:
        command = [sys.executable, "-m", "generator", "demo", "--small", "--runs-dir", "elsewhere"]
        result = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
        )
        assert (result.returncode, list(tmp_path.iterdir())) == (2, [])
        assert "to publish from it, name it runs, or add --no-publish" in result.stderr


class TestLendWords:
    def test_a_content_folder_without_words_gets_the_projects_own(self, tmp_path: Path) -> None:
        lend_words(tmp_path)
        assert (tmp_path / "site.toml").read_bytes() == (ROOT / "content" / "site.toml").read_bytes()

    def test_an_operators_words_stay(self, tmp_path: Path) -> None:
        (tmp_path / "site.toml").write_text("title = 'Ours'")
        lend_words(tmp_path)
        assert (tmp_path / "site.toml").read_text() == "title = 'Ours'"


class TestRunToml:
    @pytest.mark.parametrize("shape", [FULL, SMALL])
    def test_it_is_a_plan_that_the_stages_accept(self, shape, tmp_path: Path) -> None:
        folder = tmp_path / shape.run_id
        folder.mkdir()
        (folder / "run.toml").write_text(run_toml(shape, read_bank_folder(BANK)))
        plan = read_plan(folder)
        assert (plan.kind, plan.repeats, len(plan.models)) == ("simulated", shape.repeats, len(shape.models))

    def test_the_full_shape_has_every_model_and_says_what_is_planted(self) -> None:
        bank = read_bank_folder(BANK)
        text = run_toml(FULL, bank)
        assert len(FULL.models) == 14
        assert [r.model for r in respondents(bank) if f"# {described(r, bank)}\n[[models]]" not in text] == []
