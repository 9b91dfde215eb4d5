"""The cache: what is stored comes back as it was, once, on the disk, whatever else happens.

See contract: stages, "Cache".
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.cli import aibiasbench
from generator.schema.canonical import hash_json, sha256_hex
from generator.schema.errors import InputError
from harness.cache.answers import Cache, Entry
from harness.calls.call import Answer, AnswerOutcome, Message
from harness.calls.keys import JudgeKeys, ResponseKeys


def entry(
    name: str, text: str = "Yes.", *, model: str = "alpha/one", role: str = "subject", **changes: object
) -> Entry:
    answer = Answer(text=text, served_by="one@local", prompt_tokens=3, completion_tokens=4, cost=50, **changes)  # type: ignore[arg-type]
    return Entry(sha256_hex(name), role, model, answer, f"run/{name}", 20)


class TestStore:
    def test_an_answer_comes_back_as_it_was(self, tmp_path: Path) -> None:
        cut = entry("a", "Zero \x00, 𝄞 and \u202e", outcome="cut", finish_reason="length")
        with Cache(tmp_path / "c.sqlite", now=7) as cache:
            assert cache.store([cut]) == {}
        with Cache(tmp_path / "c.sqlite", now=8) as cache:
            assert cache.lookup([cut.key, sha256_hex("b")]) == {cut.key: cut.answer}

    def test_the_vendors_word_and_the_thinking_come_back(self, tmp_path: Path) -> None:
        filtered = entry("a", "", outcome="filtered", filter_word="refusal", reasoning_tokens=3)
        with Cache(tmp_path / "c.sqlite", now=7) as cache:
            cache.store([filtered])
            assert cache.lookup([filtered.key]) == {filtered.key: filtered.answer}

    @pytest.mark.parametrize("outcome", ["cut", "cut_before_answer", "filtered", "unusable"])
    def test_no_answer_but_a_good_one_comes_back_as_good(self, tmp_path: Path, outcome: str) -> None:
        error = "empty" if outcome == "unusable" else None
        with Cache(tmp_path / "c.sqlite", now=7) as cache:
            cache.store([entry("a", outcome=outcome, error=error)])
            found = cache.lookup([sha256_hex("a")])[sha256_hex("a")]
        assert (found.outcome, found.error) == (outcome, error)

    def test_the_first_answer_under_a_key_stays(self, tmp_path: Path) -> None:
        with Cache(tmp_path / "c.sqlite", now=7) as one, Cache(tmp_path / "c.sqlite", now=7) as two:
            first = entry("a", "First.")
            one.store([first])
            assert two.store([entry("a", "Second."), entry("b")]) == {first.key: first.answer}
            assert one.lookup([first.key])[first.key].text == "First."

    def test_a_thousand_and_one_keys_are_found_at_once(self, tmp_path: Path) -> None:
        entries = [entry(str(i)) for i in range(1001)]
        with Cache(tmp_path / "c.sqlite", now=7) as cache:
            cache.store(entries)
            assert set(cache.lookup([e.key for e in entries])) == {e.key for e in entries}

    def test_a_failed_transaction_stores_nothing(self, tmp_path: Path) -> None:
        broken = entry("b", text=None)  # type: ignore[arg-type]
        with Cache(tmp_path / "c.sqlite", now=7) as cache:
            with pytest.raises(sqlite3.IntegrityError):
                cache.store([entry("a"), broken])
            assert cache.lookup([sha256_hex("a")]) == {}
            cache.store([entry("a")])
            assert len(cache.lookup([sha256_hex("a")])) == 1

    def test_every_commit_is_flushed_and_readers_are_not_blocked(self, tmp_path: Path) -> None:
        with Cache(tmp_path / "c.sqlite", now=7) as cache:
            settings = [cache._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")]
        assert settings == [2, "wal"]

    def test_two_processes_write_at_once(self, tmp_path: Path) -> None:
        program = (
            "import sys; from pathlib import Path\n"
            "from harness.cache.answers import Cache; from tests.test_cache import entry\n"
            "with Cache(Path(sys.argv[1]), now=1) as cache:\n"
            "    for i in range(200): cache.store([entry(f'{sys.argv[2]}-{i}'), entry(f'both-{i}')])\n"
        )
        path = tmp_path / "c.sqlite"
        both = [subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in "ab"]
        assert [process.wait() for process in both] == [0, 0]
        with Cache(path, now=1) as cache:
            assert sum(line.answers for line in cache.lines()) == 600


class TestPaid:
    def test_the_last_attempts_cost_is_found_by_its_ticket(self, tmp_path: Path) -> None:
        with Cache(tmp_path / "c.sqlite", now=7) as cache:
            cache.store([entry("a"), entry("b")])
            assert cache.paid(["run/a", "run/x"], [sha256_hex("a"), sha256_hex("b")]) == {"run/a": 20}


class TestOpening:
    def test_a_file_that_is_no_database_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "c.sqlite").write_text("hello " * 1000)
        with pytest.raises(
            InputError, match=r"c\.sqlite: the file is damaged \(file is not a database\); .*name another"
        ):
            Cache(tmp_path / "c.sqlite", now=7)

    def test_a_cache_of_another_format_is_refused(self, tmp_path: Path) -> None:
        connection = sqlite3.connect(tmp_path / "c.sqlite")
        connection.execute("PRAGMA user_version=99")
        connection.close()
        with pytest.raises(InputError, match="written by another version"):
            Cache(tmp_path / "c.sqlite", now=7)

    def test_the_answers_of_format_1_are_read_and_added_to(self, tmp_path: Path) -> None:
        key = sha256_hex("a")
        old = sqlite3.connect(tmp_path / "c.sqlite")
        old.execute(
            "CREATE TABLE answers (key BLOB PRIMARY KEY, role TEXT NOT NULL, model TEXT NOT NULL,"
            " outcome TEXT NOT NULL, text TEXT NOT NULL, finish_reason TEXT NOT NULL, served_by TEXT NOT NULL,"
            " prompt_tokens INTEGER, completion_tokens INTEGER, cost INTEGER NOT NULL, error TEXT,"
            " ticket TEXT NOT NULL, last_cost INTEGER NOT NULL, stored_at INTEGER NOT NULL) STRICT"
        )
        row = (bytes.fromhex(key), "subject", "alpha/one", "cut", "Yes, bec", "length", "one@here", 3, 4, 50, None)
        old.execute(f"INSERT INTO answers VALUES ({','.join('?' * 14)})", (*row, "run/1", 20, 7))
        old.execute("PRAGMA user_version=1")
        old.commit()
        old.close()
        new = entry("b", reasoning_tokens=2)
        for _ in range(2):  # the second time it is of this format
            with Cache(tmp_path / "c.sqlite", now=8) as cache:
                cache.store([new])
                found = cache.lookup([key, new.key])
            assert found == {key: Answer("Yes, bec", "cut", "length", "one@here", 3, 4, 50), new.key: new.answer}

    def test_a_folder_that_cannot_be_made_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(InputError, match="cannot be opened"):
            Cache(tmp_path / "file" / "c.sqlite", now=7)


class TestCommands:
    def run(self, *args: str) -> str:
        result = CliRunner().invoke(aibiasbench, ["cache", *args], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    def filled(self, folder: Path) -> str:
        path = folder / "c.sqlite"
        with Cache(path, now=86_400) as cache:
            cache.store([entry("a"), entry("b", model="beta/two"), entry("c", role="judge", outcome="unusable")])
        return str(path)

    @pytest.mark.parametrize("days", ["36500", "9" * 20, "9" * 400])
    def test_days_beyond_all_time_fit_no_answer(self, tmp_path: Path, days: str) -> None:
        assert "0 answers deleted" in self.run("prune", "--cache", self.filled(tmp_path), "--older-than", days)

    def test_list_shows_what_is_there(self, tmp_path: Path) -> None:
        shown = self.run("list", "--cache", self.filled(tmp_path))
        assert "subject  beta/two   answered" in shown
        assert "1970-01-02" in shown
        assert shown.rstrip().endswith(f"3 answers, $0.00, {tmp_path}/c.sqlite")

    def test_list_tells_simulated_money_from_paid(self, tmp_path: Path) -> None:
        with Cache(tmp_path / "c.sqlite", now=1) as cache:
            dear = [entry("a", model="sim-alpha/one"), entry("b")]
            cache.store([replace(e, answer=replace(e.answer, cost=10**12)) for e in dear])
        shown = self.run("list", "--cache", str(tmp_path / "c.sqlite"))
        assert "2 answers, $2.00 ($1.00 of it simulated: nobody paid it), " in shown

    def test_list_as_json(self, tmp_path: Path) -> None:
        assert '"cost_usd": 5e-11' in self.run("list", "--json", "--cache", self.filled(tmp_path))

    def test_prune_deletes_what_fits_every_condition(self, tmp_path: Path) -> None:
        path = self.filled(tmp_path)
        assert self.run("prune", "--cache", path, "--model", "alpha/one", "--role", "subject") == "1 answers deleted\n"
        with Cache(Path(path), now=7) as cache:
            assert set(cache.lookup([sha256_hex(n) for n in "abc"])) == {sha256_hex("b"), sha256_hex("c")}

    @pytest.mark.parametrize("outcome", get_args(AnswerOutcome))
    def test_answers_of_every_outcome_can_be_pruned(self, tmp_path: Path, outcome: str) -> None:
        with Cache(tmp_path / "c.sqlite", now=1) as cache:
            error = "empty" if outcome == "unusable" else None
            cache.store([entry("a", outcome=outcome, error=error)])
        path = str(tmp_path / "c.sqlite")
        assert self.run("prune", "--cache", path, "--outcome", outcome) == "1 answers deleted\n"

    def test_a_dry_prune_deletes_nothing(self, tmp_path: Path) -> None:
        path = self.filled(tmp_path)
        assert self.run("prune", "--cache", path, "--older-than", "5", "--dry-run") == "3 answers would be deleted\n"
        assert self.run("prune", "--cache", path, "--all") == "3 answers deleted\n"

    def test_a_prune_that_nothing_fits_says_where_to_look(self, tmp_path: Path) -> None:
        path = self.filled(tmp_path)
        shown = self.run("prune", "--cache", path, "--model", "alpha/typo")
        assert shown == f"0 answers deleted\nno answer fits; what there is: aibiasbench cache list --cache {path}\n"

    def test_prune_without_a_condition_is_refused(self, tmp_path: Path) -> None:
        result = CliRunner().invoke(aibiasbench, ["cache", "prune", "--cache", self.filled(tmp_path)])
        assert result.exit_code == 2
        assert "say which answers" in result.output

    def test_a_cache_that_is_not_there_is_refused_and_not_made(self, tmp_path: Path) -> None:
        result = CliRunner().invoke(aibiasbench, ["cache", "list", "--cache", str(tmp_path / "none.sqlite")])
        assert isinstance(result.exception, InputError)
        assert list(tmp_path.iterdir()) == []


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FAST = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class TestKeys:
    @FAST
    @given(model=TEXT, params=st.dictionaries(TEXT, JSON, max_size=4), repeat=st.integers(0, 40), prompt=TEXT)
    def test_a_response_key_is_the_hash_of_its_canonical_parts(
        self, model: str, params: dict[str, object], repeat: int, prompt: str
    ) -> None:
        digest = sha256_hex(prompt)
        parts = {"model": model, "prompt_sha256": digest, "params": params, "repeat": repeat}
        assert ResponseKeys(model, params).key(digest, repeat) == hash_json(parts)

    @FAST
    @given(judge=TEXT, params=st.dictionaries(TEXT, JSON, max_size=3), system=TEXT, user=TEXT, repeat=st.integers(0, 9))
    def test_a_judge_key_is_the_hash_of_its_canonical_parts(
        self, judge: str, params: dict[str, object], system: str, user: str, repeat: int
    ) -> None:
        schema = {"type": "object", "properties": {"ß": {"maximum": 100}}}
        request = hash_json({"messages": [["system", system], ["user", user]], "schema": schema})
        parts = {
            "judge": judge,
            "params": params,
            "repeat": repeat,
            "request_sha256": request,
            "rubric_sha256": "0" * 64,
        }
        messages = (Message("system", system), Message("user", user))
        assert JudgeKeys(judge, params, "0" * 64, schema).key(messages, repeat) == hash_json(parts)

    def test_each_part_changes_the_key(self) -> None:
        base = ResponseKeys("a/b", {"temperature": 1.0}).key("0" * 64, 0)
        others = [
            ResponseKeys("a/c", {"temperature": 1.0}).key("0" * 64, 0),
            ResponseKeys("a/b", {"temperature": 0.5}).key("0" * 64, 0),
            ResponseKeys("a/b", {"temperature": 1.0}).key("1" * 64, 0),
            ResponseKeys("a/b", {"temperature": 1.0}).key("0" * 64, 1),
        ]
        assert len({base, *others}) == 5
