"""The project's own files are found in a checkout, and a wheel holds every one that a command reads."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from generator.schema import places
from generator.schema.places import own_folder
from harness.bank.reader import BANK_FOLDER, bank_folder

ROOT = Path(__file__).parent.parent
PARTS = ("generator", "harness", "site_templates", "content/bank", "content/pages")


class TestOwnFolder:
    def test_in_a_checkout_it_is_beside_the_packages(self):
        assert [own_folder(name) for name in ("content", "site_templates")] == [
            ROOT / "content",
            ROOT / "site_templates",
        ]

    def test_where_it_was_installed_it_is_inside(self, tmp_path, monkeypatch):
        monkeypatch.setattr(places, "_GENERATOR", tmp_path / "generator")
        (tmp_path / "generator" / "content").mkdir(parents=True)
        assert own_folder("content") == tmp_path / "generator" / "content"


class TestBankFolder:
    def test_that_of_the_working_folder_comes_first(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert bank_folder() == ROOT / "content" / "bank"
        BANK_FOLDER.mkdir(parents=True)
        assert bank_folder() == BANK_FOLDER


def inside(name: str) -> str:
    """Where a file of the checkout stands in the wheel."""
    return name if name.startswith(("generator/", "harness/")) else f"generator/{name}"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in a wheel built from a copy, so that no build/ is left in the checkout."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for part in PARTS:
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "content" / "runs" / "a-run").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", "content/site.toml"):
        shutil.copy(ROOT / name, copy / name)
    (copy / "content" / "runs" / "a-run" / "run.toml").touch()
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*command, "-w", str(out), str(copy)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(out.glob("*.whl"))) as wheel:
        return set(wheel.namelist())


class TestWheel:
    def test_it_holds_every_file_that_a_command_reads(self, names):
        files = [p for part in PARTS for p in (ROOT / part).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
        wanted = {inside(p.relative_to(ROOT).as_posix()) for p in files} | {"generator/content/site.toml"}
        assert sorted(wanted - names) == []

    def test_it_holds_no_run(self, names):
        assert [name for name in names if "content/runs/" in name or "a-run" in name] == []
