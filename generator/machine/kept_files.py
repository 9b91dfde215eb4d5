"""Files kept from one publish to the next: each is known by the hash of all that it is made from.

A file begins with that key and with the hash of the rest, so that one that is absent, damaged or of other inputs is
made again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from generator.schema.canonical import sha256_hex


def kept_bytes(file: Path, key: str, make: Callable[[], bytes]) -> bytes:
    """Return what a file holds under a key, or make it and keep it there.

    `key` is a hash, a single line.
    """
    known = _whole(file, key)
    if known is None:
        known = make()
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}.part")  # two publishes may make the same at once
        part.write_bytes(f"{key}\n{sha256_hex(known)}\n".encode() + known)
        part.replace(file)
    return known


def _whole(file: Path, key: str) -> bytes | None:
    try:
        made_from, digest, data = file.read_bytes().split(b"\n", 2)
    except (OSError, ValueError):
        return None
    return data if made_from == key.encode() and digest == sha256_hex(data).encode() else None
