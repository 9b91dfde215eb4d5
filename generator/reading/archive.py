"""A published run as one file: a tar archive compressed with zstd, whose bytes follow from the publication alone.

See contract: publication, "Archives".
"""

from __future__ import annotations

import atexit
import datetime as dt
import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pyarrow as pa

from generator.schema.errors import InputError

ENDING = ".tar.zst"
UNPACKED = 16 << 30  # the most that an archive is unpacked to
_MAGIC = b"\x28\xb5\x2f\xfd"  # RFC 8878, 3.1.1
_BLOCK = 1 << 20


def write_archive(files: Iterable[tuple[str, bytes]], date: str, path: Path) -> str:
    """Write files into an archive, which takes its place once it is whole.

    Args:
        files: (name, bytes) of each, names with slashes, in the order in which they stand in the archive.
        date: the day on which every member says it was changed, YYYY-MM-DD.
        path: the archive.

    Returns:
        The SHA-256 of the archive.
    """
    seconds = int(dt.datetime.fromisoformat(f"{date}T00:00:00+00:00").timestamp())
    aside = path.with_name(f".{path.name}.part")
    try:
        with (
            pa.CompressedOutputStream(str(aside), "zstd") as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tape,
        ):
            for name, data in files:
                member = tarfile.TarInfo(name)
                member.size, member.mtime, member.mode = len(data), seconds, 0o644
                tape.addfile(member, io.BytesIO(data))
        with aside.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return digest


def is_zstd(path: Path) -> bool:
    """Tell whether a file begins as a zstd frame does."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


@cache
def unpacked(path: Path) -> Path:
    """Return a file that is gone with the process and holds what a zstd file holds; it is unpacked once.

    Raises InputError when the file is damaged or holds more than `UNPACKED` bytes.
    """
    handle, name = tempfile.mkstemp(prefix="aibiasbench-", suffix=".tar")
    made = Path(name)
    atexit.register(made.unlink, missing_ok=True)
    size = 0
    # Python reads zstd itself from 3.14 on; Arrow does everywhere.
    try:
        with os.fdopen(handle, "wb") as plain, pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as packed:
            while block := packed.read(_BLOCK):
                size += len(block)
                if size > UNPACKED:
                    raise InputError(f"{path}: unpacks to more than {UNPACKED:,} bytes, the most that is read")
                plain.write(block)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: damaged, or no room to unpack it: {str(error).splitlines()[0]}") from None
    return made
