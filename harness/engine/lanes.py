"""Lanes: whom a stage asks, each closed for itself and never for a neighbor (contract: stages, "Stopping").

A lane is a subject, or a judge under one rubric. It is closed when going on would only cost money: twenty calls in a
row without a usable answer, a key or model that the endpoint refuses, a wait longer than `total_wait`.
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
    """Return the lane of a call."""
    return Lane(call.role, call.request.model, call.rubric)


def usable(call: Call, answer: Answer) -> bool:
    """Tell whether an answer is what was asked for. A vendor's filter answers for a subject, but never votes."""
    return answer.error is None and answer.outcome in _USABLE[call.role]


@dataclass(frozen=True)
class Closure:
    """Why a lane was closed, and what the operator can do about it."""

    why: str
    remedy: str


@dataclass
class LaneRecord:
    """What a lane came to so far; `streak` counts its calls without a usable answer since the last good one."""

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
        """Note how a call ended; returns the length of the streak."""
        self.good |= well
        self.streak = 0 if well else self.streak + 1
        return self.streak

    @property
    def open_for(self) -> int | None:
        """How many calls may be in flight, so that no more than `IN_A_ROW` can be wasted; None: any number."""
        return None if self.good else max(1, IN_A_ROW - self.streak)
