"""Calls to endpoints over the network: many in flight, each attempt reserved before and settled after.

A call is claimed, reserved, made and booked. A failure that may pass puts it back into the queue. What closes a lane
leaves the neighbors at the same endpoint alone.

See contract: stages, "Attempts and waiting"; contract: stages, "Stopping".
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.cache.answers import Entry
from harness.calls.call import TRIES, Answer, Call, CallError, Endpoint, EndpointError, Request
from harness.calls.retry import Health, Patience
from harness.engine import remedies
from harness.engine.call_queue import Attempt, CallQueue
from harness.engine.desk import Desk
from harness.engine.lanes import Closure, lane_of
from harness.engine.outcome import Wait
from harness.engine.pace import EndpointPace
from harness.engine.writer import HeldElsewhere, Writer
from harness.money.budget import Refusal, worst_case
from harness.plan.records import Callee, EndpointPlan

LOOK_UP = 0.1  # seconds between looks at whether the stage was stopped, or a lane closed, meanwhile
HELD = 0.25  # seconds between looks at whether another process has answered a key
WORTH_TELLING = 1.0  # seconds from which a wait is shown
TOO_MANY = 429
_UNBOUNDED = frozenset({TOO_MANY})  # a limit passes with time, whatever the number of attempts


@dataclass(frozen=True)
class Made:
    """An attempt that has its reservation: ledger entry and reserved amount in picodollars."""

    attempt: Attempt
    request: Request
    entry: int
    amount: int

    @property
    def call(self) -> Call:
        """The call that this is an attempt at."""
        return self.attempt.call


class NetworkLane:
    """The queue of one endpoint and the workers that empty it."""

    def __init__(
        self, name: str, endpoint: Endpoint, limits: EndpointPlan, *, desk: Desk, writer: Writer,
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._name, self._endpoint, self._limits = name, endpoint, limits
        self._desk, self._writer, self._outcome = desk, writer, desk.outcome
        self._health = Health(Patience(limits.max_attempts, limits.total_wait, limits.backoff))
        self._pace = EndpointPace(limits.requests_per_minute, limits.tokens_per_minute)
        self._clock = clock
        self._changed = asyncio.Event()

    async def work(self, queue: deque[Call]) -> None:
        """Empty the queue, with as many workers as the endpoint takes at once. What is left at the end is put aside."""
        pending = CallQueue(queue, self._outcome)
        queue.clear()
        workers = [
            asyncio.create_task(self._work(pending)) for _ in range(min(self._endpoint.concurrency, len(pending)))
        ]
        try:
            await asyncio.gather(*workers)
        finally:
            # Canceled workers put their own calls aside, and the queue those that nobody had taken.
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            pending.leave_all()

    async def _work(self, queue: CallQueue) -> None:
        now = asyncio.get_running_loop().time
        while not self._outcome.halted:
            found = queue.take(now())
            if found is None:
                return
            if not isinstance(found, Attempt):
                await self._look_up(found - now())
                continue
            try:
                await self._advance(found, queue)
            except asyncio.CancelledError:
                self._outcome.leave(found.call)
                raise
            finally:
                # An answer or a definite failure shows that the model is there; a wait shows nothing.
                queue.ended(found.call, heard=found.over or found.try_ > 0)
                # Wakes all workers that wait, and gives later ones a fresh event to wait for.
                self._changed.set()
                self._changed = asyncio.Event()

    async def _look_up(self, seconds: float) -> None:
        """Wait until something has changed, for so many seconds at most and never longer than `LOOK_UP`."""
        changed = self._changed
        try:
            async with asyncio.timeout(min(max(seconds, 0.0), LOOK_UP)):
                await changed.wait()
        except TimeoutError:
            pass

    async def _advance(self, attempt: Attempt, queue: CallQueue) -> None:
        """Make one attempt at a call. Afterwards the call is over or back in the queue."""
        call, loop = attempt.call, asyncio.get_running_loop()
        request = replace(call.request, try_=attempt.try_)
        if not await self._paced(request, call):
            self._leave(attempt)
            return
        attempt.began = loop.time() if attempt.began is None else attempt.began
        # Reserved on the disk before anything is sent, so no crash can hide what was spent.
        amount = worst_case(request, self._desk.callee(call).prices) + self._desk.overruns.beyond(call)
        entry = await self._writer.reserve(call, amount)
        if isinstance(entry, int):
            await self._make(Made(attempt, request, entry, amount), queue)
            return
        # Not sent after all: its tokens go back into the flow.
        self._pace.ended(request, None)
        if isinstance(entry, Refusal):
            self._leave(attempt, entry.account)
        elif isinstance(entry, HeldElsewhere):
            self._told(call, HELD, "another process asks the same")
            queue.again(attempt, loop.time() + HELD)
        else:
            attempt.over = True
            self._outcome.finish(call, entry, cached=True)

    async def _paced(self, request: Request, call: Call) -> bool:
        """Wait for the endpoint's pace; returns whether the call may still be made."""
        now = asyncio.get_running_loop().time
        start = self._pace.start(request, now())
        self._told(call, start - now(), f"endpoint {self._name} is asked no faster")
        while (wait := start - now()) > 0 and not self._stopped(call):
            await asyncio.sleep(min(wait, LOOK_UP))
        return not self._stopped(call)

    def _stopped(self, call: Call) -> bool:
        return self._outcome.halted or self._outcome.closed(call)

    def _told(self, call: Call, seconds: float, why: str) -> None:
        """Show a wait that is long enough for the operator to wonder."""
        if seconds >= WORTH_TELLING:
            until = asyncio.get_running_loop().time() + seconds
            self._outcome.tally.waits[str(lane_of(call))] = Wait(until, seconds, why)

    def _leave(self, attempt: Attempt, account: str | None = None) -> None:
        attempt.over = True
        self._writer.let_go(attempt.call)
        self._outcome.leave(attempt.call, account)

    async def _make(self, made: Made, queue: CallQueue) -> None:
        """Make a reserved attempt and book it."""
        if self._stopped(made.call):
            # Stopped between reservation and attempt: nothing was sent, so nothing was spent.
            await self._writer.write(entry=made.entry, cost=0)
            self._leave(made.attempt)
            return
        made.attempt.attempts += 1
        self._outcome.tally.attempts += 1
        self._outcome.tally.waits.pop(str(lane_of(made.call)), None)
        try:
            answer = await self._endpoint.complete(made.request)
        except asyncio.CancelledError:
            # Cut off in flight: the endpoint may bill it, so its worst case counts as spent.
            self._writer.drop(made.entry, None)
            raise
        except EndpointError as error:
            self._pace.ended(made.request, None)
            self._outcome.close_model(made.call, remedies.refused_key(made.call, str(error)))
            await self._writer.write(entry=made.entry, cost=error.billed)
            self._leave(made.attempt)
        except CallError as error:
            self._pace.ended(made.request, None)
            await self._failed(made, error, queue)
        else:
            self._pace.ended(made.request, answer)
            await self._answered(made, answer, queue)

    async def _answered(self, made: Made, answer: Answer, queue: CallQueue) -> None:
        """Book an answer and store it when it is final, else ask again."""
        attempt, call = made.attempt, made.call
        cost = cost_of(answer, self._desk.callee(call), made.amount)
        attempt.spent += cost
        attempt.bounded += 1
        attempt.try_ += 1
        self._desk.weigh(call, answer, cost)
        final = final_answer(call, answer, attempt.try_, attempt.spent)
        if final is None:
            await self._writer.write(entry=made.entry, cost=cost)
            queue.again(attempt, asyncio.get_running_loop().time())
            return
        attempt.over = True
        stored = Entry(call.key, call.role, call.request.model, final, self._writer.books.ticket(made.entry), cost)
        others = await self._writer.write(entry=made.entry, cost=cost, answer=stored)
        self._outcome.finish(call, others.get(call.key, final))

    async def _failed(self, made: Made, error: CallError, queue: CallQueue) -> None:
        """Book a failed attempt: the call is over, its lane is closed, or it waits for the next attempt."""
        attempt, call, now = made.attempt, made.call, asyncio.get_running_loop().time()
        cost = {"none": 0, "unknown": None}[error.billed] if isinstance(error.billed, str) else error.billed
        attempt.spent += made.amount if cost is None else cost
        # A limit that passes with time uses up no attempts.
        attempt.bounded += error.status not in _UNBOUNDED
        if error.notice is not None:
            self._outcome.tally.warnings.append(error.notice)
        if closure := self._closing(call, error):
            self._outcome.close_model(call, closure)
            await self._writer.write(entry=made.entry, cost=cost)
            self._leave(attempt)
            return
        wait = self._next_wait(attempt, error, now)
        if wait is None:
            attempt.over = True
            await self._writer.write(entry=made.entry, cost=cost, failure=(call.key, error.code))
            self._gave_up(call, error)
            return
        # What an endpoint asks for holds for every call to this model.
        if error.retry_after:
            queue.quiet(call, now + error.retry_after)
        self._told(call, wait, error.reason)
        await self._writer.write(entry=made.entry, cost=cost)
        queue.again(attempt, now + wait)

    def _closing(self, call: Call, error: CallError) -> Closure | None:
        """Return why this failure alone closes the model: it will be refused again, or the wait is too long.

        Otherwise None.
        """
        bound = self._limits.total_wait
        if error.retryable and error.retry_after is not None and error.retry_after > bound:
            return remedies.too_long_a_wait(call, error, error.retry_after, self._clock(), bound)
        return None if error.retryable else remedies.refused_at_once(call, error)

    def _next_wait(self, attempt: Attempt, error: CallError, now: float) -> float | None:
        if not error.retryable:
            return None
        assert attempt.began is not None
        return self._health.next_wait(
            made=attempt.attempts, bounded=attempt.bounded, spent=now - attempt.began, retry_after=error.retry_after
        )

    def _gave_up(self, call: Call, error: CallError) -> None:
        self._outcome.fail(call, error)
        if error.unreachable:
            self._outcome.close_endpoint(self._name, remedies.unreachable(call, error))


def cost_of(answer: Answer, callee: Callee, reserved: int) -> int:
    """Return what an answer cost, in picodollars: as reported, else by its tokens, else the reserved worst case.

    Args:
        answer: the answer of one attempt.
        callee: the model or judge, for its prices.
        reserved: the worst case that was reserved, in picodollars.
    """
    if answer.cost is not None:
        return answer.cost
    if answer.prompt_tokens is None or answer.completion_tokens is None:
        return reserved
    return callee.prices.cost(answer.prompt_tokens, answer.completion_tokens)


def final_answer(call: Call, answer: Answer, tries: int, spent: int) -> Answer | None:
    """Return the answer as it is stored, or None where it cannot be used and is asked for again.

    What the vendor's filter stopped, or what thinking left no room for, would only come back the same.

    Args:
        call: the call, whose check decides.
        answer: the answer of its last try.
        tries: answers so far, this one among them. The last one allowed is stored as `unusable`.
        spent: what all attempts cost, in picodollars; stored as the answer's cost.
    """
    error = call.check(answer) if call.check is not None else None
    if error is None or answer.outcome in ("filtered", "cut_before_answer"):
        return replace(answer, cost=spent)
    return replace(answer, cost=spent, outcome="unusable", error=error) if tries >= TRIES else None
