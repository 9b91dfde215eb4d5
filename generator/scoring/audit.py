"""The human audit of a run: the draw replayed, the models that it covers, the agreement by rubric.

See contract: stages, "The audit draw"; methodology: audit, "Agreement of people and panel".
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from generator.runs.reader import Run
from generator.schema.audit_draw import allocate, auditable, draw_order, stratum_name
from generator.schema.bank import Bank
from generator.schema.errors import InputError
from generator.schema.tables import RUN_WIDE
from generator.stats.audit import Audited, AuditSummary, agrees, summarise


@dataclass(frozen=True)
class Coverage:
    """Which models the human audit covers, by slug; the others were added to the run after the draw."""

    covered: tuple[str, ...]
    not_covered: tuple[str, ...]


@dataclass(frozen=True)
class DrawnRow:
    """What the receipt of an audited row says; `value` is in [0, 1], None for a refused row."""

    rubric: str
    final_label: str
    value: float | None


@dataclass
class Strata:
    """One model's part in the draw.

    Attributes:
        sizes: rows of each stratum, by its name.
        first: for each stratum the (draw key, receipt id) of its first rows in the order of the draw.
        audited: by receipt id, the rows of this model that a person labeled.
    """

    sizes: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    audited: dict[str, DrawnRow] = field(default_factory=dict)


def strata_of(run: Run, table: pa.Table) -> Strata:
    """Return a shard's part in the draw of the audit.

    Args:
        run: the run, for its audited ids and the seed of the draw.
        table: the shard with the columns receipt_id, rubric, final_label, status, value and votes.
    """
    labels = dict(run.audit or ())
    drawable = table.select(["receipt_id", "rubric", "final_label", "value"]).filter(pa.array(_drawable(table)))
    own = drawable.filter(pc.is_in(drawable["receipt_id"], pa.array(list(labels), pa.string())))
    rows = {row.pop("receipt_id"): DrawnRow(**row) for row in own.to_pylist()}
    found, seed = Strata(audited=rows), run.manifest.seeds.audit
    for name, receipts in _by_stratum(drawable):
        found.sizes[name] = len(receipts)
        # A draw of as many rows as were audited takes at most that many from a stratum, smallest hash first. So no
        # model has to keep more of them, however many rows it has.
        found.first[name] = heapq.nsmallest(len(labels), ((draw_order(seed, r), r) for r in receipts))
    return found


def _drawable(table: pa.Table) -> npt.NDArray[np.bool_]:
    """Return which rows `auditable` lets into the draw: bool array (rows,); it is asked once a status."""
    status = table["status"].combine_chunks().dictionary_encode()
    voted = table["votes"].combine_chunks().value_lengths().to_numpy() > 0
    rule = np.array([[auditable(name, n) for n in (0, 1)] for name in status.dictionary.to_pylist()], np.bool_)
    return np.asarray(rule.reshape(-1, 2)[status.indices.to_numpy(), voted.astype(np.intp)])


def _by_stratum(rows: pa.Table) -> Iterator[tuple[str, list[str]]]:
    """Yield (name, receipt ids) of each stratum, strata and ids in the order of the rows."""
    rubric, label = (rows[name].combine_chunks().dictionary_encode() for name in ("rubric", "final_label"))
    codes = rubric.indices.to_numpy().astype(np.int64) * max(len(label.dictionary), 1) + label.indices.to_numpy()
    _, first, places = np.unique(codes, return_index=True, return_inverse=True)
    ids = np.array(rows["receipt_id"].to_pylist(), dtype=object)
    for number in np.argsort(first).tolist():
        row = int(first[number])
        yield stratum_name(rubric[row].as_py(), label[row].as_py()), ids[places == number].tolist()


def _replay(parts: Iterable[Strata], asked: int) -> tuple[set[str], Counter[str]]:
    """Return the ids of a draw over some models, and the strata sizes at the draw."""
    sizes: Counter[str] = Counter()
    first: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for part in parts:
        sizes.update(part.sizes)
        for name, ids in part.first.items():
            first[name] += ids
    given = allocate(sizes, asked)
    return {receipt for name, n in given.items() for _, receipt in sorted(first[name])[:n]}, sizes


def find_draw(run: Run, strata: Mapping[str, Strata]) -> tuple[Coverage, Counter[str]]:
    """Find the models that the audit's sample was drawn from.

    Models may have been added after the draw. So the draw is replayed over the models of each date of `added`, latest
    first, until it gives exactly the audited ids.

    Args:
        run: a run with an audit.
        strata: every model's part in the draw, by slug.

    Returns:
        The models covered and not covered, and the size of each stratum at the draw.

    Raises:
        InputError: the audited ids are not the draw over the models of any date.
    """
    wanted = {receipt for receipt, _ in run.audit or ()}
    added = {m.model: m.added for m in run.manifest.models}
    # Latest first: usually no model was added after the draw.
    for cutoff in sorted(set(added.values()), reverse=True):
        covered = [m for m in run.models if added[m] <= cutoff]
        # Asking for as many rows as were audited gives the same sample as the number that was once asked for
        # (methodology: audit, "The sample").
        drawn, sizes = _replay((strata[m] for m in covered), len(wanted))
        if drawn == wanted:
            return Coverage(tuple(covered), tuple(m for m in run.models if added[m] > cutoff)), sizes
    raise InputError(
        f"{run.folder / 'audit.csv'}: its {len(wanted):,} receipts are not the draw of audit seed "
        f"{run.manifest.seeds.audit} over the models of any date; import the labels of the sheet that was drawn"
    )


def audit_rows(run: Run, strata: Mapping[str, Strata]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Coverage]:
    """Return the rows of the tables `human_audit` and `audit_summary`, and which models the audit covers.

    Args:
        run: a run with an audit.
        strata: every model's part in the draw, by slug.

    Raises:
        InputError: the audited ids are not a draw (`find_draw`).
    """
    coverage, sizes = find_draw(run, strata)
    drawn = {receipt: row for part in strata.values() for receipt, row in part.audited.items()}
    rows = [_row(receipt, human, drawn[receipt], run.bank) for receipt, human in run.audit or ()]
    by_stratum: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        by_stratum[stratum_name(row["rubric"], row["final_label"])].append(row["agrees"])
    found = [
        Audited(name.partition("|")[0], sizes[name], len(said), sum(said)) for name, said in sorted(by_stratum.items())
    ]
    rubrics = sorted({c.rubric for c in run.bank.concepts}, key=str.encode)
    summary = [_summary_row(RUN_WIDE, summarise(found))]
    # A rubric without an audited row is listed as well, with nulls: the gate asks for every rubric.
    summary += [_summary_row(r, summarise([s for s in found if s.rubric == r])) for r in rubrics]
    return sorted(rows, key=lambda row: str(row["receipt_id"])), summary, coverage


def _row(receipt: str, human: str, row: DrawnRow, bank: Bank) -> dict[str, Any]:
    is_score = bank.rubric[row.rubric].scale == "score"
    return {
        "receipt_id": receipt,
        "rubric": row.rubric,
        "final_label": row.final_label,
        "human_label": human,
        "agrees": agrees(row.final_label, human, row.value, is_score=is_score),
    }


def _summary_row(rubric: str, found: AuditSummary) -> dict[str, Any]:
    some = found.n > 0
    return {
        "rubric": rubric,
        "n": found.n,
        "n_agree": found.n_agree,
        "n_effective": found.n_effective if some else None,
        "agreement": found.agreement if some else None,
        "ci_low": found.low if some else None,
        "ci_high": found.high if some else None,
    }
