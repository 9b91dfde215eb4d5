"""The ledger: reserved before, settled after, never past a cap, and it adds up (contract: stages, "Spend caps")."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from generator.schema.canonical import sha256_hex
from harness.cache.answers import Cache, Entry
from harness.calls.call import Answer, Call, Message, Request
from harness.money.budget import Book, Ledger, Refusal, caps_of, dollars, picodollars, worst_case
from harness.plan.records import Prices
from tests.factories import make_bank
from tests.plans import live_data, make_plan


def call(name: str, model: str = "alpha/one", role: str = "subject") -> Call:
    request = Request(model, "one", (Message("user", "Hi"),), {"max_tokens": 10}, 0)
    return Call(sha256_hex(name), role, "local", request)  # type: ignore[arg-type]


def ledger(folder: Path, stage: str = "eval", **caps: int) -> Ledger:
    return Ledger(folder, run_id="test-run", stage=stage, caps={k.replace("__", ":"): v for k, v in caps.items()})


def entries(book: Ledger) -> list[tuple[str, int, int | None]]:
    return list(book._db.execute("SELECT state, reserved, cost FROM entries ORDER BY id"))


class TestReserve:
    def test_what_fits_is_reserved_and_the_rest_refused(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=100) as book:
            made = book.reserve([(call("a"), 60), (call("b"), 50), (call("c"), 40)])
            assert made == [1, Refusal("run"), 2]
            assert book.committed() == 100

    def test_a_cap_may_be_reached_but_not_passed(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=100) as book:
            assert book.reserve([(call("a"), 100), (call("b"), 1), (call("c"), 0)]) == [1, Refusal("run"), 2]

    def test_a_models_cap_holds_for_that_model_only(self, tmp_path: Path) -> None:
        caps = {"run": 1000, "subject:alpha/one": 50}
        with Ledger(tmp_path, run_id="test-run", stage="eval", caps=caps) as book:
            made = book.reserve([(call("a"), 60), (call("b", "beta/two"), 60), (call("c", role="judge"), 60)])
            assert made == [Refusal("subject:alpha/one"), 1, 2]

    def test_subjects_and_judges_of_one_slug_have_two_accounts(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=1000) as book:
            book.reserve([(call("a"), 60), (call("b", role="judge"), 7)])
            assert (book.committed("subject:alpha/one"), book.committed("judge:alpha/one")) == (60, 7)

    def test_an_open_reservation_survives_the_process(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=100) as book:
            book.reserve([(call("a"), 60)])
        with ledger(tmp_path, run=100) as book:
            assert book.reserve([(call("b"), 60)]) == [Refusal("run")]

    def test_many_processes_together_never_pass_a_cap(self, tmp_path: Path) -> None:
        program = (
            "import sys; from pathlib import Path; from tests.test_budget import call, ledger\n"
            "with ledger(Path(sys.argv[1]), run=50 * 7) as book:\n"
            "    made = [book.reserve([(call(f'{sys.argv[2]}{i}'), 7)])[0] for i in range(30)]\n"
            "print(sum(isinstance(m, int) for m in made))\n"
        )
        args = [sys.executable, "-c", program, str(tmp_path)]
        four = [subprocess.Popen([*args, name], stdout=subprocess.PIPE, text=True) for name in "abcd"]
        assert sum(int(process.communicate()[0]) for process in four) == 50
        with ledger(tmp_path, run=50 * 7) as book:
            assert book.committed() == 50 * 7
            assert book.faults() == []


class TestSettle:
    def test_a_settled_call_frees_what_it_did_not_cost(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=100) as book:
            book.reserve([(call("a"), 90)])
            book.settle({1: 30})
            assert book.committed() == 30
            assert book.reserve([(call("b"), 70)]) == [2]

    def test_an_overspent_call_is_booked_at_its_true_cost_and_stops_others(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=100) as book:
            book.reserve([(call("a"), 90)])
            book.settle({1: 250})
            assert book.committed() == 250
            assert book.reserve([(call("b"), 1)]) == [Refusal("run")]

    def test_a_lost_call_counts_as_spent_at_its_worst_case(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=100) as book:
            book.reserve([(call("a"), 90)])
            book.settle({1: None})
            assert (book.committed(), book.book("subject")) == (90, Book(lost=90))

    def test_failures_are_kept_by_key(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=100) as book:
            book.reserve([(call("a"), 90)])
            book.settle({1: 0}, {sha256_hex("a"): "transport"})
        with ledger(tmp_path, run=100) as book:
            assert book.failures() == {sha256_hex("a"): "transport"}

    def test_an_answer_takes_its_failure_back(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=100) as book:
            book.reserve([(call("a"), 9), (call("b"), 9), (call("a"), 9)])
            book.settle({1: 0, 2: 0}, {sha256_hex("a"): "transport", sha256_hex("b"): "empty"})
        with ledger(tmp_path, run=100) as book:
            book.settle({3: 0}, answered=[sha256_hex("a"), sha256_hex("c")])
            assert book.failures() == {sha256_hex("b"): "empty"}

    def test_lost_calls_are_settled_together_at_what_was_billed(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=1000) as book:
            book.reserve([(call("a"), 90), (call("b"), 30), (call("c"), 7)])
            book.settle({1: None, 2: None, 3: 5})
            assert book.settle_lost(41) == 2
            assert entries(book) == [("settled", 90, 30), ("settled", 30, 11), ("settled", 7, 5)]
            assert book.committed() == 46
            assert book.faults() == []

    def test_free_lost_calls_take_a_bill_too(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=1000) as book:
            book.reserve([(call("a"), 0)])
            book.settle({1: None})
            assert (book.settle_lost(3), book.settle_lost(3)) == (1, 0)
            assert book.committed() == 3


class TestRecover:
    def test_what_a_crash_left_open_is_lost(self, tmp_path: Path) -> None:
        with Cache(tmp_path / "c.sqlite", now=1) as cache:
            with ledger(tmp_path, run=100) as book:
                book.reserve([(call("a"), 90)])
            with ledger(tmp_path, run=100) as book:
                assert book.recover(cache) == 1
                assert entries(book) == [("lost", 90, None)]
                assert book.committed() == 90

    def test_an_answer_that_reached_the_cache_settles_its_reservation(self, tmp_path: Path) -> None:
        with Cache(tmp_path / "c.sqlite", now=1) as cache:
            with ledger(tmp_path, run=100) as book:
                book.reserve([(call("a"), 50), (call("b"), 50)])
                cache.store([Entry(sha256_hex("a"), "subject", "alpha/one", Answer("x", cost=33), book.ticket(1), 12)])
            with ledger(tmp_path, run=100) as book:
                assert book.recover(cache) == 1
                assert entries(book) == [("settled", 50, 12), ("lost", 50, None)]

    def test_an_answer_that_another_run_paid_does_not_settle_it(self, tmp_path: Path) -> None:
        with Cache(tmp_path / "c.sqlite", now=1) as cache:
            with ledger(tmp_path, run=100) as book:
                book.reserve([(call("a"), 50)])
                cache.store([Entry(sha256_hex("a"), "subject", "alpha/one", Answer("x", cost=3), "other/1", 3)])
            with ledger(tmp_path, run=100) as book:
                book.recover(cache)
                assert entries(book) == [("lost", 50, None)]

    def test_a_call_inside_this_process_cost_nothing(self, tmp_path: Path) -> None:
        with Cache(tmp_path / "c.sqlite", now=1) as cache:
            with ledger(tmp_path, run=100) as book:
                book.reserve([(call("a"), 50)])
            with ledger(tmp_path, run=100) as book:
                assert book.recover(cache, frozenset({"alpha/one"})) == 0
                assert entries(book) == [("settled", 50, 0)]

    def test_the_other_stage_may_be_at_work_and_is_left_alone(self, tmp_path: Path) -> None:
        with Cache(tmp_path / "c.sqlite", now=1) as cache, ledger(tmp_path, "judge", run=100) as judge:
            judge.reserve([(call("a", role="judge"), 50)])
            with ledger(tmp_path, "eval", run=100) as book:
                assert book.recover(cache) == 0
            judge.settle({1: 8})
            assert judge.committed() == 8


class TestReuse:
    def test_a_cached_answer_is_booked_once_and_against_no_cap(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=10) as book:
            book.reuse([(call("a"), 500)])
            book.reuse([(call("a"), 500), (call("b"), 1)])
            assert (book.committed(), book.book("subject")) == (0, Book(reused=501))
            assert book.faults() == []

    def test_an_answer_that_this_run_paid_is_not_booked_again(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=100) as book:
            book.reserve([(call("a"), 50)])
            book.settle({1: 20})
            book.reuse([(call("a"), 20)])
            assert book.book("subject") == Book(settled=20)

    def test_of_many_answers_none_is_booked_twice(self, tmp_path: Path) -> None:
        many = [(call(f"a{i}"), 1) for i in range(1_203)]  # SQLite is asked for some hundreds at a time
        with ledger(tmp_path, run=10) as book:
            book.reuse(many)
            book.reuse(many)
            assert book.book("subject") == Book(reused=1_203)


class TestAsked:
    def test_of_many_answers_all_that_this_run_paid_for(self, tmp_path: Path) -> None:
        many = [call(f"a{i}") for i in range(1_203)]
        with ledger(tmp_path, run=10) as book:
            entries = book.reserve([(one, 0) for one in many])
            tickets = {one.key: book.ticket(entry) for one, entry in zip(many, entries, strict=True) if entry != 7}
            other = {sha256_hex("b"): book.ticket(7), sha256_hex("c"): "another-run/1"}
            assert book.asked(tickets | other) == {one.key for one in many} - {many[6].key}

    def test_an_answer_from_the_cache_was_not_asked_for(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=10) as book:
            book.reuse([(call("a"), 5)])
            assert book.asked({sha256_hex("a"): book.ticket(1)}) == set()


class TestUnsettled:
    def test_open_and_lost_entries_are_and_others_are_not(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=100) as book:
            book.reserve([(call("a"), 5), (call("b"), 5), (call("c"), 5)])
            book.settle({2: None, 3: 5})
            book.reuse([(call("d"), 5)])
            assert book.unsettled([1, 2, 3, 4, 99]) == {1, 2}


class TestBooks:
    def test_the_total_holds_all_states_and_what_is_committed_all_that_this_run_pays(self) -> None:
        book = Book(settled=1, lost=2, open=4, reused=8)
        assert (book.total, book.committed) == (15, 7)

    def test_an_overrun_is_what_a_settled_call_cost_beyond_its_reservation(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=1000) as book:
            book.reserve([(call("a"), 50), (call("b"), 50), (call("c", "beta/two"), 50), (call("d", "beta/two"), 5)])
            book.settle({1: 57, 2: 53, 3: 50, 4: None})
            assert book.overruns() == {"subject:alpha/one": 7}

    @pytest.mark.parametrize(
        ("change", "fault"),
        [
            ("INSERT INTO accounts VALUES ('judge:a/b', 1)", "account judge:a/b says 1 picodollars, its entries 0"),
            ("DELETE FROM accounts WHERE name <> 'run'", "account subject:alpha/one says 0 picodollars, its entries 1"),
            ("INSERT INTO accounts VALUES ('judge:a/b', 0)", None),
        ],
    )
    def test_an_account_without_entries_or_entries_without_an_account(
        self, tmp_path: Path, change: str, fault: str | None
    ) -> None:
        with ledger(tmp_path, run=100) as book:
            book.reserve([(call("a"), 1)])
            book._db.execute(change)
            assert book.faults() == ([f"{tmp_path}/ledger.sqlite: {fault}"] if fault else [])

    def test_an_account_that_was_never_used_has_nothing(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=100) as book:
            assert book.committed("judge:a/b") == 0

    def test_dollars_and_back(self) -> None:
        assert (picodollars(0.25), dollars(250_000_000_000)) == (250_000_000_000, 0.25)

    def test_costs_by_key_add_up_to_the_books(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=10_000) as book:
            book.reserve([(call("a"), 50), (call("a"), 50), (call("b"), 50), (call("c", role="judge"), 50)])
            book.settle({1: 10, 2: 15, 3: None, 4: 1})
            book.reuse([(call("d"), 7)])
            assert book.costs() == {sha256_hex("a"): 25, sha256_hex("b"): 50, sha256_hex("c"): 1, sha256_hex("d"): 7}
            assert book.book("subject").total + book.book("judge").total == sum(book.costs().values())

    def test_a_ledger_that_was_tampered_with_is_noticed(self, tmp_path: Path) -> None:
        with ledger(tmp_path, run=100) as book:
            book.reserve([(call("a"), 50)])
            book._db.execute("UPDATE accounts SET committed = 0 WHERE name = 'run'")
            assert book.faults() == [f"{tmp_path}/ledger.sqlite: account run says 0 picodollars, its entries 50"]


class TestWorstCase:
    @pytest.mark.parametrize(("text", "size"), [("Hi", 2), ("é", 2), ("𝄞", 4), ("", 0)])
    def test_prompt_tokens_are_bounded_by_bytes_and_64(self, text: str, size: int) -> None:
        request = Request("a/b", "b", (Message("system", "abc"), Message("user", text)), {"max_tokens": 10}, 0)
        prices = Prices(prompt_per_million=1.0, completion_per_million=100.0)
        assert worst_case(request, prices) == 10**6 * (3 + size + 64) + 10**8 * 10

    def test_a_schema_counts_as_prompt(self) -> None:
        prices = Prices(prompt_per_million=1.0, completion_per_million=0.0)
        plain = Request("a/b", "b", (Message("user", "x"),), {"max_tokens": 10}, 0)
        with_schema = Request("a/b", "b", (Message("user", "x"),), {"max_tokens": 10}, 0, schema={"type": "object"})
        assert worst_case(with_schema, prices) - worst_case(plain, prices) == 10**6 * len("{'type': 'object'}")


class TestCapsOf:
    def test_every_cap_becomes_an_account(self) -> None:
        bank = make_bank(("age",), quota={"stance": 1})
        caps = {"run": 2.5, "models": {"alpha/one": 1.0}, "judges": {"judge-a/x": 0.000001}}
        assert caps_of(make_plan(live_data(bank, caps=caps))) == {
            "run": picodollars(2.5),
            "subject:alpha/one": 10**12,
            "judge:judge-a/x": 10**6,
        }
