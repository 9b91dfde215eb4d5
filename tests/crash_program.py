"""Kills a run (eval, then judge) with SIGKILL at random points, resumes it to its end, and compares with a whole run.

Usage: python -m tests.crash_program FOLDER KILLS SEED [URL]. Without a URL the run is simulated. Half of the kills come
at a random moment, half right before or after a random commit, where a mistake in the order of writing would show.
Prints one JSON object: what differs from the run that was never killed (nothing, it is hoped), and what the books say.
Children are forked from a process that has imported everything and used nothing yet, so that a round takes seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import harness.cache.answers
import harness.cache.database
import harness.money.budget
import harness.stages.judge_stage
from generator.schema.bank import Bank
from harness.eval.questions import bank_prompts, response_calls
from harness.simulated.endpoint import Simulated
from harness.stages.judge_stage import judge_session
from harness.stages.session import Session, open_session
from tests.factories import make_bank
from tests.plans import callee, live_data, simulated_data, write_run_toml

RUN = "crash-run"
HANGS = 60.0


def small_bank() -> Bank:
    """A bank of ten concepts, each rubric among them."""
    one = dict.fromkeys(("stance", "allocation", "refusal", "regard", "capability"), 1)
    return make_bank(("age", "control_tag"), groups=3, quota=one, control_quota=one)


def plan_data(bank: Bank, url: str | None) -> dict[str, Any]:
    """A run of two models and two repeats, one of the models of a judge's vendor."""
    if url is None:
        return simulated_data(bank, "sim-alpha/one", "sim-judge-a/other", repeats=2)
    data = live_data(bank, url, models=[callee("alpha/one"), callee("judge-a/other")])
    patient = {"connect_timeout": 60.0, "read_timeout": 60.0, "total_wait": 300.0}  # a busy machine is no failure
    data["endpoints"]["local"].update(concurrency=8, max_attempts=6, **patient)
    return data


def work(folder: Path, bank: Bank, *, settle: bool, ready: Callable[[], object]) -> None:
    """Run both stages to their end; `settle` books lost calls at nothing before the receipts are written."""
    Simulated.batch_size = 5
    harness.stages.judge_stage.harness_commit = lambda _: "0" * 40
    for stage in ("eval", "judge"):
        with open_session(
            folder, stage=stage, bank=bank, cache=folder.parent / "c.sqlite", now=1, environment={}
        ) as session:
            ready()
            if settle:
                session.ledger.settle_lost(0)
            _stage(session, stage)


def _stage(session: Session, stage: str) -> None:
    if stage == "eval":
        prompts = bank_prompts(session.bank)
        calls = [call for model in session.plan.subject for call in response_calls(session.plan, model, prompts)]
        outcome = session.engine.run(calls, keep=False)
        assert not outcome.left, outcome.stopped
        assert not outcome.failures
    else:
        assert judge_session(session).manifest is not None


def die_at(commit: int, *, before: bool) -> None:
    """Make this process kill itself right before or after its commit of that number, in cache or ledger."""
    real, left = harness.cache.answers.transaction, iter(range(commit, -1, -1))

    @contextlib.contextmanager
    def deadly(connection: sqlite3.Connection) -> Iterator[None]:
        last = next(left) == 0
        with real(connection):
            yield
            if last and before:
                os.kill(os.getpid(), signal.SIGKILL)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)

    harness.cache.answers.transaction = harness.money.budget.transaction = harness.cache.database.transaction = deadly


class Child:
    """A forked child at work; `ready` returns once it holds its lock."""

    def __init__(
        self, folder: Path, bank: Bank, *, settle: bool = False, prepare: Callable[[], None] = lambda: None
    ) -> None:
        self._reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                prepare()
                work(folder, bank, settle=settle, ready=lambda: os.write(writer, b"x"))
                code = 0
            finally:
                os._exit(code)
        os.close(writer)

    def ready(self) -> None:
        """Wait until the child has begun."""
        select.select([self._reader], [], [], HANGS)

    def end(self) -> int:
        """Wait for the child's end; returns its exit code, negative for a signal."""
        with contextlib.suppress(ChildProcessError):
            _, status = os.waitpid(self.pid, 0)
        os.close(self._reader)
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> int:
        """Kill the child, if it still lives, and wait."""
        os.kill(self.pid, signal.SIGKILL)
        return self.end()


def contents(folder: Path) -> dict[str, str]:
    """What a run came to: its files, and the cache's answers without their times."""
    paths = [folder / "manifest.json", folder / "bank.json", *sorted((folder / "receipts").iterdir())]
    found = {str(path.relative_to(folder)): path.read_bytes().hex() for path in paths}
    with contextlib.closing(sqlite3.connect(folder.parent / "c.sqlite")) as cache:
        query = (
            "SELECT hex(key), role, model, outcome, text, finish_reason, served_by, prompt_tokens, completion_tokens,"
            " error FROM answers ORDER BY key"
        )
        found |= {row[0]: repr(row) for row in cache.execute(query)}
    return found


def books(folder: Path) -> dict[str, int]:
    """What the ledger says: entries by state, and in picodollars what counts against the cap, is unknown, is all."""
    with contextlib.closing(sqlite3.connect(folder / "ledger.sqlite")) as ledger:
        query = "SELECT state, count(*), sum(coalesce(cost, reserved)) FROM entries GROUP BY state"
        states = {state: (number, amount) for state, number, amount in ledger.execute(query)}
        committed = ledger.execute("SELECT committed FROM accounts WHERE name = 'run'").fetchone()
    return {
        "committed": committed[0] if committed else 0,
        "lost": states.get("lost", (0, 0))[0],
        "open": states.get("open", (0, 0))[0],
        "unknown": states.get("open", (0, 0))[1] + states.get("lost", (0, 0))[1],
        "entries": sum(number for number, _ in states.values()),
        "total": sum(amount for _, amount in states.values()),
    }


def round_of(folder: Path, kills: int, seed: int, url: str | None) -> dict[str, Any]:
    """Run one round; returns what differs and what the books say."""
    bank, rng = small_bank(), random.Random(seed)
    whole, broken = (write_run_toml(folder / name / RUN, plan_data(bank, url)) for name in ("whole", "broken"))
    began = time.monotonic()
    assert Child(whole, bank).end() == 0
    lasts = time.monotonic() - began
    killed = 0
    for i in range(kills):
        if i % 2:
            point, before = rng.randrange(14), rng.random() < 0.5
            killed += Child(broken, bank, prepare=lambda: die_at(point, before=before)).end() == -signal.SIGKILL  # noqa: B023
            continue
        child = Child(broken, bank)
        child.ready()
        time.sleep(rng.uniform(0, 1.5 * lasts / kills))
        killed += child.kill() == -signal.SIGKILL
    unsettled = books(broken)
    assert Child(broken, bank, settle=True).end() == 0
    expected, found = contents(whole), contents(broken)
    manifest = json.loads((broken / "manifest.json").read_bytes())
    return {
        "killed": killed,
        "differs": sorted(k for k in expected.keys() | found.keys() if expected.get(k) != found.get(k)),
        "whole": books(whole),
        "before": unsettled,
        "after": books(broken),
        "manifest_total": round(manifest["spend"]["total_usd"] * 1e12),
        "rows": sum(shard["rows"] for shard in manifest["shards"]),
    }


if __name__ == "__main__":
    print(json.dumps(round_of(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), (sys.argv[4:] or [None])[0])))
