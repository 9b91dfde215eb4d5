"""Asking a vendor's batch endpoint until it answers: what breaks is tried again, with longer waits between."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import TypeVar

from harness.batches.dialect import BatchError
from harness.engine.desk import Desk

_T = TypeVar("_T")
LOOK_UP = 0.1  # seconds between looks at whether the stage was stopped
MISSES = 10  # calls to the vendor's batch endpoint that fail one after another before the lane gives up


class GivenUpError(Exception):
    """The lane cannot go on; `sent`: what was being handed in may have come in all the same."""

    def __init__(self, reason: str, *, sent: bool = False) -> None:
        super().__init__(reason)
        self.sent = sent


class VendorCalls:
    """Calls to one vendor; `poll` is the longest wait between attempts, in seconds."""

    def __init__(self, poll: float) -> None:
        self._poll = poll

    async def ask(self, call: Callable[[], Awaitable[_T]], desk: Desk) -> _T:
        """Ask the vendor until it answers; raises GivenUpError when that does not help."""
        for attempt in itertools.count(1):
            try:
                found = await call()
            except BatchError as error:
                await self.missed(error, desk, attempt)
            else:
                return found
        raise AssertionError

    async def missed(self, error: BatchError, desk: Desk, attempt: int) -> None:
        """Wait after a call that failed, longer from attempt to attempt; raises GivenUpError when that is no use."""
        if error.final or attempt >= MISSES or desk.outcome.halted:
            raise GivenUpError(error.reason, sent=error.sent)
        await self.pause(min(self._poll, 0.5 * 2.0 ** (attempt - 1)), desk)

    async def pause(self, seconds: float, desk: Desk) -> None:
        """Wait, unless the stage is stopped meanwhile."""
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while (left := until - clock()) > 0 and not desk.outcome.halted:
            await asyncio.sleep(min(left, LOOK_UP))
