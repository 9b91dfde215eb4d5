"""Calls that cost more than their worst case: from then on more is reserved for their model.

An endpoint that does not hold max_tokens, or whose true prices are above the declared ones, would pass a cap with every
call in flight. So what one call cost beyond its worst case is added to every later reservation of its account.

See contract: stages, "Spend caps".
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.calls.call import Answer, Call
from harness.money.budget import account_of
from harness.plan.records import Prices


class Overruns:
    """What each account reserves beyond the worst case of a call, in picodollars.

    Args:
        known: what earlier sittings saw, by account (`Ledger.overruns`).
    """

    def __init__(self, known: Mapping[str, int] | None = None) -> None:
        self._beyond = dict(known or {})

    def beyond(self, call: Call) -> int:
        """Return what is reserved for a call beyond its worst case, in picodollars."""
        return self._beyond.get(account_of(call), 0)

    def saw(self, call: Call, excess: int) -> bool:
        """Note that a call took more than its worst case.

        Args:
            call: the call.
            excess: picodollars beyond its worst case.

        Returns:
            Whether this is the largest excess of its account so far, so that more is reserved from now on.
        """
        if excess <= self.beyond(call):
            return False
        self._beyond[account_of(call)] = excess
        return True


def tokens_beyond(call: Call, answer: Answer) -> int:
    """Return the completion tokens of an answer beyond the `max_tokens` of its call; 0 where it kept to them."""
    return max(0, (answer.completion_tokens or 0) - int(call.request.params["max_tokens"]))


def excess_of(call: Call, answer: Answer, cost: int, worst: int, prices: Prices) -> int:
    """Return what an answer took beyond its worst case, in picodollars; 0 or less where it kept to it.

    Tokens beyond `max_tokens` count even where the cost is in bounds: a longer prompt would have passed it.

    Args:
        call: the call.
        answer: its answer.
        cost: what it cost, in picodollars.
        worst: its worst case, in picodollars.
        prices: the declared prices.
    """
    beyond = tokens_beyond(call, answer)
    by_tokens = prices.model_copy(update={"request": 0.0}).cost(0, beyond) if beyond else 0
    return max(cost - worst, by_tokens)
