"""A fresh tree beside `dist/`, filled, then swapped in whole: an interrupted publish leaves the old site (issue 8)."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from generator.schema.errors import InputError

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def building(out: Path) -> Path:
    """Return where the new tree of `out` is built."""
    return out.parent / f".{out.name}.new"


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold the lock of an output folder; raises InputError when another publish holds it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(out.parent / f".{out.name}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(f"{out}: another publish is writing there; wait for it to end") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def fresh_tree(out: Path) -> Iterator[Path]:
    """Yield an empty folder beside `out`; when the block ends well it becomes `out`, else it is removed.

    What an earlier, killed publish left behind is cleared first.
    """
    new = building(out)
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        swap(new, out)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def swap(new: Path, out: Path) -> None:
    """Put `new` in the place of `out`, which ends up at `new`; one system call where the kernel has it."""
    if not out.exists():
        new.rename(out)
        return
    if _exchanged(new, out):
        return
    old = out.parent / f".{out.name}.old"
    shutil.rmtree(old, ignore_errors=True)
    out.rename(old)
    new.rename(out)
    old.rename(new)


def _exchanged(a: Path, b: Path) -> bool:
    """Exchange two folders atomically (Linux, renameat2); False where the system or the file system cannot."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    if renameat2(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.EPERM):
        return False
    raise OSError(code, os.strerror(code), str(b))


def write_page(root: Path, page: str, data: bytes) -> None:
    """Write one page below the tree."""
    path = root / page
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
