"""How a stage ended, a line for each model: done or stopped, why, and what to type (contract: stages, "Stopping")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.engine.lanes import Lane, LaneRecord, lane_of
from harness.engine.outcome import Outcome
from harness.money.budget import RUN_ACCOUNT


@dataclass(frozen=True)
class Ending:
    """What a subject, or a judge under one rubric, came to; `why` and `remedy` are None where it is done."""

    lane: Lane
    answers: int
    unusable: int
    failed: int
    left: int
    why: str | None = None
    remedy: str | None = None

    def line(self, again: str, unit: str) -> str:
        """Return the ending in words; `again` is the command that goes on."""
        had = f"{self.answers:,} {unit}"
        lost = [f"{n:,} {what}" for n, what in ((self.unusable, "of them unusable"), (self.failed, "failed")) if n]
        if lost:
            had += f" ({', '.join(lost)})"
        if self.why is None:
            return f"{self.lane}: done, {had}"
        left = f", {self.left:,} left" if self.left else ""
        return f"{self.lane}: stopped, {had}{left}: {self.why}; {self.remedy}, then: {again}"

    def as_json(self) -> dict[str, Any]:
        """Return the ending as a JSON object."""
        return {
            "model": self.lane.model,
            "rubric": self.lane.rubric,
            "ended": "done" if self.why is None else "stopped",
            "answers": self.answers,
            "unusable": self.unusable,
            "failed": self.failed,
            "left": self.left,
            "why": self.why,
            "remedy": self.remedy,
        }


def endings(outcomes: Sequence[Outcome]) -> list[Ending]:
    """Return the endings of the waves of a stage together, in the order in which their lanes were planned."""
    records: dict[Lane, LaneRecord] = {}
    for outcome in outcomes:
        for lane, record in outcome.lanes.items():
            records[lane] = _added(records[lane], record) if lane in records else record
    left = Counter(lane_of(call) for outcome in outcomes for call in outcome.left)
    last = outcomes[-1] if outcomes else Outcome()
    return _judges_that_are_done([_ending(lane, record, left[lane], last) for lane, record in records.items()])


def _added(a: LaneRecord, b: LaneRecord) -> LaneRecord:
    return replace(
        a, cached=a.cached + b.cached, asked=a.asked + b.asked, failed=a.failed + b.failed,
        unusable=a.unusable + b.unusable, closure=a.closure or b.closure,
    )  # fmt: skip


def _ending(lane: Lane, record: LaneRecord, left: int, last: Outcome) -> Ending:
    ending = Ending(lane, record.cached + record.asked, record.unusable, record.failed, left)
    if record.closure is not None:
        return replace(ending, why=record.closure.why, remedy=record.closure.remedy)
    if not left:
        return ending
    if last.interrupted:
        return replace(ending, why="interrupted", remedy="no answer is lost")
    account = RUN_ACCOUNT if RUN_ACCOUNT in last.capped else f"{lane.role}:{lane.model}"
    key = "caps.run" if account == RUN_ACCOUNT else f"caps.{lane.role.replace('subject', 'model')}s"
    return replace(ending, why=f"the spend cap {account} is reached", remedy=f"raise {key} in run.toml")


def _judges_that_are_done(found: list[Ending]) -> list[Ending]:
    """Put the rubrics of a judge into one ending where all of them are done."""
    stopped = {ending.lane[:2] for ending in found if ending.why is not None}
    together: dict[tuple[str, str, str | None], Ending] = {}
    for ending in found:
        role, model, rubric = ending.lane
        lane = Lane(role, model, rubric if (role, model) in stopped else None)
        before = together.get(lane, Ending(lane, 0, 0, 0, 0))
        together[lane] = replace(
            ending, lane=lane, answers=before.answers + ending.answers, unusable=before.unusable + ending.unusable,
            failed=before.failed + ending.failed, left=before.left + ending.left,
        )  # fmt: skip
    return list(together.values())
