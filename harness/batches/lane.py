"""Calls that go to a vendor in batches: reserved, written down, handed in, waited for, collected, booked.

The order of writing is that of single calls, with steps more: reserve in the ledger, write the batch into the journal,
hand it in, keep its id; later store answers, settle reservations, end the journal's requests. A crash at any point
leaves either a batch that the next process finds and collects, or reservations that count as spent.

See contract: stages, "Batch endpoints".
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import Any

from harness.batches.asking import GivenUpError, VendorCalls
from harness.batches.dialect import BatchError, BatchResult, BatchStanding, Dialect
from harness.batches.flight import InFlight, PendingCall
from harness.batches.journal import BatchItem, Journal, SubmittedBatch
from harness.batches.resume import Resumption
from harness.cache.answers import Entry
from harness.calls.call import Answer, Call, CallError, EndpointError, Request
from harness.engine.desk import Desk
from harness.engine.lanes import Closure
from harness.engine.network import HELD, cost_of, final_answer
from harness.engine.remedies import refused_key
from harness.engine.writer import HeldElsewhere, Records
from harness.money.budget import Refusal, account_of, worst_case
from harness.plan.records import BatchPlan

LOOKS = 3  # for a batch that may have been handed in, before the lane is closed
_COMMIT = 500  # results booked at once

# Reads one result as a single call's reply would be read; raises CallError or EndpointError.
ResultReader = Callable[[BatchResult, Request], Answer]
BodyMaker = Callable[[Request], dict[str, Any]]


class VendorLane:
    """The queue of one endpoint that takes batches.

    Args:
        name: the endpoint's name in run.toml.
        dialect: the vendor's way with batches.
        plan: sizes, pauses and bounds of its batches.
        attempts: how often a call is handed in, at most.
        body: makes the body of a single call.
        read: reads a result as the reply of a single call.
        clock: seconds since 1970.
    """

    journal: Journal  # of the run, open as long as the lane works (`harness.batches.connect.open_journal`)

    def __init__(
        self, name: str, dialect: Dialect, plan: BatchPlan,
        *, attempts: int, body: BodyMaker, read: ResultReader, clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self.name, self._dialect, self._plan = name, dialect, plan
        self._attempts, self._body, self._read, self._clock = attempts, body, read, clock
        self._vendor = VendorCalls(plan.poll)
        self._waiting: deque[PendingCall] = deque()
        self._flying: list[InFlight] = []

    async def work(self, queue: deque[Call], desk: Desk) -> None:
        """Empty the queue: collect what earlier processes handed in, then hand in the rest.

        A batch that is still at work when the stage stops stays in the journal for the next process.
        """
        calls = {call.key: call for call in queue}
        queue.clear()
        try:
            try:
                resumption = Resumption(self.name, self.journal, self._dialect, self._vendor, desk)
                await resumption.take_up(calls, self._flying.append)
            finally:
                self._waiting.extend(PendingCall(call) for call in calls.values())
            while not desk.outcome.halted and (self._waiting or self._flying):
                await self._hand_in(desk)
                if self._flying:
                    await self._collect(desk)
                elif self._waiting:  # all of it is asked by other processes at this moment
                    await self._vendor.pause(HELD, desk)
        except GivenUpError as error:
            words = "run the same command again when that is mended"
            desk.outcome.close_endpoint(self.name, Closure(f"endpoint {self.name}: {error}", words))
        finally:  # after Ctrl-C, too: every call has an end or is left
            self._part(desk)

    async def close(self) -> None:
        """Close the connections. Whoever opened the journal closes it."""
        await self._dialect.close()

    def _part(self, desk: Desk) -> None:
        """Put aside what has no end yet, and say where it is."""
        self._leave(self._waiting, desk)
        for flight in self._flying:
            for asked in flight.asked.values():
                desk.outcome.leave(asked.call)
        if self._flying:
            calls = sum(len(f.asked) for f in self._flying)
            names = ", ".join(f.vendor_id for f in self._flying)
            desk.outcome.tally.warnings.append(
                f"endpoint {self.name}: {calls:,} calls are in batches that the vendor still works on ({names});"
                " the same command collects them later, and asks none of them twice"
            )

    async def _hand_in(self, desk: Desk) -> None:
        """Hand in batches while there are calls, money and room for them."""
        while self._waiting and len(self._flying) < self._plan.at_once and not desk.outcome.halted:
            before = len(self._waiting)
            if granted := self._reserve(desk):
                await self._submit(granted, desk)
            elif self._flying or len(self._waiting) == before:
                return

    def _reserve(self, desk: Desk) -> list[tuple[PendingCall, int, int]]:
        """Take a batch's worth of calls from the queue and reserve for each; returns (call, amount, entry)."""
        wanted = [
            (a, worst_case(a.request, desk.callee(a.call).prices) + desk.overruns.beyond(a.call))
            for a in self._next(desk)
        ]
        made = desk.books.claim_and_reserve([(asked.call, amount) for asked, amount in wanted])
        granted = [(a, amount, e) for (a, amount), e in zip(wanted, made, strict=True) if isinstance(e, int)]
        for (asked, _), entry in zip(wanted, made, strict=True):
            if isinstance(entry, Answer):
                desk.outcome.finish(asked.call, entry, cached=True)
            elif isinstance(entry, HeldElsewhere):
                self._waiting.append(asked)
            elif isinstance(entry, Refusal) and (self._flying or granted):
                self._waiting.append(asked)  # what is in flight may settle for less: ask again then
            elif isinstance(entry, Refusal):
                self._leave([asked], desk, entry.account)
        return granted

    def _leave(self, calls: Iterable[PendingCall], desk: Desk, account: str | None = None) -> None:
        """Put calls aside, and let other processes ask them."""
        left = [asked.call for asked in calls]
        desk.books.write(Records(released=[call.key for call in left]))
        for call in left:
            desk.outcome.leave(call, account)

    def _next(self, desk: Desk) -> list[PendingCall]:
        """Take the next batch's calls from the queue, within the vendor's limits.

        OpenAI wants one model in each batch.
        """
        chosen: list[PendingCall] = []
        later: deque[PendingCall] = deque()
        size = 0
        most = min(self._plan.requests, self._dialect.largest)
        while self._waiting and len(chosen) < most and size < self._dialect.largest_bytes:
            asked = self._waiting.popleft()
            if desk.outcome.closed(asked.call):
                self._leave([asked], desk)
                continue
            # The custom_id is not made yet; it is shorter than 64 characters.
            length = len(self._dialect.request("x" * 64, self._body(asked.request))) + 1
            fits = size + length <= self._dialect.largest_bytes
            if chosen and not (fits and asked.request.api_model == chosen[0].request.api_model):
                later.append(asked)
                continue
            chosen.append(asked)
            size += length
        self._waiting.extendleft(reversed(later))
        return chosen

    async def _submit(self, granted: Sequence[tuple[PendingCall, int, int]], desk: Desk) -> None:
        nonce = secrets.token_hex(8)
        items = [
            BatchItem(f"{nonce}-{n}", a.call.key, entry, amount, account_of(a.call), a.attempts, a.tries, a.spent)
            for n, (a, amount, entry) in enumerate(granted)
        ]
        asked = {item.custom_id: a for item, (a, _, _) in zip(items, granted, strict=True)}
        number = self.journal.begin(self.name, nonce, items, now=int(self._clock()))
        batch = SubmittedBatch(number, nonce, None, int(self._clock()), tuple(items))
        requests = [self._dialect.request(i, self._body(a.request)) for i, a in asked.items()]
        try:
            vendor_id = await self._handed_in(nonce, requests, desk)
        except GivenUpError as error:
            self._withdraw(batch, asked, desk, billed=error.sent)
            raise
        except asyncio.CancelledError:
            self._withdraw(batch, asked, desk, billed=True)
            raise
        self.journal.submitted(number, vendor_id)
        desk.outcome.tally.attempts += len(items)
        self._flying.append(InFlight(batch, vendor_id, asked))
        desk.tell()

    async def _handed_in(self, nonce: str, requests: Sequence[bytes], desk: Desk) -> str:
        """Hand a batch in. Where no answer came, look for it; it is never handed in twice under one reservation."""

        async def attempt() -> str:
            # No answer came, but the vendor may have taken the batch: handing it in again could pay for it twice. It
            # stays in the journal, and the next process looks once more before its calls are asked anew.
            if sent:
                if found := await self._dialect.find(nonce):
                    return found
                looks.append(True)
                unsure = "no answer came when a batch was handed in, and the vendor does not list it"
                raise BatchError(unsure, final=len(looks) >= LOOKS, sent=True)
            try:
                return await self._dialect.submit(nonce, requests)
            except BatchError as error:
                sent.extend([True] * error.sent)
                raise

        sent: list[bool] = []
        looks: list[bool] = []
        try:
            return await self._vendor.ask(attempt, desk)
        except GivenUpError as error:
            raise GivenUpError(str(error), sent=bool(sent)) from None

    def _withdraw(self, batch: SubmittedBatch, asked: dict[str, PendingCall], desk: Desk, *, billed: bool) -> None:
        """Take back a batch that did not arrive.

        One that may have arrived stays in the journal, to be found next time.
        """
        for each in asked.values():
            desk.outcome.leave(each.call)
        if not billed:
            gone = [item.key for item in batch.items]
            desk.books.write(Records(costs=dict.fromkeys((i.entry for i in batch.items), 0), released=gone))
            self.journal.ended(batch.number, [i.custom_id for i in batch.items])

    async def _collect(self, desk: Desk) -> None:
        """Wait, then look at each batch and book what has ended."""
        await self._vendor.pause(self._plan.poll, desk)
        for flight in list(self._flying):
            if desk.outcome.halted:
                return
            standing = await self._vendor.ask(partial(self._dialect.standing, flight.vendor_id), desk)
            if standing.state in ("over", "failed"):
                await self._book(flight, standing, desk)
            else:
                self._overdue(flight, standing)
        desk.tell()

    def _overdue(self, flight: InFlight, standing: BatchStanding) -> None:
        age = int(self._clock()) - flight.batch.created
        if age > self._plan.wait:
            raise GivenUpError(
                f"batch {flight.vendor_id} is still {standing.said!r} after {age // 3600:,} hours; run the same command"
                " later to collect it, or cancel it at the vendor and run again: what it did not answer is asked anew"
            )

    async def _book(self, flight: InFlight, standing: BatchStanding, desk: Desk) -> None:
        """Book what a batch brought, and put what it did not answer back into the queue."""
        items = {item.custom_id: item for item in flight.batch.items}
        seen: set[str] = set()
        chunk: list[tuple[BatchItem, BatchResult]] = []
        async for result in self._results(standing, desk):
            if result.custom_id in items and result.custom_id not in seen:
                seen.add(result.custom_id)
                chunk.append((items[result.custom_id], result))
            if len(chunk) >= _COMMIT:
                self._commit(flight, chunk, desk)
                chunk = []
        # What no file mentions was not tried, unless the vendor says that all of it was: then it may have been billed.
        absent = [(item, BatchResult(i, None, lost=standing.whole)) for i, item in items.items() if i not in seen]
        failed = standing.state == "failed"
        self._commit(flight, [*chunk, *absent], desk, keep=failed)
        self._flying.remove(flight)
        if failed:
            raise GivenUpError(f"batch {flight.vendor_id} was refused whole, at no cost: {standing.said}")

    async def _results(self, standing: BatchStanding, desk: Desk) -> AsyncIterator[BatchResult]:
        """Yield all results. When the connection breaks it begins again, so results may come twice."""
        for attempt in itertools.count(1):
            try:
                async for result in self._dialect.results(standing):
                    yield result
            except BatchError as error:
                await self._vendor.missed(error, desk, attempt)
            else:
                return

    def _commit(
        self, flight: InFlight, ended: Sequence[tuple[BatchItem, BatchResult]], desk: Desk, *, keep: bool = False
    ) -> None:
        """Book the ends of requests: store answers, settle reservations, then tell the journal.

        With `keep` nothing was tried, and the attempt does not count.
        """
        records, finished, open_ = Records(), [], desk.books.unsettled(item.entry for item, _ in ended)
        for item, result in ended:
            asked = flight.asked.pop(item.custom_id, None)
            answer, cost, error = self._outcome_of(item, result, asked, desk)
            if item.entry in open_:
                records.costs[item.entry] = cost
            if asked is None:
                continue
            if not keep:
                asked.attempts += 1
            if answer is not None:
                asked.tries += 1
                asked.spent += cost or 0
                final = final_answer(asked.call, answer, asked.tries, asked.spent)
                if final is None:
                    self._waiting.append(asked)
                    continue
                ticket = desk.books.ticket(item.entry)
                model = asked.call.request.model
                records.answers.append(Entry(item.key, asked.call.role, model, final, ticket, cost or 0))
                finished.append((asked.call, final))
            elif error is not None and (not error.retryable or asked.attempts >= self._attempts):
                records.failures[item.key] = error.code
                desk.outcome.fail(asked.call, error)
            else:
                self._waiting.append(asked)
        others = desk.books.write(records)
        self.journal.ended(flight.batch.number, [item.custom_id for item, _ in ended])
        for call, final in finished:
            desk.outcome.finish(call, others.get(call.key, final))

    def _outcome_of(
        self, item: BatchItem, result: BatchResult, asked: PendingCall | None, desk: Desk
    ) -> tuple[Answer | None, int | None, CallError | None]:
        """Return the answer, its cost in picodollars (None: unknown, so the worst case), and the error without one."""
        if result.status is None:
            reason = "its batch came back without it" if result.lost else "its batch ended before it was tried"
            return None, None if result.lost else 0, CallError("provider_error", reason, retryable=True)
        if asked is None:
            return None, None, None  # answered meanwhile by another run; what this one cost is not known
        try:
            answer = self._read(result, asked.request)
        except CallError as error:
            cost = {"none": 0, "unknown": None}[error.billed] if isinstance(error.billed, str) else error.billed
            return None, cost, error
        except EndpointError as error:
            desk.outcome.close_model(asked.call, refused_key(asked.call, str(error)))
            return None, error.billed, CallError("http_status", str(error), retryable=True)
        cost = cost_of(answer, desk.callee(asked.call), item.amount)
        desk.weigh(asked.call, answer, cost)
        return answer, cost, None
