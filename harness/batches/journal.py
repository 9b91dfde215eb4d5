"""What was handed in and not yet collected: a file beside the ledger, written before a vendor hears of a batch.

A batch is paid work that only its id leads back to. So the journal holds it from before it is submitted until each of
its requests has come to an end, and a process that starts after a crash finds every batch of its run there.

States of a batch: `submitting` before the vendor's id is known; `submitted` with its id; `done` when nothing of it is
left to collect.

See contract: stages, "Batch endpoints".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.cache.database import Database, transaction

JOURNAL = "batches.sqlite"
_VERSION = 1
_TABLES = """
CREATE TABLE batches (
    number INTEGER PRIMARY KEY,
    endpoint TEXT NOT NULL,
    stage TEXT NOT NULL,           -- eval or judge
    nonce TEXT NOT NULL,           -- starts each custom_id of the batch
    vendor_id TEXT,                -- null until the vendor has said it
    state TEXT NOT NULL,           -- submitting, submitted, done
    created INTEGER NOT NULL       -- seconds since 1970
) STRICT;
CREATE TABLE requests (
    batch INTEGER NOT NULL,
    custom_id TEXT NOT NULL,
    key TEXT NOT NULL,             -- of the answer in the cache
    entry INTEGER NOT NULL,        -- reservation in the ledger
    amount INTEGER NOT NULL,       -- reserved, picodollars
    account TEXT NOT NULL,         -- of the model or judge
    attempts INTEGER NOT NULL,     -- how often it had been handed in before
    tries INTEGER NOT NULL,        -- unusable answers before this one
    spent INTEGER NOT NULL,        -- picodollars, on earlier tries
    open INTEGER NOT NULL,         -- 1 until its end is booked
    PRIMARY KEY (batch, custom_id)
) STRICT;
CREATE INDEX requests_open ON requests (open) WHERE open = 1
"""


@dataclass(frozen=True)
class BatchItem:
    """One request of a batch.

    Attributes:
        custom_id: its id in the batch.
        key: cache key of its answer.
        entry: ledger entry that pays for it.
        amount: what is reserved for it, in picodollars.
        account: account of its model or judge.
        attempts: how often it was handed in before.
        tries: answers before this one that could not be used.
        spent: what those cost, in picodollars.
    """

    custom_id: str
    key: str
    entry: int
    amount: int
    account: str
    attempts: int = 0
    tries: int = 0
    spent: int = 0


@dataclass(frozen=True)
class SubmittedBatch:
    """A batch as the journal holds it.

    `vendor_id` is None where a crash came before the vendor had said it. `created` is in seconds since 1970. `items`
    are those that have not come to an end.
    """

    number: int
    nonce: str
    vendor_id: str | None
    created: int
    items: tuple[BatchItem, ...]


class Journal(Database):
    """The batches of a run, opened by one stage.

    Args:
        folder: the run folder.
        stage: `eval` or `judge`; each stage collects its own batches.
    """

    remedy = (
        "bring back a copy of it, or move it away with its -wal and -shm files: batches that are still out are then not"
        " collected, and are paid again"
    )

    def __init__(self, folder: Path, *, stage: str) -> None:
        super().__init__(folder / JOURNAL, _TABLES, _VERSION)
        self.check()
        self._stage = stage

    def begin(self, endpoint: str, nonce: str, items: Sequence[BatchItem], *, now: int) -> int:
        """Write a batch down before it is submitted.

        Args:
            endpoint: name of the endpoint.
            nonce: what each custom_id begins with.
            items: its requests.
            now: seconds since 1970.

        Returns:
            The batch's number in the journal.
        """
        with transaction(self._db):
            row = (endpoint, self._stage, nonce, now)
            insert = "INSERT INTO batches (endpoint, stage, nonce, state, created) VALUES (?, ?, ?, 'submitting', ?)"
            number = self._db.execute(insert, row).lastrowid
            assert number is not None
            rows = [
                (number, i.custom_id, i.key, i.entry, i.amount, i.account, i.attempts, i.tries, i.spent, 1)
                for i in items
            ]
            self._db.executemany("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        return number

    def submitted(self, number: int, vendor_id: str) -> None:
        """Keep the vendor's id of a batch, the one way back to it."""
        with transaction(self._db):
            self._db.execute(
                "UPDATE batches SET vendor_id = ?, state = 'submitted' WHERE number = ?", (vendor_id, number)
            )

    def ended(self, number: int, custom_ids: Iterable[str]) -> None:
        """Note that requests of a batch have come to an end. The batch is done with its last one."""
        with transaction(self._db):
            self._db.executemany(
                "UPDATE requests SET open = 0 WHERE batch = ? AND custom_id = ?", [(number, i) for i in custom_ids]
            )
            left = self._db.execute("SELECT count(*) FROM requests WHERE batch = ? AND open = 1", (number,)).fetchone()[
                0
            ]
            if not left:
                self._db.execute("UPDATE batches SET state = 'done' WHERE number = ?", (number,))

    def waiting(self, endpoint: str) -> list[SubmittedBatch]:
        """Return the batches of this stage at an endpoint that have something left to collect, oldest first."""
        query = (
            "SELECT number, nonce, vendor_id, created FROM batches"
            " WHERE endpoint = ? AND stage = ? AND state <> 'done' ORDER BY number"
        )
        found = self._db.execute(query, (endpoint, self._stage)).fetchall()
        return [SubmittedBatch(n, nonce, vendor_id, created, self._items(n)) for n, nonce, vendor_id, created in found]

    def endpoints(self) -> set[str]:
        """Return the names of the endpoints at which batches of this stage wait."""
        query = "SELECT DISTINCT endpoint FROM batches WHERE stage = ? AND state <> 'done'"
        return {row[0] for row in self._db.execute(query, (self._stage,))}

    def entries(self) -> frozenset[int]:
        """Return the reservations whose calls a vendor may still be working on. A crash has not lost these."""
        query = "SELECT entry FROM requests JOIN batches ON number = batch WHERE open = 1 AND stage = ?"
        return frozenset(row[0] for row in self._db.execute(query, (self._stage,)))

    def _items(self, number: int) -> tuple[BatchItem, ...]:
        query = (
            "SELECT custom_id, key, entry, amount, account, attempts, tries, spent FROM requests"
            " WHERE batch = ? AND open = 1 ORDER BY custom_id"
        )
        return tuple(BatchItem(*row) for row in self._db.execute(query, (number,)))
