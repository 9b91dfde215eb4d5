"""What a stage would cost: calls, tokens and US dollars to expect, before anything is spent (SPEC 2, `--dry-run`).

Cached calls are left out. Prompt tokens are expected at four bytes each, and bounded at one byte each plus 64, as they
are reserved. A subject is expected to use half of its max_tokens, a judge `JUDGE_TOKENS`. Each row that is not judged
yet is expected to take two primary votes, and a tiebreak on `TIEBREAK_SHARE` of the rows that have one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.budget import dollars, worst_case
from harness.cache import Cache
from harness.calls import Call, Request
from harness.evaluate import Prompt, response_calls
from harness.plan import Callee, Plan

BYTES_PER_TOKEN = 4
JUDGE_TOKENS = 60
TIEBREAK_SHARE = 0.25


@dataclass(frozen=True)
class Forecast:
    """What one model or judge would be asked: expected tokens and dollars, and the most that it could cost."""

    role: str
    model: str
    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    expected_usd: float
    worst_usd: float

    def as_json(self) -> dict[str, str | int | float]:
        """Return the forecast as a JSON object."""
        return dict(self.__dict__)


def _prompt_bytes(request: Request) -> int:
    return sum(len(m.content.encode()) for m in request.messages)


def subject_forecast(plan: Plan, model: str, prompts: list[Prompt], cache: Cache) -> Forecast:
    """Return what eval would ask of a model."""
    calls = list(response_calls(plan, model, prompts))
    there = cache.lookup([call.key for call in calls])
    return forecast("subject", plan.subject[model], [c for c in calls if c.key not in there], len(there))


def forecast(role: str, callee: Callee, calls: Iterable[Call], cached: int) -> Forecast:
    """Return what a list of calls to one model or judge would come to."""
    number = tokens = completion = worst = 0
    for call in calls:
        number += 1
        tokens += -(-_prompt_bytes(call.request) // BYTES_PER_TOKEN)
        limit = int(call.request.params["max_tokens"])
        completion += min(limit, JUDGE_TOKENS) if role == "judge" else -(-limit // 2)
        worst += worst_case(call.request, callee.prices)
    expected = callee.prices.cost(tokens, completion) + round(callee.prices.request * 1e12) * max(0, number - 1)
    return Forecast(
        role, callee.model, number, cached, tokens, completion, dollars(expected) if number else 0.0, dollars(worst)
    )
