"""Every kind of file that the program reads: how it is made, spoiled, read in process and met by a command."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

from generator.cli import aibiasbench
from generator.edition.edition import read_site
from generator.runs.operator_notes import read_note
from generator.runs.reader import load_run
from generator.runs.redactions import read_redactions
from generator.schema.canonical import sha256_hex
from harness.audit.sheet import checked_labels, draw_record, items_of, open_judged, read_draw
from harness.bank.reader import read_bank_folder
from harness.cache.answers import Cache
from harness.importing.collect import collected
from harness.importing.import_map import read_map
from harness.importing.to_bank import bank_of
from harness.importing.write import ImportedRun, check_import, write_import
from harness.money.budget import Ledger
from harness.plan.run_toml import read_plan
from tests.factories import make_bank, make_run
from tests.fuzz.mutations import Mutation, either, spoiled_bytes, spoiled_json, spoiled_parquet
from tests.plans import simulated_data, write_run_toml

ROOT = Path(__file__).parents[2]
SHIPPED_BANK = ROOT / "content" / "bank"
SHARD = "receipts/sim-alpha__one.parquet"
SMALL = {"stance": 1, "capability": 1}


@dataclass(frozen=True)
class Kind:
    """A kind of file. `make` fills a folder with valid files; `file` is the one to spoil, below that folder.

    `read` reads the folder in this process; `commands` are tried in turn, `{}` standing for the folder. `after` mends
    what would hide the damage: the hash of a shard in its manifest.
    """

    name: str
    make: Callable[[Path], None]
    file: str
    mutation: Mutation
    read: Callable[[Path], object]
    commands: Sequence[Sequence[str]]
    after: Callable[[Path], None] = lambda _: None


def _judged(folder: Path) -> None:
    bank = make_bank(("age", "gender", "control_tag"), groups=3, quota=SMALL, control_quota=SMALL)
    run = make_run(folder / "run", bank=bank, repeats=2)
    run.joinpath("note.txt").write_text("A note.\n")
    result = CliRunner().invoke(aibiasbench, ["audit", "sample", str(run)])
    assert result.exit_code == 0, result.output
    record = read_draw(run)
    shutil.copy(run / "audit" / "sheet.csv", folder / "labels.csv")
    lines = ["receipt_id,label", *(f"{receipt},REFUSAL" for receipt in sorted(record.rubrics))]
    for file in (run / "audit.csv", folder / "labels.csv"):
        file.write_text("\n".join(lines) + "\n")


def _mend_hash(folder: Path) -> None:
    path = folder / "run" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["shards"][0]["sha256"] = sha256_hex((folder / "run" / SHARD).read_bytes())
    path.write_text(json.dumps(manifest))


def _read_shard(folder: Path) -> None:
    try:
        load_run(folder / "run")
    finally:
        judged = open_judged(folder / "run")
        items_of(judged, draw_record(judged, asked=100))


def _labels(folder: Path) -> object:
    judged = open_judged(folder / "run")
    return checked_labels(folder / "labels.csv", read_draw(folder / "run"), judged.bank)


def _planned(folder: Path) -> None:
    write_run_toml(folder / "run", simulated_data(read_bank_folder(SHIPPED_BANK), "sim-alpha/one"))


def _site(folder: Path) -> None:
    shutil.copytree(ROOT / "content" / "pages", folder / "pages")
    shutil.copy(ROOT / "content" / "site.toml", folder / "site.toml")


def _redactions(folder: Path) -> None:
    entry = (
        '[[redaction]]\nreceipt_id = "0123456789abcdef"\nreason = "names a person"\ndate = "2026-11-30"\n'
        "evidence = true\n"
    )
    (folder / "redactions.toml").write_text(entry + entry.replace("01234567", "76543210"))


def _asked(folder: Path) -> None:
    """A simulated run of which a few answers have been asked, with its cache and ledger."""
    _planned(folder)
    concept = read_bank_folder(SHIPPED_BANK).concepts[0].id
    call = ["eval", str(folder / "run"), "--cache", str(folder / "cache.sqlite"), "--concept", concept]
    result = CliRunner().invoke(aibiasbench, [*call, "--bank", str(SHIPPED_BANK)])
    assert result.exit_code == 0, result.output


def _read_cache(folder: Path) -> None:
    with Cache(folder / "cache.sqlite", now=1) as cache:
        cache.lines()
        keys = [row[0].hex() for row in cache._db.execute("SELECT key FROM answers") if isinstance(row[0], bytes)]
        cache.lookup([key for key in keys if len(key) == 64])
        cache.prune(outcome="cut")


def _read_ledger(folder: Path) -> None:
    with Ledger(folder / "run", run_id="run", stage="eval", caps={"run": 100}) as ledger:
        ledger.failures()
        ledger.faults()
        ledger.book("subject")


def _published(folder: Path) -> None:
    """The data folder of a small publication."""
    import pytest

    from tests.publications import make_content, quicken, run_publish

    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        run_publish(make_content(folder / "content"), folder / "dist", preview=True)
    shutil.copytree(folder / "dist" / "runs" / "first" / "data", folder / "data")
    shutil.rmtree(folder / "dist")


def _read_data(folder: Path) -> object:
    from generator.verify.publication import verify_path

    return verify_path(folder / "data")


def kind(
    name: str, make: Callable[[Path], None], file: str, mutation: Mutation, read: Callable[[Path], object],
    commands: Sequence[str], after: Callable[[Path], None] = lambda _: None,
) -> Kind:  # fmt: skip
    """Return a kind whose commands are written as they are typed."""
    return Kind(name, make, file, mutation, read, [command.split() for command in commands], after)


REDACTIONS = "redactions.toml"


def _read_redactions(folder: Path) -> object:
    return read_redactions(folder / REDACTIONS)


TABLE_ROWS = [
    {"model": m, "attribute": "age", "concept": c, "group": g, "prompt": f"What of {g} in {c}?", "response": "Yes.",
     "label": label, "cost": 0.5, "repeat": 0}
    for m in ("lab/one", "lab/two") for c in ("lease", "loan") for g, label in (("old", "YES"), ("young", "NO"))
]  # fmt: skip
MAP = """[run]
collected_by = "A lab"
source = "https://lab.example/"
date = 2026-11-01
matched_by = "word"
[columns]
model = "model"
attribute = { column = "attribute", values = { age = "age" } }
concept = "concept"
group = "group"
repeat = { column = "repeat", first = 0 }
prompt = "prompt"
response = "response"
cost_usd = "cost"
[[judges]]
model = "lab/judge"
label = "label"
[rubrics.stance]
labels = [{ label = "NO", value = 0 }, { label = "YES", value = 1 }]
[attributes.age.groups.old]
label = "Old"
np = "old"
[attributes.age.groups.young]
"""
TABLE_FILES = ("table.csv", "table.jsonl", "table.parquet")


def _tables(folder: Path) -> None:
    """One table in three forms, with its map, and the same answers as an Inspect log."""
    (folder / "map.toml").write_text(MAP)
    table = pa.Table.from_pylist(TABLE_ROWS)
    pq.write_table(table, folder / "table.parquet")
    table.to_pandas().to_csv(folder / "table.csv", index=False)
    (folder / "table.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in TABLE_ROWS))
    samples = [{"id": n, "epoch": 1, "input": row["prompt"], "metadata": row} for n, row in enumerate(TABLE_ROWS)]
    log = {"status": "success", "eval": {"model": "lab/one"}, "samples": samples}
    (folder / "log.json").write_text(json.dumps(log))
    inside = ("model", "attribute", "concept", "group", "label", "repeat", "cost")
    told = MAP.replace("[columns]", '[source]\nformat = "inspect"\n[columns]').replace('"prompt"', '"input"')
    for name in inside:
        told = told.replace(f'= "{name}"', f'= "metadata.{name}"')
    (folder / "log.toml").write_text(told)


def _imported(file: str, given: str) -> Callable[[Path], object]:
    """Import in process, and hold an import that is taken to what every reader asks of a run."""

    def read(folder: Path) -> object:
        found = read_map(folder / given)
        rows = collected([folder / file], found)
        item = ImportedRun("run", found, rows, bank_of(rows, found), "0" * 40)
        check_import(item)
        write_import(folder / "runs" / "run", item)
        return load_run(folder / "runs" / "run")

    return read


def _imports(parquet: Mutation, by_json: Mutation) -> list[Kind]:
    command = "import {{}}/{} --map {{}}/{} --runs-dir {{}}/runs run"
    tables = [
        kind(
            file, _tables, file, parquet if file.endswith(".parquet") else spoiled_bytes, _imported(file, "map.toml"),
            [command.format(file, "map.toml")],
        )
        for file in TABLE_FILES
    ]  # fmt: skip
    return [
        kind("map.toml", _tables, "map.toml", spoiled_bytes, _imported("table.csv", "map.toml"),
             [command.format("table.csv", "map.toml")]),
        *tables,
        kind("log.json", _tables, "log.json", by_json, _imported("log.json", "log.toml"),
             [command.format("log.json", "log.toml")]),
    ]  # fmt: skip


BANK = f"--bank {SHIPPED_BANK}"
JUDGED = ("score {}/run --out {}/out", "verify {}/run", "audit sample {}/run --replace")
IN_DATA = (
    "croissant.json", "datapackage.json", "manifest.json", "run_manifest.json", "scores.parquet", "csv/scores.csv",
    "bank.json", "SHA256SUMS", "receipts/sim-alpha__one.parquet", "cells.parquet",
)  # fmt: skip


def kinds() -> list[Kind]:
    """Return every kind of file."""

    def run(folder: Path) -> object:
        return load_run(folder / "run")

    by_json = either(spoiled_bytes, spoiled_json, spoiled_json)
    data = [
        Kind(
            f"data/{file}", _published, f"data/{file}",
            either(spoiled_bytes, spoiled_parquet) if file.endswith(".parquet")
            else by_json if file.endswith(".json") else spoiled_bytes,
            _read_data, [["verify", "{}/data"]],
        )
        for file in IN_DATA
    ]  # fmt: skip
    imported = ["audit import {}/run {}/labels.csv"]
    published = ["publish --content {} --out {}/dist"]
    cached = [f"eval {{}}/run --dry-run --cache {{}}/cache.sqlite {BANK}"]
    listed = ["cache list --cache {}/cache.sqlite", "cache prune --all --cache {}/cache.sqlite"]
    asked = [f"judge {{}}/run --partial --cache {{}}/cache.sqlite {BANK}"]
    parquet = either(spoiled_bytes, spoiled_parquet, spoiled_parquet)
    return [
        kind("run.toml", _planned, "run/run.toml", spoiled_bytes, lambda f: read_plan(f / "run"), cached),
        kind("manifest.json", _judged, "run/manifest.json", by_json, run, JUDGED),
        kind("bank.json", _judged, "run/bank.json", by_json, run, JUDGED),
        kind("shard", _judged, f"run/{SHARD}", parquet, _read_shard, JUDGED, _mend_hash),
        kind("audit.csv", _judged, "run/audit.csv", spoiled_bytes, run, JUDGED),
        kind("note.txt", _judged, "run/note.txt", spoiled_bytes, lambda f: read_note(f / "run"), JUDGED),
        kind("labels", _judged, "labels.csv", spoiled_bytes, _labels, imported),
        kind("draw.json", _judged, "run/audit/draw.json", by_json, _labels, imported),
        kind("site.toml", _site, "site.toml", spoiled_bytes, lambda f: read_site(f / "site.toml"), published),
        kind(
            "redactions", _redactions, REDACTIONS, spoiled_bytes, lambda f: read_redactions(f / REDACTIONS), published
        ),
        kind("cache", _asked, "cache.sqlite", spoiled_bytes, _read_cache, [*listed, *cached]),
        kind("ledger", _asked, "run/ledger.sqlite", spoiled_bytes, _read_ledger, [*cached, *asked]),
        *_imports(parquet, by_json),
        *data,
    ]


def spoil(of: Kind, original: Path, folder: Path, seed: str) -> None:
    """Put a fresh copy of valid files into a folder and spoil the one of the kind."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder)
    path = folder / of.file
    path.write_bytes(of.mutation(path.read_bytes(), random.Random(seed)))
    of.after(folder)
