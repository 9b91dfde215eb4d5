"""How much of a plan was asked, and what came of it: the counts that a preview states first.

It reads the table `cells`, so it counts all attributes, controls among them, and leaves withheld categories out.

See contract: publication, "Previews and banners".
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from generator.schema.verdict import STATUSES

_COUNTS = tuple(f"n_{status}" for status in STATUSES)


@dataclass(frozen=True)
class PlanCoverage:
    """One model's plan and what came of it.

    `planned`, `given` and `error` count rows; `prompts` and `prompts_given` count cells (concept, framing, group).
    `concepts_given` holds the ids of the concepts with a row, out of `concepts`.
    """

    planned: int
    given: int
    error: int
    prompts: int
    prompts_given: int
    concepts: int
    concepts_given: frozenset[str]

    @property
    def absent(self) -> int:
        """Planned rows without a receipt: they were never asked, or not yet."""
        return self.planned - self.given


def plan_coverage(cells: pa.Table, repeats: int) -> dict[str, PlanCoverage]:
    """Return how much of the plan each model was asked, by slug.

    Args:
        cells: the published table `cells`.
        repeats: planned repeats of a cell.
    """
    given = cells[_COUNTS[0]]
    for name in _COUNTS[1:]:
        given = pc.add(given, cells[name])
    table = pa.table({name: cells[name] for name in ("model", "concept", "n_error")}).append_column("given", given)
    found = {}
    for model in table["model"].unique().to_pylist():
        own = table.filter(pc.equal(table["model"], model))
        # A prompt counts as given with the first of its rows.
        answered = own.filter(pc.greater(own["given"], 0))
        found[model] = PlanCoverage(
            planned=own.num_rows * repeats,
            given=pc.sum(own["given"]).as_py() or 0,
            error=pc.sum(own["n_error"]).as_py() or 0,
            prompts=own.num_rows,
            prompts_given=answered.num_rows,
            concepts=len(own["concept"].unique()),
            concepts_given=frozenset(answered["concept"].unique().to_pylist()),
        )
    return found
