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
from typing import Any, Self

from generator.schema.errors import InputError, ToolError

Upgrades = Mapping[int, Sequence[str]]  # the statements that lead from a format to the next, by that format


# Primary result codes of SQLite (https://www.sqlite.org/rescode.html) for what is wrong with the place, not the file.
_NO_ROOM, _DISK_FAULT, _READ_ONLY, _BUSY, _LOCKED, _NO_ACCESS, _NO_MEMORY = 13, 10, 8, 5, 6, 14, 7
_OF_THE_PLACE = {
    _NO_ROOM: "make room on the disk and run again",
    _DISK_FAULT: "make room on the disk, or mend it, and run again",
    _READ_ONLY: "make the file writable and run again",
    _NO_ACCESS: "make its folder writable and run again",
    _BUSY: "let the other process that holds it end, and run again",
    _LOCKED: "let the other process that holds it end, and run again",
    _NO_MEMORY: "free memory and run again",
}


# A key that is there already, where keys are counted up or looked up before they are written.
_TWICE = (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)


class Database:
    """A file opened for reading and writing, closed at the end of its `with` block.

    Whatever is wrong with it is a ToolError that names the file and what to do: InputError where it is damaged.
    `remedy` says what can be done about a damaged file of this kind.
    """

    remedy = "move it away, or bring back a copy of it"

    def __init__(self, path: Path, tables: str, version: int, upgrades: Upgrades | None = None) -> None:
        self.path = path
        self._db = open_database(path, tables, version, upgrades or {}, self.remedy)

    def damaged(self, what: str) -> InputError:
        """Return the error for a file whose content cannot be what was written."""
        return _damaged(self.path, what, self.remedy)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def check(self) -> None:
        """Read the whole file and hold it against its own structure and types; raises InputError where it is damaged.

        For files of a run. A cache may hold millions of answers: it checks each as it is read.
        """
        (found,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise self.damaged(str(found).splitlines()[-1])

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


def _damaged(path: Path, what: str, remedy: str) -> InputError:
    return InputError(f"{path}: the file is damaged ({what}); {remedy}")


class _Cursor(sqlite3.Cursor):
    """A cursor whose errors name the file and what to do about it."""

    connection: _Connection

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        with self.connection.told():
            return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Self:
        with self.connection.told():
            return super().executemany(sql, parameters)

    def fetchone(self) -> Any:
        with self.connection.told():
            return super().fetchone()

    def fetchall(self) -> list[Any]:
        with self.connection.told():
            return super().fetchall()

    def __next__(self) -> Any:
        with self.connection.told():
            return super().__next__()


class _Connection(sqlite3.Connection):
    """A connection whose errors name the file and what to do about it, wherever they come up."""

    path = Path()
    remedy = ""

    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Any:
        return self.cursor().executemany(sql, parameters)

    def commit(self) -> None:
        with self.told():
            super().commit()

    @contextmanager
    def told(self) -> Iterator[None]:
        """Turn SQLite's errors into those that a person meets."""
        try:
            yield
        except UnicodeDecodeError:  # SQLite's words on the damage quote a name that is damaged, too
            raise _damaged(self.path, "its own description is not UTF-8", self.remedy) from None
        except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
            raise  # a fault of this program, not of the file
        except sqlite3.Error as error:
            if isinstance(error, sqlite3.IntegrityError) and error.sqlite_errorcode not in _TWICE:
                raise  # as above
            # Extended codes keep the primary one in their lowest byte; errors of Python's own module have none.
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in _OF_THE_PLACE:
                raise ToolError(
                    f"{self.path}: cannot be written: {error}; what was counted is safe: {_OF_THE_PLACE[code]}"
                ) from None
            raise _damaged(self.path, str(error), self.remedy) from None


def open_database(
    path: Path, tables: str, version: int, upgrades: Upgrades, remedy: str = Database.remedy
) -> sqlite3.Connection:
    """Open or create a SQLite file in WAL mode with full flushing; raises InputError when it is something else.

    A file of an earlier format is brought to this one, in one transaction, where `upgrades` leads there step by step.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            path, timeout=60, isolation_level=None, check_same_thread=False, factory=_Connection
        )
        connection.path, connection.remedy = path, remedy
        _switch_to_wal(connection)
        connection.execute("PRAGMA cell_size_check=ON")
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
        except ToolError as error:
            if "locked" not in str(error):
                raise
            time.sleep(wait)
        else:
            return
    connection.execute("PRAGMA journal_mode=WAL")
