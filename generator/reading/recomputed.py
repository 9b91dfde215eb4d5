"""One published number worked out anew from the receipts of its model.

See contract: publication, "From Python".
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from generator.runs.reader import Run
from generator.runs.row_checks import RowExpectations, check_columns, check_rows
from generator.schema.bank import Bank
from generator.schema.columns import as_latest
from generator.schema.errors import raise_faults
from generator.schema.layout import Layout
from generator.schema.manifest import Manifest
from generator.schema.names import shard_name
from generator.scoring.shard import Prepared

TOLERANCE = 1e-9  # on the scale of the table: other machines round sums differently
_NUMBERS = ("estimate", "ci_low", "ci_high")


@dataclass(frozen=True)
class RecomputedScore:
    """A row of `scores`, worked out anew: estimate and interval on the table's own scale, None where it has none.

    `published` are the same three numbers as the table has them.
    """

    metric: str
    model: str
    attribute: str
    group: str | None
    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    published: dict[str, float | None]

    @property
    def agrees(self) -> bool:
        """Whether all three numbers are the published ones, up to 1e-9."""
        return all(_same(getattr(self, name), self.published[name]) for name in _NUMBERS)


def _same(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else abs(a - b) <= TOLERANCE


def model_rows(
    manifest: Manifest, bank: Bank, model: str, receipts: pa.Table, *, withheld: frozenset[str], resamples: int
) -> pa.Table:
    """Score one model from its receipts alone; returns its rows of `scores`.

    Raises InputError when a receipt contradicts the bank or the manifest.
    """
    layout, where = Layout(bank, manifest.repeats), f"receipts of {model}"
    faults = check_columns(receipts, manifest, where)
    raise_faults(faults or check_rows(as_latest(receipts), model, RowExpectations(manifest, bank, layout), where))
    with tempfile.TemporaryDirectory(prefix="aibiasbench-") as temporary:
        place = Path(temporary, "receipts", f"{shard_name(model)}.parquet")
        place.parent.mkdir()
        pq.write_table(receipts, place)
        run = Run(Path(temporary), manifest, bank, None, {model: layout.size - receipts.num_rows})
        return Prepared.of(run, withheld, resamples).score(model).scores


def recomputed(rows: pa.Table, published: Mapping[str, Any]) -> RecomputedScore | None:
    """Return the recomputed form of a published row of `scores`; None where one model's receipts do not give it."""
    key = ("metric", "attribute", "group")
    found = next((r for r in rows.to_pylist() if all(r[name] == published[name] for name in key)), None)
    if found is None:
        return None
    return RecomputedScore(
        **{name: found[name] for name in (*key, *_NUMBERS)},
        model=published["model"],
        published={name: published[name] for name in _NUMBERS},
    )
