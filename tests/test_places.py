"""The project's own files are found in a checkout, and a wheel holds every one that a command reads."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import urllib.request
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from generator.schema import places
from generator.schema.places import own_folder
from harness.bank.reader import BANK_FOLDER, bank_folder

ROOT = Path(__file__).parent.parent
PARTS = ("generator", "harness", "site_templates", "content/bank", "content/pages", "docs/schemas", "docs/notebooks")


class TestOwnFolder:
    def test_in_a_checkout_it_is_beside_the_packages(self):
        names = ("content", "site_templates", "docs/schemas")
        assert [own_folder(name) for name in names] == [ROOT / name for name in names]

    def test_where_it_was_installed_it_is_inside(self, tmp_path, monkeypatch):
        monkeypatch.setattr(places, "_GENERATOR", tmp_path / "generator")
        (tmp_path / "generator" / "content").mkdir(parents=True)
        (tmp_path / "generator" / "schemas").mkdir()
        assert own_folder("content") == tmp_path / "generator" / "content"
        assert own_folder("docs/schemas") == tmp_path / "generator" / "schemas"


class TestBankFolder:
    def test_that_of_the_working_folder_comes_first(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert bank_folder() == ROOT / "content" / "bank"
        BANK_FOLDER.mkdir(parents=True)
        assert bank_folder() == BANK_FOLDER


def inside(name: str) -> str:
    """Where a file of the checkout stands in the wheel."""
    name = name.replace("generator/reading/", "aibiasbench/").replace("docs/", "")
    return name if name.startswith(("generator/", "harness/", "aibiasbench/")) else f"generator/{name}"


def build(copy: Path, out: Path, without: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Build a wheel from a copy, so that no build/ is left in the checkout."""
    for part in PARTS:
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", *without))
    (copy / "content" / "runs" / "a-run").mkdir(parents=True)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "content/site.toml"):
        shutil.copy(ROOT / name, copy / name)
    (copy / "content" / "runs" / "a-run" / "run.toml").touch()
    command = [sys.executable, "-m", "pip", "wheel", "-v", "--no-deps", "--no-build-isolation", "--no-index"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run([*command, "-w", str(out), str(copy)], capture_output=True, text=True, env=environment)


@dataclass(frozen=True)
class Wheel:
    """A wheel, and what building it said."""

    path: Path
    said: str

    @property
    def names(self) -> set[str]:
        """The names of the files in it."""
        with zipfile.ZipFile(self.path) as packed:
            return set(packed.namelist())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    out = tmp_path_factory.mktemp("wheel")
    done = build(tmp_path_factory.mktemp("source"), out)
    assert done.returncode == 0, done.stderr
    return Wheel(next(out.glob("*.whl")), done.stdout + done.stderr)


@pytest.fixture(scope="module")
def names(wheel: Wheel) -> set[str]:
    return wheel.names


class TestWheel:
    def test_it_holds_every_file_that_a_command_reads(self, names):
        files = [p for part in PARTS for p in (ROOT / part).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
        wanted = {inside(p.relative_to(ROOT).as_posix()) for p in files} | {"generator/content/site.toml"}
        assert sorted(wanted - names) == []

    def test_it_holds_no_run(self, names):
        assert [name for name in names if name.startswith("generator/content/runs/") or "a-run" in name] == []

    def test_nothing_in_it_was_warned_of(self, wheel):
        assert [line for line in wheel.said.splitlines() if "warning" in line.lower()] == []

    def test_type_checkers_find_the_marks(self, names):
        assert {"generator/py.typed", "harness/py.typed", "aibiasbench/py.typed"} <= names

    def test_what_is_installed_makes_and_publishes_the_demonstration(self, wheel, tmp_path):
        """From the wheel alone: nothing of the checkout is on the path."""
        with zipfile.ZipFile(wheel.path) as packed:
            packed.extractall(tmp_path / "site-packages")
        (tmp_path / "work").mkdir()
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site-packages")}
        command = [sys.executable, "-m", "generator", "demo", "--small", "--out", "site"]
        done = subprocess.run(command, cwd=tmp_path / "work", env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (tmp_path / "work" / "site" / "runs" / "demo-small" / "index.html").is_file()

    def test_without_the_parquet_reader_there_is_none_and_the_reason_is_said(self, tmp_path):
        (tmp_path / "source").mkdir()
        done = build(tmp_path / "source", tmp_path / "out", without=("vendor",))
        assert done.returncode != 0
        assert (
            "parquet.js is not built yet, and a wheel without it cannot publish; type: make assets"
            in done.stdout + done.stderr
        )
        assert list(tmp_path.glob("out/*.whl")) == []


LOADED = """\
import sys, pathlib, aibiasbench as abb
assert abb.__file__.startswith(sys.argv[1])
run = abb.load(next(pathlib.Path("dist/runs").glob("*/data")))
found = run.recompute("consistency", run.models[0], "overall")
assert found.agrees and found.published["estimate"] is not None
"""


@dataclass(frozen=True)
class Installed:
    """An environment of its own, with the packages of this one and without this project; `folder` is its place."""

    folder: Path
    environment: dict[str, str]

    @classmethod
    def make(cls, folder: Path, wheels: Path) -> Installed:
        """Make it: pip finds the wheel where an operator's finds the registry."""
        venv.create(folder, with_pip=False, symlinks=True)
        own, there = (sysconfig.get_path("purelib", vars={"base": str(base)}) for base in (folder, sys.prefix))
        # A path in a .pth adds the packages there, but not the .pth files by which the checkout is found.
        Path(own, "packages.pth").write_text(f"{there}\n")
        (folder / "bin" / "pip").write_text('#!/bin/sh\nexec "$(dirname "$0")/python" -m pip "$@"\n')
        (folder / "bin" / "pip").chmod(0o755)
        environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
        return cls(folder, environment | {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels),
            "PIP_NO_DEPS": "1", "PIP_IGNORE_INSTALLED": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        })  # fmt: skip

    def run(self, words: list[str], cwd: Path) -> str:
        """Run a command to its end, which must be 0; returns what it printed."""
        done = subprocess.run(words, cwd=cwd, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def served(self, words: list[str], cwd: Path) -> bytes:
        """Return the first page of a site that a command serves, and stop it as a person does."""
        with subprocess.Popen(
            [*words, "--port", "0"], cwd=cwd, env=self.environment, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            address = re.search(r"http://[^ ]+", server.stdout.readline())
            assert address is not None
            with urllib.request.urlopen(address[0]) as answer:
                page: bytes = answer.read()
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=30) == 0
        return page


class TestNewBenchmark:
    """What a new lab does: `init`, then its README from the first line to the last, with nothing but the wheel."""

    def test_every_command_of_its_readme_works_as_it_stands(self, wheel, tmp_path):
        installed = Installed.make(tmp_path / "env", wheel.path.parent)
        installed.run(["pip", "install", "-q", "aibiasbench"], tmp_path)
        installed.run(["aibiasbench", "init", "bench", "--name", "Level ground"], tmp_path)
        bench = tmp_path / "bench"
        readme = (bench / "README.md").read_text()
        blocks = re.findall(r"```sh\n(.*?)```", readme, flags=re.DOTALL)
        lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
        printed = {}
        for line in filter(None, lines):
            words = line.split()
            if words[1] == "serve":
                assert b"Level ground" in installed.served(words, bench)
            else:
                printed[line] = installed.run(words, bench)
        assert len(printed) >= 15
        assert "nothing is missing" in printed["aibiasbench doctor"]
        assert printed["aibiasbench verify dist"].startswith("0 mismatches.")
        installed.run(["python", "-c", LOADED, str(installed.folder)], bench)
        # The four programs that recompute need nothing of the project: here the one in Python.
        data = bench / "dist" / "runs" / "first" / "data"
        installed.run([sys.executable, "recompute.py"], data)
