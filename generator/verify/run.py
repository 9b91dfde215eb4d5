"""Holds the tables that `score RUN` wrote beside a run against a fresh score of it.

See contract: publication, "Verify".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from generator.html.frame import TABLE_KEYS
from generator.runs.reader import Run, read_shard
from generator.schema.errors import InputError
from generator.schema.tables import TABLES
from generator.scoring.run import Scored
from generator.verify.findings import Findings
from generator.verify.tables import check_csv, check_table, csv_form, read_table

SCORES_FOLDER = "scores"
_PLACE = ("concept", "framing", "group", "repeat")


def check_rows(run: Run, findings: Findings) -> None:
    """Find receipts that the plan of a run has and its shards have not: the first of each model by its place.

    A run that says of itself that it is partial, or is of format 1, which does not say, gets a note instead. Of an
    imported run nobody knows what was asked and not handed over.
    """
    for entry in run.manifest.shards if run.manifest.kind != "imported" else ():
        if run.absent[entry.model]:
            there = run.layout.positions(read_shard(run, entry.model, _PLACE))
            first = int(np.setdiff1d(np.arange(run.layout.size), there)[0])
            place = ", ".join(str(part) for part in run.layout.key(first)[1:])
            if run.manifest.partial is False:
                findings.add(entry.file, f"rows, {place}", f"{entry.rows:,} rows", f"{run.layout.size:,} rows")
            else:
                absent = run.layout.size - entry.rows
                findings.notes.append(f"{entry.file}: {absent:,} planned rows are absent, the first: {place}")


def check_run_tables(folder: Path, scored: Scored, findings: Findings) -> None:
    """Check each table below `<run>/scores/`; a run that was never scored there has none, and that is no mismatch."""
    for name, columns in TABLES.items():
        path = folder / SCORES_FOLDER / f"{name}.parquet"
        if not path.is_file():
            continue
        try:
            published = read_table(path)
        except InputError as error:
            findings.faults(line.removeprefix(f"{folder}/") for line in error.faults)
            continue
        label = f"{SCORES_FOLDER}/{name}"
        before = len(findings.mismatches)
        check_table(f"{label}.parquet", published, scored.tables[name], columns, findings, keys=TABLE_KEYS[name])
        if not any(m.key == "columns" for m in findings.mismatches[before:]):
            csv, csv_label = csv_form(folder / SCORES_FOLDER, path.name)
            check_csv(csv, f"{SCORES_FOLDER}/{csv_label}", published, columns, findings)
