"""Drawings kept from one publish to the next, by the hash of all that they are made from.

A file begins with the hash of the rest; one that was damaged is made again.

See contract: publication, "Figures".
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from generator.schema.canonical import sha256_hex


def remembered(cache: Path | None, key: str, ending: str, make: Callable[[], bytes]) -> bytes:
    """Return what was made under a key before, or make it: a drawing library is loaded only for what is new.

    `cache` is a folder, None to keep nothing. `ending` is that of the kept file's name.
    """
    if cache is None:
        return make()
    file = cache / f"{sha256_hex(key)}{ending}"
    known = _whole(file)
    if known is None:
        known = make()
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}.part")  # two publishes may draw the same at once
        part.write_bytes(f"{_digest(known)}\n".encode() + known)
        part.replace(file)
    return known


def versioned(key: str) -> str:
    """Return a key that another version of the drawing library does not have."""
    return f"{_version()}|{key}"


@functools.cache
def _version() -> str:
    return metadata.version("vl-convert-python")


def _whole(file: Path) -> bytes | None:
    try:
        digest, _, data = file.read_bytes().partition(b"\n")
    except OSError:
        return None
    return data if digest == _digest(data).encode() else None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
