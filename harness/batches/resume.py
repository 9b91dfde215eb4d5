"""Batches of earlier processes: taken up, found again, or given up (contract: stages, "Batch endpoints")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from harness.batches.asking import VendorCalls
from harness.batches.dialect import Dialect
from harness.batches.flight import InFlight, PendingCall
from harness.batches.journal import Journal, SubmittedBatch
from harness.calls.call import Call
from harness.engine.desk import Desk
from harness.engine.writer import Records


@dataclass(frozen=True)
class Resumption:
    """What an endpoint's lane needs to take up its batches: the run's journal, the vendor's dialect, the books."""

    endpoint: str
    journal: Journal
    dialect: Dialect
    vendor: VendorCalls
    desk: Desk

    async def take_up(self, calls: dict[str, Call], fly: Callable[[InFlight], None]) -> None:
        """Hand each batch that waits to `fly`; its calls leave `calls`. Raises GivenUpError."""
        for batch in self.journal.waiting(self.endpoint):
            wanted = {i.custom_id: i for i in batch.items if i.key in calls or self.desk.books.answered(i.key)}
            if not wanted:
                continue  # of models or concepts that this command leaves out
            vendor_id = batch.vendor_id or await self._find(batch)
            if vendor_id is None:
                self._lost(batch)
                continue
            asked = {}
            for item in wanted.values():
                if call := calls.pop(item.key, None):
                    asked[item.custom_id] = PendingCall(call, item.attempts, item.tries, item.spent)
            self.desk.books.claim(a.call.key for a in asked.values())
            self.desk.books.adopt({i.entry: i.account for i in wanted.values()})
            fly(InFlight(replace(batch, items=tuple(wanted.values())), vendor_id, asked))

    async def _find(self, batch: SubmittedBatch) -> str | None:
        """Look for a batch whose id never reached the journal."""
        found = await self.vendor.ask(partial(self.dialect.find, batch.nonce), self.desk)
        if found is not None:
            self.journal.submitted(batch.number, found)
        return found

    def _lost(self, batch: SubmittedBatch) -> None:
        """Give up a batch that may have been handed in and cannot be found: its reservations count as spent."""
        books = self.desk.books
        books.adopt({i.entry: i.account for i in batch.items})
        books.write(Records(costs=dict.fromkeys(books.unsettled(i.entry for i in batch.items))))
        self.journal.ended(batch.number, [i.custom_id for i in batch.items])
        self.desk.outcome.tally.warnings.append(
            f"endpoint {self.endpoint}: the connection broke as a batch of {len(batch.items):,} calls was handed in,"
            " and the vendor does not list it; its calls are asked again, and its reservations count as spent until"
            " --settle-lost: compare with the vendor's list of batches"
        )
