"""How long to wait between the attempts of a call, and when an endpoint is given up.

See contract: stages, "Attempts and waiting".
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

LONGEST_BACKOFF = 30.0
LOOK_UP = 0.1  # seconds between looks at whether the stage was stopped meanwhile
FAILURES_IN_A_ROW = 20  # calls that fail for good, one after another, before the stage stops instead of going on


@dataclass(frozen=True)
class Patience:
    """Bounds of one call: attempts, seconds over all of them, and the first backoff."""

    attempts: int
    total_wait: float
    backoff: float

    def wait(self, made: int, retry_after: float | None, jitter: float) -> float:
        """Return the seconds to wait after `made` attempts; `jitter` in [0, 1) takes off up to half of the backoff.

        The backoff doubles from attempt to attempt. What the endpoint asked for is never undercut.
        """
        backoff = min(LONGEST_BACKOFF, self.backoff * 2.0 ** (made - 1)) * (1 - jitter / 2)
        return max(backoff, retry_after or 0.0)


@dataclass
class Health:
    """What is known of an endpoint in this process: until when it wants peace, how it failed lately."""

    patience: Patience
    quiet_until: float = 0.0
    failures: int = 0
    jitter: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - spreads retries, no secret

    def after(self, made: int, began: float, retry_after: float | None) -> float | None:
        """Return the seconds to wait before another attempt, or None when the call's bounds are reached."""
        if made >= self.patience.attempts:
            return None
        now = asyncio.get_running_loop().time()
        wait = self.patience.wait(made, retry_after, self.jitter.random())
        if retry_after is not None:
            self.quiet_until = max(self.quiet_until, now + retry_after)
        return wait if now + wait - began <= self.patience.total_wait else None

    async def pause(self, seconds: float, stopped: Callable[[], bool]) -> None:
        """Wait these seconds, and as long as the endpoint wants peace: a Retry-After holds for every call to it.

        Ends early when the stage is stopped.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while (wait := max(until, self.quiet_until) - clock()) > 0 and not stopped():
            await asyncio.sleep(min(wait, LOOK_UP))
