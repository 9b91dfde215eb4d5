"""Static hosts: what each can take, which mode fits it, and whether there is room to build.

See contract: publication, "Hosts and modes".
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from generator.edition.edition import Mode
from generator.schema.errors import InputError

MODES: tuple[Mode, ...] = ("row", "folded", "files")
MB, GB = 1_000_000, 1_000_000_000


@dataclass(frozen=True)
class Host:
    """A host's limits and rules; a limit is None where the host names none.

    `upload`: the command that sends the folder `{out}`; words in capitals are the operator's. `strips_html`: serves
    `name.html` as `name` and `folder/index.html` as `folder/`, and redirects to these. `reads_headers`, `redirects`:
    whether it reads the files `_headers` and `_redirects`, and how many fixed rules of the latter it takes (0: reads
    none). `advice`: what an operator has to know beside the numbers. `page`: its page below docs/hosts/.
    """

    name: str
    files: int | None = None
    bytes: int | None = None
    file_bytes: int | None = None
    advice: str = ""
    upload: str = ""
    strips_html: bool = False
    reads_headers: bool = False
    redirects: int = 0
    page: str = "README.md"


# Limits and rules as the hosts' documentation gave them on 2026-12-01.
HOSTS = {
    host.name: host
    for host in (
        Host("plain"),
        Host(
            "github-pages",
            bytes=1 * GB,
            file_bytes=100 * MB,
            advice="a deployment may take ten minutes at most",
            upload="npx gh-pages --dist {out} --dotfiles --branch gh-pages",
            page="github-pages.md",
        ),
        Host(
            "cloudflare-pages",
            files=20_000,
            file_bytes=25 * 1024 * 1024,
            advice="paid plans take 100,000 files; addresses lose their .html, and links follow",
            upload="npx wrangler pages deploy {out} --project-name PROJECT",
            strips_html=True,
            reads_headers=True,
            redirects=2_000,
            page="cloudflare-pages.md",
        ),
        Host(
            "netlify",
            advice="no cap on files is published; the first upload of many files takes a while",
            upload="npx netlify-cli deploy --prod --no-build --dir {out}",
            reads_headers=True,
            redirects=10_000,
            page="netlify.md",
        ),
        Host(
            "s3",
            advice="upload with the right Content-Type; links name index.html, so no rewriting is needed",
            upload="aws s3 sync {out} s3://BUCKET --delete",
            page="s3-cloudfront.md",
        ),
        Host(
            "nginx",
            advice="_headers is not read: set the headers in the server's configuration",
            upload="rsync -a --delete --delay-updates {out}/ USER@SERVER:/var/www/SITE/",
            page="nginx.md",
        ),
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


def next_step(host: Host, out: Path, size: Size, largest: int) -> list[str]:
    """Return the lines that end a publish: the site's figures beside the host's limits, then how to upload it."""

    def beside(figure: str, limit: int | None, told: Callable[[int], str]) -> str:
        return f"{figure} (no limit known)" if limit is None else f"{figure} (limit {told(limit)})"

    def megabytes(number: int) -> str:
        return f"{number / MB:,.1f} MB"

    figures = (
        beside(f"{size.files:,} files", host.files, "{:,}".format),
        beside(megabytes(size.bytes), host.bytes, megabytes),
        beside(f"largest file {megabytes(largest)}", host.file_bytes, megabytes),
    )
    lines = [f"{host.name}: {', '.join(figures)}"]
    lines += [f"Note: {host.advice}"] if host.advice else []
    if not host.upload:
        return [*lines, f"Next: upload all of {out} to your host (docs/hosts/{host.page})"]
    return [*lines, f"Next: {host.upload.format(out=shlex.quote(str(out)))}   (docs/hosts/{host.page})"]


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
