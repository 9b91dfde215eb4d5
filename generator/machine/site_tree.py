"""A fresh tree beside `dist/`, filled, then swapped in whole: an interrupted publish leaves the old site.

What need not be made again is linked from the old tree (a hard link: no byte is copied); what is no longer part of the
site is simply never put into the new one.

See contract: publication, "Swapping sites".
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from generator.schema.errors import InputError

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_FULL = (errno.ENOSPC, errno.EDQUOT)
_ROOM = 1_000_000  # bytes: a file system with less is the one that ran full


@dataclass(frozen=True)
class Tree:
    """The tree that is being built (`root`) and the one it will replace (`old`, which may not exist)."""

    root: Path
    old: Path

    def write(self, page: str, data: bytes) -> None:
        """Put one file into the tree: linked where the old tree has the same bytes, written otherwise."""
        path, before = self.root / page, self.old / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # it may be a link, and writing through it would change the old tree
        if _same(before, data):
            link_file(str(before), str(path))
        else:
            path.write_bytes(data)

    def settle(self, folder: str) -> None:
        """Replace files below a folder by links where the old tree has the same bytes: for writers of their own."""
        for directory, _, names in os.walk(self.root / folder):
            below = Path(directory).relative_to(self.root)
            for name in names:
                path, before = Path(directory, name), self.old / below / name
                if not before.is_file() or before.samefile(path):
                    continue
                if before.stat().st_size == path.stat().st_size and _same(before, path.read_bytes()):
                    path.unlink()
                    link_file(str(before), str(path))

    def keep(self, folder: str) -> int:
        """Link everything below a folder of the old tree into the new one; returns the number of files."""
        return _link_folder(str(self.old / folder), str(self.root / folder))

    def keep_file(self, name: str) -> None:
        """Link one file of the old tree into the new one."""
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        link_file(str(self.old / name), str(target))

    def has_kept(self, folder: str) -> bool:
        """Tell whether the old tree has a folder."""
        return (self.old / folder).is_dir()


def _same(path: Path, data: bytes) -> bool:
    try:
        return not path.is_symlink() and path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def link_file(source: str, target: str) -> None:
    """Link a file, or copy it where the file system has no hard links; raises InputError on a symbolic link."""
    if os.path.islink(source):  # noqa: PTH114 - 60,000 files: strings are several times faster than Path
        raise InputError(f"{source}: a symbolic link, which no publish made; take it away, or publish that run anew")
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.EACCES):
            raise
        shutil.copy2(source, target)


def _link_folder(source: str, target: str) -> int:
    os.makedirs(target, exist_ok=True)  # noqa: PTH103 - 60,000 files: strings are several times faster than Path
    count = 0
    with os.scandir(source) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                count += _link_folder(entry.path, f"{target}/{entry.name}")
            else:
                link_file(entry.path, f"{target}/{entry.name}")
                count += 1
    return count


def building(out: Path) -> Path:
    """Return where the new tree of `out` is built."""
    return out.parent / f".{out.name}.new"


def _aside(out: Path) -> Path:
    return out.parent / f".{out.name}.old"


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold the lock of an output folder; raises InputError when another publish holds it.

    A publish that was killed between the two renames of `swap` is put right first.
    """
    lock = FileLock(out.parent / f".{out.name}.lock", timeout=0)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        # Where only the kernel makes files, as in /proc, the lock file is said not to be there, again and again.
        busy = Path(lock.lock_file).exists()
        why = "another publish is writing there; wait for it to end" if busy else _no_place(out, "no file can be made")
        raise InputError(f"{out}: {why}") from None
    except OSError as error:
        raise InputError(f"{out}: {_no_place(out, error.strerror or str(error))}") from None
    try:
        if _aside(out).is_dir() and not out.exists():
            _aside(out).rename(out)
        yield
    finally:
        lock.release()


def _no_place(out: Path, why: str) -> str:
    return f"{out.absolute().parent} takes no new site: {why}; give a folder that may be written with --out"


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
        shutil.rmtree(_aside(out), ignore_errors=True)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise InputError(_full(error, new, out)) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _full(error: OSError, new: Path, out: Path) -> str:
    """Say where a disk ran full; most such errors name no file."""
    facts = os.statvfs(new)
    here = facts.f_bavail * facts.f_frsize < _ROOM or (facts.f_files and facts.f_favail == 0)
    place = error.filename or (new if here else "the cache folder, or the one for temporary files")
    return (
        f"{place}: {error.strerror or error} while the new site was made; {out} stays as it was."
        " Make room there, choose another --out, or publish with --mode folded"
    )


def check_site(out: Path) -> None:
    """Raise InputError when `out` holds something that no publish made, and so would be lost."""
    above = next((p for p in out.absolute().parents if p.exists()), out)
    if not above.is_dir():
        raise InputError(f"{out}: {above} is a file; give a folder with --out")
    if out.is_symlink():
        raise InputError(f"{out}: a symbolic link, which the new site would replace; give {out.resolve()} with --out")
    if out.is_mount():
        raise InputError(f"{out}: a mount point, which no new site can replace; give a folder below it with --out")
    if out.exists() and not _is_site(out):
        raise InputError(f"{out}: holds files that no publish made; give another folder with --out")


def _is_site(out: Path) -> bool:
    """Tell whether a folder may be replaced: it is empty, or has what every publication has."""
    return out.is_dir() and (not any(out.iterdir()) or ((out / ".nojekyll").is_file() and (out / "runs").is_dir()))


def swap(new: Path, out: Path) -> None:
    """Put `new` in the place of `out`, which ends up beside it; one system call where the kernel has it."""
    if not out.exists():
        new.rename(out)
        return
    if _exchanged(new, out):
        return
    shutil.rmtree(_aside(out), ignore_errors=True)
    out.rename(_aside(out))
    new.rename(out)


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
