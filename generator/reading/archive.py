"""A published run as one file: a tar archive compressed with zstd, whose bytes follow from the publication alone.

See contract: publication, "Archives".
"""

from __future__ import annotations

import atexit
import bz2
import datetime as dt
import gzip
import hashlib
import io
import lzma
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from generator.schema.errors import InputError

ENDING = ".tar.zst"
UNPACKED = 16 << 30  # the most that an archive is unpacked to
MOST_MEMBERS = 200_000
LONGEST_NOTE = 1 << 20
_FREE, _GROWTH = 64 << 20, 100
_NOTES = frozenset((b"x", b"g", b"X", b"L", b"K"))  # POSIX and GNU headers that hold a text for another header
# How a packed file begins: RFC 8878 3.1.1, RFC 1952 2.3.1, bzip2 and xz format.
_MAGICS = {"zstd": b"\x28\xb5\x2f\xfd", "gzip": b"\x1f\x8b", "bzip2": b"BZh", "xz": b"\xfd7zXZ\x00"}
_BLOCK = 1 << 20


def _open_zstd(path: Path) -> Any:
    # Python reads zstd itself from 3.14 on; Arrow does everywhere.
    return pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")


_OPENERS: dict[str, Callable[[Path], Any]] = {
    "zstd": _open_zstd,
    "gzip": gzip.open,
    "bzip2": bz2.open,
    "xz": lzma.open,
}


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


def unpacked_tape(path: Path) -> Path:
    """Return a plain tar file of what a path holds: itself, or where it is packed a file that is gone with the process.

    Raises InputError when the file is damaged, or holds more than `most_unpacked` of its size.
    """
    with path.open("rb") as file:
        start = file.read(len(_MAGICS["zstd"]) + 2)
    packing = next((name for name, magic in _MAGICS.items() if start.startswith(magic)), None)
    return path if packing is None else _unpacked(path, packing, _stamp(path))


def _stamp(path: Path) -> tuple[int, ...]:
    """Return what changes when another file takes the place of this one."""
    state = path.stat()
    return state.st_ino, state.st_mtime_ns, state.st_size


def most_unpacked(size: int) -> int:
    """Return the most bytes that a packed file of `size` bytes is unpacked to.

    Receipts are packed before they come into an archive, and texts are packed to a tenth: a file that grows a
    hundredfold was made to.
    """
    return min(UNPACKED, _FREE + _GROWTH * size)


@cache
def _unpacked(path: Path, packing: str, stamp: tuple[int, ...]) -> Path:
    handle, name = tempfile.mkstemp(prefix="aibiasbench-", suffix=".tar")
    made = Path(name)
    atexit.register(made.unlink, missing_ok=True)
    most, size = most_unpacked(stamp[-1]), 0
    try:
        with os.fdopen(handle, "wb") as plain, _OPENERS[packing](path) as packed:
            while block := packed.read(_BLOCK):
                size += len(block)
                if size > most:
                    raise InputError(f"{path}: unpacks to more than {most:,} bytes, the most that is read of its size")
                plain.write(block)
    except InputError:
        raise
    except Exception as error:  # damage shows as a different exception for each way of packing
        raise InputError(f"{path}: damaged, or no room to unpack it: {first_line(error)}") from None
    return made


class _Header(tarfile.TarInfo):
    """A header whose long names and notes are bounded: Python reads them whole, whatever size they say."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Return the header of 512 bytes; raises InputError where it stands for a text without bound."""
        made = super().frombuf(buf, encoding, errors)
        if made.type in _NOTES and made.size > LONGEST_NOTE:
            raise InputError(f"a name or note of {made.size:,} bytes inside; at most {LONGEST_NOTE:,} are read")
        return made


@contextmanager
def opened_tape(tape: Path) -> Iterator[tarfile.TarFile]:
    """Open a plain tar file from outside."""
    with tarfile.open(tape, "r:", tarinfo=_Header) as opened:
        yield opened


def members(path: Path) -> dict[str, tarfile.TarInfo]:
    """Return the plain files of a tar archive by name; links, folders and devices are left out.

    Raises InputError above `MOST_MEMBERS`.
    """
    return _members(path, _stamp(path))


@cache
def _members(path: Path, _: tuple[int, ...]) -> dict[str, tarfile.TarInfo]:
    found: dict[str, tarfile.TarInfo] = {}
    with opened_tape(unpacked_tape(path)) as tape:
        for number, member in enumerate(tape):
            if number == MOST_MEMBERS:
                raise InputError(f"{path}: more than {MOST_MEMBERS:,} files inside, the most that are read")
            if member.isreg():
                found[member.name] = member
            tape.members = []  # type: ignore[attr-defined]  # it would keep every one, the left out, too
    return found


def first_line(error: BaseException) -> str:
    """Return what an exception says in one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
