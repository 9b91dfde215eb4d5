"""The sizes of charts and their horizontal scale: plain numbers, shared by what draws and what fills in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDE, NARROW = 1000, 340
GUTTER = {WIDE: 250, NARROW: 0}  # room for names left of the plot; the narrow drawing puts them above their line
STEP = {WIDE: 34, NARROW: 46}
NOTE = {WIDE: 150, NARROW: 0}
TOP, BOTTOM = 4, 48  # room above the first line; and below the last, for ticks and the title of the axis


@dataclass(frozen=True)
class Domain:
    """The horizontal scale of a run's charts; shared by all of them, so that pages can be compared."""

    low: float
    high: float
    step: float

    @property
    def ticks(self) -> tuple[float, ...]:
        """The labelled values from low to high."""
        count = round((self.high - self.low) / self.step)
        return tuple(self.low + i * self.step for i in range(count + 1))

    def share(self, value: float) -> float:
        """Return a value's place on the scale in percent, clipped to its ends."""
        return min(100.0, max(0.0, 100 * (value - self.low) / (self.high - self.low)))


def domain_of(values: Sequence[float | None]) -> Domain:
    """Return a scale from just below the smallest value to 100, in steps of 5 or 10."""
    known = [v for v in values if v is not None]
    lowest = min(known, default=80.0)
    low = max(0.0, math.floor((lowest - 0.5) / 5) * 5.0)
    step = 5.0 if 100 - low <= 35 else 10.0
    return Domain(math.floor(low / step) * step, 100.0, step)
