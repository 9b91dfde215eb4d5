"""The one runner behind eval and judge: cache, money, retries and concurrency (contract: stages, "Endpoints").

For every call, in this order: looked up in the cache; its worst case reserved in the ledger, on disk; one attempt made;
the answer stored in the cache, on disk; the reservation settled, on disk; only then counted. A crash at any point loses
at most the calls in flight, whose reservations count as spent. A key over the network is claimed first, so that two
runs that share a cache ask it once.

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
from harness.cache.claims import Claims
from harness.calls.call import BatchEndpoint, Call, Endpoint
from harness.engine.cache_choice import cache_words
from harness.engine.desk import Desk, OwnLane
from harness.engine.in_process import BatchLane
from harness.engine.network import NetworkLane
from harness.engine.outcome import Outcome, Watch
from harness.engine.writer import Books, Writer
from harness.money.budget import Ledger
from harness.money.overruns import Overruns
from harness.plan.records import Callee, RunPlan

GRACE = 0.5  # seconds that calls in flight get, after Ctrl-C, to come home
_LOOKUP = 2_000

Endpoints = Mapping[str, Endpoint | BatchEndpoint | OwnLane]


class Engine:
    """Runs calls against the endpoints of a plan.

    Args:
        plan: the run plan.
        cache: where answers are looked up and stored.
        ledger: where money is reserved and settled.
        endpoints: a backend for each endpoint of the plan, by name.
    """

    def __init__(self, plan: RunPlan, *, cache: Cache, ledger: Ledger, endpoints: Endpoints) -> None:
        self._plan, self._cache, self._ledger, self._endpoints = plan, cache, ledger, endpoints

    def run(self, calls: Iterable[Call], *, watch: Watch | None = None, keep: bool = True) -> Outcome:
        """Run all calls to an end, a cap, a stop or Ctrl-C.

        Whatever an endpoint does ends in the outcome, not in an exception.

        Args:
            calls: the calls; a key that comes twice is asked once.
            watch: is told the running numbers, several times a second.
            keep: whether answers are returned as well as stored and counted.

        Raises:
            ToolError: cache or ledger cannot be read or written.
        """
        outcome = Outcome(keep=keep, cache=cache_words(self._cache.path))
        return asyncio.run(self._run(list(calls), outcome, watch or (lambda _: None)))

    async def _run(self, calls: list[Call], outcome: Outcome, watch: Watch) -> Outcome:
        def tell() -> None:
            outcome.tally.spent = self._ledger.committed()
            watch(outcome.tally)

        queues = self._queues(calls, outcome)
        tell()
        with self._claims(queues) as claims, _orderly_stop(outcome):
            writer = Writer(Books(self._cache, self._ledger, claims))
            tasks = [
                asyncio.create_task(self._work(name, queue, writer=writer, outcome=outcome, tell=tell))
                for name, queue in queues.items()
            ]
            try:
                await _until_done(tasks, outcome, claims, tell)
            finally:
                await _cancel(tasks)
                # What canceled workers dropped is still to be booked.
                writer.flush()
                await self._close(queues)
        # A lane of its own, or one that stopped early, may leave calls in its queue.
        for queue in queues.values():
            outcome.left.extend(queue)
        tell()
        return outcome

    @contextmanager
    def _claims(self, queues: Iterable[str]) -> Iterator[Claims | None]:
        """Hold this process's claims while calls go over the network; none where all endpoints are inside it."""
        if all(isinstance(self._endpoints[name], BatchEndpoint) for name in queues):
            yield None
            return
        with Claims(self._cache.path, self._ledger.owner) as claims:
            yield claims

    def _queues(self, calls: list[Call], outcome: Outcome) -> dict[str, deque[Call]]:
        """Answer what the cache can, book it as reused, and queue the other calls by endpoint, each key once."""
        queues: dict[str, deque[Call]] = {}
        # Judges often see the same masked text for two groups; one call serves both.
        unique = list({call.key: call for call in calls}.values())
        outcome.plan(unique)
        for i in range(0, len(unique), _LOOKUP):
            chunk = unique[i : i + _LOOKUP]
            found = self._cache.lookup([call.key for call in chunk])
            if found:
                self._ledger.reuse([(c, found[c.key].cost or 0) for c in chunk if c.key in found])
            for call in chunk:
                if call.key in found:
                    outcome.finish(call, found[call.key], cached=True)
                else:
                    queues.setdefault(call.endpoint, deque()).append(call)
        return queues

    def _callee(self, call: Call) -> Callee:
        known: Mapping[str, Callee] = self._plan.subject if call.role == "subject" else self._plan.judge
        return known[call.request.model]

    async def _work(
        self, name: str, queue: deque[Call], *, writer: Writer, outcome: Outcome, tell: Callable[[], None]
    ) -> None:
        """Empty the queue of one endpoint; a call that is still in it at the end is left."""
        endpoint, desk = self._endpoints[name], self._desk(writer.books, outcome, tell)
        if isinstance(endpoint, OwnLane):
            await endpoint.work(queue, desk)
        elif isinstance(endpoint, BatchEndpoint):
            await BatchLane(endpoint, callee=self._callee, books=writer.books, outcome=outcome, tell=tell).work(queue)
        else:
            await NetworkLane(name, endpoint, self._plan.endpoints[name], desk=desk, writer=writer).work(queue)

    def _desk(self, books: Books, outcome: Outcome, tell: Callable[[], None]) -> Desk:
        return Desk(self._callee, books, outcome, Overruns(self._ledger.overruns()), tell)

    async def _close(self, names: Iterable[str]) -> None:
        for name in names:
            endpoint = self._endpoints[name]
            if not isinstance(endpoint, BatchEndpoint):
                await endpoint.close()


async def _until_done(
    tasks: list[asyncio.Task[None]], outcome: Outcome, claims: Claims | None, tell: Callable[[], None]
) -> None:
    """Wait for the workers.

    A stage that stops itself waits for all calls in flight. After Ctrl-C these get `GRACE` seconds.
    """
    pending = set(tasks)
    while pending and not outcome.interrupted:
        done, pending = await asyncio.wait(pending, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        if claims is not None:
            claims.renew()
        tell()
    # Calls that come home in this time are booked at their true cost instead of as lost.
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
        # The handlers go, so that a second Ctrl-C ends the program as usual.
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
