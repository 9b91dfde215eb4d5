"""The calls of one endpoint that are still to be made, by lane: who may be asked now.

A call that has to wait goes back into the queue, so no worker sleeps while another lane could be asked. The first call
of a model goes alone: what it really costs, and whether it is answered at all, is known before others follow. Until a
lane has given one usable answer, no more of its calls are in flight than its streak of useless ones has room for.

See contract: stages, "Stopping".
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.calls.call import Call
from harness.engine.lanes import Lane, lane_of
from harness.engine.outcome import Outcome
from harness.money.budget import account_of


@dataclass
class Attempt:
    """A call on its way.

    Attributes:
        call: the call.
        began: when its first attempt began, by the event loop's clock; None before.
        spent: what it cost so far, in picodollars.
        attempts: attempts made.
        bounded: those of them that count against `max_attempts`.
        try_: answers so far that could not be used.
        over: whether it has come to an end.
    """

    call: Call
    began: float | None = None
    spent: int = 0
    attempts: int = 0
    bounded: int = 0
    try_: int = 0
    over: bool = False


@dataclass
class _Waiting:
    """The calls of one lane: those not begun, and those that wait, as (moment, running number, attempt)."""

    new: deque[Call] = field(default_factory=deque)
    later: list[tuple[float, int, Attempt]] = field(default_factory=list)


class CallQueue:
    """The queue of one endpoint. Moments are seconds of the event loop's clock."""

    def __init__(self, calls: Iterable[Call], outcome: Outcome) -> None:
        self._outcome = outcome
        self._lanes: dict[Lane, _Waiting] = {}
        self._in_flight: Counter[Lane] = Counter()
        self._models: Counter[str] = Counter()
        self._heard_of: set[str] = set()
        self._quiet: dict[str, float] = {}
        self._order = itertools.count()
        for call in calls:
            self._lanes.setdefault(lane_of(call), _Waiting()).new.append(call)

    def __len__(self) -> int:
        return sum(len(waiting.new) + len(waiting.later) for waiting in self._lanes.values())

    def take(self, now: float) -> Attempt | float | None:
        """Return the next call that may be made, the moment to look again, or None when none is left.

        The moment is infinity where only the end of a call in flight can make room.
        """
        soonest: float | None = None
        for lane, waiting in self._lanes.items():
            found = self._next(lane, waiting, now)
            if isinstance(found, Attempt):
                self._in_flight[lane] += 1
                self._models[account_of(found.call)] += 1
                return found
            if found is not None:
                soonest = found if soonest is None else min(soonest, found)
        return soonest

    def _next(self, lane: Lane, waiting: _Waiting, now: float) -> Attempt | float | None:
        call = waiting.new[0] if waiting.new else waiting.later[0][2].call if waiting.later else None
        if call is None:
            return None
        if self._outcome.closed(call):
            self._leave(waiting)
            return None
        if not self._has_room(lane, call):
            return float("inf")  # until a call in flight has ended
        quiet = self._quiet.get(account_of(call), 0.0)
        if waiting.later and max(quiet, waiting.later[0][0]) <= now:
            return heapq.heappop(waiting.later)[2]
        if waiting.new and quiet <= now:
            return Attempt(waiting.new.popleft())
        return quiet if waiting.new else max(quiet, waiting.later[0][0])

    def _has_room(self, lane: Lane, call: Call) -> bool:
        # The first call of a model goes alone.
        if account_of(call) not in self._heard_of:
            return self._models[account_of(call)] == 0
        most = self._outcome.record(call).open_for
        return most is None or self._in_flight[lane] < most

    def ended(self, call: Call, *, heard: bool = True) -> None:
        """Note that a call is no longer in flight.

        Args:
            call: the call.
            heard: whether the endpoint said something of its model, so that more calls of it may go.
        """
        self._in_flight[lane_of(call)] -= 1
        self._models[account_of(call)] -= 1
        if heard:
            self._heard_of.add(account_of(call))

    def again(self, attempt: Attempt, ready: float) -> None:
        """Put a call back until a moment."""
        # The running number keeps equal moments in order, and attempts from being compared.
        heapq.heappush(self._lanes[lane_of(attempt.call)].later, (ready, next(self._order), attempt))

    def quiet(self, call: Call, until: float) -> None:
        """Leave a call's model in peace until a moment.

        A wait that an endpoint asks for holds for all calls of the model.
        """
        account = account_of(call)
        # A later reply may ask for less than an earlier one did; the longer wait holds.
        self._quiet[account] = max(until, self._quiet.get(account, 0.0))

    def _leave(self, waiting: _Waiting) -> None:
        for call in (*waiting.new, *(attempt.call for _, _, attempt in sorted(waiting.later))):
            self._outcome.leave(call)
        waiting.new.clear()
        waiting.later.clear()

    def leave_all(self) -> None:
        """Put aside every call that is still in the queue, to be asked when the stage is run again."""
        for waiting in self._lanes.values():
            self._leave(waiting)
