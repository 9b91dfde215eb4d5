"""Keys in flight, told to every process that shares a cache, so that each is asked once (contract: stages, "Cache").

A claim has an owner and a lease. Whoever wants a key that another owner holds waits for the answer. The lease is
renewed while its owner lives; that of a dead process runs out, and a process that takes up a dead one's run lets its
claims go at once: the owner is the stage of a run folder, which a lock keeps to one process.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from generator.schema.canonical import sha256_hex
from harness.cache.database import transaction

LEASE = 30.0  # seconds
_TABLE = "CREATE TABLE IF NOT EXISTS claims (key BLOB PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) STRICT"
_CHUNK = 500


@dataclass(frozen=True)
class Taken:
    """What came of wanting some keys: `answered` are in the cache by now, `held` are in flight elsewhere."""

    answered: frozenset[str]
    held: frozenset[str]


class Claims:
    """The claims of one owner in a cache file that exists; the clock gives seconds since 1970."""

    def __init__(
        self, cache: Path, owner: str, *, clock: Callable[[], float] = time.time, lease: float = LEASE
    ) -> None:
        self._owner, self._clock, self._lease = sha256_hex(owner)[:16], clock, lease
        self._renewed = clock()
        self._held: set[str] = set()
        # A connection of its own: a claim need not outlive a power cut, so it is not flushed to the disk.
        self._db = sqlite3.connect(cache, timeout=60, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA synchronous=NORMAL")
        with transaction(self._db):
            self._db.execute(_TABLE)
            self._db.execute("DELETE FROM claims WHERE owner = ?", (self._owner,))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def take(self, keys: Iterable[str]) -> Taken:
        """Claim every key that is neither answered nor held by another; those that are held already stay so."""
        wanted = [key for key in dict.fromkeys(keys) if key not in self._held]
        if not wanted:
            return Taken(frozenset(), frozenset())
        now = self._clock()
        answered, held = set[str](), set[str]()
        with transaction(self._db):
            for i in range(0, len(wanted), _CHUNK):
                chunk = wanted[i : i + _CHUNK]
                answered |= self._answered(chunk)
                held |= self._elsewhere(chunk, now)
            free = [key for key in wanted if key not in answered | held]
            self._db.executemany(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?)",
                [(bytes.fromhex(key), self._owner, now + self._lease) for key in free],
            )
        self._held.update(free)
        return Taken(frozenset(answered), frozenset(held - answered))

    def _answered(self, keys: Sequence[str]) -> set[str]:
        query = f"SELECT key FROM answers WHERE key IN ({_marks(keys)})"  # noqa: S608 - question marks only
        return {row[0].hex() for row in self._db.execute(query, [bytes.fromhex(key) for key in keys])}

    def _elsewhere(self, keys: Sequence[str], now: float) -> set[str]:
        """Return the keys that another owner holds; a lease that ends beyond any that is given is of another clock."""
        query = f"SELECT key FROM claims WHERE owner <> ? AND until > ? AND until <= ? AND key IN ({_marks(keys)})"  # noqa: S608
        values = [self._owner, now, now + 2 * self._lease, *(bytes.fromhex(key) for key in keys)]
        return {row[0].hex() for row in self._db.execute(query, values)}

    def release(self, keys: Iterable[str]) -> None:
        """Let keys go: answered, failed for good, or left."""
        gone = [key for key in keys if key in self._held]
        if gone:
            with transaction(self._db):
                self._db.executemany(
                    "DELETE FROM claims WHERE key = ? AND owner = ?",
                    [(bytes.fromhex(key), self._owner) for key in gone],
                )
            self._held.difference_update(gone)

    def renew(self) -> None:
        """Lengthen every lease when a third of it has passed."""
        now = self._clock()
        if self._held and now - self._renewed > self._lease / 3:
            with transaction(self._db):
                self._db.execute("UPDATE claims SET until = ? WHERE owner = ?", (now + self._lease, self._owner))
            self._renewed = now

    def close(self) -> None:
        """Let everything go."""
        self.release(list(self._held))
        self._db.close()


def _marks(keys: Sequence[str]) -> str:
    return ",".join("?" * len(keys))
