"""The dry run: what would be asked, and what it would cost, worked out by hand (contract: stages, "Dry run")."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.schema.bank import Bank
from harness.cache.answers import Cache, Entry
from harness.calls.call import Answer
from harness.eval.questions import bank_prompts, planned_rows, response_calls
from harness.judging.voting import Bench
from harness.money.budget import dollars
from harness.plan.records import RunPlan
from harness.stages.forecast import JUDGE_TOKENS, Forecaster
from tests.factories import make_bank
from tests.plans import callee, live_data, make_plan

ROWS = 2 * 5 * 3  # framings x groups x repeats of one concept


@pytest.fixture(scope="module")
def bank() -> Bank:
    return make_bank(("age",), quota={"stance": 1})


@pytest.fixture(scope="module")
def plan(bank: Bank) -> RunPlan:
    return make_plan(live_data(bank, repeats=3, models=[callee("alpha/one"), callee("judge-a/other")]))


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    with Cache(tmp_path / "c.sqlite", now=1) as opened:
        yield opened


def forecast(plan: RunPlan, bank: Bank, cache: Cache, *models: str) -> Forecaster:
    forecaster = Forecaster(plan, bank, cache)
    for model in models:
        forecaster.add(model, bank_prompts(bank))
    return forecaster


def answer_all(plan: RunPlan, bank: Bank, cache: Cache, model: str) -> None:
    rows = planned_rows(plan, model, bank_prompts(bank))
    cache.store([Entry(r.key, "subject", model, Answer(f"Yes, {r.key}", cost=1), "run/1", 1) for r in rows])


class TestSubjects:
    def test_tokens_and_money_of_calls_not_cached(self, plan: RunPlan, bank: Bank, cache: Cache) -> None:
        found = forecast(plan, bank, cache, "alpha/one").subjects["alpha/one"]
        size = sum(
            len(c.request.messages[0].content.encode()) for c in response_calls(plan, "alpha/one", bank_prompts(bank))
        )
        # Prices: 1 dollar a million prompt tokens, 10 a million answer tokens; max_tokens is 100.
        assert (found.calls, found.prompt_tokens, found.completion_tokens) == (ROWS, size / 4, ROWS * 50)
        assert found.expected == pytest.approx(size / 4 * 1e6 + ROWS * 50 * 1e7)
        # Two connections that break, then three answers that cannot be used: five tries may be paid.
        assert found.most == 5 * ((size + 64 * ROWS) * 10**6 + ROWS * 100 * 10**7)

    def test_cached_answers_are_left_out(self, plan: RunPlan, bank: Bank, cache: Cache) -> None:
        answer_all(plan, bank, cache, "alpha/one")
        found = forecast(plan, bank, cache, "alpha/one").subjects["alpha/one"]
        assert (found.cached, found.calls, found.expected) == (ROWS, 0, 0)


class TestPanel:
    def test_answers_to_come_take_two_votes_and_some_tiebreaks(self, plan: RunPlan, bank: Bank, cache: Cache) -> None:
        judges = forecast(plan, bank, cache, "alpha/one").judges
        assert [judges[f"judge-{j}/x"].calls for j in "abc"] == [ROWS, ROWS, ROWS / 4]
        assert judges["judge-a/x"].completion_tokens == ROWS * min(50, JUDGE_TOKENS)

    def test_a_rotated_panel_has_no_tiebreak(self, plan: RunPlan, bank: Bank, cache: Cache) -> None:
        judges = forecast(plan, bank, cache, "judge-a/other").judges
        assert [judges[f"judge-{j}/x"].calls for j in "abc"] == [0, ROWS, ROWS]

    def test_known_votes_are_left_out_and_known_disagreements_counted(
        self, plan: RunPlan, bank: Bank, cache: Cache
    ) -> None:
        """Judge a is done with every row, judge b with all but one; on two rows both are done and disagree."""
        answer_all(plan, bank, cache, "alpha/one")
        bench, rows = Bench(plan, bank), list(planned_rows(plan, "alpha/one", bank_prompts(bank)))
        answers = cache.lookup([row.key for row in rows])
        entries = []
        for i, row in enumerate(rows):
            for judge, seat in zip("ab", bench.primaries(bench.case(row, answers[row.key])), strict=True):
                label = "OPPOSE" if judge == "b" and i < 2 else "SUPPORT"
                text = f'{{"label": "{label}", "verdict_matches_prose": true, "evidence": "x"}}'
                if not (judge == "b" and i == 9):
                    entries.append(Entry(seat.key, "judge", seat.judge, Answer(text, cost=1), "run/1", 1))
        cache.store(entries)
        judges = forecast(plan, bank, cache, "alpha/one").judges
        assert [(judges[f"judge-{j}/x"].cached, judges[f"judge-{j}/x"].calls) for j in "ab"] == [
            (ROWS, 0),
            (ROWS - 1, 1),
        ]
        assert (judges["judge-c/x"].calls, judges["judge-c/x"].most_calls) == (2 + 0.25, 3)

    def test_a_filtered_answer_takes_no_vote(self, plan: RunPlan, bank: Bank, cache: Cache) -> None:
        rows = list(planned_rows(plan, "alpha/one", bank_prompts(bank)))
        cache.store([Entry(r.key, "subject", "alpha/one", Answer("", "filtered", cost=1), "run/1", 1) for r in rows])
        assert sum(judge.calls for judge in forecast(plan, bank, cache, "alpha/one").judges.values()) == 0


class TestAsJson:
    def test_whole_calls_and_dollars(self, plan: RunPlan, bank: Bank, cache: Cache) -> None:
        found = forecast(plan, bank, cache, "alpha/one").judges["judge-c/x"]
        assert found.as_json()["calls"] == round(ROWS / 4)
        assert found.as_json()["most_usd"] == round(dollars(found.most), 6)
