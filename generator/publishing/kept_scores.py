"""The scores of a run, kept from one publish to the next: known by the hash of all that they are made from.

A changed style sheet, template or sentence renders pages again and scores nothing. Beside the drawn charts a file a run
holds the scores of the last time; one that is absent, damaged or of other inputs is made anew.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from generator.machine.kept_files import kept_bytes
from generator.publishing.fingerprints import text_hash
from generator.runs.reader import Run
from generator.scoring.audit import Coverage
from generator.scoring.run import Scored

_FACTS = "facts.json"


def kept_scored(run: Run, withheld: frozenset[str], code: str, folder: Path, make: Callable[[], Scored]) -> Scored:
    """Return a run's scores as this very code made them of the same receipts before, or make and keep them.

    `code` is the hash of the source and its libraries; receipts, bank and audit count by their content.
    """
    manifest = json.dumps(run.manifest.model_dump(mode="json"), sort_keys=True)  # with the SHA-256 of every shard
    key = text_hash(code, manifest, repr(run.audit), repr(sorted(withheld)))
    file = folder / f"{run.manifest.run_id}{'-in-part' if withheld else ''}.zip"
    known = kept_bytes(file, key, lambda: _packed(make()))
    # Unpacked in either case: what a page is made from is the same object whether the scores were kept or not.
    return _unpacked(known)


def _packed(scored: Scored) -> bytes:
    """Return scores as one file: Arrow and NumPy hold every value as it is, and nothing in it can run."""
    coverage = scored.coverage and [scored.coverage.covered, scored.coverage.not_covered]
    facts = {
        "run_id": scored.run_id,
        "mean_band": scored.mean_band,
        "coverage": coverage,
        "withheld": sorted(scored.withheld),
        "tables": list(scored.tables),
        "weights": list(scored.weights),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(_FACTS, json.dumps(facts, allow_nan=False))
        for name, table in scored.tables.items():
            with archive.open(f"{name}.arrow", "w") as file, pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table.combine_chunks())
        for name, counts in scored.weights.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.save(file, counts, allow_pickle=False)
    return out.getvalue()


def _unpacked(data: bytes) -> Scored:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        facts = json.loads(archive.read(_FACTS))
        tables = {name: pa.ipc.open_stream(archive.read(f"{name}.arrow")).read_all() for name in facts["tables"]}
        weights = {
            name: np.load(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False) for name in facts["weights"]
        }
    coverage = facts["coverage"] and Coverage(*(tuple(models) for models in facts["coverage"]))
    withheld = frozenset(facts["withheld"])
    return Scored(facts["run_id"], tables, weights, facts["mean_band"], coverage or None, withheld)
