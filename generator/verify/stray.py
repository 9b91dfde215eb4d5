"""Names what no publication holds, whatever its hashes say: links, empty folders, folders behind a dot, devices.

A link shows other bytes tomorrow, and a web server or a copy follows it out of the tree. What lies behind a dot, or in
a folder where a page belongs, is served and shown by no list.

See contract: publication, "Verify".
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from generator.machine.walk import TreeEntry, entries
from generator.verify.findings import Findings

_WRONG = {
    "empty": ("an empty folder", "no folder"),
    "deep": ("a folder in many others", "no folder so deep"),
    "other": ("a pipe, socket or device", "a file"),
}


def check_tree(root: Path, findings: Findings) -> None:
    """Find everything below a folder that is neither a file nor a folder with something in it."""
    behind: dict[str, int] = {}
    for entry in entries(root):
        hidden = _dot_folder(entry)
        if hidden is not None:
            behind[hidden] = behind.get(hidden, 0) + (entry.kind != "folder")
        elif entry.kind == "link":
            findings.add(entry.name, "kind", f"a symbolic link to {_target(root / entry.name)}", "a file or folder")
        elif entry.kind in _WRONG:
            findings.add(entry.name, "kind", *_WRONG[entry.kind])
        elif entry.kind == "folder" and entry.name.endswith(".html"):
            findings.add(entry.name, "kind", "a folder", "a page")
    for name, count in behind.items():
        findings.add(name, "kind", f"a folder behind a dot, {count:,} names in it", "no such folder")


def _dot_folder(entry: TreeEntry) -> str | None:
    """Return the uppermost folder behind a dot that an entry is or lies in."""
    parts = PurePosixPath(entry.name).parts
    folders = parts if entry.kind in ("folder", "empty", "deep") else parts[:-1]
    for place, part in enumerate(folders):
        if part.startswith("."):
            return "/".join(parts[: place + 1])
    return None


def _target(path: Path) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - as it is written, not as Path tidies it
    except OSError:
        return "somewhere"
