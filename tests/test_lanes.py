"""Stopping: what closes a model, or a judge under one rubric, and never a neighbor (contract: stages, "Stopping")."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generator.schema.bank import Bank
from generator.schema.canonical import sha256_hex
from harness.calls.call import Answer, Call, CallError
from harness.engine.lanes import IN_A_ROW, Lane, LaneRecord, lane_of, usable
from harness.engine.outcome import Outcome
from harness.money.budget import Book
from harness.terminal.endings import endings
from tests.engine_runs import COST, Run, calls, live_run
from tests.factories import make_bank
from tests.plans import callee, live_data, make_plan
from tests.scripted_server import Reply, Script, ScriptedServer, chat, finished

TWO = [callee("alpha/one"), callee("beta/two")]


@pytest.fixture(scope="module")
def bank() -> Bank:
    return make_bank(("age",), quota={"stance": 1})


def two_models(folder: Path, bank: Bank, url: str, number: int = 60, **local: Any) -> tuple[Run, Outcome]:
    run = live_run(folder, bank, url, models=TWO, local=local)
    return run, run([*calls(number), *calls(number, "beta/two")])


def only(model: str, reply: Reply) -> Script:
    """The reply for one model, and a good one for the others."""
    return lambda request, _: reply if request["model"] == model else Reply(body=chat())


class TestNeighbors:
    @pytest.mark.parametrize(("reply", "asked"), [
        (Reply(400, b"bad parameter"), IN_A_ROW),
        (Reply(401), 1),
        (Reply(402), 1),
        (Reply(403, b"not yours"), 1),
        (Reply(404, b"no such model"), 1),
        (Reply(422, b"what?"), IN_A_ROW),
        (Reply(body=chat("")), 3 * IN_A_ROW),
        (Reply(429, headers={"Retry-After": "3600"}), 1),
    ], ids=["400", "401", "402", "403", "404", "422", "empty", "429"])  # fmt: skip
    @pytest.mark.parametrize("concurrency", [1, 16])
    def test_a_model_that_never_answers_is_closed_and_the_next_one_is_asked(
        self, tmp_path: Path, bank: Bank, reply: Reply, asked: int, concurrency: int
    ) -> None:
        with ScriptedServer(only("one", reply)) as server:
            _, outcome = two_models(tmp_path, bank, server.url, concurrency=concurrency)
        requests = Counter(r["model"] for r in server.requests)
        assert (requests["one"], requests["two"]) == (asked, 60)
        assert list(outcome.closures) == [Lane("subject", "alpha/one", None)]
        assert {call.request.model for call in outcome.left} == {"alpha/one"}
        assert outcome.lanes[Lane("subject", "beta/two", None)].asked == 60

    def test_an_endpoint_that_is_down_leaves_the_others_alone(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer() as server:
            data = live_data(bank, server.url, models=[callee("alpha/one", "down"), callee("beta/two")])
            data["endpoints"]["down"] = {**data["endpoints"]["local"], "base_url": "http://127.0.0.1:1/v1"}
            run = Run(tmp_path, make_plan(data))
            outcome = run([*calls(9, endpoint="down"), *calls(9, "beta/two")])
        assert list(outcome.closures) == [Lane("subject", "alpha/one", None)]
        assert (len(server.requests), len(outcome.left)) == (9, 8)


class TestOneBadPrompt:
    @pytest.mark.parametrize("status", [400, 413, 422])
    def test_one_overlong_prompt_kills_nothing(self, tmp_path: Path, bank: Bank, status: int) -> None:
        def script(request: dict[str, Any], _: int) -> Reply:
            return Reply(status) if request["messages"][0]["content"] == "07" else Reply(body=chat())

        with ScriptedServer(script) as server:
            outcome = live_run(tmp_path, bank, server.url)(calls(40))
        assert (outcome.closures, len(outcome.failures), len(outcome.answers)) == ({}, 1, 39)

    def test_nineteen_in_a_row_are_not_twenty(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer(lambda _, n: Reply(400) if n % 20 else Reply(body=chat())) as server:
            outcome = live_run(tmp_path, bank, server.url, local={"concurrency": 1})(calls(80))
        assert (outcome.closures, len(outcome.failures), len(outcome.answers)) == ({}, 76, 4)

    def test_a_key_that_was_refused_books_nothing_and_fails_no_row(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer([Reply(404)]) as server:
            run = live_run(tmp_path, bank, server.url)
            outcome = run(calls(9))
        assert (outcome.failures, len(outcome.left), run.book()) == ({}, 9, Book())


class TestTheFirstCallGoesAlone:
    def test_no_other_call_of_a_model_is_made_before_the_first_has_ended(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer(lambda _, n: Reply(body=chat(), delay=0.3 if n == 0 else 0.0)) as server:
            live_run(tmp_path, bank, server.url, local={"concurrency": 16})(calls(2))
            assert server.most_at_once == 1
        assert len(server.requests) == 2

    def test_two_models_begin_side_by_side(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer(lambda *_: Reply(body=chat(), delay=0.3)) as server:
            two_models(tmp_path, bank, server.url, 1, concurrency=16)
        assert server.most_at_once == 2


class TestJudges:
    """A judge is closed under the rubric that it cannot use, and goes on with the others."""

    @staticmethod
    def votes(rubric: str, number: int) -> list[Call]:
        def check(answer: Answer) -> str | None:
            try:
                json.loads(answer.text)
            except ValueError:
                return "not_json"
            return None

        made = calls(number, "judge-a/x", first=0 if rubric == "stance" else 50)
        return [replace(c, role="judge", rubric=rubric, check=check, key=sha256_hex(rubric + c.key)) for c in made]

    def test_one_rubric_is_closed(self, tmp_path: Path, bank: Bank) -> None:
        def script(request: dict[str, Any], _: int) -> Reply:
            return Reply(body=chat("{}" if int(request["messages"][0]["content"]) < 50 else "I think"))

        with ScriptedServer(script) as server:
            run = live_run(tmp_path, bank, server.url, models=[callee("alpha/one"), callee("judge-a/x")])
            outcome = run([*self.votes("capability", 40), *self.votes("stance", 40)])
        assert list(outcome.closures) == [Lane("judge", "judge-a/x", "capability")]
        closure = outcome.closures[Lane("judge", "judge-a/x", "capability")]
        assert "20 votes in a row cannot be used, the last: not_json (finish_reason stop)" in closure.why
        assert "response_format of endpoint local" in closure.remedy
        assert outcome.lanes[Lane("judge", "judge-a/x", "stance")].asked == 40
        assert len(server.requests) == 3 * IN_A_ROW + 40

    def test_a_status_that_concerns_the_judge_closes_all_its_rubrics(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer([Reply(404)]) as server:
            run = live_run(tmp_path, bank, server.url, models=[callee("alpha/one"), callee("judge-a/x")])
            outcome = run([*self.votes("capability", 9), *self.votes("stance", 9)])
        assert ([lane.rubric for lane in outcome.closures], len(server.requests)) == (["capability", "stance"], 1)


class TestUsable:
    @pytest.mark.parametrize(("role", "outcome", "good"), [
        ("subject", "answered", True), ("subject", "cut", True), ("subject", "filtered", True),
        ("subject", "cut_before_answer", False), ("subject", "unusable", False),
        ("judge", "answered", True), ("judge", "filtered", False), ("judge", "cut_before_answer", False),
    ])  # fmt: skip
    def test_by_role_and_outcome(self, role: Any, outcome: Any, good: bool) -> None:
        assert usable(replace(calls(1)[0], role=role), Answer("x", outcome)) is good

    def test_a_cached_answer_closes_nothing(self) -> None:
        outcome = Outcome()
        for call in calls(IN_A_ROW):
            outcome.finish(call, Answer("", "unusable", error="empty"), cached=True)
        assert (outcome.closures, outcome.lanes[lane_of(calls(1)[0])].unusable) == ({}, IN_A_ROW)


class TestTheSameCommandAgain:
    """A lane that was closed: the answers that it paid for say where it stood."""

    def test_one_more_call_closes_it_again(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer([Reply(body=chat(""))]) as server:
            run = live_run(tmp_path, bank, server.url, local={"concurrency": 16})
            first = run(calls(60))
            asked = len(server.requests)
            second = run(calls(60))
        assert (len(first.left), asked) == (40, 3 * IN_A_ROW)
        assert (len(second.left), len(server.requests) - asked) == (39, 3)
        prune = f"`aibiasbench cache prune --cache {tmp_path / 'c.sqlite'} --role subject --model alpha/one"
        ((_, closure),) = second.closures.items()
        assert f"{prune} --outcome unusable` forgets these answers" in closure.remedy

    def test_one_that_is_mended_goes_on_to_its_end(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer(lambda _, n: Reply(body=chat("" if n < 3 * IN_A_ROW else "Yes."))) as server:
            run = live_run(tmp_path, bank, server.url, local={"concurrency": 16})
            run(calls(60))
            outcome = run(calls(60))
        assert (outcome.closures, outcome.left, outcome.tally.asked, outcome.tally.cached) == ({}, [], 40, 20)

    def test_a_good_answer_among_the_cached_ones_begins_the_count_anew(self) -> None:
        outcome = Outcome()
        for number, call in enumerate(calls(2 * IN_A_ROW)):
            good = number == IN_A_ROW + 4
            answer = Answer("Yes.") if good else Answer("", "unusable", error="empty")
            outcome.finish(call, answer, cached=True)
        record = outcome.lanes[lane_of(calls(1)[0])]
        assert (record.streak, record.open_for) == (15, 5)


class TestRemedies:
    def closed_by(self, answer: Answer) -> str:
        outcome = Outcome()
        for call in calls(IN_A_ROW):
            outcome.finish(call, answer)
        ((_, closure),) = outcome.closures.items()
        return f"{closure.why}; {closure.remedy}"

    def test_thinking_names_max_tokens_and_effort(self) -> None:
        words = self.closed_by(Answer("", "cut_before_answer", "length"))
        assert "max_tokens = 100 went into thinking" in words
        assert "raise max_tokens of alpha/one in run.toml, or lower its reasoning effort" in words

    def test_a_broken_connection_names_the_endpoint(self) -> None:
        outcome = Outcome()
        for call in calls(IN_A_ROW):
            outcome.fail(call, CallError("transport", "the connection broke", retryable=True))
        ((_, closure),) = outcome.closures.items()
        assert "see whether endpoint local is up" in closure.remedy


class TestEndings:
    def test_done_stopped_and_left_at_a_cap(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer(only("one", Reply(404, b"no such model"))) as server:
            run = live_run(
                tmp_path, bank, server.url, models=TWO, caps={"run": 9.0, "models": {"beta/two": 3e-12 * COST}}
            )
            outcome = run([*calls(5), *calls(5, "beta/two")])
        first, second = (ending.line("AGAIN", "answers") for ending in endings([outcome]))
        assert first == (
            "alpha/one: stopped, 0 answers, 5 left: HTTP status 404: no such model; check api_model (one) in run.toml,"
            " and base_url of endpoint local, then: AGAIN"
        )
        assert second.endswith("the spend cap subject:beta/two is reached; raise caps.models in run.toml, then: AGAIN")

    def test_a_model_that_is_done(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer([Reply(body=finished("length", "Ye")), Reply(400), Reply(body=chat())]) as server:
            outcome = live_run(tmp_path, bank, server.url, local={"concurrency": 1})(calls(5))
        assert [e.line("AGAIN", "answers") for e in endings([outcome])] == ["alpha/one: done, 4 answers (1 failed)"]

    def test_the_rubrics_of_a_judge_and_its_waves_are_put_together(self) -> None:
        lanes = [Lane("judge", "judge-a/x", rubric) for rubric in ("stance", "capability")]
        wave = Outcome(lanes={lane: LaneRecord("local", asked=3, unusable=1) for lane in lanes})
        assert [e.line("AGAIN", "votes") for e in endings([wave, wave])] == [
            "judge-a/x: done, 12 votes (4 of them unusable)"
        ]
