"""Files that were fetched before, kept by their hash: one that is still there and still whole is not fetched again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from generator.schema.canonical import sha256_hex


def default_cache() -> Path:
    """Return the folder for kept files: `$AIBIASBENCH_CACHE`, else `aibiasbench` in the user's cache folder."""
    if own := os.environ.get("AIBIASBENCH_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "aibiasbench"


def read_kept(cache: Path, digest: str) -> bytes | None:
    """Return the file of a hash; None when it is not kept, or is no longer what it was."""
    try:
        data = _place(cache, digest).read_bytes()
    except OSError:
        return None
    return data if sha256_hex(data) == digest else None


def write_kept(cache: Path, digest: str, data: bytes) -> None:
    """Keep a file; on a disk that is full or may not be written to it is simply not kept."""
    place = _place(cache, digest)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as part:
            part.write(data)
        Path(part.name).replace(place)
    except OSError:
        return


def _place(cache: Path, digest: str) -> Path:
    return cache / digest[:2] / digest
