"""The table of dependencies: every package of pyproject.toml, with the license that the package states."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError

import pytest

from tests.dependencies import ROOT, Dependency, declared, license_faults, main, name_faults, table

ROWS = table((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


def row(name: str, license_: str = "MIT") -> Dependency:
    return Dependency(name, "why", license_, "2026-01")


class TestTable:
    def test_it_holds(self, capsys):
        assert main() == 0, capsys.readouterr().out

    def test_its_names_are_those_of_pyproject(self):
        pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        assert {r.name for r in ROWS} == declared(pyproject)

    def test_only_its_own_section_is_read(self):
        text = "\n## Dependencies\n| `a` | why | MIT | 2026-01 |\n## Next\n| `b` | why | MIT | 2026-01 |\n"
        assert table(text) == (Dependency("a", "why", "MIT", "2026-01"),)
        with pytest.raises(ValueError, match="no heading"):
            table("# Contributing\n")


class TestFaults:
    def test_a_name_that_is_missing_too_many_or_twice(self):
        assert name_faults((row("b"), row("c"), row("c")), frozenset({"a", "c"})) == [
            "a: in pyproject.toml, not in the table",
            "b: in the table, not in pyproject.toml",
            "c: twice in the table",
        ]

    def test_extras_and_versions_are_no_part_of_a_name(self):
        project = {"dependencies": ["a[x]>=1; python_version < '3.14'"], "optional-dependencies": {"t": ["b-c.d"]}}
        assert declared({"project": project}) == {"a", "b-c.d"}

    @pytest.mark.parametrize(
        ("license_", "said", "faults"),
        [
            ("MIT", {"MIT"}, []),
            ("MIT", {"Apache-2.0"}, ["a: the table says MIT, the package Apache-2.0"]),
            ("BSD-3-Clause", {"BSD"}, []),
            ("MIT", {"BSD"}, ["a: the table says MIT, the package BSD"]),
            ("MIT", set(), []),
        ],
    )
    def test_a_license_that_the_package_does_not_state(self, license_, said, faults):
        assert license_faults((row("a", license_),), lambda _: frozenset(said)) == faults

    def test_a_package_that_is_not_installed_says_nothing(self):
        def absent(name: str) -> frozenset[str]:
            raise PackageNotFoundError(name)

        assert license_faults((row("a"),), absent) == []

    def test_an_installed_package_with_another_license_is_found(self):
        assert license_faults((row("click", "MIT"),)) == ["click: the table says MIT, the package BSD-3-Clause"]
