"""The files of the Data page: all that an auditor needs, written once an edition, each with its hash.

See contract: publication, "Data files".
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from generator.data import citation, croissant, data_card, datapackage, dictionary, notebooks, ro_crate
from generator.data import every_eval_ever as every_eval
from generator.data.data_manifest import ADDRESS, FORMAT
from generator.data.receipts import (
    PublishedReceipts,
    ReceiptsEntry,
    file_notes,
    receipts_task,
    write_receipt_files,
)
from generator.data.table_files import (
    SIZE_LIMIT,
    DataFile,
    TableFile,
    sha256sums,
    weight_columns,
    write_bytes,
    write_table,
)
from generator.edition.edition import Edition
from generator.schema.tables import RUN_WIDE, TABLES
from generator.scoring.reasons import published_reasons

RECOMPUTE = Path(__file__).parent.parent / "recompute"
# Not named in manifest.json: itself, and what is written from it.
MANIFEST, SUMS = "manifest.json", "SHA256SUMS"
SIGNATURE = "manifest.json.sig"  # only where the publisher signs; it names nothing and nothing names it


def write_downloads(
    edition: Edition, folder: Path, receipts: Sequence[PublishedReceipts] | None = None
) -> tuple[DataFile, ...]:
    """Write every file of the Data page except its index.html below `folder`; returns them in the page's order.

    `receipts`: the models' receipts in the order of the run's models, where they stand in `folder` already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files: list[DataFile] = []
    for name in TABLES:
        files.extend(_write_table(edition, folder, name))
    if receipts is None:
        receipts = [write_receipt_files(receipts_task(edition, model, folder)) for model in edition.run.models]
    files.extend(file for found in receipts for file in found.files)
    for attribute in sorted(edition.scored.weights, key=str.encode):
        files.extend(_write_weights(edition, folder, attribute))
    files.extend(_write_copies(edition, folder))
    files.extend(_write_records(edition, folder))
    files.extend(_write_notebooks(edition, folder))
    files.extend(_write_descriptions(edition, folder, tuple(files)))
    manifest = data_manifest(edition, files, [found.entry for found in receipts])
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n"
    files.append(write_bytes(folder, MANIFEST, text.encode(), dictionary.FILE_NOTES[MANIFEST]))
    files.append(write_bytes(folder, SUMS, sha256sums(files), dictionary.FILE_NOTES[SUMS]))
    return tuple(files)


def manifest_sha256(files: Sequence[DataFile]) -> str:
    """Return the hash of manifest.json, which pins the whole publication."""
    return next(f.sha256 for f in files if f.name == MANIFEST)


def _write_table(edition: Edition, folder: Path, name: str) -> tuple[DataFile, ...]:
    item = TableFile(name, dictionary.TABLE_NOTES[name], TABLES[name], edition.scored.tables[name], name)
    return write_table(folder, item, {**file_notes(edition), "table": name}, limit=SIZE_LIMIT)


def _write_weights(edition: Edition, folder: Path, attribute: str) -> tuple[DataFile, ...]:
    counts = edition.scored.weights[attribute]
    concepts = weight_concepts(edition, attribute)
    columns = weight_columns(concepts)
    rows = pa.table({name: pa.array(counts[:, i], pa.uint8()) for i, name in enumerate(concepts)})
    about = f"Bootstrap counts of {attribute}: one row a resample, one column a concept."
    item = TableFile(f"bootstrap_weights/{attribute}", about, columns, rows, "bootstrap_weights")
    return write_table(folder, item, {**file_notes(edition), "table": "bootstrap_weights", "attribute": attribute})


def weight_concepts(edition: Edition, attribute: str) -> tuple[str, ...]:
    """Return the concepts behind an attribute's weights, sorted as bytes, two_sided left out.

    See contract: tables, "Bootstrap weights".
    """
    return tuple(c.id for c in edition.run.bank.concepts_of(attribute))


def _write_copies(edition: Edition, folder: Path) -> tuple[DataFile, ...]:
    """Publish the harness's manifest, the pinned bank and the recompute programs as they are."""
    run = edition.run.folder
    sources = {"run_manifest.json": run / "manifest.json", "bank.json": run / "bank.json"}
    sources |= {p.name: p for p in sorted(RECOMPUTE.glob("recompute.*"))}
    return tuple(
        write_bytes(folder, name, path.read_bytes(), dictionary.FILE_NOTES[name]) for name, path in sources.items()
    )


def _write_records(edition: Edition, folder: Path) -> tuple[DataFile, ...]:
    """Write one Every Eval Ever record a model, and how to cite the run."""
    files = [
        write_bytes(folder, name, data, f"Scores of {model} as an Every Eval Ever record.", table="every_eval_ever")
        for model, name, data in every_eval.records(edition)
    ]
    files.append(write_bytes(folder, "CITATION.cff", citation.cff(edition), dictionary.FILE_NOTES["CITATION.cff"]))
    files.append(write_bytes(folder, "citation.bib", citation.bibtex(edition), dictionary.FILE_NOTES["citation.bib"]))
    return tuple(files)


def _write_notebooks(edition: Edition, folder: Path) -> tuple[DataFile, ...]:
    return tuple(
        write_bytes(folder, book.name, book.data, f"Jupyter notebook: {book.heading}", table=notebooks.BELOW)
        for book in notebooks.notebooks(edition)
    )


def _write_descriptions(edition: Edition, folder: Path, files: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
    """Write what describes the files written so far."""
    makers: dict[str, Callable[[Edition, tuple[DataFile, ...]], bytes]] = {
        "DATA_DICTIONARY.html": dictionary.render_dictionary,
        "datapackage.json": datapackage.descriptor,
        "croissant.json": croissant.descriptor,
        data_card.NAME: data_card.card,
    }
    written = tuple(
        write_bytes(folder, name, make(edition, files), dictionary.FILE_NOTES[name]) for name, make in makers.items()
    )
    crate = ro_crate.metadata(edition, (*files, *written))
    return (*written, write_bytes(folder, ro_crate.NAME, crate, dictionary.FILE_NOTES[ro_crate.NAME]))


def data_manifest(edition: Edition, files: Sequence[DataFile], receipts: Sequence[ReceiptsEntry]) -> dict[str, Any]:
    """Return the generator's `manifest.json`: the harness's manifest, what this publication adds, every file's hash."""
    scored, standing = edition.scored, edition.standing
    agreement = [row for row in scored.tables["agreement"].to_pylist() if row["vendor"] == RUN_WIDE]
    return {
        "$schema": ADDRESS,
        "format": FORMAT,
        "generator_version": version("aibiasbench"),
        "run": json.loads((edition.run.folder / "manifest.json").read_bytes()),
        "simulated": edition.simulated,
        "standing": standing.state,
        "reasons": published_reasons(standing.reasons),
        "withheld": sorted(scored.withheld),
        "resamples": next((len(w) for w in scored.weights.values()), 0),
        "roles": edition.run.bank.roles.as_published(),
        "mean_band": scored.mean_band,
        "gate": [{key: row[key] for key in ("rubric", "gate", "warning", "kappa", "pabak")} for row in agreement],
        "audit": scored.tables["audit_summary"].to_pylist(),
        "audit_coverage": dataclasses.asdict(scored.coverage) if scored.coverage else None,
        "receipts": [dataclasses.asdict(entry) for entry in receipts],
        "licence": edition.site.data_licence.model_dump(),
        "files": [_file_entry(f) for f in sorted(files, key=lambda f: f.name.encode())],
    }


def _file_entry(file: DataFile) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": file.name, "bytes": file.bytes, "sha256": file.sha256}
    if file.rows is not None:
        entry |= {"rows": file.rows, "columns": file.columns}
    return entry
