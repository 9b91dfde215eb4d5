"""How long scoring takes, beside scipy.stats.bootstrap and a plain loop doing the same interval, in one run.

python -m tests.bench.bench_scoring [MODELS ...]      (default: 14 100; 1000 takes a minute to write first)

A few models are scored in threads, many in processes, as `aibiasbench score` does.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.stats

from generator.runs.reader import Run, load_run
from generator.schema.bank import Bank
from generator.scoring.run import score_here
from generator.stats.bootstrap import Resamples, concept_counts, one_attribute, percentile_interval
from tests.bench.watch import watched
from tests.factories import make_bank, make_run

RESAMPLES = 10_000
VENDORS = 20


@contextmanager
def measured(what: str) -> Iterator[None]:
    """Print the wall and processor time of a block, all processes together, and the peak memory of each."""
    with watched() as found:
        yield
    print(f"{what:<58} {found.text()}", flush=True)


def write_models(folder: Path, bank: Bank, models: int, *, repeats: int = 3) -> Run:
    """Write a run of many models: one model's rows, their values and labels shuffled within a rubric for each.

    Only what scoring reads has to be true here, so the folder is not for `load_run`.
    """
    run = load_run(make_run(folder / "base", bank=bank, models=("sim-v0/m0",), repeats=repeats))
    table = pq.read_table(run.shard_path("sim-v0/m0"))
    rubric = table["rubric"].to_numpy(zero_copy_only=False)
    slugs = [f"sim-v{i % VENDORS}/m{i}" for i in range(models)]
    (folder / "many/receipts").mkdir(parents=True)
    for i, slug in enumerate(slugs):
        order, rng = np.arange(len(rubric)), np.random.default_rng(i)
        for name in np.unique(rubric):
            own = np.flatnonzero(rubric == name)
            order[own] = rng.permutation(own)
        columns = {name: table[name] for name in table.column_names}
        for name in ("value", "final_label", "status", "votes", "response", "mask_spans"):
            columns[name] = table[name].take(pa.array(order))
        columns["model"] = pa.repeat(pa.scalar(slug), table.num_rows)
        pq.write_table(
            pa.table(columns, schema=table.schema), folder / f"many/receipts/{slug.replace('/', '__')}.parquet",
            compression="zstd",
        )  # fmt: skip
    entry = run.manifest.models[0]
    entries = tuple(entry.model_copy(update={"model": slug}) for slug in slugs)
    manifest = run.manifest.model_copy(update={"models": entries})
    return dataclasses.replace(run, folder=folder / "many", manifest=manifest, absent=dict.fromkeys(slugs, 0))


def bench_scoring(models: int, bank: Bank) -> None:
    """Score a run of the full shape with a number of models."""
    with tempfile.TemporaryDirectory() as folder:
        run = write_models(Path(folder), bank, models)
        concept_counts.cache_clear()
        rows = models * run.layout.size
        with measured(f"score {models:,} models, {rows:,} rows, B = {RESAMPLES:,}"):
            score_here(run, resamples=RESAMPLES)


def bench_loading(bank: Bank) -> None:
    """Check a run of the full shape: every hash, prompt, vote and label of 14 models."""
    with tempfile.TemporaryDirectory() as folder:
        path = make_run(Path(folder) / "checked", bank=bank, models=[f"sim-v{i % 7}/m{i}" for i in range(14)])
        with measured("load and check 14 models, every row"):
            load_run(path)


def one_interval() -> None:
    """The same interval of one mean of 16 concepts, by this project, by scipy, by a plain loop."""
    values = np.random.default_rng(1).beta(1, 6, 16)
    counts = concept_counts("0" * 64, "age", 16)
    sample = one_attribute(16)
    rng = np.random.default_rng(2)

    def ours() -> Any:
        return percentile_interval(Resamples.of(counts).sums(values[None])[0] / 16, sample)

    def scipys() -> Any:
        return scipy.stats.bootstrap(
            (values,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=rng, vectorized=True,
            confidence_level=1 - 2 * sample.tail,
        )  # fmt: skip

    def loop() -> Any:
        means = [float(np.mean(values[rng.integers(0, 16, 16)])) for _ in range(RESAMPLES)]
        return np.quantile(means, [sample.tail, 1 - sample.tail])

    for name, function in (("this project", ours), ("scipy.stats.bootstrap", scipys), ("plain loop", loop)):
        print(f"one interval of 16 concepts, {name:<30} {1000 * _best(function):8.2f} ms")


def _best(function: Callable[[], Any]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Run the bench."""
    warnings.simplefilter("ignore")
    bank = make_bank()
    one_interval()
    bench_loading(bank)
    for models in [int(word) for word in sys.argv[1:]] or [14, 100]:
        bench_scoring(models, bank)


if __name__ == "__main__":
    main()
