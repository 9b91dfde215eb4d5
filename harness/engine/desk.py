"""What a lane works with, and the lanes that endpoints bring along themselves."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from harness.calls.call import Answer, Call
from harness.engine.outcome import Outcome
from harness.engine.writer import Books
from harness.money.budget import dollars, worst_case
from harness.money.overruns import Overruns, excess_of, tokens_beyond
from harness.plan.records import Callee


@dataclass(frozen=True)
class Desk:
    """What a lane works with.

    Attributes:
        callee: finds the model or judge that a call is for.
        books: cache, claims and ledger.
        outcome: what the calls came to so far.
        overruns: what each account reserves beyond its worst case.
        tell: tells whoever watches.
    """

    callee: Callable[[Call], Callee]
    books: Books
    outcome: Outcome
    overruns: Overruns
    tell: Callable[[], None]

    def weigh(self, call: Call, answer: Answer, cost: int) -> None:
        """Reserve more for a model from now on where a call took more than its worst case, and warn of it.

        Args:
            call: the call.
            answer: its answer.
            cost: what it cost, in picodollars.
        """
        prices, tally = self.callee(call).prices, self.outcome.tally
        worst = worst_case(call.request, prices)
        excess = excess_of(call, answer, cost, worst, prices)
        if excess <= 0:
            return
        self.overruns.saw(call, excess)
        more = f"from now on ${dollars(excess):.6f} more is reserved for each of its calls, so that the caps hold"
        if beyond := tokens_beyond(call, answer):
            limit = int(call.request.params["max_tokens"])
            words = f"one call used {limit + beyond:,} completion tokens at max_tokens = {limit:,}, which its endpoint"
            self.outcome.warn(tally.overlong, call, f"{words} does not hold; it is booked at its true cost; {more}")
            return
        words = f"one call cost ${dollars(cost):.6f}, more than the ${dollars(worst):.6f} that its declared prices"
        note = "it is booked at its true cost: check the prices in run.toml"
        self.outcome.warn(tally.overspent, call, f"{words} allow; {note}; {more}")


@runtime_checkable
class OwnLane(Protocol):
    """An endpoint that empties its queue in a way of its own: neither call by call nor inside this process."""

    async def work(self, queue: deque[Call], desk: Desk) -> None:
        """Empty the queue. A call that came to no end is put aside in `desk.outcome`."""
        ...

    async def close(self) -> None:
        """Give connections and files back."""
        ...
