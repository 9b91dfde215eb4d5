"""`doctor`: each thing that may be missing is found, with what to type; no key's value is ever told."""

from __future__ import annotations

import json
import shutil
from collections import namedtuple
from importlib import metadata
from pathlib import Path

import pytest

from generator.machine import checkup as machine
from generator.machine.checkup import disk_finding, packages_finding, python_finding, reader_finding
from generator.publishing.hosts import HOSTS, Host
from generator.schema.checkup import Finding, Looked
from harness.commands.doctor import findings, lines
from harness.starter.files import Starter, starter_files
from tests.programs import invoke

SECRET = "sk-very-secret-value"
FREE = "{ prompt_per_million = 0, completion_per_million = 0 }"
LIVE = """\
kind = "live"
date = "2026-12-01"
repeats = 1
bank = {{ version = "{version}", sha256 = "{sha256}" }}
seeds = {{ run = 1, audit = 2 }}
caps = {{ run = 1.0 }}

[endpoints.router]
base_url = "https://router.example/v1"
key_env = "ROUTER_KEY"
header_env = {{ "x-team" = "ROUTER_TEAM" }}
params = ["max_tokens"]

[endpoints.unused]
base_url = "https://unused.example/v1"
key_env = "UNUSED_KEY"
params = ["max_tokens"]

[params]
max_tokens = 50

[[models]]
model = "alpha/one"
endpoint = "router"
api_model = "one"
prices = {prices}

[judges]
params = {{ max_tokens = 50 }}
primary = [
  {{ model = "beta/two", endpoint = "router", api_model = "two", prices = {prices} }},
  {{ model = "gamma/three", endpoint = "router", api_model = "three", prices = {prices} }},
]
tiebreak = {{ model = "delta/four", endpoint = "router", api_model = "four", prices = {prices} }}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A new benchmark, as `init` writes it."""
    for name, content in starter_files(Starter("Tried", "2026-12-01", "aibiasbench")).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def looked(folder: Path, **environment: str) -> dict[str, Finding]:
    """What is found in a benchmark, by what was looked at."""
    found = findings(Looked(folder / "content", folder / "dist", environment))
    return {finding.what: finding for finding in found}


def live_run(folder: Path) -> Path:
    """A second run of the benchmark, of real models."""
    first = (folder / "content/runs/first/run.toml").read_text()
    sha256, version = (first.split(f'{key} = "')[1].split('"')[0] for key in ("sha256", "version"))
    run = folder / "content/runs/second"
    run.mkdir()
    (run / "run.toml").write_text(LIVE.format(sha256=sha256, version=version, prices=FREE))
    return run


class TestWhole:
    def test_in_a_new_benchmark_nothing_is_missing(self, folder: Path) -> None:
        found = looked(folder)
        assert [finding for finding in found.values() if not finding.ok] == []
        assert set(found) == {
            "python", "packages", "browser modules", "disk of the site", "disk of the cache", "bank", "run first",
            "site.toml",
        }  # fmt: skip
        assert lines(list(found.values()))[-1] == "nothing is missing (8 looked at)"

    def test_the_command_ends_with_0_or_1_and_speaks_json(self, folder: Path) -> None:
        words = ("doctor", "--content", folder / "content", "--out", folder / "dist", "--json")
        done = invoke(*words)
        assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)
        (folder / "content/site.toml").unlink()
        done = invoke(*words)
        assert (done.returncode, json.loads(done.stdout)["ok"], done.stderr) == (1, False, "")

    def test_it_writes_nothing(self, folder: Path) -> None:
        before = sorted(folder.rglob("*"))
        looked(folder)
        assert sorted(folder.rglob("*")) == before


class TestKeys:
    def test_every_key_that_a_plan_uses_is_told_by_name(self, folder: Path) -> None:
        live_run(folder)
        found = [f for what, f in looked(folder).items() if what.startswith("run second, key ")]
        assert [(f.what, f.ok, f.seen, f.do) for f in found] == [
            (f"run second, key {name} of endpoint router", False, "not set", f"export {name}=...")
            for name in ("ROUTER_KEY", "ROUTER_TEAM")
        ]

    def test_no_value_is_told(self, folder: Path) -> None:
        live_run(folder)
        environment = {"ROUTER_KEY": SECRET, "ROUTER_TEAM": SECRET, "UNUSED_KEY": SECRET}
        found = list(findings(Looked(folder / "content", folder / "dist", environment)))
        assert [f for f in found if not f.ok] == []
        assert SECRET not in "\n".join(lines(found)) + repr(found)
        assert sum(f.seen == "set" for f in found) == 2

    def test_a_judged_run_needs_no_key(self, folder: Path) -> None:
        (live_run(folder) / "manifest.json").write_text("{}")
        found = looked(folder)
        assert found["run second"].seen == "live, 1 models, judged"
        assert [what for what in found if ", key " in what] == []


class TestContent:
    def test_a_bank_with_faults(self, folder: Path) -> None:
        path = folder / "content/bank/concepts/hobby.toml"
        path.write_text(path.read_text().replace("{group_np}", "someone"))
        found = looked(folder)["bank"]
        assert (found.ok, found.do) == (False, f"aibiasbench bank check --folder {folder / 'content/bank'}")
        assert found.seen.startswith("5 faults, the first: ")

    def test_a_run_that_pins_another_bank(self, folder: Path) -> None:
        path = folder / "content/bank/bank.toml"
        path.write_text(path.read_text().replace('"0.1.0"', '"0.2.0"'))
        found = looked(folder)["run first"]
        assert not found.ok
        assert "bank.version is '0.1.0', the working bank is '0.2.0'" in found.seen
        assert "aibiasbench bank hash" in found.do

    def test_no_run_at_all(self, folder: Path) -> None:
        shutil.rmtree(folder / "content/runs")
        assert looked(folder)["runs"].do.endswith("aibiasbench init DIR")

    def test_a_site_toml_with_faults(self, folder: Path) -> None:
        path = folder / "content/site.toml"
        path.write_text(path.read_text().replace('host = "github-pages"', 'host = "moon"'))
        found = looked(folder)["site.toml"]
        assert not found.ok
        assert "publish.host" in found.seen

    def test_a_site_that_its_host_would_refuse(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (folder / "dist").mkdir()
        (folder / "dist/index.html").write_text("x" * 2000)
        assert looked(folder)["host limits"].ok
        monkeypatch.setitem(HOSTS, "github-pages", Host("github-pages", bytes=1000))
        found = looked(folder)["host limits"]
        assert (found.ok, found.do.split(",")[0]) == (False, "aibiasbench publish --mode folded")


class TestMachine:
    @pytest.mark.parametrize(("version", "ok"), [((3, 10, 14), False), ((3, 11, 0), True), ((3, 14, 1), True)])
    def test_python(self, version: tuple[int, ...], ok: bool) -> None:
        assert python_finding(version).ok is ok

    def test_every_package_that_the_program_requires_is_there(self) -> None:
        assert packages_finding(metadata.requires("aibiasbench") or []).ok

    @pytest.mark.parametrize(
        ("line", "seen"),
        [
            ("no-such-package-of-ours>=1.0", "no-such-package-of-ours is missing"),
            ("click>=99.1", f"click {metadata.version('click')} is older than 99.1"),
            ('no-such-package-of-ours ; extra == "test"', "all 0 are installed"),
            ("pagefind[bin]>=0.1", "all 1 are installed"),
        ],
    )
    def test_a_package(self, line: str, seen: str) -> None:
        found = packages_finding([line])
        assert (found.seen, found.ok) == (seen, "all" in seen)

    def test_the_built_reader(self, tmp_path: Path) -> None:
        assert not reader_finding(tmp_path / "parquet.js").ok
        (tmp_path / "parquet.js").touch()
        assert reader_finding(tmp_path / "parquet.js").ok

    @pytest.mark.parametrize(("free", "ok"), [(499_999_999, False), (500_000_000, True)])
    def test_a_disk_is_looked_at_where_the_folder_will_lie(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, ok: bool
    ) -> None:
        usage = namedtuple("usage", "free")
        asked: list[Path] = []
        monkeypatch.setattr(machine.shutil, "disk_usage", lambda place: asked.append(place) or usage(free))
        assert disk_finding("disk", tmp_path / "a" / "b").ok is ok
        assert asked == [tmp_path]
