"""Calls that cost more than their worst case: from then on their model reserves more (contract: stages, "Spend caps").

An endpoint that does not hold max_tokens, or whose true prices are above the declared ones, would pass a cap with every
call in flight. What one call cost beyond its worst case is added to every later reservation of its account.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.calls.call import Answer, Call
from harness.money.budget import account_of
from harness.plan.records import Prices


class Overruns:
    """What each account reserves beyond the worst case of a call, in picodollars."""

    def __init__(self, known: Mapping[str, int] | None = None) -> None:
        self._beyond = dict(known or {})

    def beyond(self, call: Call) -> int:
        """Return what is reserved beyond the worst case of a call."""
        return self._beyond.get(account_of(call), 0)

    def saw(self, call: Call, excess: int) -> bool:
        """Note what a call took beyond its worst case; returns whether its account reserves more from now on."""
        if excess <= self.beyond(call):
            return False
        self._beyond[account_of(call)] = excess
        return True


def tokens_beyond(call: Call, answer: Answer) -> int:
    """Return the completion tokens of an answer beyond what its call allowed."""
    return max(0, (answer.completion_tokens or 0) - int(call.request.params["max_tokens"]))


def excess_of(call: Call, answer: Answer, cost: int, worst: int, prices: Prices) -> int:
    """Return what an answer took beyond its worst case, in picodollars: by its cost, or by tokens never allowed."""
    beyond = tokens_beyond(call, answer)
    by_tokens = prices.model_copy(update={"request": 0.0}).cost(0, beyond) if beyond else 0
    return max(cost - worst, by_tokens)
