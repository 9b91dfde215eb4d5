"""Compiled templates, kept beside this package's own compiled modules and trusted as they are.

A template is compiled again when its text changes, and all of them when any module of the program does: what a filter
makes of a constant is worked out while a template is compiled.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import jinja2
from jinja2 import FileSystemBytecodeCache

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "__pycache__" / "templates"


def modules_key(package: Path = HERE.parent) -> str:
    """Return a key of the program's modules by name, size and time, as Python itself tells whether one has changed."""
    found = sorted(package.rglob("*.py"))
    facts = [(str(file), status.st_size, status.st_mtime_ns) for file in found for status in (file.stat(),)]
    return hashlib.sha256(repr((jinja2.__version__, sys.version, facts)).encode()).hexdigest()[:16]


def kept_templates(folder: Path = FOLDER, key: str | None = None) -> FileSystemBytecodeCache | None:
    """Return where compiled templates are kept; None where Python may write no compiled module either.

    What was kept by the modules as they were before is cleared away.
    """
    if sys.dont_write_bytecode:
        return None
    own = folder / (key or modules_key())
    try:
        own.mkdir(parents=True, exist_ok=True)
        for other in folder.iterdir():
            if other != own:
                shutil.rmtree(other, ignore_errors=True)
    except OSError:
        return None
    return FileSystemBytecodeCache(str(own)) if os.access(own, os.W_OK) else None
