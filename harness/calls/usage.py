"""What a reply says that it used: tokens, and a cost where the endpoint reports one.

See contract: stages, "Tokens and cost".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.plan.records import PICO, Prices

LARGEST_COUNT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and reported cost of one reply; None for what is absent, absurd or not to be believed.

    `completion_tokens` are those that are billed: thinking is among them wherever an endpoint counts it apart. `cost`
    is in picodollars.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: int | None = None

    def bill(self, prices: Prices | None) -> int | None:
        """Return the cost in picodollars: the reported one, else by tokens and prices, else None."""
        if self.cost is not None:
            return self.cost
        if prices is None or self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return prices.cost(self.prompt_tokens, self.completion_tokens)


def usage_of(data: Mapping[str, Any], *, answered: bool) -> Usage:
    """Return the usage of a parsed reply.

    Args:
        data: the reply's JSON object; fields of the wrong type count as absent.
        answered: whether it brought a text. Zero tokens for a text is a count that nobody made: it is unknown, and so
            is a cost of 0 beside it.
    """
    fields = data.get("usage")
    fields = fields if isinstance(fields, Mapping) else {}
    prompt = _first(fields, "prompt_tokens", "input_tokens")
    completion = _first(fields, "completion_tokens", "output_tokens")
    total, thought, cost = _count(fields.get("total_tokens")), _thought(fields), _cost(fields)
    billed = _billed(prompt, completion, total, thought)
    if answered and (prompt == 0 or billed == 0):
        return Usage(prompt or None, billed or None, thought, cost or None)
    return Usage(prompt, billed, thought, cost)


def _billed(prompt: int | None, completion: int | None, total: int | None, thought: int | None) -> int | None:
    """Return the completion tokens that are paid for: the larger of completion and total less prompt.

    Without a total, thinking that is more than the completion was counted beside it.
    """
    if total is not None and prompt is not None and total >= prompt:
        return max(completion or 0, total - prompt)
    if completion is not None and total is None and thought is not None and thought > completion:
        return completion + thought
    return completion


def _thought(fields: Mapping[str, Any]) -> int | None:
    for name in ("completion_tokens_details", "output_tokens_details"):
        details = fields.get(name)
        if isinstance(details, Mapping) and (count := _count(details.get("reasoning_tokens"))) is not None:
            return count
    return _count(fields.get("reasoning_tokens"))


def _cost(fields: Mapping[str, Any]) -> int | None:
    """Return the reported cost in picodollars.

    With a key of one's own at a router (`is_byok`), that is the router's fee, and the vendor's price is added.
    """
    cost = _dollars(fields.get("cost"))
    if cost is None or fields.get("is_byok") is not True:
        return cost
    details = fields.get("cost_details")
    upstream = _dollars(details.get("upstream_inference_cost")) if isinstance(details, Mapping) else None
    return None if upstream is None else cost + upstream


def _dollars(value: Any) -> int | None:
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not math.isfinite(value)
        or not 0 <= value < 1e6
    ):
        return None
    # Rounded up to whole picodollars, after binary noise such as 0.1 * 10^12 + 1e-5 is rounded away.
    return math.ceil(round(value * PICO, 3))


def _first(fields: Mapping[str, Any], *names: str) -> int | None:
    return next((count for name in names if (count := _count(fields.get(name))) is not None), None)


def _count(value: Any) -> int | None:
    right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT
    return value if right else None
