"""A damaged cache or ledger is one line that names the file and what to do, whichever command meets it."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from generator.cli import aibiasbench
from generator.schema.canonical import sha256_hex
from generator.schema.errors import InputError, ToolError
from harness.cache.answers import Cache, Entry
from harness.cache.database import Database
from harness.calls.call import Answer
from harness.money.budget import Ledger
from tests.plans import simulated_data, write_run_toml
from tests.test_judge_command import A_CONCEPT, BANK, MODEL, options

PAGE = 4096
COMMANDS = {
    "list": ["cache", "list"],
    "prune": ["cache", "prune", "--role", "judge"],
    "dry": ["eval", "--dry-run"],
    "eval": ["eval", "--concept", A_CONCEPT],
    "judge": ["judge", "--partial"],
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated run of which one concept has been asked, its cache beside it, both files closed."""
    home = tmp_path_factory.mktemp("whole")
    folder = write_run_toml(home / "r", simulated_data(BANK, MODEL))
    result = CliRunner().invoke(aibiasbench, ["eval", *options(folder), "--concept", A_CONCEPT])
    assert result.exit_code == 0, result.output
    assert not list(home.rglob("*-wal"))
    return home


@pytest.fixture
def home(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "home")
    return tmp_path / "home"


def run(home: Path, name: str) -> Any:
    verb = COMMANDS[name]
    own = ["--cache", str(home / "cache.sqlite")] if verb[0] == "cache" else options(home / "r")
    return CliRunner().invoke(aibiasbench, [*verb, *own], standalone_mode=False)


def assert_told(result: Any, file: Path) -> None:
    """The command went through, or ended in one line that names the file and a remedy for it."""
    if result.exception is None:
        return
    assert isinstance(result.exception, InputError), result.exception
    (line,) = result.exception.faults
    assert line.startswith(f"{file}: "), line
    assert "\n" not in line
    assert "make room" not in line
    assert "bring back a copy of it" in line


def scribble(file: Path, seed: int) -> None:
    """Overwrite some bytes behind the first page."""
    dice, data = random.Random(seed), bytearray(file.read_bytes())
    assert len(data) > 2 * PAGE
    for _ in range(dice.choice((1, 4, 32))):
        start, length = dice.randrange(PAGE, len(data)), dice.choice((1, 2, 16, 400))
        data[start : start + length] = dice.randbytes(len(data[start : start + length]))
    file.write_bytes(data)


class TestRandomBytes:
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("name", list(COMMANDS))
    def test_of_the_cache(self, home: Path, name: str, seed: int) -> None:
        scribble(home / "cache.sqlite", seed)
        assert_told(run(home, name), home / "cache.sqlite")

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("name", ["dry", "eval", "judge"])
    def test_of_the_ledger(self, home: Path, name: str, seed: int) -> None:
        scribble(home / "r" / "ledger.sqlite", seed)
        assert_told(run(home, name), home / "r" / "ledger.sqlite")

    def test_some_of_it_is_noticed(self, original: Path, tmp_path: Path) -> None:
        noticed = 0
        for seed in range(8):
            home = shutil.copytree(original, tmp_path / str(seed))
            scribble(home / "r" / "ledger.sqlite", seed)
            noticed += run(home, "judge").exception is not None
        assert noticed > 0


def entry(key: str) -> Entry:
    return Entry(sha256_hex(key), "subject", "alpha/one", Answer("Yes.", cost=5), "run/1", 5)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "c.sqlite"
    with Cache(path, now=7) as answers:
        answers.store([entry("a"), entry("b")])
    return path


def change(path: Path, statement: str) -> None:
    """Change a file past the types of its tables, as flipped bytes do."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')')")
        connection.commit()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


class TestWhatSqliteDoesNotNotice:
    @pytest.mark.parametrize(
        "change_to",
        [
            "outcome = 'anwsered'",
            "text = x'80'",
            "prompt_tokens = -1",
            "completion_tokens = 9999999999",
            "prompt_tokens = 'many'",
            "cost = -4",
            "cost = 0.5",
            "error = x'00'",
        ],
    )
    def test_an_answer_that_is_never_written(self, cache: Path, change_to: str) -> None:
        change(cache, f"UPDATE answers SET {change_to}")
        with Cache(cache, now=8) as answers, pytest.raises(InputError, match="holds what is never written"):
            answers.lookup([sha256_hex("a")])

    def test_text_that_is_not_utf8(self, cache: Path) -> None:
        change(cache, "UPDATE answers SET text = CAST(x'ff' AS TEXT)")
        with Cache(cache, now=8) as answers, pytest.raises(InputError, match=r"c\.sqlite: the file is damaged \(Could"):
            answers.lookup([sha256_hex("a")])

    def test_a_description_of_the_tables_that_is_not_utf8(self, cache: Path) -> None:
        data = cache.read_bytes()
        assert b"tableanswersanswers" in data
        # The statement no longer parses, and SQLite's word on that quotes the name.
        data = data.replace(b"tableanswersanswers", b"tableansw\xffrsanswers").replace(
            b"CREATE TABLE", b"CREATE TABLX", 1
        )
        cache.write_bytes(data)
        with pytest.raises(InputError, match=r"c\.sqlite: the file is damaged .*bring back a copy"):
            Cache(cache, now=8)

    @pytest.mark.parametrize(
        "change_to", ["role = x'80'", "stored_at = -1", "stored_at = 999999999999999", "stored_at = 'soon'"]
    )
    def test_a_line_that_cannot_be(self, cache: Path, change_to: str) -> None:
        change(cache, f"UPDATE answers SET {change_to}")
        with Cache(cache, now=8) as answers, pytest.raises(InputError, match="cannot be"):
            answers.lines()

    def test_a_sum_beyond_all_numbers(self, cache: Path) -> None:
        change(cache, "UPDATE answers SET cost = 9223372036854775807")
        with Cache(cache, now=8) as answers, pytest.raises(InputError, match="integer overflow"):
            answers.lines()


class TestKinds:
    def open(self, folder: Path) -> Ledger:
        return Ledger(folder, run_id="r", stage="eval", caps={"run": 100})

    def test_a_ledger_whose_types_are_wrong_is_refused_when_opened(self, tmp_path: Path) -> None:
        with self.open(tmp_path):
            pass
        with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection:
            connection.execute("INSERT INTO accounts VALUES ('run', 5)")
            connection.commit()
        data = (tmp_path / "ledger.sqlite").read_bytes()
        assert data.count(b"run\x05") == 1
        # Types 0x13 (text of 3 bytes) and 0x01 (number of a byte) before the values: the number becomes a blob's start.
        (tmp_path / "ledger.sqlite").write_bytes(data.replace(b"\x13\x01run\x05", b"\x13\x0erun\x05"))
        with pytest.raises(InputError, match=r"ledger\.sqlite: the file is damaged .*counted from 0 again"):
            self.open(tmp_path)

    def test_an_entry_in_a_state_that_is_never_written(self, original: Path, tmp_path: Path) -> None:
        shutil.copytree(original / "r", tmp_path / "r")
        with closing(sqlite3.connect(tmp_path / "r" / "ledger.sqlite")) as connection:
            connection.execute("PRAGMA ignore_check_constraints=ON")
            connection.execute("UPDATE entries SET state = 'setthed' WHERE id = 1")
            connection.commit()
        with self.open(tmp_path / "r") as ledger, pytest.raises(InputError, match="a state that is never written"):
            ledger.book("subject")

    def test_a_full_disk_is_no_damage(self, cache: Path) -> None:
        with Cache(cache, now=8) as answers:
            answers._db.execute("PRAGMA max_page_count=2")
            with pytest.raises(ToolError, match=r"cannot be written: .*: make room on the disk") as caught:
                answers.store([entry(str(i)) for i in range(500)])
        assert not isinstance(caught.value, InputError)

    def test_a_file_that_is_read_only_is_said_to_be(self, cache: Path) -> None:
        with Cache(cache, now=8) as answers:
            answers._db.execute("PRAGMA query_only=ON")
            with pytest.raises(ToolError, match="make the file writable"):
                answers.store([entry("c")])

    def test_a_fault_of_the_program_stays_one(self, cache: Path) -> None:
        with Cache(cache, now=8) as answers:
            with pytest.raises(sqlite3.ProgrammingError):
                answers._db.execute("SELECT ?", ())
            with pytest.raises(sqlite3.IntegrityError):
                answers._db.execute("INSERT INTO answers (key) VALUES (x'00')")

    def test_every_kind_of_file_has_its_remedy(self) -> None:
        kinds = [kind for kind in Database.__subclasses__() if kind.__module__.startswith("harness.")]
        assert len({kind.remedy for kind in kinds}) == len(kinds) > 1
