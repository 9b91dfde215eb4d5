"""The engine: cache first, money reserved before each attempt, bounded retries, stops that are told.

See contract: stages, "Spend caps".
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from generator.schema.bank import Bank
from generator.schema.errors import ToolError
from harness.cache.answers import Cache
from harness.calls.call import Answer, Request
from harness.calls.retry import Patience
from harness.engine.lanes import IN_A_ROW
from harness.engine.runner import Engine
from harness.money.budget import Book, Ledger, caps_of, picodollars
from tests.engine_runs import BUSY, COST, WORST, Run, calls, live_run
from tests.factories import make_bank
from tests.plans import callee, make_plan, simulated_data
from tests.scripted_server import Reply, ScriptedServer, chat, finished


@pytest.fixture(scope="module")
def bank() -> Bank:
    return make_bank(("age",), quota={"stance": 1})


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


class TestCacheFirst:
    def test_each_call_is_asked_and_answered(self, tmp_path: Path, bank: Bank, server: ScriptedServer) -> None:
        outcome = live_run(tmp_path, bank, server.url)(calls(10))
        assert {a.text for a in outcome.answers.values()} == {"Yes."}
        assert (len(outcome.answers), outcome.tally.asked, len(server.requests)) == (10, 10, 10)

    def test_a_second_run_makes_no_call(self, tmp_path: Path, bank: Bank, server: ScriptedServer) -> None:
        run = live_run(tmp_path, bank, server.url)
        first, second = run(calls(10)), run(calls(10))
        assert (len(server.requests), second.tally.cached, second.tally.attempts) == (10, 10, 0)
        assert second.answers == first.answers

    def test_a_key_that_comes_twice_is_asked_once(self, tmp_path: Path, bank: Bank, server: ScriptedServer) -> None:
        outcome = live_run(tmp_path, bank, server.url)([*calls(3), *calls(3)])
        assert (len(server.requests), outcome.tally.planned) == (3, 3)

    def test_another_run_finds_the_answers_and_books_them_as_reused(
        self, tmp_path: Path, bank: Bank, server: ScriptedServer
    ) -> None:
        live_run(tmp_path, bank, server.url)(calls(4))
        other = live_run(tmp_path / "other", bank, server.url, caps={"run": 0.0})
        (tmp_path / "other").mkdir()
        (tmp_path / "c.sqlite").rename(tmp_path / "other" / "c.sqlite")
        assert other(calls(4)).tally.cached == 4
        assert other.book() == Book(reused=4 * COST)

    def test_answers_need_not_be_kept_in_memory(self, tmp_path: Path, bank: Bank, server: ScriptedServer) -> None:
        outcome = live_run(tmp_path, bank, server.url)(calls(3), keep=False)
        assert (outcome.answers, outcome.tally.asked) == ({}, 3)

    def test_no_more_are_in_flight_than_the_endpoint_takes(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer(lambda *_: Reply(body=chat(), delay=0.02)) as server:
            live_run(tmp_path, bank, server.url, local={"concurrency": 3})(calls(12))
        assert server.most_at_once == 3


class TestRetries:
    def test_a_passing_failure_is_asked_again(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer([BUSY, Reply(429, headers={"Retry-After": "0"}), Reply(body=chat())]) as server:
            run = live_run(tmp_path, bank, server.url)
            outcome = run(calls(1))
        assert (len(outcome.answers), outcome.tally.attempts) == (1, 3)
        assert run.book() == Book(settled=COST)

    def test_attempts_are_bounded(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer([BUSY]) as server:
            outcome = live_run(tmp_path, bank, server.url)(calls(1))
        assert (outcome.failures, len(server.requests)) == ({calls(1)[0].key: "http_status"}, 3)

    def test_a_lasting_failure_is_asked_once(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer([Reply(400)]) as server:
            live_run(tmp_path, bank, server.url)(calls(1))
        assert len(server.requests) == 1

    def test_a_failed_call_is_never_cached_and_asked_again_next_time(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer([BUSY, BUSY, BUSY, Reply(body=chat())]) as server:
            run = live_run(tmp_path, bank, server.url)
            first, second = run(calls(1)), run(calls(1))
        assert (first.tally.failed, second.tally.asked, second.tally.cached) == (1, 1, 0)
        with run.ledger() as ledger:
            assert ledger.failures() == {}

    def test_white_space_is_asked_for_again_twice(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer([Reply(body=chat(" \n\t\u00a0"))]) as server:
            run = live_run(tmp_path, bank, server.url)
            found = run(calls(1)).answers[calls(1)[0].key]
            again = run(calls(1))
        assert (found.outcome, found.error, found.cost, len(server.requests)) == ("unusable", "empty", 3 * COST, 3)
        assert (again.tally.cached, again.answers) == (1, {calls(1)[0].key: found})
        assert run.book() == Book(settled=3 * COST)

    def test_an_answer_at_the_second_try_is_good_and_costs_both(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer([Reply(body=chat("")), Reply(body=chat("No."))]) as server:
            found = live_run(tmp_path, bank, server.url)(calls(1)).answers[calls(1)[0].key]
        assert (found.text, found.outcome, found.cost) == ("No.", "answered", 2 * COST)

    def test_cut_and_filtered_answers_come_back_as_what_they_are(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer(
            [Reply(body=finished("length", "Ye")), Reply(body=finished("content_filter", None))]
        ) as server:
            run = live_run(tmp_path, bank, server.url, local={"concurrency": 1})
            run(calls(2))
            found = run(calls(2))
        assert [a.outcome for a in found.answers.values()] == ["cut", "filtered"]
        assert found.tally.cached == 2

    def test_a_call_of_unknown_cost_counts_at_its_worst_case(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer([Reply(body=chat(), cut=10), Reply(body=chat())]) as server:
            run = live_run(tmp_path, bank, server.url)
            found = run(calls(1)).answers[calls(1)[0].key]
        assert run.book() == Book(settled=COST, lost=WORST)
        assert found.cost == COST + WORST

    def test_an_answer_without_usage_counts_at_its_worst_case(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer([Reply(body=chat(usage=None))]) as server:
            run = live_run(tmp_path, bank, server.url)
            run(calls(1))
        assert run.book() == Book(settled=WORST)


class TestPatience:
    def test_the_backoff_doubles_up_to_its_limit(self) -> None:
        patience = Patience(attempts=20, total_wait=1e9, backoff=0.5)
        assert [patience.wait(made, None, 0.0) for made in (1, 2, 3, 10)] == [0.5, 1.0, 2.0, 30.0]

    def test_jitter_takes_off_up_to_half(self) -> None:
        assert Patience(20, 1e9, 0.5).wait(1, None, 1.0) == 0.25

    def test_what_the_endpoint_asked_for_is_never_undercut(self) -> None:
        assert Patience(20, 1e9, 0.5).wait(1, 9.0, 0.9) == 9.0


class TestCaps:
    @pytest.mark.parametrize(("caps", "account"), [
        ({"run": 1e-12 * (5 * WORST)}, "run"),
        ({"run": 9.0, "models": {"alpha/one": 1e-12 * (5 * WORST)}}, "subject:alpha/one"),
    ])  # fmt: skip
    def test_many_workers_never_pass_a_cap_of_a_few_calls(
        self, tmp_path: Path, bank: Bank, caps: dict[str, Any], account: str
    ) -> None:
        """At each arrival at the server, true costs so far and worst cases in flight fit the cap."""
        lock, state, seen = threading.Lock(), {"flight": 0, "spent": 0}, []

        def script(_: dict[str, Any], number: int) -> Reply:
            with lock:
                state["flight"] += 1
                seen.append(state["spent"] + state["flight"] * WORST)
            cost = WORST // (1 + number % 3)  # some calls cost all that was reserved, others less
            body = chat(usage={"prompt_tokens": 1, "completion_tokens": 1, "cost": cost / 10**12})
            with lock:
                state["flight"] -= 1
                state["spent"] += cost
            return Reply(body=body)

        with ScriptedServer(script) as server:
            run = live_run(tmp_path, bank, server.url, local={"concurrency": 64}, caps=caps)
            outcome = run(calls(64))
        cap = 5 * WORST
        assert max(seen) <= cap
        assert cap - WORST < run.book().settled <= cap
        assert (outcome.capped, len(outcome.left)) == ({account}, 64 - len(server.requests))

    def test_a_cap_of_one_model_leaves_the_others_alone(
        self, tmp_path: Path, bank: Bank, server: ScriptedServer
    ) -> None:
        models = [callee("alpha/one"), callee("beta/two")]
        run = live_run(tmp_path, bank, server.url, models=models, caps={"run": 9.0, "models": {"alpha/one": 0.0}})
        outcome = run([*calls(3), *calls(3, "beta/two")])
        assert ({c.request.model for c in outcome.left}, outcome.tally.asked) == ({"alpha/one"}, 3)
        assert {r["model"] for r in server.requests} == {"two"}

    def test_a_raised_cap_resumes_where_it_stopped(self, tmp_path: Path, bank: Bank, server: ScriptedServer) -> None:
        first = live_run(tmp_path, bank, server.url, caps={"run": 1.2e-12 * WORST})(calls(9))
        second = live_run(tmp_path, bank, server.url)(calls(9))
        assert first.capped == {"run"}
        assert (second.tally.cached, second.tally.asked) == (first.tally.asked, len(first.left))
        assert len(server.requests) == 9

    def test_an_overspent_call_is_booked_warned_about_and_stops_at_the_cap(self, tmp_path: Path, bank: Bank) -> None:
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 3e-12 * WORST}
        with ScriptedServer([Reply(body=chat(usage=usage))]) as server:
            caps = {"run": 2e-12 * WORST}
            run = live_run(tmp_path, bank, server.url, local={"concurrency": 1}, caps=caps)
            outcome = run(calls(5))
        assert (len(server.requests), outcome.capped, run.book()) == (1, {"run"}, Book(settled=3 * WORST))
        assert len(outcome.answers) == 1
        assert "booked at its true cost" in outcome.tally.warnings[0]

    def test_retries_are_reserved_too(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer([Reply(body=chat(), cut=5)]) as server:
            outcome = live_run(tmp_path, bank, server.url, caps={"run": 1e-12 * 2 * WORST})(calls(1))
        assert (len(server.requests), outcome.capped, len(outcome.left)) == (2, {"run"}, 1)


class TestStops:
    @pytest.mark.parametrize("code", [401, 402])
    def test_a_refusal_inside_a_200_is_booked_at_what_it_says_that_it_cost(
        self, tmp_path: Path, bank: Bank, code: int
    ) -> None:
        body = {
            "error": {"code": code, "message": "no"},
            "usage": {"prompt_tokens": 9, "completion_tokens": 1, "cost": 0.5},
        }
        with ScriptedServer([Reply(body=body)]) as server:
            run = live_run(tmp_path, bank, server.url)
            run(calls(1))
        assert run.book() == Book(settled=picodollars(0.5))

    @pytest.mark.parametrize(("status", "words"), [(401, "was refused"), (402, "no credit left")])
    def test_a_refused_key_or_account_closes_the_model(
        self, tmp_path: Path, bank: Bank, status: int, words: str
    ) -> None:
        with ScriptedServer([Reply(status)]) as server:
            run = live_run(tmp_path, bank, server.url, local={"concurrency": 1})
            outcome = run(calls(9))
        assert words in str(outcome.stopped)
        assert (len(server.requests), len(outcome.left), outcome.failures, run.book()) == (1, 9, {}, Book())

    def test_an_endpoint_that_is_down_is_closed(self, tmp_path: Path, bank: Bank) -> None:
        outcome = live_run(tmp_path, bank, "http://127.0.0.1:1/v1", local={"concurrency": 1})(calls(9))
        assert "alpha/one: no connection" in str(outcome.stopped)
        assert [c.remedy for c in outcome.closures.values()] == [
            "is it running, and is base_url of endpoint local in run.toml right?"
        ]
        assert (len(outcome.failures), len(outcome.left)) == (1, 8)

    @pytest.mark.parametrize("concurrency", [1, 64])
    def test_many_failures_in_a_row_close_the_model(self, tmp_path: Path, bank: Bank, concurrency: int) -> None:
        with ScriptedServer([Reply(400, b"no such parameter")]) as server:
            outcome = live_run(tmp_path, bank, server.url, local={"concurrency": concurrency})(calls(99))
        assert (len(server.requests), len(outcome.failures), len(outcome.left)) == (IN_A_ROW, IN_A_ROW, 99 - IN_A_ROW)
        assert "20 calls in a row failed, the last with: HTTP status 400: no such parameter" in str(outcome.stopped)

    def test_a_success_between_failures_goes_on(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer(lambda _, n: Reply(body=chat()) if n % 10 == 9 else Reply(400)) as server:
            outcome = live_run(tmp_path, bank, server.url, local={"concurrency": 1})(calls(60))
        assert (outcome.stopped, outcome.tally.failed, outcome.tally.asked) == (None, 54, 6)

    def test_a_model_that_is_closed_brings_home_what_is_in_flight(self, tmp_path: Path, bank: Bank) -> None:
        """After a first answer one call is refused for want of credit while three others take another second."""
        arrived = threading.Barrier(4)

        def script(_: dict[str, Any], number: int) -> Reply:
            refused = number > 0 and arrived.wait(10) == 0
            return Reply(402) if refused else Reply(body=chat(), delay=1.0 if number else 0.0)

        with ScriptedServer(script) as server:
            run = live_run(tmp_path, bank, server.url)
            outcome = run(calls(10))
        assert "no credit left" in str(outcome.stopped)
        assert (len(outcome.answers), len(outcome.left), run.book()) == (4, 6, Book(settled=4 * COST))

    def test_a_call_that_waits_for_its_next_attempt_is_left_when_the_stage_stops(
        self, tmp_path: Path, bank: Bank
    ) -> None:
        with ScriptedServer([BUSY, Reply(402, delay=0.3), Reply(body=chat())]) as server:
            run = live_run(tmp_path, bank, server.url, local={"concurrency": 2, "backoff": 60.0})
            outcome = run(calls(2))
        assert "no credit left" in str(outcome.stopped)
        assert (len(server.requests), len(outcome.left), outcome.failures, run.book()) == (2, 2, {}, Book())

    def test_a_full_disk_is_one_error_and_what_was_counted_is_safe(self, tmp_path: Path, bank: Bank) -> None:
        long = "x" * 3000
        plan = make_plan(simulated_data(bank, "sim-alpha/one"))
        seen: list[int] = []
        with (
            Cache(tmp_path / "c.sqlite", now=1) as cache,
            Ledger(tmp_path, run_id="test-run", stage="eval", caps=caps_of(plan)) as ledger,
        ):
            cache._db.execute("PRAGMA max_page_count=20")  # the disk ends here
            engine = Engine(plan, cache=cache, ledger=ledger, endpoints={"simulated": Batch(5, long)})
            with pytest.raises(ToolError, match="cannot be written: database or disk is full"):
                engine.run(calls(200, "sim-alpha/one", "simulated"), watch=lambda t: seen.append(t.asked))
            cache._db.execute("PRAGMA max_page_count=10000")
            assert sum(line.answers for line in cache.lines()) == seen[-1] > 0


class Batch:
    """A backend inside the process whose answers depend on the request alone; remembers its batches."""

    def __init__(self, batch_size: int = 10, text: str = "Yes.") -> None:
        self.batch_size, self._text = batch_size, text
        self.batches: list[int] = []

    def complete_batch(self, requests: Sequence[Request]) -> list[Answer]:
        self.batches.append(len(requests))
        return [Answer(self._text if r.try_ else " ", prompt_tokens=20, completion_tokens=5) for r in requests]


class TestBatches:
    def simulated(self, folder: Path, bank: Bank, backend: Batch, **changes: Any) -> Run:
        plan = make_plan(simulated_data(bank, "sim-alpha/one", **changes))
        return Run(folder, plan, {"simulated": backend})

    def test_whole_batches_go_under_the_same_books(self, tmp_path: Path, bank: Bank) -> None:
        run = self.simulated(tmp_path, bank, Batch())
        outcome = run(calls(25, "sim-alpha/one", "simulated"))
        assert (len(outcome.answers), outcome.tally.attempts) == (25, 50)
        assert run.book() == Book(settled=50 * COST)
        assert run(calls(25, "sim-alpha/one", "simulated")).tally.attempts == 0

    def test_an_answer_that_stays_unusable_is_one_after_three_tries(self, tmp_path: Path, bank: Bank) -> None:
        outcome = self.simulated(tmp_path, bank, Batch(text=""))(calls(5, "sim-alpha/one", "simulated"))
        assert [(a.outcome, a.error) for a in outcome.answers.values()] == [("unusable", "empty")] * 5
        assert outcome.tally.attempts == 15

    def test_a_cap_holds_and_is_used_up(self, tmp_path: Path, bank: Bank) -> None:
        run = self.simulated(tmp_path, bank, Batch(text="Yes."), caps={"run": 1e-12 * 5 * WORST})
        outcome = run(calls(400, "sim-alpha/one", "simulated"))
        assert 5 * WORST - WORST < run.book().settled <= 5 * WORST
        assert (outcome.capped, len(outcome.left) + outcome.tally.asked) == ({"run"}, 400)

    def test_a_cap_of_nothing_asks_nothing(self, tmp_path: Path, bank: Bank) -> None:
        backend = Batch()
        outcome = self.simulated(tmp_path, bank, backend, caps={"run": 0.0})(calls(30, "sim-alpha/one", "simulated"))
        assert (sum(backend.batches), len(outcome.left)) == (0, 30)


class TestWatch:
    def test_the_watcher_sees_the_end(self, tmp_path: Path, bank: Bank, server: ScriptedServer) -> None:
        seen: list[tuple[int, int, int]] = []
        live_run(tmp_path, bank, server.url)(calls(7), watch=lambda t: seen.append((t.planned, t.done, t.spent)))
        assert seen[-1] == (7, 7, 7 * COST)


class TestMoney:
    def test_picodollars_are_exact(self) -> None:
        assert picodollars(0.1) + picodollars(0.2) == picodollars(0.3)
