"""`eval --fresh`: asks anew past the cache, goes on where it was stopped, pays nothing twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from generator.schema.bank import Bank
from harness.bank.reader import read_bank_folder
from harness.calls.keys import ResponseKeys
from harness.commands import eval as evaluation
from harness.eval.questions import Prompt, bank_prompts
from harness.money.budget import Ledger
from harness.money.fresh import FreshTokens, remembered_tokens
from tests.plans import callee, live_data, write_run_toml
from tests.scripted_server import Reply, ScriptedServer, chat

CONCEPT = "age_apartment_no_history"


@pytest.fixture(scope="module")
def working() -> Bank:
    return read_bank_folder()


@pytest.fixture(autouse=True)
def slice_of_the_bank(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole bank would be 1,500 calls at a time: here it has two concepts."""

    def sliced(bank: Bank, concepts: Any = ()) -> list[Prompt]:
        kept = {CONCEPT, next(c.id for c in bank.concepts if c.id != CONCEPT)}
        return [p for p in bank_prompts(bank, concepts) if p.concept.id in kept]

    for module in ("harness.commands.eval", "harness.terminal.report"):
        monkeypatch.setattr(f"{module}.bank_prompts", sliced)


def ask(folder: Path, *options: str) -> Result:
    words = [str(folder), "--cache", str(folder.parent / "c.sqlite"), "--json"]
    return CliRunner().invoke(evaluation.command, [*words, *options])


def numbers(result: Result) -> tuple[int, int]:
    found = json.loads(result.stdout)
    return found["asked"], found["from_cache"]


class TestKeys:
    def test_a_token_makes_another_key_and_none_the_old_one(self) -> None:
        keys = [ResponseKeys("a/b", {"t": 1}, fresh).key("0" * 64, 0) for fresh in (None, "r/1", "r/2")]
        assert len(set(keys)) == 3
        assert keys[0] == ResponseKeys("a/b", {"t": 1}).key("0" * 64, 0)


class TestTokens:
    def ledger(self, folder: Path) -> Ledger:
        return Ledger(folder, run_id="r", stage="eval", caps={})

    def test_one_that_is_open_stays_and_one_that_is_done_is_replaced(self, tmp_path: Path) -> None:
        with self.ledger(tmp_path) as ledger:
            tokens = FreshTokens(ledger)
            assert tokens.begin(["a/b", "c/d"], "r/1") == []
            tokens.end(["a/b"])
            assert tokens.begin(["a/b", "c/d"], "r/2") == ["c/d"]
            assert tokens.by_model() == {"a/b": "r/2", "c/d": "r/1"}
        assert remembered_tokens(tmp_path) == {"a/b": ("r/2", False), "c/d": ("r/1", False)}

    def test_a_run_without_a_ledger_has_none(self, tmp_path: Path) -> None:
        assert remembered_tokens(tmp_path) == {}


class TestCommand:
    def folder(self, tmp_path: Path, working: Bank, url: str, **changes: Any) -> Path:
        models = [callee("alpha/one")]
        return write_run_toml(tmp_path / "r", live_data(working, url, models=models, **changes))

    def test_it_asks_again_and_both_answers_stay(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer(lambda _, n: Reply(body=chat(f"Answer {n}"))) as server:
            folder = self.folder(tmp_path, working, server.url)
            planned, _ = numbers(ask(folder))
            assert numbers(ask(folder)) == (0, planned)
            assert numbers(ask(folder, "--fresh")) == (planned, 0)
            assert numbers(ask(folder)) == (0, planned)
            other = self.folder(tmp_path / "other", working, server.url)
            other = other.rename(tmp_path / "r2")
            assert numbers(ask(other)) == (0, planned)
            assert len(server.requests) == 2 * planned

    def test_one_that_was_stopped_goes_on(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer() as server:
            folder = self.folder(tmp_path, working, server.url)
            first, _ = numbers(ask(folder, "--fresh", "--concept", CONCEPT))
            again = ask(folder, "--fresh")
            asked, cached = numbers(again)
            assert (cached, asked > 0) == (first, True)
            assert "note: alpha/one goes on with the fresh answers that were begun before; only a whole" in again.stderr
            assert numbers(ask(folder)) == (0, asked + cached)
            assert len(server.requests) == asked + cached

    def test_a_dry_run_counts_all_and_begins_nothing(self, tmp_path: Path, working: Bank) -> None:
        with ScriptedServer() as server:
            folder = self.folder(tmp_path, working, server.url)
            planned, _ = numbers(ask(folder))
            found = [json.loads(ask(folder, "--dry-run", *o).stdout)["calls"][0] for o in ([], ["--fresh"])]
        assert [(line["cached"], line["calls"]) for line in found] == [(planned, 0), (0, planned)]
        assert remembered_tokens(folder) == {}
