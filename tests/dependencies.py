"""Holds the table of dependencies in CONTRIBUTING.md against pyproject.toml and against what each package says itself.

`make dependencies` prints what is wrong, one line each, and exits 1; nothing else, and it exits 0. It belongs to a
release: the column "Last release" is for a person to read, who sees there what is no longer maintained.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
_ROW = re.compile(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \| (\d{4}-\d{2}) \|$", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# What the classifiers of PyPI and the free text of older packages call a license.
_SPDX = {
    "MIT License": "MIT",
    "BSD License": "BSD",
    "Apache Software License": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "MIT": "MIT",
    "BSD-3-Clause": "BSD-3-Clause",
}


@dataclass(frozen=True)
class Dependency:
    """A row of the table."""

    name: str
    why: str
    license: str
    released: str


def table(text: str) -> tuple[Dependency, ...]:
    """Return the rows below the heading "Dependencies"."""
    _, found, section = text.partition("\n## Dependencies\n")
    if not found:
        raise ValueError('CONTRIBUTING.md: no heading "## Dependencies"')
    return tuple(Dependency(*(cell.strip() for cell in row)) for row in _ROW.findall(section.partition("\n## ")[0]))


def declared(pyproject: Mapping[str, object]) -> frozenset[str]:
    """Return the names of the packages that pyproject.toml asks for, those of its extras included."""
    project = pyproject["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    return frozenset(_NAME.match(line).group() for line in lines)


def name_faults(rows: tuple[Dependency, ...], names: frozenset[str]) -> list[str]:
    """Return one line for each package that stands in one of the two and not in the other, or twice."""
    listed = [row.name for row in rows]
    faults = [f"{name}: in pyproject.toml, not in the table" for name in sorted(names - set(listed))]
    faults += [f"{name}: in the table, not in pyproject.toml" for name in sorted(set(listed) - names)]
    return faults + [f"{name}: twice in the table" for name in sorted({n for n in listed if listed.count(n) > 1})]


def stated_licenses(name: str) -> frozenset[str]:
    """Return what an installed package says of its license; empty where it says nothing that is understood."""
    about = metadata(name)
    if expression := about["License-Expression"]:
        return frozenset({expression})
    own = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or [] if line.startswith("License ::")]
    found = frozenset(_SPDX[word] for word in own if word in _SPDX)
    return found or frozenset(_SPDX[word] for word in [(about["License"] or "").strip()] if word in _SPDX)


def license_faults(
    rows: tuple[Dependency, ...], stated: Callable[[str], frozenset[str]] = stated_licenses
) -> list[str]:
    """Return one line for each installed package that states another license than the table.

    A classifier says `BSD` for every one of its licenses, so it holds against each.
    """
    faults = []
    for row in rows:
        try:
            said = stated(row.name)
        except PackageNotFoundError:
            continue
        if said and row.license not in said and not ("BSD" in said and row.license.startswith("BSD-")):
            faults.append(f"{row.name}: the table says {row.license}, the package {', '.join(sorted(said))}")
    return faults


def main() -> int:
    """Print every fault; returns the exit code."""
    rows = table((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    faults = [*name_faults(rows, declared(pyproject)), *license_faults(rows)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
