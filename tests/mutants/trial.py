"""Runs tests in a forked child, where one module may have a fault in it.

The parent never imports the project. It imports what the tests import from elsewhere, once, so that a child has it
from the start and only the project's own modules are new to it.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import json
import math
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import hypothesis
import pytest

from tests.mutants.operators import Mutant

ROOT = Path(__file__).parents[2]
MEMORY = 6 << 30
WAITING = 10  # times as long by the clock: what hangs without working, on a machine with other work
OWN = ("generator", "harness", "tests", "conftest", "__main__")

# No shrinking: that a test fails is enough, the smallest example is not needed.
hypothesis.settings.register_profile(
    "mutants",
    deadline=None,
    derandomize=True,
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)


@dataclass(frozen=True)
class Baseline:
    """What the tests of a module do while it has no fault: who runs which line, and how long each takes."""

    tests_of_line: dict[int, list[str]]
    seconds: dict[str, float]
    imports: list[str]

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that run a mutant's line, the quickest first. Lines that run at import are everybody's.

        A line in the middle of a statement may do nothing of its own; then those that run the statement.
        """
        found = self.tests_of_line.get(mutant.line) or self.tests_of_line.get(mutant.statement, [])
        return sorted(found, key=lambda test: (self.seconds[test], test))

    def limit(self, mutant: Mutant) -> int:
        """Return after how many seconds of a processor these tests have hung: watching them made them slower."""
        return math.ceil(10 + 2 * sum(self.seconds[test] for test in self.tests(mutant)))


@dataclass(frozen=True)
class Trial:
    """A running child."""

    pid: int
    home: Path
    began: float
    limit: float

    def result(self) -> str | None:
        """Return `survived`, `killed`, `hung` or `not run`; None while the tests still run."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0 and time.monotonic() - self.began < self.limit:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        if pid == 0:
            os.waitpid(self.pid, 0)
        shutil.rmtree(self.home, ignore_errors=True)
        code = os.waitstatus_to_exitcode(status)
        if pid == 0 or code in (-signal.SIGXCPU, -signal.SIGKILL):
            return "hung"
        return {0: "survived", int(pytest.ExitCode.NO_TESTS_COLLECTED): "not run"}.get(code, "killed")


def source_path(module: str) -> Path:
    """Return the file of a module."""
    return ROOT.joinpath(*module.split(".")).with_suffix(".py")


def try_mutant(module: str, mutant: Mutant, baseline: Baseline) -> Trial:
    """Begin the tests that run the mutant's line, in a child where `module` is the mutant."""
    tests = baseline.tests(mutant)
    home = Path(tempfile.mkdtemp(prefix="mutants-"))

    most = baseline.limit(mutant)

    def body() -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
        sys.meta_path.insert(0, _Finder(module, mutant.tree))
        return _pytest(home, ["-x", *tests])

    return Trial(_forked(home, body), home, time.monotonic(), WAITING * most)


def take_baseline(module: str, files: Sequence[str], limit: float = 600) -> Baseline:
    """Run the tests of a module as it stands. Raises RuntimeError where they fail."""
    home = Path(tempfile.mkdtemp(prefix="mutants-"))
    seen = home / "seen.json"

    def body() -> int:
        known = set(sys.modules)
        watch = _Watch(str(source_path(module)))
        code = _pytest(home, [f"tests/{file}.py" for file in files], [watch])
        imports = [name for name in sys.modules if name not in known and name.partition(".")[0] not in OWN]
        lines = {line: sorted(tests or watch.seconds) for line, tests in watch.lines.items()}
        seen.write_text(json.dumps([lines, watch.seconds, imports]))
        return code

    trial = Trial(_forked(home, body), home, time.monotonic(), limit)
    while os.waitid(os.P_PID, trial.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(0.05)
        if time.monotonic() - trial.began > limit:
            break
    text, said = (path.read_text() if path.exists() else "" for path in (seen, home / "said"))
    if trial.result() != "survived" or not text:
        raise RuntimeError(f"the tests of {module} fail without any fault:\n{said[-3000:]}")
    lines, seconds, imports = json.loads(text)
    return Baseline({int(line): tests for line, tests in lines.items()}, seconds, imports)


def warm_up(names: Sequence[str]) -> None:
    """Import modules from elsewhere, so that later children need not."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _forked(home: Path, body: Callable[[], int]) -> int:
    """Run `body` in a child of its own process group; return its process id."""
    pid = os.fork()
    if pid:
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        return pid
    code = 70
    try:
        os.setpgid(0, 0)
        with (home / "said").open("w") as said, Path(os.devnull).open() as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        code = body()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _pytest(home: Path, arguments: list[str], plugins: Sequence[object] = ()) -> int:
    os.chdir(ROOT)
    options = ["-q", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning", f"--basetemp={home / 'tmp'}"]
    return int(pytest.main([*options, *arguments], [_Quick(), *plugins]))


class _Quick:
    """Loads the profile without shrinking after the house's own (tests/conftest.py)."""

    def pytest_collection_finish(self) -> None:
        hypothesis.settings.load_profile("mutants")


class _Watch:
    """Notes which test runs which line of one file. Lines that run outside any test have no tests by name."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines: dict[int, set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = {}
        self.test: str | None = None
        self.at_import: set[int] = set()

    def trace(self, frame: FrameType, _event: str, _arg: object) -> Any:
        """Follow only the frames of the file."""
        if frame.f_code.co_filename != self.path:
            return None
        return self._line

    def _line(self, frame: FrameType, _event: str, _arg: object) -> Any:
        if self.test is None or frame.f_code.co_name == "<module>":
            self.at_import.add(frame.f_lineno)
        else:
            self.lines[frame.f_lineno].add(self.test)
        return self._line

    def pytest_collection(self) -> None:
        sys.settrace(self.trace)
        threading.settrace(self.trace)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Run one test under watch."""
        self.test, began = item.nodeid, time.process_time()
        sys.settrace(self.trace)
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() - began
            self.test = None

    def pytest_sessionfinish(self) -> None:
        sys.settrace(None)
        for line in self.at_import:
            self.lines[line] = set(self.seconds)


class _Finder(importlib.abc.MetaPathFinder):
    """Answers for one module with its mutant."""

    def __init__(self, module: str, tree: ast.Module) -> None:
        self.module, self.tree = module, tree

    def find_spec(self, name: str, _path: object, _target: ModuleType | None = None) -> Any:
        if name != self.module:
            return None
        file = str(source_path(name))
        return importlib.machinery.ModuleSpec(name, _Loader(name, file, self.tree), origin=file)


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module from a tree instead of its file's text."""

    def __init__(self, name: str, file: str, tree: ast.Module) -> None:
        super().__init__(name, file)
        self.tree = tree

    def get_code(self, _name: str) -> CodeType:
        return compile(self.tree, self.path, "exec", dont_inherit=True)
