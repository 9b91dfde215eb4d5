"""What lies below a folder: files, folders, links and the rest. No link is followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

DEEPEST = 32  # folders; a publication has fewer than ten


@dataclass(frozen=True)
class TreeEntry:
    """One name below a folder. `kind`: "empty" is a folder without anything, "deep" one too deep to look into."""

    name: str
    kind: Literal["file", "folder", "empty", "deep", "link", "other"]


def entries(root: Path) -> Iterator[TreeEntry]:
    """Yield everything below a folder by its path there; raises OSError where a folder cannot be read.

    No link is followed and nothing is opened. The walk keeps its own list of folders to come, so that no depth ends it
    in a RecursionError.
    """
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(f"{root}/{folder}") as found:
            listed = sorted(found, key=lambda entry: entry.name)
        if folder:
            yield TreeEntry(folder, "folder" if listed else "empty")
        for entry in listed:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink():
                yield TreeEntry(name, "link")
            elif entry.is_file(follow_symlinks=False):
                yield TreeEntry(name, "file")
            elif not entry.is_dir(follow_symlinks=False):
                yield TreeEntry(name, "other")
            elif name.count("/") >= DEEPEST:
                yield TreeEntry(name, "deep")
            else:
                waiting.append(name)


def file_names(root: Path) -> Iterator[str]:
    """Yield the path of every file below a folder."""
    return (entry.name for entry in entries(root) if entry.kind == "file")
