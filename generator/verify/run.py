"""Holds the tables that `score RUN` wrote beside a run against a fresh score of it.

See contract: publication, "Verify".
"""

from __future__ import annotations

from pathlib import Path

from generator.html.frame import TABLE_KEYS
from generator.schema.errors import InputError
from generator.schema.tables import TABLES
from generator.scoring.run import Scored
from generator.verify.findings import Findings
from generator.verify.tables import check_csv, check_table, read_table

SCORES_FOLDER = "scores"


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
            check_csv(path.with_suffix(".csv"), f"{label}.csv", published, columns, findings)
