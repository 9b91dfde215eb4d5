"""Holds files against what this program makes anew, byte for byte, and names the place where they differ.

See contract: publication, "Verify".
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.machine.walk import file_names
from generator.schema.canonical import sha256_hex
from generator.verify.findings import ABSENT, Findings, shown

_MOST = 20  # places of one file; a file that differs in more was not made by this program
_BEFORE, _WINDOW = 40, 180
_MORE = 1 << 20  # bytes that are read of a file beyond what belongs there
_HASHED = re.compile(r".+\.([0-9a-f]{10})\.[A-Za-z0-9]+")
Difference = tuple[str, str, str]


@dataclass
class Held:
    """The files of a site that were made anew so far: `seen` by name."""

    dist: Path
    findings: Findings
    seen: set[str] = field(default_factory=set)

    def hold(self, name: str, data: bytes) -> None:
        """Hold one file against its bytes made anew; `name` is its path below the site."""
        self.seen.add(name)
        self.findings.checked["files made anew"] += 1
        try:
            # A pipe or a link to a device must not hold it up: it never waits, and reads little more than it wants.
            with open(f"{self.dist}/{name}", "rb", opener=_at_once) as file:
                published = file.read(4 * len(data) + _MORE)
        except OSError:
            self.findings.add(name, "file", ABSENT, f"{len(data)} bytes")
            return
        for key, seen, right in differences(published, data) if published != data else ():
            self.findings.add(name, key, seen, right)

    def merge(self, other: Held) -> None:
        """Take over what was held of a part."""
        self.seen |= other.seen
        self.findings.merge(other.findings)

    def hold_rest(self, folder: str, *, beside: Collection[str] = ()) -> None:
        """Name the files below a folder that nothing makes; `beside` are folders that others look after.

        Links, devices and whatever lies behind a dot have been named by `check_tree`.
        """
        for name in file_names(self.dist / folder):
            whole = f"{folder}/{name}".lstrip("/")
            folders = {whole[:place] for place, letter in enumerate(whole) if letter == "/"}
            hidden = any(part.startswith(".") for part in whole.split("/")[:-1])
            if whole not in self.seen and not hidden and folders.isdisjoint(beside):
                size = (self.dist / whole).lstat().st_size
                self.findings.add(whole, "file", f"{size} bytes", "a file that nothing makes")


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def differences(published: bytes, right: bytes) -> Iterator[Difference]:
    """Yield (place, what is there, what belongs there): members of JSON, lines of a text, else the first byte."""
    if not (_is_text(published) and _is_text(right)):
        yield _first_byte(published, right)
        return
    if members := list(itertools.islice(_members(published, right), _MOST)):
        yield from members
        return
    a, b = published.decode().split("\n"), right.decode().split("\n")
    least = min(len(a), len(b))
    start = next((i for i in range(least) if a[i] != b[i]), least)
    end = next((i for i in range(least - start) if a[-1 - i] != b[-1 - i]), least - start)
    old, new = a[start : len(a) - end], b[start : len(b) - end]
    if len(old) != len(new):
        yield f"line {start + 1}", *_windows("\n".join(old), "\n".join(new))
        return
    pairs = [(start + 1 + i, *pair) for i, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
    for line, seen, wanted in pairs[:_MOST]:
        yield f"line {line}", *_windows(seen, wanted)
    if len(pairs) > _MOST:
        yield "lines", f"{len(pairs)} lines that differ", f"{len(b)} lines"


def _members(published: bytes, right: bytes) -> Iterator[Difference]:
    """Yield every member in which two JSON texts differ; nothing where either is none, or only its form differs."""
    if right[:1] not in b"{[":
        return
    try:
        seen, wanted = json.loads(published), json.loads(right)
    except (ValueError, RecursionError):
        return
    yield from _unequal("", seen, wanted)


def _unequal(key: str, a: Any, b: Any) -> Iterator[Difference]:
    if isinstance(a, dict) and isinstance(b, dict):
        for name in sorted(a.keys() | b.keys()):
            yield from _unequal(f"{key}.{name}".lstrip("."), a.get(name, ABSENT), b.get(name, ABSENT))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for place, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _unequal(f"{key}[{place}]", x, y)
    elif a != b:
        yield key, shown(a), shown(b)


def _is_text(data: bytes) -> bool:
    """Tell whether bytes are UTF-8 text; small counts in a binary file may look like it but for their zeros."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _windows(a: str, b: str) -> tuple[str, str]:
    """Return the part of two texts around their first difference, each in one line."""
    start = max(0, _parting(a, b) - _BEFORE)
    seen, right = (t[start : start + _WINDOW].strip().replace("\n", " ⏎ ") or "nothing" for t in (a, b))
    return seen, right


def _first_byte(a: bytes, b: bytes) -> Difference:
    place = _parting(a, b)
    seen, right = (f"{t[place]:#04x}" if place < len(t) else "the end" for t in (a, b))
    return f"byte {place}", f"{seen} ({len(a)} bytes)", f"{right} ({len(b)} bytes)"


def _parting(a: str | bytes, b: str | bytes) -> int:
    """Return the first place at which two texts differ, or the end of the shorter."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def check_asset_names(dist: Path, findings: Findings) -> None:
    """Hold every asset against the hash in its own name, whichever release it is from."""
    for path in sorted(p for p in (dist / "assets").glob("*") if p.is_file()):
        findings.checked["asset hashes"] += 1
        found, digest = _HASHED.fullmatch(path.name), sha256_hex(path.read_bytes())[:10]
        if (found[1] if found else ABSENT) != digest:
            findings.add(f"assets/{path.name}", "SHA-256 in its name", found[1] if found else ABSENT, digest)
