"""Whether two folders hold the same files with the same bytes: `python -m tests.compare_trees OLD NEW`.

Meant for a change that only moves code: publish before it, publish after it, compare. `publication.json` names the hash
of the generator's own source, which every change of the source changes; there, and only there, `sources` is left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def files_below(folder: Path) -> dict[str, Path]:
    """Every file below a folder, by its path from there."""
    return {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file() or p.is_symlink()}


def without_sources(value: Any) -> Any:
    """The same JSON value without any member `sources`."""
    if isinstance(value, dict):
        return {k: without_sources(v) for k, v in value.items() if k != "sources"}
    return [without_sources(v) for v in value] if isinstance(value, list) else value


def same(name: str, old: Path, new: Path) -> bool:
    """Whether two files are equal: byte for byte, save the hash of the source in `publication.json`."""
    a, b = old.read_bytes(), new.read_bytes()
    if name == "publication.json" and a != b:
        return without_sources(json.loads(a)) == without_sources(json.loads(b))
    return a == b


def differences(old: Path, new: Path) -> list[str]:
    """One line for each file that only one of two folders holds, or that differs between them."""
    before, after = files_below(old), files_below(new)
    gone = [f"only in {old}: {name}" for name in before.keys() - after.keys()]
    come = [f"only in {new}: {name}" for name in after.keys() - before.keys()]
    changed = [f"differs: {n}" for n in before.keys() & after.keys() if not same(n, before[n], after[n])]
    return sorted([*gone, *come, *changed])


def main(old: str, new: str) -> int:
    """Print what differs, and return 1 if anything does."""
    found = differences(Path(old), Path(new))
    for line in found[:50]:
        print(line)
    print(f"{len(files_below(Path(old))):,} and {len(files_below(Path(new))):,} files, {len(found):,} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
