"""How long to wait between the attempts of a call.

See contract: stages, "Attempts and waiting".
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

LONGEST_BACKOFF = 30.0


@dataclass(frozen=True)
class Patience:
    """The bounds of one call: attempts, seconds over all of them, and the first backoff in seconds."""

    attempts: int
    total_wait: float
    backoff: float

    def wait(self, made: int, retry_after: float | None, jitter: float) -> float:
        """Return the seconds to wait before the next attempt.

        The backoff doubles from attempt to attempt, up to 30 seconds. What the endpoint asked for is never undercut.

        Args:
            made: attempts so far, 1 or more.
            retry_after: seconds that the endpoint asked to wait, or None.
            jitter: in [0, 1); takes off up to half of the backoff, so that many calls do not come back at once.
        """
        # The exponent is bounded: 2.0 ** 1024 raises.
        doubled = self.backoff * 2.0 ** min(made - 1, 30)
        return max(min(LONGEST_BACKOFF, doubled) * (1 - jitter / 2), retry_after or 0.0)


@dataclass
class Health:
    """Decides whether and when a call that failed is tried again."""

    patience: Patience
    jitter: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - spreads retries, no secret

    def next_wait(self, *, made: int, bounded: int, spent: float, retry_after: float | None) -> float | None:
        """Return the seconds to wait before another attempt; None when the call has reached its bounds.

        Args:
            made: attempts so far.
            bounded: those of them that count against `attempts`. A limit that passes (429) does not.
            spent: seconds since the first attempt.
            retry_after: seconds that the endpoint asked to wait, or None.
        """
        if bounded >= self.patience.attempts:
            return None
        wait = self.patience.wait(made, retry_after, self.jitter.random())
        return wait if spent + wait <= self.patience.total_wait else None
