"""Runs for the tests of the engine: calls by number, and a run folder whose calls go to a scripted server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from generator.schema.bank import Bank
from generator.schema.canonical import sha256_hex
from harness.cache.answers import Cache
from harness.calls.call import Call, Message, Request
from harness.calls.client import HttpEndpoint
from harness.engine.outcome import Outcome
from harness.engine.runner import Engine
from harness.eval.questions import blank
from harness.money.budget import Book, Ledger, caps_of, worst_case
from harness.plan.records import Prices, RunPlan
from tests.plans import PARAMS, PRICES, live_data, make_plan
from tests.scripted_server import Reply

FIRST = Request("alpha/one", "one", (Message("user", "00"),), PARAMS, 0)
WORST = worst_case(FIRST, Prices(**PRICES))  # of every call here, picodollars
COST = 20 * 10**6 + 5 * 10**7  # what the scripted server's usage comes to, picodollars
BUSY = Reply(503, b"busy")


def calls(number: int, model: str = "alpha/one", endpoint: str = "local", first: int = 0) -> list[Call]:
    return [
        Call(
            sha256_hex(f"{model}|{i}"), "subject", endpoint,
            Request(model, model.partition("/")[2], (Message("user", f"{i:02}"),), PARAMS, 0), blank,
        )
        for i in range(first, first + number)
    ]  # fmt: skip


class Run:
    """A run folder with its plan, whose calls go to a scripted server or to a backend of the test."""

    def __init__(
        self, folder: Path, plan: RunPlan, endpoints: dict[str, Any] | None = None, *, cache: Path | None = None
    ) -> None:
        self.folder, self.plan, self._endpoints = folder, plan, endpoints
        self._cache = cache or folder / "c.sqlite"

    def __call__(self, wanted: Sequence[Call], **options: Any) -> Outcome:
        endpoints = self._endpoints or {
            name: HttpEndpoint(name, limits, self.plan.models, {}) for name, limits in self.plan.endpoints.items()
        }
        local = frozenset(m.model for m in self.plan.models if m.endpoint == "simulated")
        with Cache(self._cache, now=1) as cache, self.ledger() as ledger:
            ledger.recover(cache, local)
            engine = Engine(self.plan, cache=cache, ledger=ledger, endpoints=endpoints)
            outcome = engine.run(wanted, **options)
            assert ledger.faults() == []
            return outcome

    def ledger(self) -> Ledger:
        return Ledger(self.folder, run_id="test-run", stage="eval", caps=caps_of(self.plan))

    def book(self) -> Book:
        with self.ledger() as ledger:
            return ledger.book("subject")


def live_run(folder: Path, bank: Bank, url: str, *, local: dict[str, Any] | None = None, **changes: Any) -> Run:
    data = live_data(bank, url, **changes)
    data["endpoints"]["local"].update(local or {})
    return Run(folder, make_plan(data))
