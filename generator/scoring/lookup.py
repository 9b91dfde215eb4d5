"""The published table `scores` as pages look numbers up: a `ScoreRow` by (model, metric, attribute, group).

See contract: tables, "Scores".
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import pyarrow as pa

from generator.schema.bank import Roles
from generator.scoring.attribute import POINTS
from generator.stats.bootstrap import round12
from generator.stats.controls import controls_swapped


@dataclass(frozen=True)
class ScoreRow:
    """One row of `scores`, numbers as published (points, percent, counts); None where the file has null."""

    model: str
    metric: str
    attribute: str
    group: str | None
    estimate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    ci_tail: float | None = None
    n_concepts: int | None = None
    n_cells: int | None = None
    n_rows: int | None = None
    p: float | None = None
    p_adjusted: float | None = None
    evidence: str | None = None
    flag: str | None = None

    @property
    def flags(self) -> tuple[str, ...]:
        """The row's flags in the file's order; empty without one."""
        return tuple(self.flag.split(";")) if self.flag else ()

    def flags_beyond(self, other: ScoreRow) -> tuple[str, ...]:
        """Return the flags that another row, shown beside this one, does not already carry."""
        return tuple(f for f in self.flags if f not in other.flags)

    @property
    def below_zero(self) -> bool:
        """Whether the estimate is below 0 once rounded to 12 decimals on the 0-1 scale, as in every decision."""
        return self.estimate is not None and round12(self.estimate / POINTS) < 0

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0, rounded likewise; False without an interval."""
        if self.ci_low is None or self.ci_high is None:
            return False
        return round12(self.ci_low / POINTS) > 0 or round12(self.ci_high / POINTS) < 0

    @property
    def key(self) -> str:
        """The row's key in `data-score`, without the column (contract: publication, "Numbers on pages")."""
        return "|".join((self.model, self.metric, self.attribute, self.group or ""))


_COLUMNS = tuple(f.name for f in fields(ScoreRow))
Key = tuple[str, str, str, str | None]


class ScoreBook:
    """The table `scores`, indexed by model, metric, attribute and group."""

    def __init__(self, scores: pa.Table) -> None:
        columns = [scores.column(name).to_pylist() for name in _COLUMNS]
        rows = (ScoreRow(*values) for values in zip(*columns, strict=True))
        self._rows: dict[Key, ScoreRow] = {(r.model, r.metric, r.attribute, r.group): r for r in rows}

    def row(self, model: str, metric: str, attribute: str = "overall", group: str | None = None) -> ScoreRow:
        """Return a row of the table.

        A row that the table lacks, because it is withheld or no such number exists, comes back with every number None.
        So a page shows a dash and needs no case of its own.
        """
        return self._rows.get((model, metric, attribute, group)) or ScoreRow(model, metric, attribute, group)

    def has(self, model: str, metric: str, attribute: str = "overall", group: str | None = None) -> bool:
        """Tell whether the table holds a row, even one whose numbers are all null."""
        return (model, metric, attribute, group) in self._rows

    def edge(self, model: str, roles: Roles) -> str | None:
        """Return the control that excess is read against: the one with the larger disparity, or the only one.

        None in a bank without controls, and where one of them has no number (methodology: control-band, "The edge used
        for evidence").
        """
        found = [(control, self.row(model, "disparity", control).estimate) for control in roles.controls]
        known = [(control, number / POINTS) for control, number in found if number is not None]
        if not found or len(known) < len(found):
            return None
        swapped = len(known) == 2 and controls_swapped(known[0][1], known[1][1])
        return known[1 if swapped else 0][0]
