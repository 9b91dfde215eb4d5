"""The one runner behind eval and judge: cache, money, retries and concurrency (contract: stages, "Endpoints").

For every call, in this order: looked up in the cache; its worst case reserved in the ledger, on disk; one attempt made;
the answer stored in the cache, on disk; the reservation settled, on disk; only then counted. A crash at any point loses
at most the calls in flight, whose reservations count as spent.

    engine = Engine(plan, cache=cache, ledger=ledger, endpoints=endpoints)
    outcome = engine.run(calls, watch=progress)   # Outcome: answers by key, failures by key, what is left and why

`calls` may hold a key twice (judges often see the same masked text for two groups): it is asked once. `Engine.run` may
be called several times: a first wave of primary judges, then the tiebreaks of those rows that need one.
"""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from harness.cache.answers import Cache
from harness.calls.call import BatchEndpoint, Call, Endpoint
from harness.engine.desk import Desk, OwnLane
from harness.engine.in_process import BatchLane
from harness.engine.network import NetworkLane
from harness.engine.outcome import Outcome, Watch
from harness.engine.writer import Books, Writer
from harness.money.budget import Ledger
from harness.plan.records import Callee, RunPlan

GRACE = 0.5  # seconds that calls in flight get, after Ctrl-C, to come home
_LOOKUP = 2_000

Endpoints = Mapping[str, Endpoint | BatchEndpoint | OwnLane]


class Engine:
    """Runs calls against the endpoints of a plan, by name."""

    def __init__(self, plan: RunPlan, *, cache: Cache, ledger: Ledger, endpoints: Endpoints) -> None:
        self._plan, self._cache, self._ledger, self._endpoints = plan, cache, ledger, endpoints

    def run(self, calls: Iterable[Call], *, watch: Watch | None = None, keep: bool = True) -> Outcome:
        """Run all calls to an end, a cap, a stop or Ctrl-C; never raises for what an endpoint does.

        With `keep=False` answers are stored and counted but not returned. Raises ToolError when cache or ledger
        cannot be read or written.
        """
        return asyncio.run(self._run(list(calls), Outcome(keep=keep), watch or (lambda _: None)))

    async def _run(self, calls: list[Call], outcome: Outcome, watch: Watch) -> Outcome:
        def tell() -> None:
            outcome.tally.spent = self._ledger.committed()
            watch(outcome.tally)

        queues = self._queues(calls, outcome)
        tell()
        writer = Writer(Books(self._cache, self._ledger))
        with _orderly_stop(outcome):
            tasks = [
                task
                for name, queue in queues.items()
                for task in self._tasks(name, queue, writer=writer, outcome=outcome, tell=tell)
            ]
            try:
                await _until_done(tasks, outcome, tell)
            finally:
                await _cancel(tasks)
                writer.flush()
                await self._close(queues)
        for queue in queues.values():
            outcome.left.extend(queue)
        tell()
        return outcome

    def _queues(self, calls: list[Call], outcome: Outcome) -> dict[str, deque[Call]]:
        """Answer what the cache can, book it as reused, and queue the rest by endpoint; each key once."""
        queues: dict[str, deque[Call]] = {}
        unique = list({call.key: call for call in calls}.values())
        outcome.tally.planned = len(unique)
        for i in range(0, len(unique), _LOOKUP):
            chunk = unique[i : i + _LOOKUP]
            found = self._cache.lookup([call.key for call in chunk])
            if found:
                self._ledger.reuse([(c, found[c.key].cost or 0) for c in chunk if c.key in found])
            for call in chunk:
                if call.key in found:
                    outcome.finish(call.key, found[call.key], cached=True)
                else:
                    queues.setdefault(call.endpoint, deque()).append(call)
        return queues

    def _callee(self, call: Call) -> Callee:
        known: Mapping[str, Callee] = self._plan.subject if call.role == "subject" else self._plan.judge
        return known[call.request.model]

    def _tasks(
        self, name: str, queue: deque[Call], *, writer: Writer, outcome: Outcome, tell: Callable[[], None]
    ) -> list[asyncio.Task[None]]:
        endpoint = self._endpoints[name]
        if isinstance(endpoint, OwnLane):
            desk = Desk(self._callee, writer.books, outcome, tell)
            return [asyncio.create_task(endpoint.work(queue, desk))]
        if isinstance(endpoint, BatchEndpoint):
            batches = BatchLane(endpoint, callee=self._callee, books=writer.books, outcome=outcome, tell=tell)
            return [asyncio.create_task(batches.work(queue))]
        limits = self._plan.endpoints[name]
        lane = NetworkLane(name, endpoint, limits, callee=self._callee, writer=writer, outcome=outcome)
        return list(lane.workers(queue))

    async def _close(self, names: Iterable[str]) -> None:
        for name in names:
            endpoint = self._endpoints[name]
            if not isinstance(endpoint, BatchEndpoint):
                await endpoint.close()


async def _until_done(tasks: list[asyncio.Task[None]], outcome: Outcome, tell: Callable[[], None]) -> None:
    """Wait for the workers. A stage that stops itself brings home what is in flight; after Ctrl-C there is a moment."""
    pending = set(tasks)
    while pending and not outcome.interrupted:
        done, pending = await asyncio.wait(pending, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        tell()
    if pending:
        await asyncio.wait(pending, timeout=GRACE)


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _orderly_stop(outcome: Outcome) -> Iterator[None]:
    """Turn the first Ctrl-C or TERM into an orderly stop; a second one ends the program as usual."""
    loop = asyncio.get_running_loop()
    kinds: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM)

    def forget() -> None:
        for kind in kinds:
            loop.remove_signal_handler(kind)

    def stop() -> None:
        outcome.interrupted = True
        forget()

    try:
        for kind in kinds:
            loop.add_signal_handler(kind, stop)
    except (ValueError, RuntimeError, NotImplementedError):  # not the main thread, or a system without signals
        kinds = ()
    try:
        yield
    finally:
        forget()
