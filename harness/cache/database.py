"""SQLite files that a stage writes and a crash must not break: the cache of answers, and a run's ledger.

See contract: stages, "Cache".
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from generator.schema.errors import InputError

Upgrades = Mapping[int, Sequence[str]]  # the statements that lead from a format to the next, by that format


class Database:
    """A file opened for reading and writing, closed at the end of its `with` block."""

    def __init__(self, path: Path, tables: str, version: int, upgrades: Upgrades | None = None) -> None:
        self.path = path
        self._db = open_database(path, tables, version, upgrades or {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold the write lock for a block, commit at its end, roll back on any error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def open_database(path: Path, tables: str, version: int, upgrades: Upgrades) -> sqlite3.Connection:
    """Open or create a SQLite file in WAL mode with full flushing; raises InputError when it is something else.

    A file of an earlier format is brought to this one, in one transaction, where `upgrades` leads there step by step.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
        _switch_to_wal(connection)
        connection.execute("PRAGMA synchronous=FULL")
        with transaction(connection):
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found == 0:
                for statement in tables.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={version}")
            elif found < version and all(step in upgrades for step in range(found, version)):
                for statement in (s for step in range(found, version) for s in upgrades[step]):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={version}")
                found = version
    except (sqlite3.Error, OSError) as error:
        raise InputError(f"{path}: cannot be opened as a database: {error}; move it away or name another") from None
    if found not in (0, version):
        connection.close()
        raise InputError(f"{path}: written by another version of this program (format {found}, expected {version})")
    return connection


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Turn WAL on; SQLite does not wait for another process that does the same, so try again for a while."""
    for wait in (0.01, 0.1, 0.5, 2.0):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            time.sleep(wait)
        else:
            return
    connection.execute("PRAGMA journal_mode=WAL")
