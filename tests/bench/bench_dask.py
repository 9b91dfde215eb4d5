"""Scores millions of rows on a Dask cluster: a scheduler and two workers as processes of their own, on loopback.

python -m tests.bench.bench_dask [MODELS REPEATS]      (default: 210 36, about ten million rows)

Everything is written below the system's temporary folder (TMPDIR) and removed at the end.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path

from generator.machine.workers import dask_workers
from generator.scoring.run import score_run
from tests.bench.bench_scoring import write_models
from tests.bench.watch import watched
from tests.factories import make_bank
from tests.test_dask import cluster

WORKERS = 2


def bench(folder: Path, models: int, repeats: int) -> None:
    """Write a run, score it on a cluster, and print time, rate and memory."""
    start = time.perf_counter()
    run = write_models(folder, make_bank(), models, repeats=repeats)
    rows = models * run.layout.size
    size = sum(path.stat().st_size for path in (run.folder / "receipts").iterdir()) / 1e6
    print(
        f"{rows:,} rows of {models} models, {size:.0f} MB, written in {time.perf_counter() - start:.0f} s", flush=True
    )
    with cluster(WORKERS, folder) as (address, _), dask_workers(address) as workers, watched() as found:
        scored = score_run(run, each=workers.each)
    print(f"scored on {WORKERS} Dask workers: {found.text()}")
    print(f"{rows / found.wall:,.0f} rows a second; {scored.tables['cells'].num_rows:,} cells")


def main() -> None:
    """Run the bench."""
    warnings.simplefilter("ignore")
    models, repeats = [int(word) for word in sys.argv[1:3]] or [210, 36]
    with tempfile.TemporaryDirectory(prefix="aibiasbench-dask-") as folder:
        bench(Path(folder), models, repeats)


if __name__ == "__main__":
    main()
