"""What a run of calls came to, kept while it goes on (contract: stages, "eval")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.calls.call import Answer, Call
from harness.money.budget import RUN_ACCOUNT, account_of, dollars


@dataclass
class StageCounts:
    """Running numbers of a stage for whoever watches; money in picodollars.

    `overspent` counts, by model, calls that cost more than was reserved; the first of a model is among the warnings.
    `asked` counts calls that now have an answer, `cut`, `filtered` and `unusable` are among cached and asked ones.
    """

    planned: int = 0
    cached: int = 0
    asked: int = 0
    failed: int = 0
    attempts: int = 0
    spent: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    overspent: Counter[str] = field(default_factory=Counter)

    @property
    def done(self) -> int:
        """Calls with an outcome."""
        return self.cached + self.asked + self.failed


@dataclass
class Outcome:
    """What a run of calls came to.

    `answers`: by key, from cache or endpoint. `failures`: by key, the code (`VOTE_ERRORS`) of calls that failed for
    good; nothing of them is cached. `reasons`: by code, an endpoint's last words, for the operator's eyes only.
    `left`: calls not asked because a cap or a stop came first. `capped`: the accounts (`run`, `subject:SLUG`,
    `judge:SLUG`) whose cap stopped calls. `stopped`: why an endpoint ended the stage, or None.
    """

    keep: bool = True
    answers: dict[str, Answer] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    left: list[Call] = field(default_factory=list)
    capped: set[str] = field(default_factory=set)
    stopped: str | None = None
    interrupted: bool = False
    tally: StageCounts = field(default_factory=StageCounts)

    @property
    def halted(self) -> bool:
        """Whether no further attempt may start."""
        return self.interrupted or self.stopped is not None

    @property
    def barren(self) -> bool:
        """Whether calls failed for good and not one was answered, now or before."""
        return bool(self.failures) and not self.tally.asked + self.tally.cached

    def closed(self, call: Call) -> bool:
        """Tell whether a cap has closed the account of a call."""
        return RUN_ACCOUNT in self.capped or account_of(call) in self.capped

    def stop(self, why: str) -> None:
        """End the stage; the first reason stays."""
        self.stopped = self.stopped or why

    def leave(self, call: Call, account: str | None = None) -> None:
        """Put a call aside; `account` is the one whose cap refused it."""
        self.left.append(call)
        if account is not None:
            self.capped.add(account)

    def finish(self, key: str, answer: Answer, *, cached: bool = False) -> None:
        """Count an answer that is on the disk."""
        if cached:
            self.tally.cached += 1
        else:
            self.tally.asked += 1
        self.tally.outcomes[answer.outcome] += 1
        if self.keep:
            self.answers[key] = answer

    def fail(self, key: str, code: str, reason: str) -> None:
        """Count a call that failed for good."""
        self.tally.failed += 1
        self.failures[key] = code
        self.reasons[code] = reason

    def overspent(self, call: Call, cost: int, reserved: int) -> None:
        """Count a call that cost more than its reserved worst case, and warn of the first of its model."""
        self.tally.overspent[call.request.model] += 1
        if self.tally.overspent[call.request.model] > 1:
            return
        self.tally.warnings.append(
            f"{call.request.model}: one call cost ${dollars(cost):.6f}, more than the ${dollars(reserved):.6f} that its"
            " declared prices allow; it is booked at its true cost: check the prices in run.toml"
        )


Watch = Callable[[StageCounts], None]
