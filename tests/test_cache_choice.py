"""Which cache a run uses: named, remembered or default, and what is said when they differ.

See contract: stages, "Cache".
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from generator.schema.errors import InputError
from harness.cache.answers import DEFAULT_CACHE
from harness.engine.cache_choice import cache_for, other_cache, path_from, remembered_cache
from harness.money.budget import Ledger
from harness.terminal.report import chosen_cache


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that used the cache `answers.sqlite` beside it."""
    folder = tmp_path / "runs" / "my-run"
    folder.mkdir(parents=True)
    cache = tmp_path / "runs" / "answers.sqlite"
    cache.touch()
    with Ledger(folder, run_id="my-run", stage="eval", caps={}) as ledger:
        ledger.remember_cache(path_from(folder, tmp_path / "other.sqlite"))
        ledger.remember_cache(path_from(folder, cache))
    return folder


class TestCacheFor:
    def test_a_run_that_asked_nothing_yet_takes_the_default(self, tmp_path: Path) -> None:
        assert cache_for(tmp_path, None) == DEFAULT_CACHE

    def test_the_last_one_used_comes_next(self, run: Path) -> None:
        assert cache_for(run, None) == run.parent / "answers.sqlite"

    def test_the_one_named_comes_first(self, run: Path) -> None:
        assert cache_for(run, Path("named.sqlite")) == Path("named.sqlite")

    def test_one_that_is_gone_is_no_reason_to_pay_again(self, run: Path) -> None:
        (run.parent / "answers.sqlite").unlink()
        with pytest.raises(InputError, match=r"answers\.sqlite, which is not there; bring it back, or name another"):
            cache_for(run, None)

    def test_runs_and_cache_may_move_together(self, run: Path, tmp_path: Path) -> None:
        shutil.move(run.parent, tmp_path / "moved")
        assert cache_for(tmp_path / "moved" / "my-run", None) == tmp_path / "moved" / "answers.sqlite"

    def test_below_the_working_folder_it_is_shown_as_typed(self, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(run.parent.parent)
        assert cache_for(Path("runs/my-run"), None) == Path("runs/answers.sqlite")


class TestRememberedCache:
    def test_looking_leaves_the_folder_as_it_is(self, run: Path) -> None:
        before = {path: path.read_bytes() for path in run.iterdir()}
        assert remembered_cache(run) is not None
        assert {path: path.read_bytes() for path in run.iterdir()} == before

    @pytest.mark.parametrize("content", [b"", b"no database at all"])
    def test_a_ledger_without_that_table_knows_of_none(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "ledger.sqlite").write_bytes(content)
        assert remembered_cache(tmp_path) is None


class TestOtherCache:
    def test_the_same_file_by_another_name_is_no_other(self, run: Path) -> None:
        assert other_cache(run, run / ".." / "answers.sqlite") is None

    def test_none_is_named(self, run: Path) -> None:
        assert other_cache(run, None) is None

    def test_another_is_told_with_what_it_means(self, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert chosen_cache(run, Path("new.sqlite")) == Path("new.sqlite")
        assert capsys.readouterr().err == (
            f"note: the answers of this run so far are in {run.parent}/answers.sqlite;"
            " what new.sqlite lacks is asked, and paid, again\n"
        )
