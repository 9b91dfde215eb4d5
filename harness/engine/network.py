"""Calls to endpoints over the network: many in flight, each attempt reserved before and settled after.

See contract: stages, "Spend caps".
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from harness.cache.answers import Entry
from harness.calls.call import TRIES, Answer, Call, CallError, Endpoint, EndpointError, Request
from harness.calls.retry import FAILURES_IN_A_ROW, Health, Patience
from harness.engine.outcome import Outcome
from harness.engine.writer import Writer
from harness.money.budget import Refusal, worst_case
from harness.plan.records import Callee, EndpointPlan


@dataclass
class _Progress:
    """One call on its way: when it began, its cost so far in picodollars, its attempts, the wait before the next."""

    call: Call
    began: float
    spent: int = 0
    attempts: int = 0
    try_: int = 0
    wait: float = 0.0


class NetworkLane:
    """The queue of one endpoint and the workers that empty it."""

    def __init__(
        self, name: str, endpoint: Endpoint, limits: EndpointPlan, *,
        callee: Callable[[Call], Callee], writer: Writer, outcome: Outcome,
    ) -> None:  # fmt: skip
        self._name, self._endpoint = name, endpoint
        self._callee, self._writer, self._outcome = callee, writer, outcome
        self._health = Health(Patience(limits.max_attempts, limits.total_wait, limits.backoff))

    def workers(self, queue: deque[Call]) -> Iterator[asyncio.Task[None]]:
        """Start as many workers as the endpoint takes at once."""
        for _ in range(min(self._endpoint.concurrency, len(queue))):
            yield asyncio.create_task(self._work(queue))

    async def _work(self, queue: deque[Call]) -> None:
        while queue and not self._outcome.halted:
            call = queue.popleft()
            if self._outcome.closed(call):
                self._outcome.leave(call)
                continue
            try:
                await self._call(call)
            except asyncio.CancelledError:
                self._outcome.leave(call)
                raise

    async def _call(self, call: Call) -> None:
        progress = _Progress(call, asyncio.get_running_loop().time())
        over = False
        while not over:
            await self._health.pause(progress.wait, self._stopped)
            request = replace(call.request, try_=progress.try_)
            amount = worst_case(request, self._callee(call).prices)
            entry = await self._writer.reserve(call, amount)
            if isinstance(entry, Refusal):
                self._outcome.leave(call, entry.account)
                return
            if self._stopped():
                await self._writer.write(entry=entry, cost=0)
                self._outcome.leave(call)
                return
            over = await self._attempt(progress, request, entry, amount)

    def _stopped(self) -> bool:
        return self._outcome.halted

    async def _attempt(self, progress: _Progress, request: Request, entry: int, amount: int) -> bool:
        """Make one attempt and book it; returns whether the call is over."""
        progress.attempts += 1
        self._outcome.tally.attempts += 1
        try:
            answer = await self._endpoint.complete(request)
        except asyncio.CancelledError:
            self._writer.drop(entry, None)
            raise
        except EndpointError as error:
            await self._writer.write(entry=entry, cost=0)
            self._outcome.stop(f"{request.model} at endpoint {self._name}: {error}")
            self._outcome.leave(progress.call)
            return True
        except CallError as error:
            return await self._failed(progress, entry, amount, error)
        return await self._answered(progress, entry, amount, answer)

    async def _answered(self, progress: _Progress, entry: int, amount: int, answer: Answer) -> bool:
        """Book an answer and store it when it is final; returns whether the call is over."""
        call = progress.call
        cost = cost_of(answer, self._callee(call), amount)
        progress.spent += cost
        if cost > amount:
            self._outcome.overspent(call, cost, amount)
        progress.try_ += 1
        final = final_answer(call, answer, progress.try_, progress.spent)
        if final is None:
            await self._writer.write(entry=entry, cost=cost)
            progress.wait = 0.0
            return False
        stored = Entry(call.key, call.role, call.request.model, final, self._writer.books.ticket(entry), cost)
        others = await self._writer.write(entry=entry, cost=cost, answer=stored)
        self._health.failures = 0
        self._outcome.finish(call.key, others.get(call.key, final))
        return True

    async def _failed(self, progress: _Progress, entry: int, amount: int, error: CallError) -> bool:
        """Book a failed attempt; returns whether the call is over, or else has its wait set."""
        call = progress.call
        cost = {"none": 0, "unknown": None}[error.billed] if isinstance(error.billed, str) else error.billed
        progress.spent += amount if cost is None else cost
        wait = self._health.after(progress.attempts, progress.began, error.retry_after) if error.retryable else None
        if wait is None:
            await self._writer.write(entry=entry, cost=cost, failure=(call.key, error.code))
            self._gave_up(call, error)
            return True
        await self._writer.write(entry=entry, cost=cost)
        progress.wait = wait
        return False

    def _gave_up(self, call: Call, error: CallError) -> None:
        self._outcome.fail(call.key, error.code, error.reason)
        self._health.failures += 1
        where = f"{call.request.model} at endpoint {self._name}"
        if error.unreachable:
            self._outcome.stop(f"{where}: {error.reason}: is it running, and is base_url in run.toml right?")
        elif self._health.failures >= FAILURES_IN_A_ROW:
            self._outcome.stop(
                f"{where}: {self._health.failures:,} calls in a row failed, the last with: {error.reason}"
            )


def cost_of(answer: Answer, callee: Callee, reserved: int) -> int:
    """Return an answer's cost in picodollars: as reported, else from its tokens, else the reserved worst case."""
    if answer.cost is not None:
        return answer.cost
    if answer.prompt_tokens is None or answer.completion_tokens is None:
        return reserved
    return callee.prices.cost(answer.prompt_tokens, answer.completion_tokens)


def final_answer(call: Call, answer: Answer, tries: int, spent: int) -> Answer | None:
    """Return the answer as it is stored, or None when it cannot be used and may be asked for again."""
    error = call.check(answer) if call.check is not None else None
    if error is None:
        return replace(answer, cost=spent)
    return replace(answer, cost=spent, outcome="unusable", error=error) if tries >= TRIES else None
