"""The calls of one endpoint that are still to be made, by lane: who may be asked now (contract: stages, "Stopping").

A call that has to wait goes back into the queue, so that no worker sleeps while another lane could be asked. The first
call of a model goes alone: what it really costs, and whether it is answered at all, is known before others follow.
Until a lane has given one usable answer, no more calls of it are in flight than its streak of useless ones has room
for.
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
    """One call on its way: when it began, its cost so far in picodollars, its attempts, its unusable answers.

    `bounded` are the attempts that count against `max_attempts`.
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
    """The calls of one lane: not begun, and those that wait for a moment."""

    new: deque[Call] = field(default_factory=deque)
    later: list[tuple[float, int, Attempt]] = field(default_factory=list)


class CallQueue:
    """The queue of one endpoint; moments are of the event loop's clock."""

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
        """Return the next call that may be made, or the moment to look again, or None when none is left."""
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
        if account_of(call) not in self._heard_of:
            return self._models[account_of(call)] == 0
        most = self._outcome.record(call).open_for
        return most is None or self._in_flight[lane] < most

    def ended(self, call: Call, *, heard: bool = True) -> None:
        """Note that a call is no longer in flight; `heard`: its endpoint said something of this model."""
        self._in_flight[lane_of(call)] -= 1
        self._models[account_of(call)] -= 1
        if heard:
            self._heard_of.add(account_of(call))

    def again(self, attempt: Attempt, ready: float) -> None:
        """Put a call back until a moment."""
        heapq.heappush(self._lanes[lane_of(attempt.call)].later, (ready, next(self._order), attempt))

    def quiet(self, call: Call, until: float) -> None:
        """Leave a call's model in peace until a moment: what an endpoint asked for holds for all its calls."""
        account = account_of(call)
        self._quiet[account] = max(until, self._quiet.get(account, 0.0))

    def _leave(self, waiting: _Waiting) -> None:
        for call in (*waiting.new, *(attempt.call for _, _, attempt in sorted(waiting.later))):
            self._outcome.leave(call)
        waiting.new.clear()
        waiting.later.clear()

    def leave_all(self) -> None:
        """Put every call aside that is still here."""
        for waiting in self._lanes.values():
            self._leave(waiting)
