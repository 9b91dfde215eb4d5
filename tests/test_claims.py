"""A key in flight is asked once, whoever shares the cache (contract: stages, "Cache")."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from generator.schema.bank import Bank
from generator.schema.canonical import sha256_hex
from harness.cache.answers import Cache, Entry
from harness.cache.claims import LEASE, Claims
from harness.calls.call import Answer
from harness.money.budget import Book
from tests.engine_runs import COST, Run, calls
from tests.factories import make_bank
from tests.plans import live_data, make_plan
from tests.scripted_server import Reply, ScriptedServer, chat

ROOT = Path(__file__).parent.parent
KEYS = [sha256_hex(str(i)) for i in range(1_200)]
ASK = """
import json, sys
from pathlib import Path
from tests.engine_runs import Run, calls
from tests.plans import make_plan

folder, data = Path(sys.argv[1]), json.loads(sys.argv[2])
outcome = Run(folder, make_plan(data), cache=folder.parent / "c.sqlite")(calls(int(sys.argv[3])))
print(json.dumps([outcome.tally.asked, outcome.tally.cached, len(outcome.answers), len(outcome.left)]))
"""


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Cache(tmp_path / "c.sqlite", now=1).close()
    return tmp_path / "c.sqlite"


@pytest.fixture(scope="module")
def bank() -> Bank:
    return make_bank(("age",), quota={"stance": 1})


class TestClaims:
    def test_what_one_owner_holds_another_does_not_get(self, path: Path) -> None:
        with Claims(path, "a") as a, Claims(path, "b") as b:
            assert a.take(KEYS[:2]).held == set()
            assert b.take(KEYS[:3]).held == set(KEYS[:2])
            assert a.take(KEYS[:3]).held == {KEYS[2]}

    def test_what_is_let_go_is_free(self, path: Path) -> None:
        with Claims(path, "a") as a, Claims(path, "b") as b:
            a.take(KEYS[:3])
            a.release(KEYS[:2])
            assert b.take(KEYS[:3]).held == {KEYS[2]}

    def test_an_owner_that_ends_lets_everything_go(self, path: Path) -> None:
        with Claims(path, "b") as b:
            with Claims(path, "a") as a:
                a.take(KEYS)
            assert b.take(KEYS).held == set()

    def test_an_answer_is_told_from_a_claim(self, path: Path) -> None:
        with Cache(path, now=1) as cache, Claims(path, "a") as a, Claims(path, "b") as b:
            a.take(KEYS[:2])
            cache.store([Entry(KEYS[0], "subject", "alpha/one", Answer("Yes.", cost=1), "r/1", 1)])
            taken = b.take(KEYS[:2])
        assert (taken.answered, taken.held) == ({KEYS[0]}, {KEYS[1]})

    def test_the_lease_of_a_dead_process_runs_out(self, path: Path) -> None:
        clock = Clock()
        dead = Claims(path, "a", clock=clock)
        dead.take(KEYS[:1])
        dead._db.close()
        with Claims(path, "b", clock=clock) as b:
            clock.now += LEASE - 1
            assert b.take(KEYS[:1]).held == {KEYS[0]}
            clock.now += 1
            assert b.take(KEYS[:1]).held == set()

    def test_a_process_that_lives_renews_its_lease(self, path: Path) -> None:
        clock = Clock()
        with Claims(path, "a", clock=clock) as a, Claims(path, "b", clock=clock) as b:
            a.take(KEYS[:1])
            for _ in range(10):
                clock.now += LEASE / 2
                a.renew()
                assert b.take(KEYS[:1]).held == {KEYS[0]}

    def test_whoever_takes_up_a_dead_run_need_not_wait_for_its_lease(self, path: Path) -> None:
        dead = Claims(path, "run folder#eval")
        dead.take(KEYS[:1])
        dead._db.close()
        with Claims(path, "run folder#eval"), Claims(path, "b") as b:
            assert b.take(KEYS[:1]).held == set()

    def test_a_lease_of_a_wrong_clock_holds_nobody_for_ever(self, path: Path) -> None:
        ahead, clock = Clock(), Clock()
        ahead.now += 1e9
        dead = Claims(path, "a", clock=ahead)
        dead.take(KEYS[:1])
        dead._db.close()
        with Claims(path, "b", clock=clock) as b:
            assert b.take(KEYS[:1]).held == set()


class TestTwoRuns:
    def test_two_processes_at_once_ask_each_key_once(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer(lambda *_: Reply(body=chat(), delay=0.05)) as server:
            data = json.dumps(live_data(bank, server.url))
            for name in ("a", "b"):
                (tmp_path / name).mkdir()
            command = [sys.executable, "-c", ASK]
            running = [
                subprocess.Popen([*command, str(tmp_path / name), data, "40"], cwd=ROOT, stdout=subprocess.PIPE)
                for name in ("a", "b")
            ]
            ends = [json.loads(process.communicate(timeout=120)[0]) for process in running]
        assert len(server.requests) == 40
        assert [asked + cached for asked, cached, _, _ in ends] == [40, 40]
        assert [end[2:] for end in ends] == [[40, 0], [40, 0]]
        assert sum(asked for asked, *_ in ends) == 40

    def test_what_another_run_asked_meanwhile_is_booked_as_reused(self, tmp_path: Path, bank: Bank) -> None:
        """The second run begins when the first has its one call in flight, and ends with that answer."""
        runs: list[Run] = []

        def script(_: dict[str, object], number: int) -> Reply:
            if number == 0:
                with Claims(tmp_path / "c.sqlite", "another") as other:
                    assert other.take([calls(1)[0].key]).held == {calls(1)[0].key}
            return Reply(body=chat())

        with ScriptedServer(script) as server:
            for name in ("a", "b"):
                (tmp_path / name).mkdir()
                runs.append(Run(tmp_path / name, make_plan(live_data(bank, server.url)), cache=tmp_path / "c.sqlite"))
            outcomes = [run(calls(1)) for run in runs]
        assert (len(server.requests), [o.tally.cached for o in outcomes]) == (1, [0, 1])
        assert [run.book() for run in runs] == [Book(settled=COST), Book(reused=COST)]

    def test_a_key_whose_holder_fails_is_asked_by_the_other(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer() as server:
            run = Run(tmp_path, make_plan(live_data(bank, server.url)))
            Cache(tmp_path / "c.sqlite", now=1).close()
            holder = Claims(tmp_path / "c.sqlite", "another")
            holder.take([calls(1)[0].key])
            seen: list[int] = []

            def watch(tally: object) -> None:
                seen.append(len(server.requests))
                if len(seen) == 4:
                    holder.release([calls(1)[0].key])

            outcome = run(calls(1), watch=watch)
            holder.close()
        assert (seen[:4], len(outcome.answers)) == ([0, 0, 0, 0], 1)
