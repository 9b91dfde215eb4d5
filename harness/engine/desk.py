"""What a lane works with, and the lanes that endpoints bring along themselves."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from harness.calls.call import Call
from harness.engine.outcome import Outcome
from harness.engine.writer import Books
from harness.plan.records import Callee


@dataclass(frozen=True)
class Desk:
    """Whom a call is for, the books, the outcome so far, and how to tell whoever watches."""

    callee: Callable[[Call], Callee]
    books: Books
    outcome: Outcome
    tell: Callable[[], None]


@runtime_checkable
class OwnLane(Protocol):
    """An endpoint that empties its queue in its own way: not call by call, and not inside this process."""

    async def work(self, queue: deque[Call], desk: Desk) -> None:
        """Empty the queue; a call without an end is put aside in `desk.outcome`."""
        ...

    async def close(self) -> None:
        """Give connections and files back."""
        ...
