"""Progress of a stage on stderr: a bar on a terminal, a plain line now and then elsewhere.

See contract: stages, "Progress".
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column

from generator.schema.shown import shown
from harness.engine.outcome import StageCounts, Watch
from harness.money.budget import dollars

PLAIN_EVERY = 10.0  # seconds between plain lines
DRAW_EVERY = 0.1
BAR = 10  # columns, so that all of it fits 80


class Pace:
    """Rate and time left, from the calls asked since the start; cached ones take no time and do not count."""

    def __init__(self, now: float) -> None:
        self._began = now

    def rate(self, tally: StageCounts, now: float) -> float:
        """Return calls a second."""
        return (tally.asked + tally.failed) / max(now - self._began, 1e-9)

    def left(self, tally: StageCounts, now: float) -> float | None:
        """Return the seconds left, or None before anything was asked."""
        rate = self.rate(tally, now)
        return (tally.planned - tally.done) / rate if tally.asked + tally.failed else None


def status_line(tally: StageCounts, *, cap: int, rate: float, left: float | None, now: float) -> str:
    """Return what is waited for at `now`, then rate, spend against the cap, time left and failures in words."""
    parts = [f"{rate:,.1f}/s", f"${dollars(tally.spent):,.2f} of ${dollars(cap):,.2f}"]
    waiting = tally.waiting(now)
    if waiting is not None:
        who, wait = waiting
        parts.insert(0, f"{shown(who)} waits {duration(wait.until - now)}: {shown(wait.why)}")
        left = max(left or 0.0, wait.until - now)
    if left is not None:
        parts.append(f"{duration(left)} left")
    if tally.failed or tally.outcomes["unusable"]:
        parts.append(f"{tally.failed + tally.outcomes['unusable']:,} failed")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Return a time in words: 40 s, 12 min, 3 h 05 min."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


@contextmanager
def stage_progress(stage: str, *, cap: int, unit: str = "rows", console: Console | None = None) -> Iterator[Watch]:
    """Yield what the engine tells its numbers; `cap` is the run's cap in picodollars."""
    screen = console or Console(stderr=True, highlight=False)
    with _bar(stage, cap, screen) if screen.is_terminal else _lines(stage, cap, unit, screen) as watch:
        yield watch


@contextmanager
def _bar(stage: str, cap: int, screen: Console) -> Iterator[Watch]:
    words = TextColumn("{task.fields[line]}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=BAR), MofNCompleteColumn(), words)
    pace, seen = Pace(time.monotonic()), [0.0, 0]
    # What is printed meanwhile goes its own way: Rich would send it on as it came.
    bar = Progress(*columns, console=screen, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    with bar as progress:
        task = progress.add_task(stage, total=None, line="")

        def watch(tally: StageCounts) -> None:
            now = time.monotonic()
            for warning in tally.warnings[int(seen[1]) :]:
                progress.console.print(f"warning: {shown(warning)}", markup=False)
            seen[1] = len(tally.warnings)
            if now - seen[0] < DRAW_EVERY and tally.done < tally.planned:
                return
            seen[0] = now
            line = status_line(tally, cap=cap, rate=pace.rate(tally, now), left=pace.left(tally, now), now=now)
            progress.update(task, total=tally.planned, completed=tally.done, line=line)
            progress.refresh()

        yield watch


@contextmanager
def _lines(stage: str, cap: int, unit: str, screen: Console) -> Iterator[Watch]:
    pace = Pace(time.monotonic())
    seen = [time.monotonic(), 0]

    def watch(tally: StageCounts) -> None:
        now = time.monotonic()
        for warning in tally.warnings[int(seen[1]) :]:
            screen.print(f"warning: {shown(warning)}", markup=False, soft_wrap=True)
        seen[1] = len(tally.warnings)
        if now - seen[0] < PLAIN_EVERY:
            return
        seen[0] = now
        line = status_line(tally, cap=cap, rate=pace.rate(tally, now), left=pace.left(tally, now), now=now)
        share = f"{tally.done / tally.planned:.0%}" if tally.planned else "0%"
        screen.print(f"{stage}: {tally.done:,} of {tally.planned:,} {unit} ({share}), {line}", soft_wrap=True)

    yield watch
