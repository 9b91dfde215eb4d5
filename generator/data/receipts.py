"""A model's receipts as published files: Parquet as the harness wrote it, and CSV.

Receipts are published byte for byte as the harness wrote them, so the hashes in its manifest hold here, too. Only a
shard that is too large, holds a withdrawn response or does not say that it is simulated is written anew, and the
manifest says so. One `ReceiptsTask` is one model; files that need not be made again are known from the manifest that
was published with them.

See contract: tables, "Receipts as CSV".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from generator.data.csv_text import csv_columns
from generator.data.table_files import SIZE_LIMIT, DataFile, TableFile, csv_name, part_text, stem_of, write_table
from generator.edition.edition import Edition
from generator.runs.reader import Run, read_written
from generator.runs.redactions import Redacted, Redactions
from generator.schema.canonical import sha256_hex
from generator.schema.columns import Column, receipt_columns
from generator.schema.names import shard_name

TABLE = "receipts"


@dataclasses.dataclass(frozen=True)
class ReceiptsEntry:
    """How a model's receipts were published: `unchanged` means byte for byte the harness's shard."""

    model: str
    files: tuple[str, ...]
    harness_file: str
    harness_sha256: str
    unchanged: bool
    redactions: tuple[Redacted, ...]


@dataclasses.dataclass(frozen=True)
class PublishedReceipts:
    """A model's files on the Data page, Parquet before CSV, and its entry in the manifest."""

    files: tuple[DataFile, ...]
    entry: ReceiptsEntry


@dataclasses.dataclass(frozen=True)
class ReceiptsTask:
    """The receipts of one model as files: where from, where to, and what they say of their run."""

    run: Run
    model: str
    folder: Path
    notes: Mapping[str, str]
    redactions: Redactions


def file_notes(edition: Edition) -> dict[str, str]:
    """Return what every data file says of its run in its own metadata."""
    manifest, licence = edition.run.manifest, edition.site.data_licence
    return {
        "title": f"{edition.site.title}, run {manifest.run_id}",
        "run_id": manifest.run_id,
        "kind": manifest.kind,
        "simulated": "true" if manifest.simulated else "false",
        "standing": edition.standing.state,
        "bank_version": manifest.bank_version,
        "bank_sha256": manifest.bank_sha256,
        "harness_sha": manifest.harness_sha,
        "licence": licence.url,
        **({"license": licence.spdx} if licence.spdx else {}),
    }


def receipts_task(edition: Edition, model: str, folder: Path) -> ReceiptsTask:
    """Return the task that writes a model's receipts below the data folder."""
    notes = {**file_notes(edition), "table": TABLE, "model": model, "format": str(edition.run.manifest.format)}
    return ReceiptsTask(edition.run, model, folder, notes, edition.redactions)


def write_receipt_files(task: ReceiptsTask) -> PublishedReceipts:
    """Write a model's receipts as Parquet and CSV, in one part or several."""
    path = task.run.shard_path(task.model)
    original = path.read_bytes()
    shard, columns = read_written(task.run, task.model), receipt_columns(task.run.manifest.format)
    redactions = task.redactions.listed(shard)
    marked = not task.run.manifest.simulated or (pq.read_schema(path).metadata or {}).get(b"simulated") == b"true"
    keep = original if marked and not redactions else None
    item = TableFile(_stem(task.model), _description(task.model), columns, task.redactions.apply(shard), TABLE)
    files = write_table(task.folder, item, task.notes, parquet=keep, limit=SIZE_LIMIT)
    digest = sha256_hex(original)
    names = tuple(f.name for f in files if f.ending == "parquet")
    unchanged = [f.sha256 for f in files if f.ending == "parquet"] == [digest]
    source = next(s.file for s in task.run.manifest.shards if s.model == task.model)
    return PublishedReceipts(files, ReceiptsEntry(task.model, names, source, digest, unchanged, redactions))


def published_receipts(manifest: Mapping[str, Any], model: str) -> PublishedReceipts:
    """Return what a published `manifest.json` says of a model's receipts; raises KeyError when it has none of it."""
    found = next((entry for entry in manifest["receipts"] if entry["model"] == model), None)
    if found is None:
        raise KeyError(model)
    entry = ReceiptsEntry(
        **{**found, "files": tuple(found["files"]), "redactions": tuple(Redacted(**r) for r in found["redactions"])}
    )
    listed = {file["name"]: file for file in manifest["files"]}
    columns = receipt_columns(manifest["run"].get("format", 1))
    names = [name for parquet in entry.files for name in (parquet, csv_name(parquet))]
    return PublishedReceipts(tuple(_published(model, listed[name], columns) for name in names), entry)


def _published(model: str, entry: Mapping[str, Any], columns: tuple[Column, ...]) -> DataFile:
    ending = entry["name"].rpartition(".")[2]
    part = stem_of(entry["name"]).removeprefix(_stem(model)).removeprefix("__")
    return DataFile(
        name=entry["name"],
        description=part_text(_description(model), part),
        bytes=entry["bytes"],
        sha256=entry["sha256"],
        rows=entry["rows"],
        fields=columns if ending == "parquet" else csv_columns(columns),
        table=TABLE,
        part=part,
    )


def _stem(model: str) -> str:
    return f"receipts/{shard_name(model)}"


def _description(model: str) -> str:
    return f"Every response of {model} with its votes."
