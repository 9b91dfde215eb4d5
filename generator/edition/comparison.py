"""What pages know of the change between runs: two runs and their rows of `changes`, and the runs of one bank in a line.

See methodology: change, "Change between two runs"; contract: tables, "Changes".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa

from generator.schema.bank import Bank
from generator.schema.manifest import Manifest
from generator.schema.tables import OVERALL
from generator.scoring.change import Matched
from generator.scoring.comparable import Family

Row = dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """Two runs of one bank hash, held against each other.

    `table` has the rows of `changes`; `matched` tells which model of the older run each model of the newer one is held
    against; `preview` whether either run is a preview.
    """

    old: Manifest
    new: Manifest
    bank: Bank
    table: pa.Table
    matched: tuple[Matched, ...]
    preview: bool = False

    @property
    def indexable(self) -> bool:
        """Whether search engines, sitemap and feed may list it: both runs are published live runs."""
        return self.new.kind == "live" and not self.preview

    @cached_property
    def _rows(self) -> dict[tuple[str, str, str, str | None], Row]:
        rows: list[Row] = self.table.to_pylist()
        return {(r["model"], r["metric"], r["attribute"], r["group"]): r for r in rows}

    def row(self, model: str, metric: str, attribute: str = OVERALL, group: str | None = None) -> Row | None:
        """Return one row of the table, None where it has none."""
        return self._rows.get((model, metric, attribute, group))

    def rows(self, model: str, metric: str) -> list[Row]:
        """Return a model's rows of one metric in the order of the table."""
        return [row for (of, name, _, _), row in self._rows.items() if (of, name) == (model, metric)]


@dataclass(frozen=True)
class Point:
    """Overall consistency of a model in a run, 0-100; None where there is no value."""

    estimate: float | None
    ci_low: float | None
    ci_high: float | None


@dataclass(frozen=True)
class Changes:
    """All that a site says of change: its runs by family, the pairs that have a page, and each model's score by run."""

    families: tuple[Family, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    points: Mapping[tuple[str, str], Point] | None = None

    def pair(self, new: str, old: str) -> Comparison | None:
        """Return how one run changed against another, None where no such page is made."""
        return next((c for c in self.comparisons if (c.new.run_id, c.old.run_id) == (new, old)), None)

    def since_the_last(self, run: str) -> Comparison | None:
        """Return how a run changed against the run before it."""
        before = {new.run_id: old.run_id for f in self.families for old, new in pairwise(f.runs)}
        return self.pair(run, before[run]) if run in before else None
