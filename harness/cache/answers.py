"""The cache of paid answers: one SQLite file, content-addressed, shared by all runs (contract: stages, "Cache").

An answer is stored once, under the hash of all that decided it, and never changed. Writes come in batches, each one
transaction, flushed to the disk (`synchronous=FULL`: a power cut loses no answer that was counted). Readers and other
processes go on meanwhile (WAL); two processes that store the same key keep the first answer, and both use that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from harness.cache.database import Database, transaction
from harness.calls.call import Answer, AnswerOutcome

DEFAULT_CACHE = Path(".cache/answers.sqlite")
_VERSION = 2
_MOST_TOKENS = 2**31
_LAST_SECOND = 253_402_300_799  # of the year 9999
_CHUNK = 500  # keys a query: below SQLite's oldest limit on variables
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    key BLOB PRIMARY KEY,          -- SHA-256, 32 bytes
    role TEXT NOT NULL,            -- subject or judge
    model TEXT NOT NULL,           -- slug of who answered
    outcome TEXT NOT NULL,         -- as harness.calls.call names it
    text TEXT NOT NULL,
    finish_reason TEXT NOT NULL,
    served_by TEXT NOT NULL,
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    cost INTEGER NOT NULL,         -- picodollars, all attempts of the call
    error TEXT,                    -- of an unusable answer: why
    ticket TEXT NOT NULL,          -- reservation that paid the last attempt: run/number
    last_cost INTEGER NOT NULL,    -- picodollars of that attempt alone
    stored_at INTEGER NOT NULL,    -- seconds since 1970
    filter_word TEXT,              -- of a filtered answer: the vendor's own word
    reasoning_tokens INTEGER
) STRICT
"""
# What a cache of an earlier format lacks, by the format it has: its answers keep null there.
_UPGRADES = {
    1: (
        "ALTER TABLE answers ADD COLUMN filter_word TEXT",
        "ALTER TABLE answers ADD COLUMN reasoning_tokens INTEGER",
    )
}
_FIELDS = (
    "text, outcome, finish_reason, served_by, prompt_tokens, completion_tokens, cost, error, filter_word,"
    " reasoning_tokens"
)
_STORED = f"key, role, model, {_FIELDS}, ticket, last_cost, stored_at"


@dataclass(frozen=True, slots=True)
class Entry:
    """An answer to store, with its key and the reservation that paid for it."""

    key: str
    role: str
    model: str
    answer: Answer
    ticket: str
    last_cost: int


@dataclass(frozen=True)
class CacheLine:
    """What the cache holds of one model in one role: answers by outcome, what they cost in picodollars."""

    role: str
    model: str
    outcome: str
    answers: int
    cost: int
    oldest: int
    newest: int


class Cache(Database):
    """The cache, open for reading and writing; one writer a process."""

    remedy = (
        "bring back a copy of it, name another, or move it away with its -wal and -shm files: answers that no copy"
        " holds are asked, and paid, again"
    )

    def __init__(self, path: Path, *, now: int) -> None:
        super().__init__(path, _TABLE, _VERSION, _UPGRADES)
        self._now = now

    def lookup(self, keys: Sequence[str]) -> dict[str, Answer]:
        """Return the answers that are there, by key."""
        found: dict[str, Answer] = {}
        for chunk in _chunks(keys):
            marks = ",".join("?" * len(chunk))
            query = f"SELECT key, {_FIELDS} FROM answers WHERE key IN ({marks})"  # noqa: S608 - question marks only
            for row in self._db.execute(query, [bytes.fromhex(k) for k in chunk]):
                answer = Answer(*row[1:])
                if not _could_be(answer):
                    raise self.damaged(f"answer {row[0].hex()} holds what is never written")
                found[row[0].hex()] = answer
        return found

    def paid(self, tickets: Iterable[str], keys: Sequence[str]) -> dict[str, int]:
        """Return the cost of the last attempt, in picodollars, by ticket, of those keys that these tickets paid."""
        wanted, found = set(tickets), dict[str, int]()
        for chunk in _chunks(keys):
            marks = ",".join("?" * len(chunk))
            query = f"SELECT ticket, last_cost FROM answers WHERE key IN ({marks})"  # noqa: S608 - question marks only
            rows = self._db.execute(query, [bytes.fromhex(k) for k in chunk])
            found.update((ticket, cost) for ticket, cost in rows if ticket in wanted)
        return found

    def tickets(self, keys: Sequence[str]) -> dict[str, str]:
        """Return, by key, the reservation that paid for each answer that is there."""
        found: dict[str, str] = {}
        for chunk in _chunks(keys):
            marks = ",".join("?" * len(chunk))
            query = f"SELECT key, ticket FROM answers WHERE key IN ({marks})"  # noqa: S608 - question marks only
            found.update(
                (key.hex(), ticket) for key, ticket in self._db.execute(query, [bytes.fromhex(k) for k in chunk])
            )
        return found

    def store(self, entries: Sequence[Entry]) -> dict[str, Answer]:
        """Put answers on the disk in one transaction; return those keys that another process stored first."""
        rows = [_row(entry, self._now) for entry in entries]
        marks = ",".join("?" * len(_STORED.split(",")))
        with transaction(self._db):
            before = self._db.total_changes
            insert = f"INSERT INTO answers ({_STORED}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608 - own names
            self._db.executemany(insert, rows)
            stored = self._db.total_changes - before
        if stored == len(rows):
            return {}
        there = self.lookup([entry.key for entry in entries])
        return {entry.key: there[entry.key] for entry in entries if there[entry.key] != entry.answer}

    def lines(self) -> list[CacheLine]:
        """Return what the cache holds, a line for each role, model and outcome, in that order."""
        query = (
            "SELECT role, model, outcome, count(*), sum(cost), min(stored_at), max(stored_at)"
            " FROM answers GROUP BY role, model, outcome ORDER BY role DESC, model, outcome"
        )
        found = [CacheLine(*row) for row in self._db.execute(query)]
        for line in found:
            words = (line.role, line.model, line.outcome)
            times = (line.oldest, line.newest)
            texts = all(isinstance(word, str) for word in words)
            # Whole numbers first: damage may leave a null or a text, which no number can be compared with.
            if not texts or not all(isinstance(t, int) for t in times) or not 0 <= times[0] <= times[1] <= _LAST_SECOND:
                raise self.damaged(f"role, model, outcome or time of {line.answers:,} answers cannot be")
        return found

    def prune(
        self, *, model: str | None = None, role: str | None = None, outcome: str | None = None,
        before: int | None = None, dry_run: bool = False,
    ) -> int:  # fmt: skip
        """Delete the answers that fit every condition given; returns how many, or how many it would be."""
        tests = {"model = ?": model, "role = ?": role, "outcome = ?": outcome, "stored_at < ?": before}
        given = {test: value for test, value in tests.items() if value is not None}
        where = " AND ".join(given) or "true"
        if dry_run:
            count = f"SELECT count(*) FROM answers WHERE {where}"  # noqa: S608 - conditions from the table above
            return int(self._db.execute(count, list(given.values())).fetchone()[0])
        with transaction(self._db):
            delete = f"DELETE FROM answers WHERE {where}"  # noqa: S608 - conditions from the table above
            gone = self._db.execute(delete, list(given.values())).rowcount
        if gone:
            self._db.execute("VACUUM")
        return int(gone)


def _chunks(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[i : i + _CHUNK] for i in range(0, len(keys), _CHUNK))


def _could_be(answer: Answer) -> bool:
    """Tell whether an answer read from the file has the types and ranges of one that was stored."""
    texts = (answer.text, answer.finish_reason, answer.served_by)
    tokens = (answer.prompt_tokens, answer.completion_tokens, answer.reasoning_tokens)
    return (
        all(isinstance(text, str) for text in texts)
        and answer.outcome in get_args(AnswerOutcome)
        and all(n is None or (isinstance(n, int) and 0 <= n < _MOST_TOKENS) for n in tokens)
        and isinstance(answer.cost, int)
        and answer.cost >= 0
        and all(isinstance(word, str | None) for word in (answer.error, answer.filter_word))
    )


def _row(entry: Entry, now: int) -> tuple[object, ...]:
    a = entry.answer
    assert a.cost is not None
    return (
        bytes.fromhex(entry.key), entry.role, entry.model, a.text, a.outcome, a.finish_reason, a.served_by,
        a.prompt_tokens, a.completion_tokens, a.cost, a.error, a.filter_word, a.reasoning_tokens,
        entry.ticket, entry.last_cost, now,
    )  # fmt: skip
