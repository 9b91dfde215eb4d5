"""Which cache holds a run's answers: the one that is named, else the one that the run's ledger remembers.

An answer looked for in another file than the one it was stored in would be asked, and paid for, again. So a run goes on
with the cache that it last used. The ledger keeps its path as seen from the run's folder, so that both may move.

See contract: stages, "Cache".
"""

from __future__ import annotations

import os
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from generator.schema.errors import InputError
from harness.cache.answers import DEFAULT_CACHE
from harness.money.budget import LEDGER


def cache_for(folder: Path, named: Path | None) -> Path:
    """Return the path of a run's cache.

    Args:
        folder: the run folder.
        named: the path given with `--cache`, or None.

    Raises:
        InputError: the cache that the run remembers is not there, and no other is named.
    """
    if named is not None:
        return named
    remembered = remembered_cache(folder)
    if remembered is None:
        return DEFAULT_CACHE
    # Asking everything again without a word would cost money.
    if not remembered.is_file():
        raise InputError(
            f"{folder / LEDGER}: the answers of this run are in {remembered}, which is not there; bring it back, or"
            " name another with --cache: what that one lacks is asked, and paid, again"
        )
    return remembered


def other_cache(folder: Path, named: Path | None) -> Path | None:
    """Return the cache that a run has used so far where another one is named now, else None.

    The caller warns: what the named cache lacks is asked again.
    """
    remembered = remembered_cache(folder) if named is not None else None
    if named is None or remembered is None or not remembered.is_file():
        return None
    return remembered if remembered.resolve() != named.resolve() else None


def remembered_cache(folder: Path) -> Path | None:
    """Return the cache that a run last used; None where its ledger knows of none."""
    ledger = folder / LEDGER
    if not ledger.is_file():
        return None
    # Not read-only: such a connection would leave the files of a write-ahead log behind.
    try:
        with closing(sqlite3.connect(f"file:{quote(str(ledger))}?mode=rw", uri=True, timeout=60)) as connection:
            found = connection.execute("SELECT path FROM cache_file").fetchone()
    except sqlite3.Error:  # no such table: written before ledgers kept it; damage is told when it is opened
        return None
    if not found or not isinstance(found[0], str) or "\0" in found[0]:
        return None
    return _shown((folder / found[0]).resolve())


def cache_words(path: Path | str) -> str:
    """Return the option that names a cache on a command line, empty for the one that needs none."""
    return "" if str(path) == str(DEFAULT_CACHE) else f" --cache {shlex.quote(str(path))}"


def _shown(path: Path) -> Path:
    """Return a path as a person would type it here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def path_from(folder: Path, cache: Path) -> str:
    """Return a cache's path as seen from a run's folder, which is what the ledger keeps."""
    return os.path.relpath(cache.resolve(), folder.resolve())
