"""One writer for many workers: gathers what they want on the disk and commits it together.

Each commit writes in the one safe order: answers into the cache, then settlements and new reservations into the ledger.
Only then do the workers go on. What comes while a commit is flushed goes into the next one, so a thousand workers cost
no more flushes than one.

See contract: stages, "Spend caps"; contract: stages, "Cache".
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.cache.answers import Cache, Entry
from harness.cache.claims import Claims
from harness.calls.call import Answer, Call
from harness.money.budget import RUN_ACCOUNT, Ledger, Refusal, account_of


@dataclass
class Records:
    """What is to be written.

    Attributes:
        answers: answers for the cache.
        costs: by ledger entry, its cost in picodollars; None where it is lost.
        failures: by key, the code of a call that failed for good.
        released: keys that this process asks no further.
    """

    answers: list[Entry] = field(default_factory=list)
    costs: dict[int, int | None] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    released: list[str] = field(default_factory=list)


class HeldElsewhere:
    """Another process that shares the cache is asking this key at the moment."""


Reserved = int | Refusal | Answer | HeldElsewhere  # an entry of the ledger, or why there is none


class Books:
    """Cache, claims and ledger behind one order of writing. Counts what is in flight, by account.

    Without `claims` a key is not kept from other processes: a backend inside this process costs nothing.
    """

    def __init__(self, cache: Cache, ledger: Ledger, claims: Claims | None = None) -> None:
        self._cache, self._ledger, self._claims = cache, ledger, claims
        self._in_flight: Counter[str] = Counter()
        self._accounts: dict[int, str] = {}

    def in_flight(self, account: str) -> int:
        """Return how many reservations of an account are open in this process. They may still settle for less."""
        return self._in_flight[account]

    def write(self, records: Records) -> dict[str, Answer]:
        """Store answers, then settle, then let claims go.

        Returns:
            The answers that another process had stored first, by key. They count; ours is dropped.
        """
        # Answers first: after a crash they show what was paid, and `Ledger.recover` settles at their cost.
        others = self._cache.store(records.answers) if records.answers else {}
        if records.costs or records.failures:
            self._ledger.settle(records.costs, records.failures, [entry.key for entry in records.answers])
            for entry in records.costs:
                self._in_flight.subtract((RUN_ACCOUNT, self._accounts.pop(entry)))
        if self._claims is not None:
            self._claims.release([*(entry.key for entry in records.answers), *records.failures, *records.released])
        return others

    def claim(self, keys: Iterable[str]) -> None:
        """Claim keys that an earlier process asked: their answers are on the way, whoever else wants them."""
        if self._claims is not None:
            self._claims.take(keys)

    def claim_and_reserve(self, wanted: list[tuple[Call, int]]) -> list[Reserved]:
        """Claim the key of each call, then reserve its worst case.

        Args:
            wanted: (call, worst case in picodollars).

        Returns:
            For each call, in order: its ledger entry, the refusal of a cap, the answer that another process stored
            meanwhile, or that another process is asking it.
        """
        if self._claims is None:
            return [*self.reserve(wanted)]
        taken = self._claims.take(call.key for call, _ in wanted)
        # Answered by another process meanwhile, so there is nothing to pay here.
        answers = self._cache.lookup(sorted(taken.answered))
        free = [(call, amount) for call, amount in wanted if call.key not in taken.answered | taken.held]
        if answers:
            reused = {call.key: call for call, _ in wanted if call.key in answers}
            self._ledger.reuse([(call, answers[key].cost or 0) for key, call in reused.items()])
        made = iter(self.reserve(free))
        elsewhere: dict[str, Reserved] = {**answers, **dict.fromkeys(taken.held, HeldElsewhere())}
        return [elsewhere[call.key] if call.key in elsewhere else next(made) for call, _ in wanted]

    def reserve(self, wanted: list[tuple[Call, int]]) -> list[int | Refusal]:
        """Reserve the worst case of each call, in picodollars; returns entries or refusals, in order."""
        made = self._ledger.reserve(wanted)
        for (call, _), entry in zip(wanted, made, strict=True):
            if isinstance(entry, int):
                self._accounts[entry] = account_of(call)
                self._in_flight.update((RUN_ACCOUNT, self._accounts[entry]))
        return made

    def adopt(self, accounts: Mapping[int, str]) -> None:
        """Take over reservations of an earlier process, so that they are settled here.

        Args:
            accounts: by ledger entry, the account of its model or judge.
        """
        for entry, account in accounts.items():
            self._accounts[entry] = account
            self._in_flight.update((RUN_ACCOUNT, account))

    def unsettled(self, entries: Iterable[int]) -> set[int]:
        """Return those reservations whose true cost is not booked yet."""
        return self._ledger.unsettled(entries)

    def answered(self, key: str) -> bool:
        """Tell whether the cache holds an answer under a key, whoever asked it."""
        return bool(self._cache.lookup([key]))

    def ticket(self, entry: int) -> str:
        """Return the name by which the cache remembers the reservation that paid for an answer."""
        return self._ledger.ticket(entry)


class Writer:
    """The writer of one event loop: an `await` returns when the thing is on the disk."""

    def __init__(self, books: Books) -> None:
        self.books = books
        self._records = Records()
        self._written: list[asyncio.Future[dict[str, Answer]]] = []
        self._wanted: list[tuple[Call, int, asyncio.Future[Reserved]]] = []
        self._scheduled = False
        self._settled = asyncio.Event()

    async def reserve(self, call: Call, amount: int) -> Reserved:
        """Claim and reserve for one attempt.

        A refusal is final only when nothing of the refusing account is in flight any more. What is in flight may settle
        for less than it reserved, so until then the call waits and asks again.

        Args:
            call: the call.
            amount: its worst case in picodollars.
        """
        while True:
            future: asyncio.Future[Reserved] = asyncio.get_running_loop().create_future()
            self._wanted.append((call, amount, future))
            self._schedule()
            try:
                made = await future
            except asyncio.CancelledError:
                if future.done() and not future.cancelled():
                    self._give_back(future.result())
                raise
            if not isinstance(made, Refusal) or self.books.in_flight(made.account) == 0:
                return made
            await self._settled.wait()

    def _give_back(self, made: Reserved) -> None:
        if isinstance(made, int):
            self.drop(made, 0)

    def drop(self, entry: int, cost: int | None) -> None:
        """Note the end of an attempt whose worker does not wait for the disk.

        Args:
            entry: its ledger entry.
            cost: 0 where it was never made, None where it was cut off and may be billed.
        """
        self._records.costs[entry] = cost

    def let_go(self, call: Call) -> None:
        """Note that this process asks a call no further, so that another one may."""
        self._records.released.append(call.key)
        self._schedule()

    async def write(
        self, *, entry: int, cost: int | None, answer: Entry | None = None, failure: tuple[str, str] | None = None
    ) -> dict[str, Answer]:
        """Put the end of an attempt on the disk.

        Args:
            entry: its ledger entry.
            cost: what it cost in picodollars; None where that is unknown.
            answer: the answer to store, where there is one.
            failure: (key, code) of a call that failed for good.

        Returns:
            Answers that another process had stored first, by key.
        """
        self._records.costs[entry] = cost
        if answer is not None:
            self._records.answers.append(answer)
        if failure is not None:
            self._records.failures[failure[0]] = failure[1]
        future: asyncio.Future[dict[str, Answer]] = asyncio.get_running_loop().create_future()
        self._written.append(future)
        self._schedule()
        # A worker that is canceled here must not take the result from the commit that others share.
        return await asyncio.shield(future)

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            # At the end of this turn of the loop, so that whatever else is ready goes into the same commit.
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Commit everything that is waiting. An error of the disk is raised in every worker that waits for it."""
        self._scheduled = False
        records, written, wanted = self._records, self._written, self._wanted
        self._records, self._written, self._wanted = Records(), [], []
        futures: list[asyncio.Future[dict[str, Answer]] | asyncio.Future[Reserved]] = [*written]
        futures += [future for _, _, future in wanted]
        try:
            others = self.books.write(records)
            # Workers that were canceled meanwhile wait for nothing, so nothing is reserved for them.
            made = self.books.claim_and_reserve([(c, a) for c, a, f in wanted if not f.done()]) if wanted else []
        except Exception as error:
            # The disk failed: every worker that waits has to learn of it, or it would wait forever.
            for future in futures:
                if not future.done():
                    future.set_exception(error)
            return
        for done in written:
            if not done.done():
                done.set_result(others)
        for waiting, entry in zip([f for _, _, f in wanted if not f.done()], made, strict=True):
            waiting.set_result(entry)
        if written:
            self._settled.set()
            self._settled = asyncio.Event()
