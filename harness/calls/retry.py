"""How long to wait between the attempts of a call (contract: stages, "Attempts and waiting")."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

LONGEST_BACKOFF = 30.0


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
        doubled = self.backoff * 2.0 ** min(made - 1, 30)
        return max(min(LONGEST_BACKOFF, doubled) * (1 - jitter / 2), retry_after or 0.0)


@dataclass
class Health:
    """Decides on the next attempt of a call that failed."""

    patience: Patience
    jitter: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - spreads retries, no secret

    def next_wait(self, *, made: int, bounded: int, spent: float, retry_after: float | None) -> float | None:
        """Return the seconds to wait before another attempt, or None when the call's bounds are reached.

        `bounded` counts those of the `made` attempts that `attempts` limits; `spent` are the seconds since the first.
        """
        if bounded >= self.patience.attempts:
            return None
        wait = self.patience.wait(made, retry_after, self.jitter.random())
        return wait if spent + wait <= self.patience.total_wait else None
