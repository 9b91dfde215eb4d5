"""Tokens and cost of a reply (contract: stages, "Tokens and cost")."""

from __future__ import annotations

from typing import Any

import pytest

from harness.calls.usage import Usage, usage_of
from harness.plan.records import Prices

DETAILS = "completion_tokens_details"


def read(answered: bool = True, **usage: Any) -> Usage:
    return usage_of({"usage": usage}, answered=answered)


class TestTokens:
    # Each line: prompt, completion, total, thinking as the endpoint says; what is billed.
    @pytest.mark.parametrize(
        ("prompt", "completion", "total", "thinking", "billed"),
        [
            (40, 5, 45, None, 5),  # as most say it
            (40, 5, 2045, 2000, 2005),  # thinking only in the total
            (40, 5, 40, None, 5),  # a total that forgot the completion
            (40, None, 45, None, 5),  # no completion
            (40, 5, None, 3, 5),  # thinking within the completion
            (40, 5, None, 2000, 2005),  # thinking beside the completion, and no total
            (None, 5, 45, None, 5),  # no prompt: nothing to take off the total
            (50, 5, 45, None, 5),  # a total below the prompt is absurd
            (40, 100, 140, 100, 100),  # all of it thinking
            (None, None, None, None, None),
        ],
    )
    def test_the_larger_of_completion_and_total_less_prompt(
        self, prompt: int | None, completion: int | None, total: int | None, thinking: int | None, billed: int | None
    ) -> None:
        found = read(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=total,
            **{DETAILS: {"reasoning_tokens": thinking}},
        )
        assert (found.completion_tokens, found.reasoning_tokens) == (billed, thinking)

    @pytest.mark.parametrize(
        "usage", [{"input_tokens": 7, "output_tokens": 3}, {"prompt_tokens": 7, "completion_tokens": 3}]
    )
    def test_either_pair_of_names(self, usage: dict[str, int]) -> None:
        assert read(**usage) == Usage(7, 3, None, None)

    @pytest.mark.parametrize("usage", [{"reasoning_tokens": 2}, {"output_tokens_details": {"reasoning_tokens": 2}}])
    def test_thinking_by_its_other_names(self, usage: dict[str, Any]) -> None:
        assert read(prompt_tokens=1, completion_tokens=3, **usage).reasoning_tokens == 2

    def test_no_tokens_for_a_text_is_unknown(self) -> None:
        zero = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0, "cost": 0}
        assert read(**zero) == Usage(None, None, None, None)
        assert read(answered=False, **zero) == Usage(0, 0, None, 0)

    @pytest.mark.parametrize(("prompt", "completion", "known"), [(40, 0, (40, None)), (0, 5, (None, 5))])
    def test_no_tokens_on_one_side_of_a_text_are_unknown_there(
        self, prompt: int, completion: int, known: tuple[int | None, int | None]
    ) -> None:
        found = read(prompt_tokens=prompt, completion_tokens=completion, cost=0)
        assert (found.prompt_tokens, found.completion_tokens, found.cost) == (*known, None)

    def test_a_prompt_that_was_blocked_may_have_no_completion(self) -> None:
        assert read(answered=False, prompt_tokens=40, total_tokens=40) == Usage(40, 0, None, None)


class TestCost:
    def test_an_own_key_at_a_router_adds_what_the_vendor_takes(self) -> None:
        found = read(
            prompt_tokens=40,
            completion_tokens=90,
            cost=0.001,
            is_byok=True,
            cost_details={"upstream_inference_cost": 0.036},
        )
        assert found.cost == 37 * 10**9

    @pytest.mark.parametrize(
        "details", [None, {}, {"upstream_inference_cost": None}, {"upstream_inference_cost": "0.1"}]
    )
    def test_an_own_key_without_the_vendors_part_is_no_cost(self, details: Any) -> None:
        found = read(prompt_tokens=40, completion_tokens=90, cost=0, is_byok=True, cost_details=details)
        assert (found.cost, found.prompt_tokens) == (None, 40)

    def test_without_an_own_key_the_upstream_cost_is_not_added(self) -> None:
        assert (
            read(prompt_tokens=1, completion_tokens=1, cost=0.5, cost_details={"upstream_inference_cost": 1}).cost
            == 5 * 10**11
        )

    @pytest.mark.parametrize(
        ("cost", "picodollars"),
        [(999_999.5, 999_999_500_000_000_000), (1_000_000, None), (-1e-12, None), (0.1, 10**11), (1e-12, 1)],
    )
    def test_a_reported_cost_is_from_nothing_to_below_a_million_dollars(
        self, cost: float, picodollars: int | None
    ) -> None:
        assert read(prompt_tokens=1, completion_tokens=1, cost=cost).cost == picodollars

    def test_a_free_model_is_free(self) -> None:
        assert read(prompt_tokens=9, completion_tokens=9, cost=0).cost == 0

    def test_a_reply_without_an_answer_is_billed_as_reported_else_by_its_tokens(self) -> None:
        prices = Prices(prompt_per_million=1, completion_per_million=10)
        assert Usage(40, 5, None, 77).bill(prices) == 77
        assert Usage(40, 5, None, None).bill(prices) == 40 * 10**6 + 5 * 10**7
        assert Usage(40, None, None, None).bill(prices) is None
        assert Usage(40, 5, None, None).bill(None) is None
