"""The one runner behind eval and judge: cache, money, retries and concurrency (SPEC 2).

For every call, in this order: looked up in the cache; its worst case reserved in the ledger, on disk; one attempt made; the
answer stored in the cache, on disk; the reservation settled, on disk; only then counted. A crash at any point loses at
most the calls in flight, whose reservations count as spent.

    engine = Engine(plan, cache=cache, ledger=ledger, endpoints=endpoints)
    outcome = engine.run(calls, watch=progress)   # Outcome: answers by key, failures by key, what is left and why

`calls` may hold a key twice (judges often see the same masked text for two groups): it is asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from harness.calls import Answer, BatchEndpoint, Endpoint


@dataclass
class Tally:
    """Running numbers of a stage for whoever watches; money in picodollars."""

    planned: int = 0
    cached: int = 0
    asked: int = 0
    failed: int = 0
    attempts: int = 0
    spent: int = 0


@dataclass
class Outcome:
    """What a run of calls came to.

    `answers`: by key, from cache or endpoint. `failures`: by key, the code (`VOTE_ERRORS`) of calls that failed for good;
    nothing of them is cached. `left`: keys not asked because a cap or a stop came first. `stopped`: why, or None.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    stopped: str | None = None
    tally: Tally = field(default_factory=Tally)


Watch = Callable[[Tally], None]
Endpoints = Mapping[str, Endpoint | BatchEndpoint]
