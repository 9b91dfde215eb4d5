"""The human audit of a run: the draw replayed, models that it covers, agreement by rubric.

See methodology: audit, "Agreement of people and panel".
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from generator.runs.reader import Run
from generator.schema.audit_draw import allocate, auditable, draw_order, stratum_name
from generator.schema.bank import Bank
from generator.schema.errors import InputError
from generator.schema.tables import RUN_WIDE
from generator.stats.audit import Audited, AuditSummary, agrees, summarise


@dataclass(frozen=True)
class Coverage:
    """Which models the human audit covers: the others were added after the draw."""

    covered: tuple[str, ...]
    not_covered: tuple[str, ...]


@dataclass(frozen=True)
class DrawnRow:
    """What an audited receipt says: its rubric, final label and value."""

    rubric: str
    final_label: str
    value: float | None


@dataclass
class Strata:
    """One model's part in the draw: rows by stratum, and of each stratum the ids that a draw could reach.

    A draw of `asked` rows takes at most max(asked, 100, floors) from a stratum, smallest hash first; keeping as many of
    each model is enough, whatever the number of its rows.
    """

    sizes: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    audited: dict[str, DrawnRow] = field(default_factory=dict)


def strata_of(run: Run, table: pa.Table) -> Strata:
    """Return a shard's part in the draw; `table` has receipt_id, rubric, final_label, status, value, votes."""
    found = Strata()
    labels = dict(run.audit or ())
    ids = defaultdict(list)
    columns = (table[c].to_pylist() for c in ("receipt_id", "rubric", "final_label", "status", "value"))
    n_votes = table["votes"].combine_chunks().value_lengths().to_pylist()
    for receipt, rubric, label, status, value, votes in zip(*columns, n_votes, strict=True):
        if auditable(status, votes):
            ids[stratum_name(rubric, label)].append(receipt)
            if receipt in labels:
                found.audited[receipt] = DrawnRow(rubric, label, value)
    seed = run.manifest.seeds.audit
    for name, receipts in ids.items():
        found.sizes[name] = len(receipts)
        found.first[name] = heapq.nsmallest(len(labels), ((draw_order(seed, r), r) for r in receipts))
    return found


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
    """Return the models that the audit's draw was made from and its strata sizes.

    Models come in by the `added` dates of the manifest; the draw is the cutoff whose replay gives exactly the audited
    ids. Raises InputError where none does.
    """
    wanted = {receipt for receipt, _ in run.audit or ()}
    added = {m.model: m.added for m in run.manifest.models}
    for cutoff in sorted(set(added.values()), reverse=True):
        covered = [m for m in run.models if added[m] <= cutoff]
        drawn, sizes = _replay((strata[m] for m in covered), len(wanted))
        if drawn == wanted:
            return Coverage(tuple(covered), tuple(m for m in run.models if added[m] > cutoff)), sizes
    raise InputError(
        f"{run.folder / 'audit.csv'}: its {len(wanted):,} receipts are not the draw of audit seed "
        f"{run.manifest.seeds.audit} over the models of any date; import the labels of the sheet that was drawn"
    )


def audit_rows(run: Run, strata: Mapping[str, Strata]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Coverage]:
    """Return the rows of `human_audit` and `audit_summary`, and the coverage."""
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
