"""What a run of calls came to, kept while it goes on.

See contract: stages, "Attempts and waiting"; contract: stages, "Stopping".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from harness.calls.call import Answer, Call, CallError
from harness.engine.lanes import IN_A_ROW, Closure, Lane, LaneRecord, lane_of, usable
from harness.engine.remedies import failed_in_a_row, unusable_in_a_row
from harness.money.budget import RUN_ACCOUNT, account_of


@dataclass(frozen=True)
class Wait:
    """A lane that waits: until when by the event loop's clock, how many seconds in all, and why."""

    until: float
    seconds: float
    why: str


@dataclass
class StageCounts:
    """Running numbers of a stage, for whoever watches; money in picodollars.

    Attributes:
        planned: calls of the stage.
        cached: calls that the cache answered.
        asked: calls that an endpoint answered.
        failed: calls that failed for good.
        attempts: attempts over all calls.
        spent: what the run has spent and reserved.
        outcomes: answers by outcome, cached and asked.
        warnings: what the operator must be told at the end.
        overspent: calls by model that cost more than their declared prices allow.
        overlong: calls by model that used more than their max_tokens.
        waits: lanes that wait, by name.
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
    overlong: Counter[str] = field(default_factory=Counter)
    waits: dict[str, Wait] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """Calls that came to an end, answered or failed."""
        return self.cached + self.asked + self.failed

    def waiting(self, now: float) -> tuple[str, Wait] | None:
        """Return the name and the wait of the lane that waits longest; None when nobody waits.

        Args:
            now: the moment, by the event loop's clock.
        """
        found = [(name, wait) for name, wait in self.waits.items() if wait.until > now]
        return max(found, key=lambda pair: pair[1].until, default=None)


@dataclass
class Outcome:
    """What a run of calls came to.

    Attributes:
        keep: whether answers are kept in memory as well as stored.
        cache: the option that names the cache on a command line, empty for the usual one.
        answers: by key, from cache or endpoint.
        failures: by key, the code (`VOTE_ERRORS`) of calls that failed for good. Nothing of them is cached.
        reasons: by code, an endpoint's last words, for the operator's eyes only.
        left: calls that were not asked, because a cap or a closed lane came first.
        capped: accounts whose cap stopped calls: `run`, `subject:SLUG`, `judge:SLUG`.
        interrupted: whether Ctrl-C or TERM came.
        tally: the running numbers.
        lanes: what each lane came to.
    """

    keep: bool = True
    cache: str = ""
    answers: dict[str, Answer] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    left: list[Call] = field(default_factory=list)
    capped: set[str] = field(default_factory=set)
    interrupted: bool = False
    tally: StageCounts = field(default_factory=StageCounts)
    lanes: dict[Lane, LaneRecord] = field(default_factory=dict)

    @property
    def halted(self) -> bool:
        """Whether no further attempt may start, in any lane."""
        return self.interrupted

    @property
    def unfinished(self) -> bool:
        """Whether the stage has to be run again: calls are left, or a lane was closed."""
        return bool(self.left or self.interrupted or self.closures)

    @property
    def closures(self) -> dict[Lane, Closure]:
        """The lanes that were closed, each with cause and remedy."""
        return {lane: record.closure for lane, record in self.lanes.items() if record.closure is not None}

    @property
    def stopped(self) -> str | None:
        """Which lanes were closed and why, in one line; None when all are open."""
        return "; ".join(f"{lane}: {closure.why}" for lane, closure in self.closures.items()) or None

    @property
    def barren(self) -> bool:
        """Whether calls failed for good and not one was answered, by cache or endpoint."""
        return bool(self.failures) and not self.tally.asked + self.tally.cached

    def plan(self, calls: Iterable[Call]) -> None:
        """Count the calls of the stage, by lane. Each key comes once."""
        for call in calls:
            self.tally.planned += 1
            self.record(call).planned += 1

    def record(self, call: Call) -> LaneRecord:
        """Return the record of a call's lane, a new one where the lane has none."""
        lane = lane_of(call)
        found = self.lanes.get(lane)
        if found is None:
            found = self.lanes[lane] = LaneRecord(call.endpoint)
        return found

    def closed(self, call: Call) -> bool:
        """Tell whether a call may no longer be asked: a cap closed its account, or something else its lane."""
        capped = RUN_ACCOUNT in self.capped or account_of(call) in self.capped
        return capped or self.record(call).closure is not None

    def close(self, call: Call, closure: Closure) -> None:
        """Close the lane of a call; the first cause stays."""
        record = self.record(call)
        record.closure = record.closure or closure

    def close_model(self, call: Call, closure: Closure) -> None:
        """Close every lane of a call's model in its role: as a judge, under each rubric.

        The first cause of a lane stays.
        """
        for lane, record in self.lanes.items():
            if (lane.role, lane.model) == (call.role, call.request.model):
                record.closure = record.closure or closure

    def close_endpoint(self, name: str, closure: Closure) -> None:
        """Close every lane at an endpoint at which nobody answers. The first cause of a lane stays."""
        for record in self.lanes.values():
            if record.endpoint == name:
                record.closure = record.closure or closure

    def leave(self, call: Call, account: str | None = None) -> None:
        """Put a call aside.

        Args:
            call: the call, which a later run of the stage asks.
            account: the account whose cap refused it, or None where a closed lane did.
        """
        self.left.append(call)
        if account is not None:
            self.capped.add(account)

    def finish(self, call: Call, answer: Answer, *, cached: bool = False) -> None:
        """Count an answer that is on the disk.

        Args:
            call: the call.
            answer: its answer. A new one that cannot be used makes the lane's streak longer, and may close it.
            cached: whether it came from the cache, which says nothing about the lane.
        """
        record, well = self.record(call), usable(call, answer)
        record.unusable += not well
        self.tally.outcomes[answer.outcome] += 1
        if self.keep:
            self.answers[call.key] = answer
        # An answer from the cache says nothing about how the endpoint does today.
        if cached:
            self.tally.cached += 1
            record.cached += 1
            record.was(well)
            return
        self.tally.asked += 1
        record.asked += 1
        if record.went(well) >= IN_A_ROW:
            self.close(call, unusable_in_a_row(call, answer, self.cache))

    def fail(self, call: Call, error: CallError) -> None:
        """Count a call that failed for good; too many in a row close its lane."""
        self.tally.failed += 1
        self.failures[call.key] = error.code
        self.reasons[error.code] = error.reason
        record = self.record(call)
        record.failed += 1
        if record.went(False) >= IN_A_ROW:
            self.close(call, failed_in_a_row(call, error))

    def warn(self, counter: Counter[str], call: Call, words: str) -> None:
        """Count a call whose cost was not foreseen, and warn of the first one of its model.

        Args:
            counter: `overspent` or `overlong` of the tally.
            call: the call.
            words: the warning, without the name of the model.
        """
        model = call.request.model
        counter[model] += 1
        if counter[model] == 1:
            self.tally.warnings.append(f"{model}: {words}")


Watch = Callable[[StageCounts], None]
