"""Reads a run folder as the harness hands it over, and checks all of it before any work.

Shards are read by a few threads, one each, and never kept, so memory is that of a few shards. Absent rows are counted.
Everything else that is wrong raises one `InputError` with every fault found.

See contract: run-folder, "What a reader checks".
"""

from __future__ import annotations

import csv
import functools
import io
import os
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from generator.runs.row_checks import RowExpectations, check_columns, check_rows
from generator.schema.bank import REFUSAL, SLOT, Bank, read_bank
from generator.schema.bounded_files import AUDIT_LABELS, read_bytes, read_text
from generator.schema.canonical import canonical_json, sha256_hex
from generator.schema.columns import LATEST_FORMAT, as_latest, receipt_columns
from generator.schema.errors import InputError, raise_faults
from generator.schema.layout import Layout
from generator.schema.manifest import Manifest, ShardEntry, read_manifest
from generator.schema.names import item_id_fault, model_fault, shard_name, simulated
from generator.schema.panel import declared_panel, effective_panel
from generator.schema.parquet_files import SHARD, read_parquet
from generator.schema.verdict import STATUSES

AuditLabels = tuple[tuple[str, str], ...]
AUDIT_HEADER = ["receipt_id", "label"]
_THREADS = 4


@dataclass(frozen=True)
class Run:
    """A run whose every file has been checked.

    Attributes:
        folder: the run folder.
        manifest: its manifest.json.
        bank: its bank.json, the pinned snapshot.
        audit: (receipt id, label) pairs of audit.csv, in its order; None without that file.
        absent: planned rows that a model's shard lacks, by slug; every model is listed.
    """

    folder: Path
    manifest: Manifest
    bank: Bank
    audit: AuditLabels | None
    absent: dict[str, int]

    @property
    def models(self) -> tuple[str, ...]:
        """The slugs of all models in byte order, the order of every published table."""
        return tuple(sorted((m.model for m in self.manifest.models), key=str.encode))

    @cached_property
    def layout(self) -> Layout:
        """Where each planned row stands in a model's shard (contract: receipts, "Order of rows")."""
        return Layout(self.bank, self.manifest.repeats)

    def shard_path(self, model: str) -> Path:
        """Return where a model's receipts lie; the shard need not exist."""
        return self.folder / _shard_file(model)


def _shard_file(model: str) -> str:
    return f"receipts/{shard_name(model)}.parquet"


def read_shard(run: Run, model: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a model's receipts in the columns of the latest format; what the run's own format lacks is null.

    Rows stand in canonical order, because `load_run` takes no other.

    Args:
        run: the run as read and checked.
        model: slug of the model.
        columns: the columns wanted; all without it.
    """
    if run.manifest.format == LATEST_FORMAT:
        return _columns(run, model, columns)
    own = {column.name for column in receipt_columns(run.manifest.format)}
    found = _columns(run, model, None if columns is None else [name for name in columns if name in own])
    return as_latest(found, columns)


def read_written(run: Run, model: str) -> pa.Table:
    """Return a model's receipts as they were written, in the columns of the run's own format.

    For whoever copies or hashes them; `read_shard` suits all other readers.
    """
    return _columns(run, model, None)


def _columns(run: Run, model: str, columns: Sequence[str] | None) -> pa.Table:
    wanted = None if columns is None else list(columns)
    return pq.read_table(run.shard_path(model), columns=wanted, partitioning=None).combine_chunks()


def shard_key(manifest: Manifest, entry: ShardEntry) -> str:
    """Return a hash of all that the checks of one shard depend on: its bytes, and what the manifest says of it.

    A shard with a known key need not be checked again.
    """
    # Other shards, the counts and the money do not bear on the checks of this one.
    common = manifest.model_dump(mode="json", exclude={"shards", "counts", "spend", "models"})
    own = [manifest.model(entry.model).model_dump(mode="json"), entry.model_dump(mode="json")]
    return sha256_hex(canonical_json([common, *own]))


def shard_keys(manifest: Manifest) -> list[str]:
    """Return the keys of all shards, in the order of the manifest; see `shard_key`."""
    return [shard_key(manifest, entry) for entry in manifest.shards]


# Applies a task to every model's slug and returns the results in the same order.
Each = Callable[[Callable[[str], Any], Sequence[str]], list[Any]]


def load_run(folder: Path, *, checked: Container[str] = frozenset(), each: Each | None = None) -> Run:
    """Read and check a run folder.

    Args:
        folder: the run folder.
        checked: keys (`shard_key`) of shards whose rows this very code has checked before. Of those, only hash and
            number of rows are held against the manifest again.
        each: checks the shards elsewhere, in other processes for example; results in the order of the slugs.

    Raises:
        InputError: every fault found, each with its file, row and column.
    """
    manifest = read_manifest(folder / "manifest.json")
    bank = read_bank(folder / "bank.json")
    # Shards are checked against manifest and bank, so these two must hold before a row is looked at.
    raise_faults([*_bank_faults(manifest, bank, folder), *_manifest_faults(manifest, folder)])
    plan = RowExpectations(manifest, bank, Layout(bank, manifest.repeats))
    raise_faults([f"{folder / 'manifest.json'}: {fault}" for fault in plan.layout.faults])
    audit = read_audit(folder / "audit.csv")
    wanted = frozenset(receipt for receipt, _ in audit or ())
    entries = {entry.model: entry for entry in sorted(manifest.shards, key=lambda e: e.model.encode())}
    known = frozenset(model for model, entry in entries.items() if shard_key(manifest, entry) in checked)
    # A partial of a function at module level, so that it can be sent to another process.
    task = functools.partial(_check_shard, folder, entries, plan, wanted, known)
    shards: list[_Checked] = (each or in_threads)(task, list(entries))
    raise_faults([fault for shard in shards for fault in shard.faults])
    counts = sum((shard.counts for shard in shards), Counter[str]())
    audited = {receipt: row for shard in shards for receipt, row in shard.audited.items()}
    raise_faults([*_count_faults(counts, manifest, folder), *_audit_faults(audit, audited, bank, folder / "audit.csv")])
    return Run(
        folder, manifest, bank, audit, {model: plan.layout.size - entry.rows for model, entry in entries.items()}
    )


def in_threads(task: Callable[[str], Any], slugs: Sequence[str]) -> list[Any]:
    """Apply a task to every slug in a few threads of this process; results in the order of the slugs."""
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
        return list(pool.map(task, slugs))


@dataclass(frozen=True)
class _Checked:
    """What is kept of a checked shard: its faults, rows by status, (rubric, status) of audited rows by receipt id."""

    faults: tuple[str, ...]
    counts: Counter[str] = field(default_factory=Counter)
    audited: dict[str, tuple[str, str]] = field(default_factory=dict)


_COUNTED = ("receipt_id", "rubric", "status")


def _check_shard(
    folder: Path,
    entries: Mapping[str, ShardEntry],
    plan: RowExpectations,
    wanted: frozenset[str],
    known: frozenset[str],
    slug: str,
) -> _Checked:
    entry, faults = entries[slug], list[str]()
    path = folder / entry.file
    table = _read_whole(path, entry, faults, _COUNTED if slug in known else None)
    if table is None:
        return _Checked(tuple(faults))
    if slug not in known:
        # Columns first: rows of a shard that lacks a column cannot be checked.
        faults += check_columns(table, plan.manifest, str(path)) or check_rows(as_latest(table), slug, plan, str(path))
    if faults:
        return _Checked(tuple(faults))
    counts = Counter({s["values"]: s["counts"] for s in table["status"].value_counts().to_pylist()})
    return _Checked((), counts, _audited(table, wanted))


def _bank_faults(manifest: Manifest, bank: Bank, folder: Path) -> list[str]:
    """Return what is wrong with the bank: another one than the manifest pins, or references that lead nowhere."""
    where = folder / "bank.json"
    faults = []
    if bank.sha256 != manifest.bank_sha256:
        faults.append(f"{where}: hashes to {bank.sha256}; the manifest pins {manifest.bank_sha256}")
    if bank.version != manifest.bank_version:
        faults.append(f"{where}: version {bank.version!r}; the manifest pins {manifest.bank_version!r}")
    groups = [g.id for a in bank.attributes for g in a.groups]
    concepts = [c.id for c in bank.concepts]
    # Ids become parts of paths and addresses, so they are held to the grammar of names.
    names = [
        *(a.id for a in bank.attributes),
        *groups,
        *concepts,
        *(r.id for r in bank.rubrics),
        *bank.framings,
        *bank.categories,
    ]
    faults += [f"{where}: {fault}" for fault in (item_id_fault(name) for name in dict.fromkeys(names)) if fault]
    lists = {"framing": list(bank.framings)}
    lists |= {"attribute": [a.id for a in bank.attributes], "concept": concepts, "rubric": [r.id for r in bank.rubrics]}
    lists |= {f"group of {a.id}": [g.id for g in a.groups] for a in bank.attributes}
    for kind, ids in lists.items():
        faults += [f"{where}: {kind} {name!r} stands twice" for name, n in Counter(ids).items() if n > 1]
    for concept in bank.concepts:
        place = f"{where}: concept {concept.id}"
        if concept.attribute not in bank.attribute:
            faults.append(f"{place}: unknown attribute {concept.attribute!r}")
        if concept.rubric not in bank.rubric:
            faults.append(f"{place}: unknown rubric {concept.rubric!r}")
        if any(template.count(SLOT) != 1 for template in concept.framings.values()):
            faults.append(f"{place}: a template needs exactly one {SLOT}")
    return faults


def _manifest_faults(manifest: Manifest, folder: Path) -> list[str]:
    """Return what is wrong with shard list, vendors and panels of the manifest."""
    where = folder / "manifest.json"
    listed = [m.model for m in manifest.models]
    shards = [s.model for s in manifest.shards]
    faults = [f"model {m} has no shard" for m in listed if m not in shards]
    faults += [
        f"shard {s.file} is of {s.model}, which the manifest does not list"
        for s in manifest.shards
        if s.model not in listed
    ]
    faults += [f"model {m} has two shards" for m, n in Counter(shards).items() if n > 1]
    faults += [
        f"shard of {s.model} is {s.file!r}; it is {_shard_file(s.model)!r}"
        for s in manifest.shards
        if s.file != _shard_file(s.model)
    ]
    judges = manifest.judges.all
    faults += [fault for fault in map(model_fault, judges) if fault]
    for slug in (*listed, *judges):
        if simulated(slug) != manifest.simulated:
            rule = "begin" if manifest.simulated else "do not begin"
            faults.append(f"{slug} in a {manifest.kind} run: vendors of a {manifest.kind} run {rule} with sim-")
    if not faults:
        for model in manifest.models:
            own = manifest.kind == "imported"
            right = declared_panel(manifest.judges) if own else effective_panel(model.model, manifest.judges)
            if model.panel != right:
                faults.append(f"model {model.model}: panel {model.panel}; the judges of the run give {right}")
    # A shard that the manifest does not list may be what is left of another run.
    extra = sorted(
        p.name
        for p in (folder / "receipts").glob("*.parquet")
        if f"receipts/{p.name}" not in {s.file for s in manifest.shards}
    )
    faults += [f"receipts/{name} is not in the list of shards; remove it or write the manifest anew" for name in extra]
    return [f"{where}: {fault}" for fault in faults]


def _read_whole(
    path: Path, entry: ShardEntry, faults: list[str], columns: Sequence[str] | None = None
) -> pa.Table | None:
    """Read a shard and check its hash and number of rows; None, with the fault noted, where it cannot be used."""
    try:
        data = read_bytes(path, SHARD.file)
    except FileNotFoundError:
        faults.append(f"{path}: cannot be read: no such file; the manifest lists it")
        return None
    except InputError as error:
        faults += error.faults
        return None
    # The very bytes that are parsed are hashed; the file is not opened twice.
    seen = sha256_hex(data)
    if seen != entry.sha256:
        faults.append(
            f"{path}: SHA-256 is {seen}; the manifest says {entry.sha256}: the file was changed after the run"
        )
        return None
    try:
        table = read_parquet(data, str(path), columns)
    except InputError as error:
        faults += error.faults
        return None
    if table.num_rows != entry.rows:
        faults.append(f"{path}: {table.num_rows:,} rows; the manifest says {entry.rows:,}")
    return table


def _count_faults(counts: Counter[str], manifest: Manifest, folder: Path) -> list[str]:
    told = manifest.counts.model_dump()
    return [
        f"{folder / 'manifest.json'}: counts.{status} is {told[status]:,}; the shards hold {counts[status]:,}"
        for status in STATUSES
        if told[status] != counts[status]
    ]


def read_audit(path: Path) -> AuditLabels | None:
    """Read `audit.csv` (contract: run-folder, "audit.csv").

    Returns:
        (receipt id, label) pairs in the order of the file; None where there is no file.

    Raises:
        InputError: it is not UTF-8 or CSV, has another header, no label, or a line without exactly two cells.
    """
    try:
        text = read_text(path, AUDIT_LABELS)
    except FileNotFoundError:
        return None
    try:
        rows = list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise InputError(f"{path}: not CSV: {error}") from None
    if not rows or rows[0] != AUDIT_HEADER:
        raise InputError(f"{path}: the first line is {','.join(rows[0]) if rows else ''!r}; it is receipt_id,label")
    if len(rows) == 1:
        raise InputError(f"{path}: holds no label; take labels in with `aibiasbench audit import`, or remove the file")
    raise_faults(
        [f"{path}: line {i}: {len(row)} cells; there are two" for i, row in enumerate(rows[1:], 2) if len(row) != 2]
    )
    return tuple((row[0], row[1]) for row in rows[1:])


def _audited(table: pa.Table, wanted: frozenset[str]) -> dict[str, tuple[str, str]]:
    """Return (rubric, status) of the rows that the audit names."""
    if not wanted:
        return {}
    rows = zip(*(table[c].to_pylist() for c in _COUNTED), strict=True)
    return {receipt: (rubric, status) for receipt, rubric, status in rows if receipt in wanted}


def _audit_faults(audit: AuditLabels | None, rows: dict[str, tuple[str, str]], bank: Bank, path: Path) -> list[str]:
    faults = []
    for receipt, n in Counter(r for r, _ in audit or ()).items():
        if n > 1:
            faults.append(f"{path}: duplicate receipt {receipt} ({n:,} rows)")
    for line, (receipt, label) in enumerate(audit or (), 2):
        if receipt not in rows:
            faults.append(f"{path}: line {line}: the run has no receipt {receipt!r}")
            continue
        rubric = bank.rubric[rows[receipt][0]]
        if label != REFUSAL and not (_is_score(label) if rubric.scale == "score" else label in rubric.names):
            allowed = "0 to 100" if rubric.scale == "score" else ", ".join(rubric.names)
            faults.append(f"{path}: line {line}: label {label!r}; {rubric.id} allows {allowed}, {REFUSAL}")
    return faults


def _is_score(text: str) -> bool:
    # isdigit alone takes digits of other scripts.
    return text.isascii() and text.isdigit() and int(text) <= 100
