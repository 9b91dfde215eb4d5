"""Spoils files and holds the program to its promise: exit 0, 1, 2 or 3, no traceback, within 1 GB and 30 s.

`python -m tests.fuzz [--cases 10000] [--commands 200] [--seed 1] [--only KIND ...]`. A case has its dice from its name,
KIND:SEED:NUMBER, so `spoil` makes it again. Exits 1 when a case breaks the promise.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from generator.schema.errors import ToolError
from tests.fuzz.kinds import ROOT, Kind, kinds, spoil

MEMORY = 1 << 30
SECONDS = 30  # of a processor: what else the machine does must not decide
WAITING = 300  # seconds on the clock, for a program that waits and does nothing
ALLOWED = (0, 1, 2, 3)


def limit() -> None:
    """Take no more than a gigabyte of data from here on, beside what this process has already."""
    status = Path("/proc/self/status").read_text()
    taken = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData"))
    most = MEMORY + taken
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_program() -> None:
    """Take no more than a gigabyte of data and 30 s of a processor: for a program of its own."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def in_process(kind: Kind, original: Path, home: Path, names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield (case, what came of it): `fine`, `refused`, or the fault. One child reads on until it breaks."""
    left = list(names)
    while left:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with contextlib.suppress(BaseException):
                _read_all(kind, original, home, left, writing)
            os._exit(0)
        os.close(writing)
        done = 0
        with os.fdopen(reading) as lines:
            for line in lines:
                yield left[done], line.rstrip("\n")
                done += 1
        _, status = os.waitpid(child, 0)
        if done < len(left):
            code = os.waitstatus_to_exitcode(status)
            slow = {-signal.SIGPROF: f"more than {SECONDS} s", -signal.SIGALRM: f"waits more than {WAITING} s"}
            yield left[done], slow.get(code, f"the process ended with {code}")
            done += 1
        left = left[done:]


def _read_all(kind: Kind, original: Path, home: Path, names: list[str], writing: int) -> None:
    limit()
    faulthandler.disable()
    for ends_the_process in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(ends_the_process, signal.SIG_DFL)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    for name in names:
        signal.alarm(WAITING)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        os.write(writing, f"{outcome(kind, original, home, name)}\n".encode())


def outcome(kind: Kind, original: Path, home: Path, name: str) -> str:
    """Read one spoiled folder in this process; say what came of it."""
    spoil(kind, original, home, name)
    try:
        kind.read(home)
    except ToolError as error:
        faults = getattr(error, "faults", (str(error),))
        return "refused" if not any("\n" in fault for fault in faults) else f"a fault of several lines: {faults!r:.200}"
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        own = [f for f in traceback.extract_tb(error.__traceback__) if str(ROOT / "tests") not in f.filename]
        near = [f for f in own if f.filename.startswith((str(ROOT / "generator"), str(ROOT / "harness")))]
        place = near[-1] if near else place
        said = " ".join(str(error).split())[:120]
        return f"{type(error).__name__}: {said} at {Path(place.filename).name}:{place.lineno}"
    return "fine"


def as_command(kind: Kind, original: Path, home: Path, name: str, number: int) -> str:
    """Run one command on a spoiled folder; say what came of it."""
    spoil(kind, original, home, name)
    words = [word.format(home) for word in kind.commands[number % len(kind.commands)]]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "generator", *words], cwd=ROOT, capture_output=True, timeout=WAITING,
            preexec_fn=limit_program, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"{words[0]}: waits more than {WAITING} s"
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"{words[0]}: more than {SECONDS} s"
    if done.returncode not in ALLOWED or b"Traceback" in done.stderr:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [""]
        return f"{words[0]}: exit {done.returncode}: {last[0][:160]}"
    return "fine" if done.returncode == 0 else "refused"


def fuzz(kind: Kind, folder: Path, *, cases: int, commands: int, seed: int) -> tuple[Counter[str], dict[str, str]]:
    """Return how often a kind was read or refused, and an example case of each fault."""
    original, home = folder / "original", folder / "spoiled"
    original.mkdir(parents=True)
    kind.make(original)
    counts: Counter[str] = Counter()
    faults: dict[str, str] = {}
    names = [f"{kind.name}:{seed}:{number}" for number in range(cases)]
    found = list(in_process(kind, original, home, names))
    for number in range(commands):
        name = f"{kind.name}:{seed}:c{number}"
        found.append((name, as_command(kind, original, home, name, number)))
    for name, said in found:
        counts[said if said in ("fine", "refused") else "broken"] += 1
        if said not in ("fine", "refused"):
            faults.setdefault(said, name)
    return counts, faults


def main() -> None:
    """Fuzz every kind and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--commands", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    broken = False
    for kind in kinds():
        if options.only and not kind.name.startswith(tuple(options.only)):
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            counts, faults = fuzz(kind, Path(folder), cases=options.cases, commands=options.commands, seed=options.seed)
        told = ", ".join(f"{counts[what]:,} {what}" for what in ("fine", "refused", "broken"))
        print(f"{kind.name:36} {told} ({time.monotonic() - start:.0f} s)", flush=True)
        for said, name in faults.items():
            print(f"    {said}  [{name}]", flush=True)
        broken = broken or bool(faults)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
