"""Watches this process and all below it: processor time and peak memory of each, also of those that end meanwhile."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Watched:
    """wall: seconds. processor: seconds by process since the watch began. peak: MB by process. names: what each is."""

    wall: float = 0.0
    processor: dict[int, float] = field(default_factory=dict)
    peak: dict[int, float] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)

    def text(self) -> str:
        """Wall and processor seconds, and the peak of each process that did anything."""
        peaks = ", ".join(
            f"{self.names[p]} {self.peak[p]:.0f}" for p in self.peak if self.processor[p] > 0.2 or p == os.getpid()
        )
        return f"{self.wall:8.2f} s wall {sum(self.processor.values()):8.2f} s processor; peak MB: {peaks}"


@contextmanager
def watched() -> Iterator[Watched]:
    """Yield what is seen; it is complete when the block has ended."""
    found, before = Watched(), {pid: _seconds(pid) for pid in _tree()}
    ended = threading.Event()
    own = 0.0

    def look() -> None:
        for pid in _tree():
            try:
                found.processor[pid] = _seconds(pid) - before.get(pid, 0.0)
                found.peak[pid] = _peak(pid)
                found.names.setdefault(pid, _name(pid))
            except (OSError, ValueError, IndexError):
                continue

    def sample() -> None:
        nonlocal own
        while not ended.wait(0.1):
            look()
        own = time.thread_time()

    thread = threading.Thread(target=sample)
    start = time.perf_counter()
    thread.start()
    try:
        yield found
    finally:
        found.wall = time.perf_counter() - start
        ended.set()
        thread.join()
        look()
        found.processor[os.getpid()] -= own  # what watching itself took


def _tree() -> list[int]:
    found, todo = [], [os.getpid()]
    while todo:
        pid = todo.pop()
        found.append(pid)
        try:
            for thread in Path(f"/proc/{pid}/task").iterdir():
                todo += [int(word) for word in (thread / "children").read_text().split()]
        except OSError:
            continue
    return found


def _seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def _peak(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def _name(pid: int) -> str:
    if pid == os.getpid():
        return "this process"
    words = Path(f"/proc/{pid}/cmdline").read_text()
    return next((name for name in ("dask_scheduler", "dask_worker") if name in words), "worker")
