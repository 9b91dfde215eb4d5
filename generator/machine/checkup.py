"""What the program needs of this machine: Python, packages, the browser's Parquet reader, room on the disk.

See contract: stages, "Doctor".
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from generator.schema.checkup import Finding, Looked
from generator.schema.places import own_folder

PROGRAM = "aibiasbench"
PYTHON = (3, 11)
READER = "static/vendor/parquet.js"
ROOM = 500_000_000  # bytes: a site and the one that takes its place
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*(?:>=\s*([0-9.]+))?")


def findings(looked: Looked) -> Iterator[Finding]:
    """Yield what was found of Python, packages, the built file, and the disk."""
    yield python_finding(tuple(sys.version_info[:3]))
    yield packages_finding(metadata.requires(PROGRAM) or [])
    yield reader_finding(own_folder("site_templates") / READER)
    yield from (disk_finding(what, place) for what, place in places(looked))


def python_finding(version: tuple[int, ...]) -> Finding:
    """Say whether a version of Python is new enough."""
    needed = ".".join(map(str, PYTHON))
    seen = ".".join(map(str, version))
    return Finding("python", version >= PYTHON, seen, f"install Python {needed} or newer")


def packages_finding(requirements: list[str]) -> Finding:
    """Say which of the packages that the program requires are missing or too old; extras are not needed."""
    wanted = [found for line in requirements if "extra ==" not in line and (found := _REQUIREMENT.match(line))]
    lacking = [fault for match in wanted if (fault := _package_fault(match[1], match[2]))]
    do = f"pip install --upgrade {PROGRAM}"
    return Finding("packages", not lacking, "; ".join(lacking) or f"all {len(wanted)} are installed", do)


def _package_fault(name: str, least: str | None) -> str | None:
    try:
        there = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"{name} is missing"
    return f"{name} {there} is older than {least}" if least and _numbers(there) < _numbers(least) else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:4])


def reader_finding(path: Path) -> Finding:
    """Say whether the Parquet reader of the explorer was built: a wheel brings it, a clone makes it."""
    return Finding(
        "browser modules", path.is_file(), "built" if path.is_file() else "parquet.js is not built", "make assets"
    )


def places(looked: Looked) -> list[tuple[str, Path]]:
    """Return the folders that are written to, each with its name: the site's, and the cache beside the content."""
    return [("disk of the site", looked.out), ("disk of the cache", looked.content.parent / ".cache")]


def disk_finding(what: str, place: Path) -> Finding:
    """Say whether there is room where a folder lies or will lie."""
    there = next(folder for folder in (place.absolute(), *place.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(there).free
    seen = f"{free / 1e9:,.1f} GB free"
    return Finding(what, free >= ROOM, seen, f"make room: {ROOM / 1e9:g} GB are needed at least")
