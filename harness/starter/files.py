"""The files of a new benchmark: those of `benchmark/` beside this module, with its own name, date and hash filled in.

Reads the files that come with the program; writes nothing.

See contract: stages, "A new benchmark".
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from generator.schema.plain_text import control_character
from harness.bank.reader import read_bank_folder

TEMPLATES = Path(__file__).with_name("benchmark")
# Files that would mean something to git or to a host where this project keeps them.
_ELSEWHERE = {"gitignore": ".gitignore", "workflows/publish.yml": ".github/workflows/publish.yml"}
LONGEST_NAME = 80
_MARK = re.compile(r"@[A-Z0-9_]+@")


@dataclass(frozen=True)
class Starter:
    """What a new benchmark is made with.

    name: its title. date: day of its first run, YYYY-MM-DD. requirement: the line by which pip installs this program.
    """

    name: str
    date: str
    requirement: str


def name_fault(name: str) -> str | None:
    """Say what is wrong with the name of a benchmark, or None."""
    if not name.strip() or len(name) > LONGEST_NAME:
        return f"name {name!r}: one to {LONGEST_NAME} characters"
    if found := control_character(name):
        return f"name {name!r}: control character U+{ord(found):04X}; leave it out"
    return None


def name_from(folder: str) -> str:
    """Return a title made from the name of a folder: `bias-bench` gives `Bias bench`."""
    words = " ".join(folder.replace("-", " ").replace("_", " ").split())
    return (words[:1].upper() + words[1:])[:LONGEST_NAME] or "Benchmark"


def starter_files(starter: Starter) -> dict[str, bytes]:
    """Return the files of a new benchmark: path below its folder, content."""
    bank = read_bank_folder(TEMPLATES / "content" / "bank")
    marks = {
        "@NAME@": starter.name,
        "@TITLE@": _toml(starter.name),
        "@PUBLISHER@": _toml(f"The maintainers of {starter.name}"),
        "@DATE@": _toml(starter.date),
        "@BANK_VERSION@": _toml(bank.version),
        "@BANK_SHA256@": _toml(bank.sha256),
        "@REQUIREMENT@": starter.requirement,
    }
    found = {}
    for path in sorted(TEMPLATES.rglob("*")):
        if path.is_file():
            name = path.relative_to(TEMPLATES).as_posix()
            found[_ELSEWHERE.get(name, name)] = _filled(path.read_text(encoding="utf-8"), marks).encode()
    return found


def _filled(text: str, marks: dict[str, str]) -> str:
    return _MARK.sub(lambda found: marks[found[0]], text)


def _toml(text: str) -> str:
    """Return a text as a basic string of TOML, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False)
