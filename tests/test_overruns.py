"""A model that takes more than its worst case reserves more from then on (contract: stages, "Spend caps")."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.schema.bank import Bank
from harness.calls.call import Answer
from harness.money.budget import Book
from harness.money.overruns import Overruns, excess_of, tokens_beyond
from harness.plan.records import Prices
from tests.engine_runs import COST, WORST, calls, live_run
from tests.factories import make_bank
from tests.plans import PARAMS, PRICES
from tests.scripted_server import Reply, ScriptedServer, chat

LONG = {"prompt_tokens": 20, "completion_tokens": 2_000, "total_tokens": 2_020}
LONG_COST = 20 * 10**6 + 2_000 * 10**7  # picodollars
LIMIT = int(PARAMS["max_tokens"])
CALL = calls(1)[0]


@pytest.fixture(scope="module")
def bank() -> Bank:
    return make_bank(("age",), quota={"stance": 1})


class TestExcess:
    @pytest.mark.parametrize(("completion", "beyond"), [(None, 0), (5, 0), (LIMIT, 0), (LIMIT + 7, 7)])
    def test_tokens_beyond_what_was_allowed(self, completion: int | None, beyond: int) -> None:
        assert tokens_beyond(CALL, Answer("x", completion_tokens=completion)) == beyond

    def test_by_cost(self) -> None:
        assert excess_of(CALL, Answer("x", completion_tokens=5), 3 * WORST, WORST, Prices(**PRICES)) == 2 * WORST

    def test_by_tokens_even_where_a_short_prompt_hides_them(self) -> None:
        answer = Answer("x", completion_tokens=LIMIT + 3)
        prices = Prices(**PRICES, request=1.0)
        assert excess_of(CALL, answer, WORST - 1, WORST, prices) == 3 * 10**7

    def test_what_keeps_its_limit_has_none(self) -> None:
        assert excess_of(CALL, Answer("x", completion_tokens=5), COST, WORST, Prices(**PRICES)) <= 0


class TestOverruns:
    def test_the_largest_seen_is_reserved(self) -> None:
        overruns = Overruns()
        assert [overruns.saw(CALL, 5), overruns.saw(CALL, 3), overruns.saw(CALL, 8)] == [True, False, True]
        assert overruns.beyond(CALL) == 8

    def test_another_model_reserves_what_it_did(self) -> None:
        overruns = Overruns()
        overruns.saw(CALL, 5)
        assert overruns.beyond(calls(1, "beta/two")[0]) == 0


class TestTheCap:
    def run(self, folder: Path, bank: Bank, cap: float, **local: Any) -> tuple[Any, Any, int]:
        with ScriptedServer([Reply(body=chat(usage=LONG))]) as server:
            run = live_run(folder, bank, server.url, caps={"run": cap}, local=local)
            return run, run(calls(40)), len(server.requests)

    def test_it_is_passed_by_no_more_than_the_first_call(self, tmp_path: Path, bank: Bank) -> None:
        run, outcome, requests = self.run(tmp_path, bank, 0.005, concurrency=16)
        assert (requests, outcome.capped, run.book()) == (1, {"run"}, Book(settled=LONG_COST))

    def test_it_holds_once_a_call_was_seen(self, tmp_path: Path, bank: Bank) -> None:
        run, outcome, requests = self.run(tmp_path, bank, 3.5e-12 * LONG_COST, concurrency=16)
        assert (requests, outcome.capped) == (3, {"run"})
        assert run.book().settled == 3 * LONG_COST

    def test_it_is_said_once_and_counted(self, tmp_path: Path, bank: Bank) -> None:
        _, outcome, _ = self.run(tmp_path, bank, 3.5e-12 * LONG_COST)
        (warning,) = outcome.tally.warnings
        assert "alpha/one: one call used 2,000 completion tokens at max_tokens = 100" in warning
        assert "from now on $0.019000 more is reserved for each of its calls" in warning
        assert (outcome.tally.overlong, outcome.tally.overspent) == ({"alpha/one": 3}, {})

    def test_a_resumed_run_remembers(self, tmp_path: Path, bank: Bank) -> None:
        run, _, _ = self.run(tmp_path, bank, 0.005)
        with run.ledger() as ledger:
            assert ledger.overruns() == {"subject:alpha/one": LONG_COST - WORST}
