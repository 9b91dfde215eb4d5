"""`aibiasbench judge` as it is typed: exit codes, summaries, and what it leaves behind (contract: stages, "judge")."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from generator.runs.reader import load_run
from generator.schema.errors import CapError, InputError
from harness.bank.reader import read_bank_folder
from harness.commands import eval as evaluation
from harness.commands import judge
from tests.plans import live_data, simulated_data, write_run_toml
from tests.scripted_server import Reply, ScriptedServer, chat

MODEL = "sim-alpha/one"
BANK = read_bank_folder(Path(__file__).parent.parent / "content" / "bank")
A_CONCEPT = sorted(c.id for c in BANK.concepts if c.rubric == "stance" and c.attribute == "age")[0]


def options(folder: Path) -> list[str]:
    bank = Path(__file__).parent.parent / "content" / "bank"
    return [str(folder), "--bank", str(bank), "--cache", str(folder.parent / "cache.sqlite")]


def evaluated(folder: Path, **plan: Any) -> Path:
    """A run of one model of which eval asked a single concept."""
    write_run_toml(folder, simulated_data(BANK, MODEL, **plan))
    result = CliRunner().invoke(evaluation.command, [*options(folder), "--concept", A_CONCEPT])
    assert result.exit_code == 0, result.output
    return folder


def invoke(folder: Path, *words: str) -> Any:
    return CliRunner().invoke(judge.command, [*options(folder), *words], standalone_mode=False)


class TestCommand:
    def test_a_whole_pass_says_what_came_of_it_and_what_is_next(self, tmp_path: Path) -> None:
        folder = evaluated(tmp_path / "r")
        result = invoke(folder, "--partial")
        rows = len(BANK.groups_of("age")) * 2
        assert result.return_value == 0
        assert "absent rows: " in result.stdout
        assert f"receipts: {folder}/receipts, {folder}/manifest.json" in result.stdout
        assert f"next: aibiasbench score {folder}, or aibiasbench audit sample {folder}" in result.stdout
        assert sum(json.loads((folder / "manifest.json").read_text())["counts"].values()) == rows
        assert load_run(folder).models == (MODEL,)

    def test_json_is_for_scripts(self, tmp_path: Path) -> None:
        summary = json.loads(invoke(evaluated(tmp_path / "r"), "--partial", "--json").stdout)
        assert (summary["stage"], summary["left"], summary["from_cache"]) == ("judge", 0, 0)
        assert summary["votes"] == summary["asked"] > 0
        assert sum(summary["statuses"].values()) == len(BANK.groups_of("age")) * 2

    def test_a_second_pass_asks_nothing(self, tmp_path: Path) -> None:
        folder = evaluated(tmp_path / "r")
        first = json.loads(invoke(folder, "--partial", "--json").stdout)
        again = json.loads(invoke(folder, "--partial", "--json").stdout)
        assert (again["asked"], again["from_cache"]) == (0, first["votes"])
        assert again["spent_usd"] == first["spent_usd"]

    def test_a_judged_run_goes_by_its_own_bank_whatever_the_working_one_is(self, tmp_path: Path) -> None:
        folder = evaluated(tmp_path / "r")
        first = json.loads(invoke(folder, "--partial", "--json").stdout)
        words = [str(folder), "--bank", str(tmp_path / "no-bank"), "--cache", str(tmp_path / "cache.sqlite"), "--json"]
        asked = CliRunner().invoke(evaluation.command, [*words, "--concept", A_CONCEPT], standalone_mode=False)
        again = CliRunner().invoke(judge.command, [*words, "--partial"], standalone_mode=False)
        assert (json.loads(asked.stdout)["asked"], json.loads(asked.stdout)["from_cache"]) == (0, first["votes"] // 2)
        assert (json.loads(again.stdout)["asked"], json.loads(again.stdout)["from_cache"]) == (0, first["votes"])
        forecast = CliRunner().invoke(judge.command, [*words, "--dry-run"], standalone_mode=False)
        assert json.loads(forecast.stdout)["run_id"] == "r"

    @pytest.mark.parametrize("command", [evaluation.command, judge.command])
    def test_a_run_whose_pin_is_not_that_of_its_own_bank_is_refused(self, tmp_path: Path, command: Any) -> None:
        folder = evaluated(tmp_path / "r")
        assert invoke(folder, "--partial").return_value == 0
        write_run_toml(folder, {**simulated_data(BANK, MODEL), "bank": {"version": "9", "sha256": "0" * 64}})
        result = CliRunner().invoke(command, options(folder), standalone_mode=False)
        assert isinstance(result.exception, InputError)
        assert result.exception.faults[0].endswith(f"bank.version is '9', the run's own bank.json is {BANK.version!r}")

    def test_a_run_without_a_bank_of_its_own_needs_the_working_bank(self, tmp_path: Path) -> None:
        folder = evaluated(tmp_path / "r")
        result = CliRunner().invoke(
            judge.command, [str(folder), "--bank", str(tmp_path / "none")], standalone_mode=False
        )
        assert isinstance(result.exception, InputError)
        assert "bank.toml: not found" in str(result.exception)

    def test_an_unfinished_eval_is_refused(self, tmp_path: Path) -> None:
        result = invoke(evaluated(tmp_path / "r"))
        assert isinstance(result.exception, InputError)
        assert "planned rows have no answer yet; finish `aibiasbench eval r` first" in str(result.exception)
        assert not (tmp_path / "r" / "manifest.json").exists()

    def test_a_cap_is_exit_3_and_says_what_is_left(self, tmp_path: Path) -> None:
        folder = evaluated(tmp_path / "r", caps={"run": 100.0, "judges": {"sim-judge-a/x": 0.0}})
        result = invoke(folder, "--partial")
        assert isinstance(result.exception, CapError)
        assert "judge:sim-judge-a/x" in str(result.exception)
        assert "calls are left" in str(result.exception)
        assert not (folder / "manifest.json").exists()

    def test_a_dry_run_asks_and_writes_nothing(self, tmp_path: Path) -> None:
        folder = evaluated(tmp_path / "r")
        before = {p: p.read_bytes() for p in folder.iterdir()}
        result = invoke(folder, "--dry-run", "--json")
        assert json.loads(result.stdout)["total"]["calls"] > 0
        assert {p: p.read_bytes() for p in folder.iterdir()} == before

    def test_ctrl_c_while_answers_are_masked_is_130(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = evaluated(tmp_path / "r")

        def interrupt(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("harness.stages.judge_stage.collect", interrupt)
        result = invoke(folder, "--partial")
        assert result.return_value == 130
        assert "interrupted: no vote is lost" in result.stderr


class TestOverHttp:
    """Judges behind a scripted server; the subject's answers are all alike, so two prompts make two votes a judge."""

    def judged(self, folder: Path, reply: Reply) -> Any:
        with ScriptedServer() as server:
            write_run_toml(folder, live_data(BANK, server.url))
            CliRunner().invoke(evaluation.command, [*options(folder), "--concept", A_CONCEPT])
            server.script = lambda *_: reply
            return invoke(folder, "--partial")

    def test_judges_of_whom_none_answers_stop_the_stage_before_any_receipt(self, tmp_path: Path) -> None:
        result = self.judged(tmp_path / "r", Reply(400, b"no such judge"))
        assert isinstance(result.exception, InputError)
        assert "no call was answered, the last failed with: HTTP status 400: no such judge" in str(result.exception)
        assert not (tmp_path / "r" / "manifest.json").exists()

    def test_votes_that_are_no_json_are_kept_and_it_says_how_to_ask_again(self, tmp_path: Path) -> None:
        result = self.judged(tmp_path / "r", Reply(body=chat("I think SUPPORT")))
        assert "votes in error: 20 not_json\n" in result.stdout
        again = f"aibiasbench cache prune --cache {tmp_path}/cache.sqlite --role judge --outcome unusable\n"
        assert f"are kept; to ask again: {again}" in result.stdout

    def test_a_judge_that_is_down_for_some_is_told_in_its_words(self, tmp_path: Path) -> None:
        vote = json.dumps({"label": "SUPPORT", "verdict_matches_prose": True, "evidence": "x"})
        replies = [Reply(body=chat(vote)), Reply(422, b"moderated")]
        with ScriptedServer() as server:
            folder = write_run_toml(tmp_path / "r", live_data(BANK, server.url))
            CliRunner().invoke(evaluation.command, [*options(folder), "--concept", A_CONCEPT])
            server.script = lambda _, number: replies[number % 2]
            result = invoke(folder, "--partial")
        assert "http_status (the last: HTTP status 422: moderated)\n" in result.stdout
        assert f"failed calls are asked again by: aibiasbench judge {folder}\n" in result.stdout
        assert result.return_value == 0
