"""Measures a command: wall clock, processor time and peak memory of the whole process tree."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Measured:
    """One run of a command; `own` is what it printed after SECONDS, if anything.

    `peak_mb` is the proportional set size of all processes together: a page that several share counts once.
    """

    wall: float
    cpu: float
    peak_mb: float
    own: float | None
    output: str


def proportional(process: int) -> int:
    """Bytes of a process, of each page as much as its share in it; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def tree_usage(root: int) -> tuple[int, dict[int, float]]:
    """Proportional bytes of a process and all below it together, and processor seconds of each."""
    children: dict[int, list[int]] = {}
    seconds: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        entry = folder.name
        if entry.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except (OSError, ValueError):
                continue
            children.setdefault(int(fields[1]), []).append(int(entry))
            seconds[int(entry)] = (int(fields[11]) + int(fields[12])) / TICKS
    tree, todo = [], [root]
    while todo:
        process = todo.pop()
        tree.append(process)
        todo += children.get(process, [])
    return sum(map(proportional, tree)), {p: seconds[p] for p in tree if p in seconds}


def measure(command: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> Measured:
    """Run a command to its end; raises RuntimeError with its output when it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    # Python keeps compiled modules, as it does where a program is used.
    known = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        command, cwd=cwd, env={**known, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    peak, seconds = 0, dict[int, float]()
    ended = threading.Event()

    def sample() -> None:
        nonlocal peak
        while not ended.wait(0.1):
            size, used = tree_usage(process.pid)
            peak = max(peak, size)
            seconds.update(used)

    thread = threading.Thread(target=sample)
    thread.start()
    output = process.communicate()[0]
    wall = time.perf_counter() - start
    ended.set()
    thread.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{output[-2000:]}")
    own = [float(line.split()[1]) for line in output.splitlines() if line.startswith("SECONDS ")]
    # Workers of a fork server are never waited for by the command, so what was last seen of each is counted, too.
    waited = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    cpu = max(waited, sum(seconds.values()))
    return Measured(wall, cpu, peak / 1e6, own[-1] if own else None, output)


def machine() -> str:
    """The facts of this machine in one line."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    memory = os.sysconf("SC_PHYS_PAGES") * PAGE / 1e9
    cores = len(os.sched_getaffinity(0))
    return (
        f"{model}, {cores} processors, {memory:.0f} GB, Linux {platform.release()}, Python {platform.python_version()}"
    )
