"""What earlier runs of the bench came to: a line each in `history.jsonl`, and what has become slower since.

Only ratios are kept, each of two figures of one run: a machine that is slow today is slow in both. Two lines are
compared where they are of the same machine.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HISTORY = Path(__file__).with_name("history.jsonl")
SLOWER = 1.1  # times as much as before: less than that is noise
# Of each ratio: its name, what is measured, what by. Hugo is there in its fastest mode alone.
HUGO = "Hugo 0.168, files, file a page"
RATIOS = (
    ("receipt pages / Hugo", "ours, 2 processes", HUGO),
    ("publish / Hugo", "publish, everything", HUGO),
    ("publish, pictures warm / Hugo", "publish, scores cold, pictures warm", HUGO),
    ("verify / publish", "verify --strict", "publish, everything"),
    ("one shard changed / publish", "publish, one shard changed", "publish, everything"),
)


@dataclass(frozen=True)
class Record:
    """One run of the bench.

    machine: what it ran on. commit: of the program. ratios: by name, of processor seconds, smaller is better.
    """

    date: str
    machine: str
    commit: str
    ratios: Mapping[str, float]


def commit(root: Path) -> str:
    """Return the commit of a checkout, with a plus where files were changed since; empty where it is none."""
    told = subprocess.run(["git", "describe", "--always", "--dirty=+"], cwd=root, capture_output=True, text=True)
    return told.stdout.strip()


def ratios(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the ratios that a table's lines have both figures for, of the largest size each."""
    seconds = {row["what"]: float(row["cpu"]) for row in sorted(rows, key=lambda row: int(row["rows"]))}
    return {
        name: round(seconds[what] / seconds[by], 3) for name, what, by in RATIOS if what in seconds and seconds.get(by)
    }


def read_history(file: Path = HISTORY) -> list[Record]:
    """Return every run that was kept, oldest first; none where there is no file yet."""
    lines = file.read_text().splitlines() if file.is_file() else []
    return [Record(**json.loads(line)) for line in lines]


def append(record: Record, file: Path = HISTORY) -> None:
    """Keep a run."""
    with file.open("a") as out:
        out.write(json.dumps(asdict(record)) + "\n")


def slower(record: Record, before: Sequence[Record]) -> list[str]:
    """Return a line for each ratio that is worse than the last one of the same machine."""
    found = []
    for name, ratio in record.ratios.items():
        known = [old for old in before if old.machine == record.machine and name in old.ratios]
        if known and ratio > SLOWER * known[-1].ratios[name]:
            found.append(f"slower: {name} {ratio:.2f}, was {known[-1].ratios[name]:.2f} at {known[-1].commit}")
    return found
