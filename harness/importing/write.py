"""Writes an imported run: every shard aside, then bank and manifest, so that a folder never holds half of an import.

See contract: run-folder, "Files of a run".
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.schema.bank import Bank, load_bank
from generator.schema.canonical import sha256_hex
from generator.schema.columns import LATEST_FORMAT
from generator.schema.errors import InputError, raise_faults
from generator.schema.layout import Layout
from generator.schema.manifest import load_manifest
from generator.schema.names import shard_name
from generator.schema.panel import Judges, declared_panel
from generator.schema.parquet_files import SHARD
from generator.schema.places import schema_address
from generator.schema.verdict import STATUSES
from harness.importing.import_map import ImportMap
from harness.importing.rows import ImportedRow, ImportedRows
from harness.importing.to_receipts import LeftOut, RunNames, receipts_of
from harness.stages.receipts import BANK, MANIFEST, RECEIPTS, aside, shard_bytes, take_place, write_aside

_ENDPOINT = "imported"


@dataclass(frozen=True)
class ImportedRun:
    """A whole import before it is written."""

    run_id: str
    given: ImportMap
    found: ImportedRows
    bank: Bank
    harness_sha: str

    @property
    def judges(self) -> Judges:
        """The judges of the source in panel order."""
        ordered = self.given.ordered_judges
        third = next((judge.model for judge in ordered if judge.tiebreak), None)
        return Judges(primary=tuple(j.model for j in ordered if not j.tiebreak), tiebreak=third)

    @property
    def repeats(self) -> int:
        """How often each prompt was asked, at most."""
        return max(row.repeat for row in self.found.rows) + 1

    @property
    def not_done(self) -> list[str]:
        """The steps of the method that the collection lacks, in the manifest's words."""
        steps = {
            "masking": not self.given.run.masked,
            "second_judge": len(self.given.judges) < 2,
            "repeats": self.repeats == 1,
            "audit": True,
        }
        return [name for name, lacking in steps.items() if lacking]

    def by_model(self) -> Iterator[tuple[str, list[ImportedRow]]]:
        """Yield the rows of each model in the order of a shard, models by their bytes."""
        ordered = sorted(self.found.rows, key=_order)
        for model, rows in itertools.groupby(ordered, key=lambda row: row.model):
            yield model, list(rows)


def _order(row: ImportedRow) -> tuple[bytes, bytes, bytes, bytes, bytes, int]:
    names = (row.model, row.attribute, row.concept, row.framing, row.group)
    model, attribute, concept, framing, group = (name.encode() for name in names)
    return model, attribute, concept, framing, group, row.repeat


@dataclass(frozen=True)
class WrittenImport:
    """What was written: rows by status, rows by model, labels that no receipt holds."""

    counts: Counter[str]
    rows: dict[str, int]
    left_out: Counter[str]


def check_import(item: ImportedRun) -> None:
    """Hold an import against what every reader of a run asks of it, so that nothing is written that none could read.

    Raises InputError where a text of the bank holds a control character, or the plan has more rows than a shard may.
    """
    load_bank(json.loads(item.bank.snapshot()), "the bank of this import")
    raise_faults([f"the plan of this import: {fault}" for fault in Layout(item.bank, item.repeats).faults])


def write_import(folder: Path, item: ImportedRun) -> WrittenImport:
    """Write the run folder; an earlier import in it is replaced whole.

    Raises InputError where a model's answers are more than a shard may hold; nothing is put in place then.
    """
    names = RunNames(item.run_id, item.bank, item.harness_sha, item.judges, item.given.run.matched_by)
    left_out, counts = LeftOut(), Counter(dict.fromkeys(STATUSES, 0))
    shards: list[dict[str, Any]] = []
    spend = 0.0
    files: list[Path] = []
    try:
        for model, rows in item.by_model():
            _check_size(model, rows)
            made = list(receipts_of(rows, names, left_out))
            counts.update(row["status"] for row in made)
            spend += sum(row["cost_usd"] for row in made)
            name = f"{RECEIPTS}/{shard_name(model)}.parquet"
            data = shard_bytes(made)
            files.append(folder / name)
            write_aside(folder / name, data)
            shards.append({"file": name, "model": model, "rows": len(made), "sha256": sha256_hex(data)})
        manifest = _manifest(item, shards, counts, spend)
        load_manifest(manifest, "the manifest of this import")
        text = json.dumps(manifest, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)
        last = {folder / BANK: item.bank.snapshot(), folder / MANIFEST: f"{text}\n".encode()}
        for path, content in last.items():
            files.append(path)
            write_aside(path, content)
        _put(folder, files)
    finally:
        for path in files:
            aside(path).unlink(missing_ok=True)
    return WrittenImport(counts, {shard["model"]: shard["rows"] for shard in shards}, left_out.counts)


def _put(folder: Path, files: Sequence[Path]) -> None:
    """Let all files take their places, the manifest last; shards of models that are gone fall away."""
    (folder / MANIFEST).unlink(missing_ok=True)
    for path in (folder / RECEIPTS).glob("*.parquet"):
        if path not in files:
            path.unlink()
    for path in files:
        take_place(path)


def _check_size(model: str, rows: Sequence[ImportedRow]) -> None:
    texts = sum(len(text.encode()) for row in rows for text in (row.prompt, row.response) if text)
    if len(rows) > SHARD.rows or texts > SHARD.unpacked // 2:
        most = f"at most {SHARD.rows:,} rows and {SHARD.unpacked // 2:,} bytes of text are taken of one model"
        raise InputError(f"model {model}: {len(rows):,} rows with {texts:,} bytes of text; {most}")


def _manifest(item: ImportedRun, shards: list[dict[str, Any]], counts: Counter[str], spend: float) -> dict[str, Any]:
    run, bank, panel = item.given.run, item.bank, declared_panel(item.judges).model_dump(mode="json")
    texts = item.found.names.texts["model"]
    # A draw of its own for each import, and the same one for the same import.
    seed = int(bank.sha256[:8], 16)
    return {
        "$schema": schema_address(f"run-manifest.{LATEST_FORMAT}.schema.json"),
        "format": LATEST_FORMAT,
        "run_id": item.run_id,
        "kind": "imported",
        "imported": {
            "collected_by": run.collected_by,
            "source": run.source,
            "matched_by": run.matched_by,
            "not_done": item.not_done,
        },
        "planted": None,
        "partial": None,
        "date": run.date.isoformat(),
        "bank_version": bank.version,
        "bank_sha256": bank.sha256,
        "repeats": item.repeats,
        "seeds": {"run": seed, "audit": seed},
        "harness_sha": item.harness_sha,
        "judges": item.judges.model_dump(mode="json"),
        "supersedes": None,
        "models": [
            {
                "model": shard["model"],
                "api_model": texts[shard["model"]],
                "endpoint": _ENDPOINT,
                "params": {},
                "added": run.date.isoformat(),
                "panel": panel,
                "successor_of": None,
                "from_cache": None,
            }
            for shard in shards
        ],
        "spend": {"subjects_usd": spend, "judges_usd": 0.0, "total_usd": spend},
        "counts": dict(counts),
        "shards": shards,
    }
