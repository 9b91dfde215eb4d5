"""Static hosts: what each can take, which mode fits it, and whether there is room to build.

See contract: publication, "Hosts and modes".
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from generator.edition.edition import Mode
from generator.schema.errors import InputError

MODES: tuple[Mode, ...] = ("row", "folded", "files")
MB, GB = 1_000_000, 1_000_000_000


@dataclass(frozen=True)
class Host:
    """What a host takes: None where it names no limit. `advice` is what an operator has to know beside the numbers."""

    name: str
    files: int | None = None
    bytes: int | None = None
    file_bytes: int | None = None
    advice: str = ""


# Limits as the hosts' documentation gave them on 2026-11-30.
HOSTS = {
    host.name: host
    for host in (
        Host("plain"),
        Host("github-pages", bytes=1 * GB, file_bytes=100 * MB, advice="a deployment may take ten minutes at most"),
        Host(
            "cloudflare-pages",
            files=20_000,
            file_bytes=25 * 1024 * 1024,
            advice="paid plans take 100,000 files; addresses lose their .html, and links follow",
        ),
        Host("netlify", advice="no cap on files is published; the first upload of many files takes a while"),
        Host("s3", advice="upload with the right Content-Type; links name index.html, so no rewriting is needed"),
    )
}


@dataclass(frozen=True)
class Size:
    """Files and bytes, counted or estimated."""

    files: int
    bytes: int

    def __add__(self, other: Size) -> Size:
        return Size(self.files + other.files, self.bytes + other.bytes)

    def text(self) -> str:
        """Return `62,417 files, 712 MB`."""
        return f"{self.files:,} files, {self.bytes / MB:,.0f} MB"


def faults(host: Host, size: Size, largest: int = 0) -> list[str]:
    """Say which of a host's limits a site passes."""
    found = []
    if host.files is not None and size.files > host.files:
        found.append(f"{size.files:,} files, {host.name} takes {host.files:,}")
    if host.bytes is not None and size.bytes > host.bytes:
        found.append(f"{size.bytes / MB:,.0f} MB, {host.name} takes {host.bytes / MB:,.0f} MB")
    if host.file_bytes is not None and largest > host.file_bytes:
        found.append(f"a file of {largest / MB:,.1f} MB, {host.name} takes {host.file_bytes / MB:,.1f} MB")
    return found


def fitting_mode(host: Host, sizes: dict[Mode, Size], asked: Mode | None = None) -> Mode:
    """Return the mode to publish in: a page a row where it fits, else a page a set, else neither.

    Raises InputError, with every count, when the mode asked for (or none) fits.
    """
    order: tuple[Mode, ...] = (asked,) if asked else MODES
    for mode in order:
        if not faults(host, sizes[mode]):
            return mode
    lines = [f"--host {host.name}, {mode} mode: {'; '.join(faults(host, sizes[mode]))}" for mode in order]
    raise InputError(*lines, "publish fewer runs (each in a folder of its own with --out), or choose another --host")


def check_space(folder: Path, size: Size) -> None:
    """Raise InputError when the file system of a folder lacks the bytes or the inodes for a new tree."""
    facts = os.statvfs(folder)
    free = facts.f_bavail * facts.f_frsize
    need = int(size.bytes * 1.05) + size.files * facts.f_frsize // 2
    if free < need:
        raise InputError(
            f"{folder}: {free / MB:,.0f} MB free, about {need / MB:,.0f} MB needed for {size.files:,} files; "
            "make room, choose another --out, or publish with --mode folded or --mode files"
        )
    # A file system without a fixed number of inodes reports none at all.
    if facts.f_files and facts.f_favail < size.files:
        raise InputError(
            f"{folder}: {facts.f_favail:,} inodes free, {size.files:,} needed; choose another --out or --mode files"
        )
