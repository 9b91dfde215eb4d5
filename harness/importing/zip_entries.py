"""Files inside a ZIP archive from outside, each read within a bound; Deflate and Zstandard.

Python's own `zipfile` reads Zstandard from 3.14 on; `backports.zstd` is that module for the versions before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from generator.schema.errors import InputError

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

MOST_ENTRY = 64 << 20
MOST_ENTRIES = 1_000_000
MOST_ALL = 8 << 30
FREE, GROWTH = 64 << 20, 100  # texts are packed to a tenth: an archive that grows a hundredfold was made to
_CHUNK = 1 << 20


class Entries:
    """The entries of an archive by name; where a name stands twice, the later one counts, as everywhere."""

    def __init__(self, path: Path, archive: Any) -> None:
        self._path, self._archive = path, archive
        self._left = min(MOST_ALL, FREE + GROWTH * path.stat().st_size)
        self._info = {info.filename: info for info in archive.infolist()}
        if len(self._info) > MOST_ENTRIES:
            raise InputError(f"{path}: {len(self._info):,} files inside; at most {MOST_ENTRIES:,} are read")

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of the archive."""
        return tuple(self._info)

    def read(self, name: str) -> bytes:
        """Return the bytes of an entry.

        Raises:
            InputError: it is above the bound, whatever the archive says of its size, is damaged, or is encrypted.
        """
        info, parts, size = self._info[name], [], 0
        # Ends at the bound, so that a small archive that stands for a huge text takes no memory.
        bound = min(MOST_ENTRY, self._left)
        try:
            with self._archive.open(info) as file:
                while chunk := file.read(_CHUNK):
                    size += len(chunk)
                    if size > bound:
                        raise InputError(f"{self._path}: {name}: more than {bound:,} bytes once unpacked")
                    parts.append(chunk)
        except InputError:
            raise
        except Exception as error:  # damage shows as a different exception for each way of compression
            raise InputError(
                f"{self._path}: {name}: cannot be unpacked: {str(error)[:200] or type(error).__name__}"
            ) from None
        self._left -= size
        return b"".join(parts)


@contextmanager
def read_zip(path: Path) -> Iterator[Entries]:
    """Open an archive; raises InputError where it is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield Entries(path, archive)
    except FileNotFoundError:
        raise InputError(f"{path}: not found") from None
    except zipfile.BadZipFile as error:
        raise InputError(f"{path}: not a ZIP archive that can be read: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
