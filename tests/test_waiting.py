"""Waiting: what an endpoint asks for, within total_wait, and told (contract: stages, "Attempts and waiting")."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.schema.bank import Bank
from harness.calls.call import Answer, Message, Request
from harness.engine.outcome import Wait
from harness.engine.pace import Bucket, EndpointPace, expected_tokens
from harness.money.budget import Book
from tests.engine_runs import COST, calls, live_run
from tests.factories import make_bank
from tests.plans import callee
from tests.scripted_server import Reply, ScriptedServer, chat
from tests.test_hints import RETRY_INFO


@pytest.fixture(scope="module")
def bank() -> Bank:
    return make_bank(("age",), quota={"stance": 1})


class TestALimit:
    @pytest.mark.parametrize("reply", [
        Reply(429, headers={"Retry-After": "1"}),
        Reply(429, headers={"retry-after-ms": "1000"}),
        Reply(429, headers={"x-ratelimit-reset-requests": "1s"}),
        Reply(429, {"error": {"details": [{"retryDelay": "1s"}]}}),
    ], ids=["seconds", "milliseconds", "reset", "body"])  # fmt: skip
    def test_it_is_waited_for_and_the_wait_is_shown(self, tmp_path: Path, bank: Bank, reply: Reply) -> None:
        arrived: list[float] = []

        def script(_: dict[str, Any], number: int) -> Reply:
            arrived.append(time.monotonic())
            return Reply(body=chat()) if number else reply

        shown: list[Wait] = []
        with ScriptedServer(script) as server:
            run = live_run(tmp_path, bank, server.url)
            outcome = run(calls(3), watch=lambda t: shown.extend(w for _, w in [t.waiting(time.monotonic())] if w)
                          if t.waiting(time.monotonic()) else None)  # fmt: skip
        assert (len(outcome.answers), run.book()) == (3, Book(settled=3 * COST))
        assert arrived[1] - arrived[0] >= 0.99
        assert {(w.seconds, w.why.partition(":")[0]) for w in shown} == {(1.0, "HTTP status 429")}

    def test_attempts_do_not_bound_it(self, tmp_path: Path, bank: Bank) -> None:
        replies = [Reply(429, headers={"Retry-After": "0"})] * 9
        with ScriptedServer([*replies, Reply(body=chat())]) as server:
            outcome = live_run(tmp_path, bank, server.url, local={"max_attempts": 2})(calls(1))
        assert (len(outcome.answers), outcome.tally.attempts) == (1, 10)

    def test_total_wait_does(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer([Reply(429, headers={"retry-after-ms": "300"})]) as server:
            outcome = live_run(tmp_path, bank, server.url, local={"total_wait": 1.0})(calls(1))
        assert (list(outcome.failures.values()), outcome.closures) == (["http_status"], {})
        assert 2 <= len(server.requests) <= 4

    @pytest.mark.parametrize("reply", [
        Reply(429, headers={"Retry-After": "3600"}), Reply(503, headers={"Retry-After": "9" * 400}),
        Reply(429, RETRY_INFO), Reply(429, headers={"x-ratelimit-reset-requests": "1h"}),
    ], ids=["an hour", "four hundred nines", "body", "reset"])  # fmt: skip
    def test_a_longer_wait_closes_the_model_and_says_until_when(self, tmp_path: Path, bank: Bank, reply: Reply) -> None:
        with ScriptedServer(lambda r, _: reply if r["model"] == "one" else Reply(body=chat())) as server:
            models = [callee("alpha/one"), callee("beta/two")]
            run = live_run(tmp_path, bank, server.url, models=models, local={"total_wait": 10.0})
            outcome = run([*calls(4), *calls(4, "beta/two")])
        ((lane, closure),) = outcome.closures.items()
        assert (lane.model, len(outcome.left), outcome.failures, len(server.requests)) == ("alpha/one", 4, {}, 5)
        assert "asks for a wait of" in closure.why
        assert ", until 20" in closure.why
        assert "raise total_wait (10 s) of endpoint local" in closure.remedy

    def test_another_model_at_the_endpoint_is_asked_meanwhile(self, tmp_path: Path, bank: Bank) -> None:
        """All workers but one would sleep with the first model's calls, if waiting took a worker."""
        order: list[str] = []

        def script(request: dict[str, Any], _: int) -> Reply:
            order.append(request["model"])
            limited = request["model"] == "one" and order.count("one") == 1
            return Reply(429, headers={"Retry-After": "1"}) if limited else Reply(body=chat())

        with ScriptedServer(script) as server:
            models = [callee("alpha/one"), callee("beta/two")]
            run = live_run(tmp_path, bank, server.url, models=models, local={"concurrency": 1})
            outcome = run([*calls(2), *calls(5, "beta/two")])
        assert order == ["one", *["two"] * 5, "one", "one"]
        assert len(outcome.answers) == 7


class TestBucket:
    @given(rate=st.floats(1, 600), gaps=st.lists(st.floats(0, 5), min_size=1, max_size=60))
    def test_no_minute_holds_more_than_its_requests(self, rate: float, gaps: list[float]) -> None:
        bucket, now, starts = Bucket(rate), 0.0, []
        for gap in gaps:
            now += gap
            starts.append(bucket.slot(now))
        slack = 1e-6
        for first in starts:
            assert sum(first <= start < first + 60.0 - slack for start in starts) <= rate + 1

    def test_requests_are_spread_evenly(self) -> None:
        bucket = Bucket(120)
        assert [bucket.slot(10.0) for _ in range(4)] == [10.0, 10.5, 11.0, 11.5]

    def test_a_pause_is_not_saved_up(self) -> None:
        bucket = Bucket(60)
        assert [bucket.slot(0.0), bucket.slot(100.0), bucket.slot(100.0)] == [0.0, 100.0, 101.0]


class TestEndpointPace:
    REQUEST = Request("alpha/one", "one", (Message("user", "x" * 80),), {"max_tokens": 40}, 0)

    def test_tokens_of_a_request(self) -> None:
        assert expected_tokens(self.REQUEST) == 20 + 40

    def test_tokens_that_were_not_used_are_given_back(self) -> None:
        pace = EndpointPace(None, 60)
        assert pace.start(self.REQUEST, 0.0) == 0.0
        pace.ended(self.REQUEST, Answer("x", prompt_tokens=20, completion_tokens=10))
        assert pace.start(self.REQUEST, 0.0) == 30.0

    def test_the_slower_limit_counts(self) -> None:
        pace = EndpointPace(6, 60)
        assert [pace.start(self.REQUEST, 0.0), pace.start(self.REQUEST, 0.0)] == [0.0, 60.0]

    def test_without_limits_nobody_waits(self) -> None:
        pace = EndpointPace(None, None)
        assert [pace.start(self.REQUEST, 5.0), pace.start(self.REQUEST, 5.0)] == [5.0, 5.0]

    @pytest.mark.parametrize("limit", [{"requests_per_minute": 300}, {"tokens_per_minute": 10_000}])
    def test_requests_reach_the_server_no_faster(self, tmp_path: Path, bank: Bank, limit: dict[str, int]) -> None:
        arrived: list[float] = []

        def script(*_: Any) -> Reply:
            arrived.append(time.monotonic())
            return Reply(body=chat())

        each = 0.2 if "requests_per_minute" in limit else 25 * 60 / 10_000  # the usage of one answer: 25 tokens
        with ScriptedServer(script) as server:
            began = time.monotonic()
            live_run(tmp_path, bank, server.url, local={"concurrency": 8, **limit})(calls(6))
        assert (len(arrived), arrived[-1] - began >= 5 * each) == (6, True)
