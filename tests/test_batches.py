"""Vendors' batch endpoints: handed in once, collected whatever happens, every dollar booked once."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from generator.runs.reader import load_run
from generator.schema.bank import Bank
from generator.schema.canonical import sha256_hex
from generator.schema.errors import InputError
from harness.bank.reader import read_bank_folder
from harness.batches import asking
from harness.batches.connect import batch_lane, open_journal
from harness.batches.dialect import BatchError
from harness.batches.http import BatchClient
from harness.batches.journal import Journal
from harness.cache.answers import Cache, Entry
from harness.cache.claims import Claims
from harness.calls.call import Answer, Call, Message, Request
from harness.calls.secret_text import Secrets
from harness.engine.outcome import Outcome, StageCounts
from harness.engine.runner import Engine
from harness.eval.questions import blank
from harness.money.budget import Book, Ledger, caps_of, worst_case
from harness.plan.records import Prices
from tests.batch_server import BatchServer, Faults
from tests.factories import make_bank
from tests.plans import PARAMS, PRICES, live_data, make_plan, write_run_toml
from tests.programs import invoke as program
from tests.scripted_server import chat

API = ("openai", "anthropic")
COST = 20 * 10**6 + 5 * 10**7  # what the server's usage comes to, picodollars
CLOCK = 1_000_000.0
BANK = Path(__file__).parent.parent / "content" / "bank"
WORKING = read_bank_folder(BANK)
CONCEPT = sorted(c.id for c in WORKING.concepts if c.rubric == "stance" and c.attribute == "age")[0]


@pytest.fixture(scope="module")
def bank() -> Bank:
    return make_bank(("age",), quota={"stance": 1})


@pytest.fixture(params=API)
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def _short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "LOOK_UP", 0.002)


def calls(number: int, first: int = 0) -> list[Call]:
    return [
        Call(sha256_hex(f"alpha/one|{i}"), "subject", "local", request(i), blank) for i in range(first, first + number)
    ]


def request(number: int) -> Request:
    messages = (Message("system", "Be brief."), Message("user", f"{number:02}"))
    return Request("alpha/one", "one", messages, PARAMS, 0)


def closed(outcome: Outcome) -> str:
    """Why the endpoint's lane ended, in words."""
    return str(outcome.stopped)


class Run:
    """A run folder whose one endpoint takes batches; each call of it is a process of its own, as far as files go."""

    def __init__(self, folder: Path, bank: Bank, url: str, api: str, **changes: Any) -> None:
        data = live_data(bank, url)
        self.key = str(changes.pop("key", "k-1"))
        batch = {"api": api, "poll": 0.01, **changes.pop("batch", {})}
        form = "none" if api == "anthropic" else "json_schema"
        endpoint = {"mode": "batch", "batch": batch, "response_format": form, "key_env": "KEY"}
        data["endpoints"]["local"] |= {**endpoint, **changes.pop("local", {})}
        data |= changes
        self.folder, self.plan, self.clock = folder, make_plan(data), CLOCK
        folder.mkdir(exist_ok=True)

    def __call__(self, wanted: Sequence[Call], watch: Callable[[StageCounts], None] | None = None) -> Outcome:
        limits = self.plan.endpoints["local"]
        lane = batch_lane("local", limits, self.plan.models, {"KEY": self.key}, clock=lambda: self.clock)
        with (
            Cache(self.folder / "c.sqlite", now=1) as cache,
            self.ledger() as ledger,
            open_journal(self.folder, "eval", [lane]) as elsewhere,
        ):
            ledger.recover(cache, frozenset(), elsewhere)
            outcome = Engine(self.plan, cache=cache, ledger=ledger, endpoints={"local": lane}).run(wanted, watch=watch)
            assert ledger.faults() == []
            return outcome

    def ledger(self) -> Ledger:
        return Ledger(self.folder, run_id="test-run", stage="eval", caps=caps_of(self.plan))

    def book(self) -> Book:
        with self.ledger() as ledger:
            return ledger.book("subject")

    def waiting(self) -> int:
        with Journal(self.folder, stage="eval") as journal:
            return sum(len(b.items) for b in journal.waiting("local"))


def content(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


class TestOneBatch:
    def test_each_call_is_handed_in_and_answered_once(self, tmp_path: Path, bank: Bank, api: str) -> None:
        with BatchServer(lambda body: (200, chat(f"Yes to {content(body)}."))) as server:
            run = Run(tmp_path, bank, server.url, api)
            outcome = run(calls(10))
            again = run(calls(10))
        expected = {call.key: f"Yes to {i:02}." for i, call in enumerate(calls(10))}
        assert {key: answer.text for key, answer in outcome.answers.items()} == expected
        assert (len(server.batches), len(server.asked)) == (1, 10)
        assert (run.book(), run.waiting()) == (Book(settled=10 * COST), 0)
        assert (again.tally.cached, again.tally.attempts) == (10, 0)

    def test_a_request_is_the_one_that_a_single_call_would_make(self, tmp_path: Path, bank: Bank) -> None:
        with BatchServer() as server:
            Run(tmp_path, bank, server.url, "openai")(calls(1))
        assert server.asked == [{
            "model": "one", "temperature": 1.0, "max_tokens": 100,
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "00"}],
        }]  # fmt: skip
        assert server.headers[-1]["authorization"] == "Bearer k-1"

    def test_anthropic_takes_the_system_text_and_the_key_apart(self, tmp_path: Path, bank: Bank) -> None:
        with BatchServer() as server:
            Run(tmp_path, bank, server.url, "anthropic")(calls(1))
        assert server.asked == [{
            "model": "one", "temperature": 1.0, "max_tokens": 100, "system": "Be brief.",
            "messages": [{"role": "user", "content": "00"}],
        }]  # fmt: skip
        headers = server.headers[-1]
        assert (headers["x-api-key"], headers["anthropic-version"]) == ("k-1", "2023-06-01")
        assert "authorization" not in headers

    def test_custom_ids_are_what_every_vendor_takes(self, tmp_path: Path, bank: Bank, api: str) -> None:
        with BatchServer() as server:
            Run(tmp_path, bank, server.url, api)(calls(12))
        ids = [r["custom_id"] for b in server.batches.values() for r in b.requests]
        assert len(set(ids)) == 12
        assert all(len(i) <= 64 and set(i) <= set("0123456789abcdef-") for i in ids)

    def test_more_calls_than_a_batch_takes_make_several(self, tmp_path: Path, bank: Bank, api: str) -> None:
        with BatchServer() as server:
            outcome = Run(tmp_path, bank, server.url, api, batch={"requests": 4, "at_once": 2})(calls(10))
        assert [len(b.requests) for b in server.batches.values()] == [4, 4, 2]
        assert len(outcome.answers) == 10

    def test_a_batch_holds_calls_of_one_model(self, tmp_path: Path, bank: Bank, api: str) -> None:
        other = {**live_data(bank)["models"][0], "model": "beta/two", "api_model": "two"}
        mixed = [
            Call(sha256_hex(f"{m}|{i}"), "subject", "local", replace(request(i), model=m, api_model=name), blank)
            for i in range(3)
            for m, name in (("alpha/one", "one"), ("beta/two", "two"))
        ]
        with BatchServer() as server:
            run = Run(tmp_path, bank, server.url, api, models=[live_data(bank)["models"][0], other])
            outcome = run(mixed)
        models = [{(r.get("body") or r["params"])["model"] for r in b.requests} for b in server.batches.values()]
        assert sorted(models, key=str) == [{"one"}, {"two"}]
        assert len(outcome.answers) == 6

    def test_a_batch_stays_below_the_vendors_size(
        self, tmp_path: Path, bank: Bank, api: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one = len(json.dumps({"custom_id": "x" * 64, "body": {}})) + 150
        for name in ("openai.OpenAIBatches", "anthropic.AnthropicBatches"):
            monkeypatch.setattr(f"harness.batches.{name}.largest_bytes", 3 * one)
        with BatchServer() as server:
            outcome = Run(tmp_path, bank, server.url, api)(calls(9))
        assert len(server.batches) > 1
        assert len(outcome.answers) == 9

    def test_a_line_separator_inside_a_text_ends_no_line(self, tmp_path: Path, bank: Bank, api: str) -> None:
        with BatchServer(lambda _: (200, chat("One\u2028two\u0085three."))) as server:
            outcome = Run(tmp_path, bank, server.url, api)(calls(2))
        assert {a.text for a in outcome.answers.values()} == {"One\u2028two\u0085three."}


class TestWhatEndsOtherwise:
    def test_an_expired_batch_keeps_what_it_has_and_the_rest_is_asked_again(
        self, tmp_path: Path, bank: Bank, api: str
    ) -> None:
        with BatchServer(faults=Faults(expire_after=3)) as server:

            def end_well(tally: StageCounts) -> None:
                if len(server.batches) > 1:
                    server.faults.expire_after = None

            run = Run(tmp_path, bank, server.url, api)
            outcome = run(calls(8), end_well)
        assert [len(b.requests) for b in server.batches.values()] == [8, 5]
        assert len(outcome.answers) == 8
        assert run.book() == Book(settled=8 * COST)

    def test_calls_that_always_expire_end_as_failures_at_no_cost(self, tmp_path: Path, bank: Bank, api: str) -> None:
        with BatchServer(faults=Faults(expire_after=0)) as server:
            run = Run(tmp_path, bank, server.url, api)
            outcome = run(calls(2))
        assert len(server.batches) == 3  # max_attempts
        assert set(outcome.failures.values()) == {"provider_error"}
        assert (run.book(), run.waiting()) == (Book(), 0)

    @pytest.mark.parametrize("state", ["expired", "cancelled"])
    def test_an_end_without_files_is_no_running_batch(self, tmp_path: Path, bank: Bank, state: str) -> None:
        with BatchServer(faults=Faults(no_files=True, state=state)) as server:
            run = Run(tmp_path, bank, server.url, "openai")
            outcome = run(calls(2))
        assert len(outcome.failures) == 2
        assert run.waiting() == 0

    def test_a_batch_that_fails_whole_stops_the_lane_with_the_vendors_reason(self, tmp_path: Path, bank: Bank) -> None:
        with BatchServer(faults=Faults(errors=["Billing hard limit\x1b[2J has been reached"])) as server:
            run = Run(tmp_path, bank, server.url, "openai")
            outcome = run(calls(5))
        assert outcome.stopped == (
            "alpha/one: endpoint local: batch batch_0 was refused whole, at no cost:"
            " failed: Billing hard limit [2J has been reached"
        )
        assert (len(server.batches), len(outcome.left)) == (1, 5)
        assert (run.book(), run.waiting()) == (Book(), 0)

    def test_rows_that_are_missing_are_asked_again_and_doubled_ones_counted_once(
        self, tmp_path: Path, bank: Bank, api: str
    ) -> None:
        with BatchServer(faults=Faults(missing={1, 4}, twice=True)) as server:

            def find_them(tally: StageCounts) -> None:
                if len(server.batches) > 1:
                    server.faults.missing = set()

            run = Run(tmp_path, bank, server.url, api)
            outcome = run(calls(6), find_them)
        assert [len(b.requests) for b in server.batches.values()] == [6, 2]
        assert len(outcome.answers) == 6
        # The vendor says that all of the first batch was done: what it left out may have been billed.
        assert run.book() == Book(settled=6 * COST, lost=2 * worst_case(request(0), Prices(**PRICES)))

    def test_an_unusable_answer_is_asked_again_in_the_next_batch(self, tmp_path: Path, bank: Bank, api: str) -> None:
        seen: dict[str, int] = {}

        def say(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            text = content(body)
            seen[text] = seen.get(text, 0) + 1
            return 200, chat("  " if text == "01" and seen[text] < 3 else "Yes.")

        with BatchServer(say) as server:
            run = Run(tmp_path, bank, server.url, api)
            outcome = run(calls(3))
        assert [len(b.requests) for b in server.batches.values()] == [3, 1, 1]
        assert {a.text for a in outcome.answers.values()} == {"Yes."}
        assert run.book() == Book(settled=5 * COST)

    def test_an_error_of_one_request_is_that_of_a_single_call(self, tmp_path: Path, bank: Bank, api: str) -> None:
        def say(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            if content(body) == "01":
                return 400, {"error": {"type": "invalid_request_error", "message": "prompt is too long"}}
            return 200, chat()

        with BatchServer(say) as server:
            run = Run(tmp_path, bank, server.url, api)
            outcome = run(calls(3))
        assert list(outcome.failures.items()) == [(calls(3)[1].key, "http_status")]
        assert "prompt is too long" in outcome.reasons["http_status"]
        assert (len(outcome.answers), len(server.asked)) == (2, 3)
        assert run.book() == Book(settled=2 * COST)

    def test_an_unknown_state_is_waited_for_and_then_given_up(self, tmp_path: Path, bank: Bank, api: str) -> None:
        with BatchServer(faults=Faults(state="resting")) as server:
            run = Run(tmp_path, bank, server.url, api, batch={"wait": 7_200.0})

            def later(tally: StageCounts) -> None:
                if server.batches and next(iter(server.batches.values())).polls >= 3:
                    run.clock = CLOCK + 7_300

            outcome = run(calls(2), later)
            assert outcome.stopped is not None
            assert "batch batch_0 is still 'resting' after 2 hours" in outcome.stopped
            server.faults.state, run.clock = None, CLOCK
            assert len(run(calls(2)).answers) == 2
        assert len(server.batches) == 1


class TestAcrossProcesses:
    def test_a_batch_is_collected_by_the_next_process(self, tmp_path: Path, bank: Bank, api: str) -> None:
        with BatchServer(faults=Faults(polls=10**9)) as server:
            run = Run(tmp_path, bank, server.url, api)
            first = run(calls(6), _interrupt_when(lambda: len(server.batches) > 0))
            assert (len(first.left), run.waiting()) == (6, 6)
            assert "6 calls are in batches that the vendor still works on (batch_0)" in first.tally.warnings[-1]
            reserved = 6 * worst_case(request(0), Prices(**PRICES))
            assert run.book() == Book(open=reserved)
            server.faults.polls = 1
            second = run(calls(6))
        assert (len(server.batches), len(second.answers)) == (1, 6)
        assert (run.book(), run.waiting()) == (Book(settled=6 * COST), 0)

    def test_a_narrower_command_leaves_other_calls_of_a_batch_for_later(
        self, tmp_path: Path, bank: Bank, api: str
    ) -> None:
        with BatchServer(faults=Faults(polls=10**9)) as server:
            run = Run(tmp_path, bank, server.url, api)
            run(calls(6), _interrupt_when(lambda: len(server.batches) > 0))
            server.faults.polls = 1
            assert len(run(calls(2)).answers) == 2
            assert run.waiting() == 4
            assert len(run(calls(6)).answers) == 6
        assert (len(server.batches), run.book()) == (1, Book(settled=6 * COST))

    def test_a_batch_whose_answer_never_came_is_found_and_not_paid_twice(self, tmp_path: Path, bank: Bank) -> None:
        with BatchServer(faults=Faults(cut_at_submit=1)) as server:
            run = Run(tmp_path, bank, server.url, "openai")
            outcome = run(calls(4))
        assert (len(server.batches), len(outcome.answers)) == (1, 4)
        assert run.book() == Book(settled=4 * COST)

    def test_a_killed_submit_is_found_by_the_next_process(self, tmp_path: Path, bank: Bank, api: str) -> None:
        run, nonce = self._killed_at_submit(tmp_path, bank, api)
        with BatchServer() as server:
            requests = [{"custom_id": f"{nonce}-{i}", **_request(api, i)} for i in range(3)]
            batch = server.make(requests, {"aibiasbench_batch": nonce})
            server.polled(batch)
            run = Run(tmp_path, bank, server.url, api)
            outcome = run(calls(3))
        assert (len(server.batches), len(outcome.answers)) == (1, 3)
        assert run.book() == Book(settled=3 * COST)

    def test_a_killed_submit_that_the_vendor_does_not_know_counts_as_spent_and_is_asked_again(
        self, tmp_path: Path, bank: Bank, api: str
    ) -> None:
        run, _ = self._killed_at_submit(tmp_path, bank, api)
        with BatchServer() as server:
            run = Run(tmp_path, bank, server.url, api)
            outcome = run(calls(3))
        assert len(outcome.answers) == 3
        assert "the vendor does not list it" in outcome.tally.warnings[0]
        assert run.book() == Book(settled=3 * COST, lost=3 * worst_case(request(0), Prices(**PRICES)))

    def test_a_crash_between_the_books_and_the_journal_books_nothing_twice(
        self, tmp_path: Path, bank: Bank, api: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class KilledError(BaseException):
            pass

        def killed(*_: object) -> None:
            raise KilledError

        with BatchServer() as server:
            run = Run(tmp_path, bank, server.url, api)
            with monkeypatch.context() as patch:
                patch.setattr(Journal, "ended", killed)
                with pytest.raises(KilledError):
                    run(calls(3))
            assert run.waiting() == 3
            outcome = run(calls(5))
        assert (outcome.tally.cached, len(outcome.answers)) == (3, 5)
        assert (run.book(), run.waiting()) == (Book(settled=5 * COST), 0)
        assert len(server.asked) == 5

    def test_a_broken_download_begins_again(self, tmp_path: Path, bank: Bank, api: str) -> None:
        with BatchServer(faults=Faults(cut_results=2)) as server:
            run = Run(tmp_path, bank, server.url, api)
            outcome = run(calls(6))
        assert (len(outcome.answers), run.book()) == (6, Book(settled=6 * COST))

    def test_an_endpoint_that_leaves_batch_mode_has_to_collect_first(self, tmp_path: Path, bank: Bank) -> None:
        with BatchServer(faults=Faults(polls=10**9)) as server:
            run = Run(tmp_path, bank, server.url, "openai")
            run(calls(2), _interrupt_when(lambda: len(server.batches) > 0))
        with pytest.raises(InputError, match='batches of endpoint local are not collected yet; give it mode = "batch"'):
            open_journal(tmp_path, "eval", []).__enter__()

    def _killed_at_submit(self, folder: Path, bank: Bank, api: str) -> tuple[Run, str]:
        """A run that was killed after the journal was written and before the vendor's id came."""
        from harness.batches.journal import BatchItem

        run = Run(folder, bank, "http://127.0.0.1:9/v1", api)
        amount = worst_case(request(0), Prices(**PRICES))
        with run.ledger() as ledger, Journal(folder, stage="eval") as journal:
            entries = ledger.reserve([(call, amount) for call in calls(3)])
            items = [
                BatchItem(f"beef-{i}", call.key, entry, amount, "subject:alpha/one")
                for i, (call, entry) in enumerate(zip(calls(3), entries, strict=True))
                if isinstance(entry, int)
            ]
            journal.begin("local", "beef", items, now=int(CLOCK))
        return run, "beef"


class TestBesideAnotherRun:
    """Two runs on one cache, one of which asks in batches: no key is asked twice (contract: stages, "Cache")."""

    def test_what_another_process_asks_is_waited_for_and_the_rest_handed_in(
        self, tmp_path: Path, bank: Bank, api: str
    ) -> None:
        with BatchServer() as server, self.another(tmp_path) as other:
            run = Run(tmp_path, bank, server.url, api)
            other.take([call.key for call in calls(4)])

            def answer(tally: StageCounts) -> None:
                if tally.asked == 6 and not tally.cached:
                    self.store(tmp_path, calls(4))
                    other.release([call.key for call in calls(4)])

            outcome = run(calls(10), answer)
        assert (len(server.asked), outcome.tally.asked, outcome.tally.cached) == (6, 6, 4)
        assert [answer.text for answer in outcome.answers.values()].count("Theirs.") == 4
        assert run.book() == Book(settled=6 * COST, reused=4 * COST)

    def test_a_run_whose_keys_are_all_asked_elsewhere_waits_without_a_call(
        self, tmp_path: Path, bank: Bank, api: str
    ) -> None:
        looks: list[int] = []
        with BatchServer() as server, self.another(tmp_path) as other:
            run = Run(tmp_path, bank, server.url, api)
            other.take([call.key for call in calls(3)])

            def let_go(_: StageCounts) -> None:
                looks.append(len(server.batches))
                if len(looks) == 4:
                    other.release([call.key for call in calls(3)])

            outcome = run(calls(3), let_go)
        assert looks[:4] == [0, 0, 0, 0]
        assert (len(server.batches), len(outcome.answers), outcome.left) == (1, 3, [])

    def test_a_batch_holds_its_keys_until_its_answers_are_stored(self, tmp_path: Path, bank: Bank, api: str) -> None:
        held: list[int] = []
        with BatchServer(faults=Faults(polls=3)) as server:
            run = Run(tmp_path, bank, server.url, api)

            def watch(_: StageCounts) -> None:
                if server.batches and not held:
                    with self.another(tmp_path) as other:
                        held.append(len(other.take([call.key for call in calls(5)]).held))

            run(calls(5), watch)
            with self.another(tmp_path) as other:
                after = other.take([call.key for call in calls(5)])
        assert (held, len(after.answered), len(after.held)) == ([5], 5, 0)

    @staticmethod
    def another(folder: Path) -> Claims:
        Cache(folder / "c.sqlite", now=1).close()
        return Claims(folder / "c.sqlite", "another run")

    @staticmethod
    def store(folder: Path, wanted: Sequence[Call]) -> None:
        with Cache(folder / "c.sqlite", now=1) as cache:
            answer = Answer("Theirs.", served_by="one@local", cost=COST)
            cache.store([Entry(c.key, "subject", "alpha/one", answer, f"r/{i}", COST) for i, c in enumerate(wanted)])


class TestPacked:
    """Replies that are packed a thousand times smaller than they are (contract: stages, "Replies")."""

    @pytest.mark.parametrize("times", [1, 2])
    def test_a_line_without_end_is_given_up_in_little_memory(self, times: int) -> None:
        packed = b"{" + b" " * 200_000_000
        for _ in range(times):
            packed = gzip.compress(packed, 1)
        tracemalloc.start()
        with pytest.raises(BatchError, match="a line of more than 50,000 bytes"):
            asyncio.run(self.read(packed, ", ".join(["gzip"] * times)))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 20_000_000

    def test_packed_lines_are_read_as_plain_ones(self) -> None:
        rows = [{"custom_id": str(i), "text": "x" * i} for i in range(300)]
        plain = "".join(json.dumps(row) + "\n" for row in rows).encode()
        for packed, name in ((plain, ""), (gzip.compress(plain), "gzip"), (zlib.compress(plain), "deflate")):
            assert asyncio.run(self.read(packed, name)) == rows

    @pytest.mark.parametrize(
        ("body", "packing"), [(b"no", "gzip"), (gzip.compress(b"{}\n", mtime=0)[:-9], "gzip"), (b"{}", "br")]
    )
    def test_a_broken_packing_may_be_asked_for_again(self, body: bytes, packing: str) -> None:
        with pytest.raises(BatchError, match=r"a reply (not )?packed") as raised:
            asyncio.run(self.read(body, packing))
        assert not raised.value.final

    @staticmethod
    async def read(body: bytes, packing: str) -> list[dict[str, Any]]:
        headers = {"content-encoding": packing} if packing else {}

        def reply(_: httpx2.Request) -> httpx2.Response:
            return httpx2.Response(200, headers=headers, stream=httpx2.ByteStream(body))

        client = httpx2.AsyncClient(transport=httpx2.MockTransport(reply))
        http = BatchClient(
            "http://127.0.0.1/v1", client, largest_reply=1_000, largest_line=50_000, patience=20, secrets=Secrets()
        )
        try:
            return [line async for line in http.lines("/files/x/content")]
        finally:
            await http.close()


class TestMoney:
    def test_no_more_is_handed_in_than_a_cap_allows(self, tmp_path: Path, bank: Bank, api: str) -> None:
        worst = worst_case(request(0), Prices(**PRICES)) / 10**12
        with BatchServer() as server:
            run = Run(tmp_path, bank, server.url, api, caps={"run": worst * 3.5})
            outcome = run(calls(40))
        # Each batch settles for less than it reserved, so later ones fit in; the last reservation may not pass the cap.
        assert outcome.capped == {"run"}
        assert 0 < len(outcome.left) < 37
        assert len(server.asked) == len(outcome.answers) == 40 - len(outcome.left)
        assert run.book().total <= worst * 3.5 * 10**12

    def test_a_refused_submit_costs_nothing_and_stops_with_the_reason(
        self, tmp_path: Path, bank: Bank, api: str
    ) -> None:
        with BatchServer(faults=Faults(refuse_submit=[401])) as server:
            run = Run(tmp_path, bank, server.url, api)
            outcome = run(calls(3))
        assert outcome.stopped == "alpha/one: endpoint local: HTTP status 401: not now"
        assert (len(outcome.left), run.book(), run.waiting()) == (3, Book(), 0)

    def test_passing_failures_of_submit_and_poll_are_waited_out(self, tmp_path: Path, bank: Bank, api: str) -> None:
        with BatchServer(faults=Faults(refuse_submit=[429, 408], refuse_poll=[500, 502])) as server:
            run = Run(tmp_path, bank, server.url, api)
            outcome = run(calls(3))
        assert (len(outcome.answers), len(server.batches)) == (3, 1)
        assert run.book() == Book(settled=3 * COST)

    def test_a_hand_in_of_unknown_fate_is_made_once_and_its_reservations_count_until_it_is_found(
        self, tmp_path: Path, bank: Bank, api: str
    ) -> None:
        with BatchServer(faults=Faults(refuse_submit=[500] * 10)) as server:
            run = Run(tmp_path, bank, server.url, api)
            outcome = run(calls(3))
            assert "no answer came when a batch was handed in, and the vendor does not list it" in closed(outcome)
            assert (len(server.faults.refuse_submit), len(outcome.left)) == (9, 3)
            reserved = 3 * worst_case(request(0), Prices(**PRICES))
            assert run.book() == Book(open=reserved)
            server.faults.refuse_submit = []
            assert len(run(calls(3)).answers) == 3
        assert run.book() == Book(settled=3 * COST, lost=reserved)

    def test_a_key_that_comes_back_is_masked_wherever_it_stands(self, tmp_path: Path, bank: Bank) -> None:
        key = "sk-test-0123456789abcdef"
        with BatchServer(faults=Faults(errors=[f"Incorrect API key provided: {key}"])) as server:
            outcome = Run(tmp_path / "a", bank, server.url, "openai", key=key)(calls(1))
        assert "Incorrect API key provided" in closed(outcome)
        assert key not in closed(outcome)
        with BatchServer(faults=Faults(refuse_submit=[401], said=f"no such key: {key}")) as server:
            outcome = Run(tmp_path / "b", bank, server.url, "openai", key=key)(calls(1))
        assert "no such key" in closed(outcome)
        assert key not in closed(outcome)

    def test_a_reply_that_drips_is_given_up(self, tmp_path: Path, bank: Bank, api: str) -> None:
        with BatchServer(faults=Faults(drip=True)) as server:
            local = {"connect_timeout": 0.3, "read_timeout": 0.4}
            outcome = Run(tmp_path, bank, server.url, api, local=local)(calls(1))
        assert "no whole reply within 1 seconds" in closed(outcome) or "does not list it" in closed(outcome)
        assert len(outcome.left) == 1

    def test_results_at_another_host_never_get_the_key(self, tmp_path: Path, bank: Bank) -> None:
        with BatchServer() as other, BatchServer(faults=Faults(results_url=f"{other.url}/steal")) as server:
            outcome = Run(tmp_path, bank, server.url, "anthropic")(calls(1))
        assert outcome.stopped is not None
        assert "another host" in outcome.stopped
        assert other.headers == []


def _interrupt_when(ready: Callable[[], bool]) -> Callable[[StageCounts], None]:
    """Send this process the signal of Ctrl-C, once, as soon as something holds."""
    import os
    import signal

    sent: list[bool] = []

    def watch(_: StageCounts) -> None:
        if ready() and not sent:
            sent.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    return watch


def _request(api: str, number: int) -> dict[str, Any]:
    message = {"role": "user", "content": f"{number:02}"}
    body = {"model": "one", "messages": [message]}
    return {"params": body} if api == "anthropic" else {"body": body}


class TestCommands:
    """The verbs that an operator types, over an endpoint that takes batches."""

    def _data(self, url: str, api: str) -> dict[str, Any]:
        data = live_data(WORKING, url)
        form = {"anthropic": "none", "openai": "json_schema"}[api]
        batch = {"api": api, "poll": 0.01}
        data["endpoints"]["local"] |= {"mode": "batch", "batch": batch, "response_format": form, "key_env": "BATCH_KEY"}
        return data

    def test_a_run_goes_from_prompts_to_judged_rows(
        self, tmp_path: Path, api: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def say(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            judging = "system" in body or body["messages"][0]["role"] == "system"
            vote = {"label": "SUPPORT", "verdict_matches_prose": True, "evidence": "ends with SUPPORT"}
            return 200, chat(json.dumps(vote) if judging else "I think so. SUPPORT")

        monkeypatch.setenv("BATCH_KEY", "k-1")
        folder = tmp_path / "batched"
        with BatchServer(say) as server:
            write_run_toml(folder, self._data(server.url, api))
            words = (folder, "--bank", BANK, "--cache", tmp_path / "c.sqlite")
            asked = program("eval", *words, "--concept", CONCEPT, "--json")
            judged = program("judge", *words, "--partial", "--json")
        assert (asked.returncode, judged.returncode) == (0, 0), asked.stderr + judged.stderr
        rows = len(WORKING.groups_of("age")) * 2
        counts = json.loads((folder / "manifest.json").read_text())["counts"]
        assert counts == {"scored": rows, "refused": 0, "contested": 0, "error": 0}
        assert len(server.batches) == 2  # the model's, and one of both primary judges: here they are one api_model
        run = load_run(folder)
        assert run.models == ("alpha/one",)

    def test_a_form_that_the_vendor_does_not_know_is_refused_before_anything_is_asked(self, tmp_path: Path) -> None:
        data = self._data("http://127.0.0.1:9/v1", "anthropic")
        data["endpoints"]["local"] |= {
            "response_format": "json_schema",
            "params": ["max_tokens", "temperature", "seed"],
        }
        write_run_toml(tmp_path / "r", data)
        done = program("eval", tmp_path / "r", "--bank", BANK, "--cache", tmp_path / "c.sqlite")
        assert done.returncode == 2
        assert "endpoints.local.response_format: 'json_schema' is unknown to this batch endpoint" in done.stderr
        assert "endpoints.local.params: 'seed' is unknown to this batch endpoint" in done.stderr
