"""Files from outside, read up to a stated size and not beyond (contract: receipts, "Bounds")."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from generator.schema.errors import InputError

# The most bytes that are read of a file by what it holds. A parsed file takes some twenty times its size in memory.
JSON = 16 << 20
TOML = 4 << 20
AUDIT_LABELS = 4 << 20
REVIEW_SHEET = 16 << 20
NOTE = 1 << 20
PROSE = 256 << 10


def read_bytes(path: Path, most: int) -> bytes:
    """Return the bytes of a file; raises InputError above `most` or when it is unreadable, FileNotFoundError."""
    try:
        # A named pipe would wait for a writer that never comes.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123 - of a descriptor
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise InputError(f"{path}: not a file of bytes, but a folder, pipe or device; put a plain file there")
            # As much as there is and a byte more: a read sets aside all that it is told to, whatever comes.
            data = file.read(min(state.st_size, most) + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > most:
        raise InputError(f"{path}: {max(state.st_size, len(data)):,} bytes; at most {most:,} are read")
    return data


def read_text(path: Path, most: int, encoding: str = "utf-8") -> str:
    """Return the text of a file, line ends as one line feed; raises as `read_bytes`, and InputError when not UTF-8."""
    try:
        text = read_bytes(path, most).decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
