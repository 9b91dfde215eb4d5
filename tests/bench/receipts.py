"""Receipt pages of a bench run, model by model, as publish makes them: `python -m tests.bench.receipts RUN OUT`.

Each model's pages are removed again before the next, outside the clock, so that a million of them need little room.
Prints the seconds of making and writing alone.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

from generator.edition.edition import Edition, read_site
from generator.receipts.pages import receipt_task, write_receipts
from generator.runs.reader import Run
from generator.schema.bank import read_bank
from generator.schema.columns import arrow_schema
from generator.schema.manifest import read_manifest
from generator.schema.tables import CELLS, DISPARITIES
from generator.scoring.gate import Standing
from generator.scoring.run import Scored


def edition_of(folder: Path) -> Edition:
    """A run without its scores: what is timed here is rendering and writing."""
    manifest = read_manifest(folder / "manifest.json")
    run = Run(folder, manifest, read_bank(folder / "bank.json"), None, {})
    tables = {"cells": arrow_schema(CELLS).empty_table(), "disparities": arrow_schema(DISPARITIES).empty_table()}
    scored = Scored(manifest.run_id, tables, {}, {}, None, frozenset())
    return Edition(read_site(), run, scored, Standing("published", ()))


def main() -> None:
    """Write the pages of every model."""
    edition, out = edition_of(Path(sys.argv[1])), Path(sys.argv[2])
    seconds = files = size = 0.0
    for model in edition.run.models:
        start = time.perf_counter()
        task = receipt_task(edition, model, out)
        written = write_receipts(task)
        seconds += time.perf_counter() - start
        files, size = files + written.files, size + written.bytes
        shutil.rmtree(task.out)
    print(f"PAGES {files:.0f} {size / 1e6:.0f} MB")
    print(f"SECONDS {seconds:.4f}")


if __name__ == "__main__":
    main()
