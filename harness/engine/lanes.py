"""Lanes: whom a stage asks, each closed for itself and never for a neighbor.

A lane is a subject, or a judge under one rubric. It is closed when going on would only cost money: twenty calls in a
row without a usable answer, a key or model that the endpoint refuses, a wait longer than `total_wait`.

See contract: stages, "Stopping".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from harness.calls.call import Answer, Call

IN_A_ROW = 20  # calls of one lane without a usable answer, one after another, before it is closed
_USABLE = {"subject": ("answered", "cut", "filtered"), "judge": ("answered", "cut")}


class Lane(NamedTuple):
    """Whom a call is put to; `rubric` is None for a subject."""

    role: str
    model: str
    rubric: str | None

    def __str__(self) -> str:
        return self.model if self.rubric is None else f"{self.model} (rubric {self.rubric})"


def lane_of(call: Call) -> Lane:
    """Return the lane of a call: its role and model, for a judge also its rubric."""
    return Lane(call.role, call.request.model, call.rubric)


def usable(call: Call, answer: Answer) -> bool:
    """Tell whether an answer is what was asked for.

    A refusal by the vendor's filter is an answer of a subject. A judge that was filtered has not voted.
    """
    return answer.error is None and answer.outcome in _USABLE[call.role]


@dataclass(frozen=True)
class Closure:
    """Why a lane was closed, and what the operator can do about it. Both are worded for the end of the stage."""

    why: str
    remedy: str


@dataclass
class LaneRecord:
    """What a lane came to so far.

    `streak` counts its calls without a usable answer since the last good one. `good`: it has given a usable answer.
    Cached answers count toward the streak, in the order of the plan, but never close a lane: one more call is made, to
    see whether what was wrong is mended.
    """

    endpoint: str
    planned: int = 0
    cached: int = 0
    asked: int = 0
    failed: int = 0
    unusable: int = 0
    streak: int = 0
    good: bool = False
    closure: Closure | None = None

    def went(self, well: bool) -> int:
        """Note how a call ended; returns the length of the streak, 0 after a good one."""
        self.good |= well
        self.streak = 0 if well else self.streak + 1
        return self.streak

    def was(self, well: bool) -> None:
        """Note an answer of an earlier sitting."""
        self.streak = 0 if well else min(self.streak + 1, IN_A_ROW - 1)

    @property
    def open_for(self) -> int | None:
        """How many calls may be in flight so that at most `IN_A_ROW` can be wasted; None for any number."""
        return None if self.good else max(1, IN_A_ROW - self.streak)
