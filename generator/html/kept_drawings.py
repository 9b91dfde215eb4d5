"""Drawings kept from one publish to the next, by the hash of all that they are made from.

See contract: publication, "Figures".
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from generator.machine.kept_files import kept_bytes
from generator.schema.canonical import sha256_hex


def remembered(cache: Path | None, key: str, ending: str, make: Callable[[], bytes]) -> bytes:
    """Return what was made under a key before, or make it: a drawing library is loaded only for what is new.

    `cache` is a folder, None to keep nothing. `ending` is that of the kept file's name.
    """
    if cache is None:
        return make()
    name = sha256_hex(key)
    return kept_bytes(cache / f"{name}{ending}", name, make)


def versioned(key: str) -> str:
    """Return a key that another version of the drawing library does not have."""
    return f"{_version()}|{key}"


@functools.cache
def _version() -> str:
    return metadata.version("vl-convert-python")
