"""Progress: a bar on a terminal, plain lines elsewhere, the same numbers in both (contract: stages, "Progress")."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from rich.console import Console

import harness.terminal.progress
from harness.engine.outcome import StageCounts, Wait
from harness.terminal.progress import Pace, duration, stage_progress, status_line

USD = 10**12


def tally(**changes: object) -> StageCounts:
    fields = {"planned": 1000, "cached": 100, "asked": 290, "failed": 10, "spent": 12 * USD}
    return StageCounts(**{**fields, **changes})  # type: ignore[arg-type]


def shown(terminal: bool, *tallies: StageCounts, every: float = 0.0, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(harness.terminal.progress, "PLAIN_EVERY", every)
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=100, color_system=None)
    with stage_progress("eval", cap=50 * USD, console=console) as watch:
        for one in tallies:
            watch(one)
    return out.getvalue()


class TestPace:
    def test_cached_answers_do_not_count_as_speed(self) -> None:
        pace = Pace(now=100.0)
        assert pace.rate(tally(), now=130.0) == 10.0
        assert pace.left(tally(), now=130.0) == 60.0

    def test_before_anything_was_asked_no_time_is_known(self) -> None:
        assert Pace(now=0.0).left(tally(asked=0, failed=0), now=10.0) is None


class TestStatusLine:
    def test_rate_spend_time_and_failures(self) -> None:
        line = status_line(tally(), cap=50 * USD, rate=10.0, left=720.0, now=0.0)
        assert line == "10.0/s, $12.00 of $50.00, 12 min left, 10 failed"

    def test_unusable_answers_are_failures(self) -> None:
        line = status_line(tally(failed=0, outcomes=Counter(unusable=3)), cap=50 * USD, rate=1.0, left=None, now=0.0)
        assert line == "1.0/s, $12.00 of $50.00, 3 failed"

    def test_a_wait_is_said_first_and_no_shorter_time_is_left(self) -> None:
        waits = {"alpha/one": Wait(3_700.0, 3_600.0, "HTTP status 429"), "beta/two": Wait(110.0, 20.0, "other")}
        line = status_line(tally(waits=waits, failed=0), cap=50 * USD, rate=10.0, left=60.0, now=100.0)
        expected = "alpha/one waits 1 h 00 min: HTTP status 429, 10.0/s, $12.00 of $50.00, 1 h 00 min left"
        assert line == expected

    def test_a_wait_that_is_over_is_not_shown(self) -> None:
        waits = {"alpha/one": Wait(99.0, 20.0, "HTTP status 429")}
        line = status_line(tally(waits=waits, failed=0), cap=50 * USD, rate=10.0, left=60.0, now=100.0)
        assert line == "10.0/s, $12.00 of $50.00, 1 min left"


class TestDuration:
    @pytest.mark.parametrize(
        ("seconds", "words"), [(0.4, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "1 h 00 min"), (11_100, "3 h 05 min")]
    )
    def test_in_words(self, seconds: float, words: str) -> None:
        assert duration(seconds) == words


class TestStageProgress:
    def test_plain_lines_elsewhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        lines = shown(False, tally(), tally(asked=890), monkeypatch=monkeypatch).splitlines()
        assert lines[0].startswith("eval: 400 of 1,000 rows (40%), ")
        assert lines[1].startswith("eval: 1,000 of 1,000 rows (100%), ")
        assert "\x1b" not in "".join(lines)

    def test_a_log_is_not_flooded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert shown(False, *[tally()] * 50, every=1e9, monkeypatch=monkeypatch) == ""

    def test_a_bar_on_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        text = shown(True, tally(), tally(asked=890), monkeypatch=monkeypatch)
        assert "1000/1000" in text
        assert "$12.00 of $50.00" in text

    @pytest.mark.parametrize("terminal", [True, False])
    def test_each_warning_is_shown_once(self, terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        one, two = tally(warnings=["[red]dear[/red]"]), tally(warnings=["[red]dear[/red]", "dearer"])
        text = shown(terminal, one, two, two, monkeypatch=monkeypatch)
        assert (text.count("warning: [red]dear[/red]"), text.count("warning: dearer")) == (1, 1)

    def test_a_run_without_calls_is_no_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "eval: 0 of 0 rows (0%)" in shown(False, StageCounts(), monkeypatch=monkeypatch)
