"""Calls to a backend inside this process: whole batches, under the same books as calls over the network.

See contract: stages, "Simulated runs".
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.cache.answers import Entry
from harness.calls.call import BatchEndpoint, Call
from harness.engine.network import cost_of, final_answer
from harness.engine.outcome import Outcome
from harness.engine.writer import Books, Records
from harness.money.budget import RUN_ACCOUNT, account_of, worst_case
from harness.plan.records import Callee

LARGEST_BATCH = 1_000  # so that Ctrl-C never waits for more than a moment


@dataclass
class _Asked:
    """A call in a batch: how often it was asked, and what that cost in picodollars."""

    call: Call
    tries: int = 0
    spent: int = 0


class BatchLane:
    """The queue of a backend inside this process, emptied in whole batches."""

    def __init__(
        self, endpoint: BatchEndpoint, *, callee: Callable[[Call], Callee], books: Books, outcome: Outcome,
        tell: Callable[[], None],
    ) -> None:  # fmt: skip
        self._endpoint, self._callee, self._books = endpoint, callee, books
        self._outcome, self._tell = outcome, tell

    async def work(self, queue: deque[Call]) -> None:
        """Empty the queue, batch by batch. Between batches the event loop runs, so that Ctrl-C is seen."""
        waiting: deque[_Asked] = deque()
        size = min(self._endpoint.batch_size, LARGEST_BATCH)
        while (queue or waiting) and not self._outcome.halted:
            while queue and len(waiting) < size:
                waiting.append(_Asked(queue.popleft()))
            batch = [waiting.popleft() for _ in range(min(len(waiting), size))]
            # Calls to ask again go first, so that few are half done when the stage is stopped.
            waiting.extendleft(reversed(self._batch(batch)))
            self._tell()
            await asyncio.sleep(0)
        for asked in waiting:
            self._outcome.leave(asked.call)

    def _batch(self, batch: list[_Asked]) -> list[_Asked]:
        """Ask one batch; returns the calls to ask again."""
        wanted = []
        for asked in batch:
            if self._outcome.closed(asked.call):
                self._outcome.leave(asked.call)
            else:
                wanted.append((asked, worst_case(asked.call.request, self._callee(asked.call).prices)))
        made = self._books.reserve([(asked.call, amount) for asked, amount in wanted])
        # An entry's number is a grant, anything else a refusal.
        granted = [(a, amount, e) for (a, amount), e in zip(wanted, made, strict=True) if isinstance(e, int)]
        refused = [(a, e.account) for (a, _), e in zip(wanted, made, strict=True) if not isinstance(e, int)]
        again = self._ask(granted)
        open_accounts = {name for a, _, _ in granted for name in (RUN_ACCOUNT, account_of(a.call))}
        for asked, account in refused:
            if account in open_accounts:  # what was in flight may have settled for less: ask again
                again.append(asked)
            else:
                self._outcome.leave(asked.call, account)
        return again

    def _ask(self, granted: list[tuple[_Asked, int, int]]) -> list[_Asked]:
        requests = [replace(a.call.request, try_=a.tries) if a.tries else a.call.request for a, _, _ in granted]
        answers = self._endpoint.complete_batch(requests)
        self._outcome.tally.attempts += len(granted)
        records, again, finished = Records(), [], []
        for (asked, amount, entry), answer in zip(granted, answers, strict=True):
            cost = cost_of(answer, self._callee(asked.call), amount)
            records.costs[entry] = cost
            asked.tries += 1
            asked.spent += cost
            final = final_answer(asked.call, answer, asked.tries, asked.spent)
            if final is None:
                again.append(asked)
                continue
            call = asked.call
            ticket = self._books.ticket(entry)
            records.answers.append(Entry(call.key, call.role, call.request.model, final, ticket, cost))
            finished.append((call, final))
        # All answers of the batch reach the disk in one commit.
        others = self._books.write(records)
        for call, final in finished:
            self._outcome.finish(call, others.get(call.key, final))
        return again
