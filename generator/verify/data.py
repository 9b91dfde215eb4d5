"""Checks a downloaded data folder: its hashes, then every table recomputed from its receipts.

The folder is laid out again as a run folder in a temporary place, read by the same `load_run` and scored by the same
`score_here` as a publication; what comes out is held against what is published.

See contract: publication, "Verify".
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from generator.data.folder import MANIFEST, SUMS
from generator.data.table_files import weight_columns
from generator.html.frame import TABLE_KEYS
from generator.machine.walk import file_names
from generator.runs.reader import Each, Run, load_run
from generator.runs.redactions import withdrawn_text
from generator.schema.canonical import sha256_hex
from generator.schema.columns import FORMATS, receipt_columns
from generator.schema.errors import CheckError, InputError
from generator.schema.json_files import read_json
from generator.schema.names import model_fault, shard_name
from generator.schema.tables import RUN_WIDE, TABLES
from generator.scoring.gate import Standing, standing_of
from generator.scoring.reasons import published_reasons
from generator.scoring.run import Scored, score_here, score_run
from generator.stats.bootstrap import RESAMPLES
from generator.verify.findings import ABSENT, Findings, differs
from generator.verify.hashes import (
    RUN_MANIFEST,
    check_manifest_files,
    check_metadata,
    check_records,
    check_sums,
    safe_name,
)
from generator.verify.signature import check_signature
from generator.verify.tables import check_csv, check_table, csv_form, file_notes, read_table, table_files
from generator.verify.told import ToldManifest, ToldRun, read_told

_T = TypeVar("_T")


@dataclass(frozen=True)
class Recomputed:
    """A data folder's run, scored anew; `right` are the published tables that hold the same numbers."""

    run: Run
    scored: Scored
    right: dict[str, pa.Table] = field(default_factory=dict)

    def as_published(self, manifest: dict[str, Any]) -> Scored:
        """Return the scores with the published form of every number that is right.

        Another machine may round the last digit of a sum otherwise, and a file with its hash would then differ.
        """
        told, band = manifest.get("mean_band"), self.scored.mean_band
        if isinstance(told, dict) and not differs(told, json.loads(json.dumps(band))):
            band = told
        return dataclasses.replace(self.scored, tables={**self.scored.tables, **self.right}, mean_band=band)


def verify_data(
    folder: Path, place: Path | None = None, each: Each | None = None
) -> tuple[Findings, Recomputed | None]:
    """Check a data folder; returns what was found and the run scored anew, for the pages to be held against.

    The run folder is laid out again in `place`, a new folder, and stays there; without one it is gone afterwards. The
    run is None where the receipts cannot be read. Raises InputError when the folder is no data folder at all;
    everything else is a finding.
    """
    if place is None:
        with tempfile.TemporaryDirectory(prefix="aibiasbench-verify-") as temporary:
            return verify_data(folder, Path(temporary) / folder.resolve().name)
    findings = Findings()
    if not (folder / SUMS).is_file():
        raise InputError(f"{folder / SUMS}: not found; is {folder} a data folder?")
    check = functools.partial(_collected, folder, findings)
    check(lambda: check_sums(folder, findings))
    check(lambda: check_metadata(folder, findings))
    check(lambda: check_records(folder, findings))
    check(lambda: check_receipts_csv(folder, findings))
    manifest = check(lambda: _pinned(folder, findings))
    if manifest is None:
        return findings, None
    check(lambda: check_signature(folder, findings))
    check(lambda: check_manifest_files(folder, manifest, findings))
    check(lambda: check_redactions(folder, manifest, findings))
    found = check(lambda: recompute(folder, manifest, place, each))
    if found is not None:
        found.right.update(check(lambda: check_tables(folder, found, findings)) or {})
        check(lambda: check_weights(folder, found, findings))
        check(lambda: check_summary(manifest, found, findings))
        check(lambda: check_marks(folder, found.run.manifest.simulated, findings))
    return findings, found


def _collected(folder: Path, findings: Findings, step: Callable[[], _T]) -> _T | None:
    """Run one step; input that it cannot read is a finding of the publication, not an error of the command."""
    try:
        return step()
    except InputError as error:
        findings.faults(_relative(line, folder) for line in error.faults)
        return None


def _pinned(folder: Path, findings: Findings) -> dict[str, Any]:
    """Read manifest.json and note its hash, which pins the publication."""
    manifest = read_told(folder / MANIFEST, ToldManifest)
    findings.pins[MANIFEST] = sha256_hex((folder / MANIFEST).read_bytes())
    return manifest


def _relative(line: str, folder: Path) -> str:
    return line.removeprefix(f"{folder}/")


def recompute(folder: Path, manifest: dict[str, Any], place: Path, each: Each | None = None) -> Recomputed:
    """Lay the folder out as a run folder, read it and score it; raises InputError with whatever is wrong in it.

    `each` checks and scores its shards elsewhere.
    """
    withheld = frozenset(manifest["withheld"])
    resamples = manifest["resamples"] or RESAMPLES
    try:
        run = load_run(lay_out(folder, manifest, place), each=each)
        score = score_here if each is None else functools.partial(score_run, each=each)
        return Recomputed(run, score(run, withheld=withheld, resamples=resamples))
    except InputError as error:
        raise InputError(*(_named(line, place) for line in error.faults)) from None


def _named(line: str, place: Path) -> str:
    """Name a file of the temporary run folder as the data folder calls it."""
    line = line.removeprefix(f"{place}/")
    return f"{RUN_MANIFEST}{line.removeprefix(MANIFEST)}" if line.startswith(MANIFEST) else line


def lay_out(folder: Path, manifest: dict[str, Any], place: Path) -> Path:
    """Write the run folder that a data folder came from.

    A shard that was published unchanged is held against the hash in the harness's manifest; for one that was split or
    holds a withdrawn response the hash of its published form stands in.
    """
    run_manifest = read_told(folder / RUN_MANIFEST, ToldRun)
    (place / "receipts").mkdir(parents=True)
    unchanged = {entry["model"]: entry["unchanged"] for entry in manifest["receipts"]}
    for shard in run_manifest["shards"]:
        if fault := model_fault(shard["model"]):
            raise InputError(f"{RUN_MANIFEST}: {fault}")
        data = _shard_bytes(folder, shard["model"])
        if not unchanged.get(shard["model"], True):
            shard["sha256"] = sha256_hex(data)
        (place / "receipts" / f"{shard_name(shard['model'])}.parquet").write_bytes(data)
    (place / MANIFEST).write_text(json.dumps(run_manifest), encoding="utf-8")
    bank = folder / "bank.json"
    if not bank.is_file():
        raise InputError(f"{bank}: not found; a data folder has it")
    (place / "bank.json").write_bytes(bank.read_bytes())
    labels = read_table(folder / "human_audit.parquet")
    if labels.num_rows:
        (place / "audit.csv").write_text(_audit_csv(labels), encoding="utf-8")
    return place


def _shard_bytes(folder: Path, model: str) -> bytes:
    """Return a model's receipts as one Parquet file, its parts joined where it was split."""
    stem = f"receipts/{shard_name(model)}"
    names = table_files([f"receipts/{p.name}" for p in (folder / "receipts").glob("*.parquet")], stem)
    if not names:
        raise InputError(f"{folder / stem}.parquet: not found; {RUN_MANIFEST} lists {model}")
    if len(names) == 1:
        return (folder / names[0]).read_bytes()
    sink = pa.BufferOutputStream()
    pq.write_table(pa.concat_tables([read_table(folder / name) for name in names]), sink)
    return bytes(sink.getvalue())


def _audit_csv(labels: pa.Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["receipt_id", "label"])
    writer.writerows(zip(labels["receipt_id"].to_pylist(), labels["human_label"].to_pylist(), strict=True))
    return text.getvalue()


def _parquet_names(folder: Path) -> list[str]:
    return [p.relative_to(folder).as_posix() for p in folder.rglob("*.parquet")]


def check_tables(folder: Path, recomputed: Recomputed, findings: Findings) -> dict[str, pa.Table]:
    """Hold every table's Parquet against the recomputation, and its CSV against the Parquet.

    Returns the published tables that were found right, but for those in several files.
    """
    names, found = _parquet_names(folder), {}
    for table, columns in TABLES.items():
        files = table_files(names, table)
        if not files:
            findings.add(f"{table}.parquet", "file", ABSENT, f"{recomputed.scored.tables[table].num_rows} rows")
            continue
        parts = [read_table(folder / name) for name in files]
        before = len(findings.mismatches)
        label = files[0] if len(files) == 1 else f"{table}__*.parquet"
        published = pa.concat_tables([part.replace_schema_metadata(None) for part in parts])
        right = recomputed.scored.tables[table]
        check_table(label, published, right, columns, findings, keys=TABLE_KEYS[table], ordered=len(files) == 1)
        if any(m.key == "columns" for m in findings.mismatches[before:]):
            continue
        if len(files) == 1 and len(findings.mismatches) == before:
            found[table] = published
        for name, part in zip(files, parts, strict=True):
            check_csv(*csv_form(folder, name), part, columns, findings)
    return found


def check_receipts_csv(folder: Path, findings: Findings) -> None:
    """Hold every receipts CSV against its Parquet file."""
    for name in sorted(n for n in _parquet_names(folder) if n.startswith("receipts/")):
        table = read_table(folder / name)
        known = (receipt_columns(format_) for format_ in FORMATS)
        columns = next((c for c in known if table.column_names == [column.name for column in c]), None)
        if columns is None:
            continue  # load_run has named the columns that are wrong
        check_csv(*csv_form(folder, name), table, columns, findings)


def check_weights(folder: Path, recomputed: Recomputed, findings: Findings) -> None:
    """Hold the bootstrap counts against counts drawn anew."""
    for attribute, counts in sorted(recomputed.scored.weights.items()):
        name = f"bootstrap_weights/{attribute}.parquet"
        path = folder / name
        if not path.is_file():
            findings.add(name, "file", ABSENT, f"{len(counts)} rows")
            continue
        published = read_table(path)
        findings.checked["bootstrap counts"] += counts.size
        if published.num_rows != len(counts) or published.num_columns != counts.shape[1]:
            shape = f"{published.num_rows} x {published.num_columns}"
            findings.add(name, "shape", shape, f"{counts.shape[0]} x {counts.shape[1]}")
            continue
        for place, concept in enumerate(published.column_names):
            wrong = (published[concept].to_numpy() != counts[:, place]).nonzero()[0]
            for row in wrong[:20]:
                findings.add(name, f"row {row}|{concept}", published[concept][int(row)].as_py(), counts[row, place])
        columns = weight_columns(published.column_names)
        check_csv(*csv_form(folder, name), published, columns, findings)


def check_summary(manifest: dict[str, Any], recomputed: Recomputed, findings: Findings) -> None:
    """Hold roles, mean band, gate and audit of manifest.json against the bank and the recomputation."""
    scored = recomputed.scored
    if "roles" in manifest:  # earlier releases published none
        findings.compare(MANIFEST, "roles", manifest["roles"], recomputed.run.bank.roles.as_published())
    findings.compare(MANIFEST, "mean_band", manifest.get("mean_band"), json.loads(json.dumps(scored.mean_band)))
    findings.compare(MANIFEST, "audit", manifest.get("audit"), scored.tables["audit_summary"].to_pylist())
    check_standing(manifest, recomputed, findings)
    rows = _gates(scored.tables["agreement"].to_pylist())
    told = {gate["rubric"]: gate for gate in manifest["gate"]}
    for rubric, row in rows.items():
        for key, value in told.get(rubric, {"gate": ABSENT}).items():
            findings.compare(MANIFEST, f"gate|{rubric}|{key}", value, row.get(key))


def standing_now(manifest: dict[str, Any], recomputed: Recomputed) -> Standing:
    """Return what a run comes to, published as the manifest says; raises CheckError where it may not be."""
    preview, withhold = manifest.get("standing") == "preview", bool(manifest.get("withheld"))
    return standing_of(recomputed.run, recomputed.scored, preview=preview, withhold=withhold)


def check_standing(manifest: dict[str, Any], recomputed: Recomputed, findings: Findings) -> None:
    """Hold the publication's standing, its reasons and what it withholds against what the run comes to."""
    state, withheld = manifest.get("standing"), sorted(recomputed.scored.withheld)
    try:
        right = standing_now(manifest, recomputed)
    except CheckError as error:
        findings.add(MANIFEST, "standing", state, f"not publishable: {error.findings[0]}")
        return
    findings.compare(MANIFEST, "standing", state, right.state)
    _check_reasons(manifest, published_reasons(right.reasons), findings)
    findings.compare(MANIFEST, "withheld", manifest.get("withheld"), withheld)
    if right.withheld != recomputed.scored.withheld:
        findings.add(MANIFEST, "withheld", ", ".join(withheld), ", ".join(sorted(right.withheld)))


def _check_reasons(manifest: dict[str, Any], right: list[dict[str, Any]], findings: Findings) -> None:
    """Hold each reason and its figures against what the run comes to.

    Another release may put a reason in other words, so `text` is held only where this release wrote it. Before format
    2 a reason was its sentence.
    """
    told, own = manifest.get("reasons"), manifest.get("generator_version") == version("aibiasbench")
    if not isinstance(told, list) or len(told) != len(right):
        findings.add(MANIFEST, "reasons", told, [reason["text"] for reason in right])
        return
    for place, (seen, reason) in enumerate(zip(told, right, strict=True)):
        wanted: Any = reason
        if isinstance(seen, str):
            wanted = reason["text"]
        elif isinstance(seen, dict) and not own:
            wanted = {**reason, "text": seen.get("text")}
        findings.compare(MANIFEST, f"reasons[{place}]", seen, wanted)


def check_redactions(folder: Path, manifest: dict[str, Any], findings: Findings) -> None:
    """Hold every withdrawn response against its stated reason; a shard written anew needs a reason to be so."""
    for entry in manifest["receipts"]:
        if not (entry["unchanged"] or manifest["simulated"] or entry["redactions"] or len(entry["files"]) > 1):
            findings.add(MANIFEST, f"receipts[{entry['model']}].unchanged", False, "nothing that would change it")
        wanted = {r["receipt_id"]: withdrawn_text(r["reason"], r["date"]) for r in entry["redactions"]}
        for name in entry["files"] if wanted else ():
            table = _receipt_texts(folder, name)
            for receipt, text in zip(table["receipt_id"].to_pylist(), table["response"].to_pylist(), strict=True):
                if receipt in wanted:
                    findings.compare(name, f"{receipt}|response", text, wanted.pop(receipt))
        for receipt in wanted:
            findings.add(MANIFEST, f"redactions[{receipt}]", "listed", ABSENT)


def _receipt_texts(folder: Path, name: str) -> pa.Table:
    if not safe_name(name):
        raise InputError(f"{MANIFEST}: receipts: {name!r} is no file of this folder")
    try:
        return read_table(folder / name).select(["receipt_id", "response"])
    except KeyError as error:
        raise InputError(f"{name}: {error.args[0]}") from None


def check_marks(folder: Path, simulated: bool, findings: Findings) -> None:
    """Hold every mark that the answers are simulated, or are not, against what the run's own names say.

    `simulated`: by the vendors of the run, which `load_run` holds against its kind. A table of a simulated run has to
    say so; receipts of another run may say nothing, as the harness wrote them.
    """
    for name in sorted(file_names(folder)):
        found: Any = []
        if name.endswith(".json") and name != "bank.json":
            found = _marks(read_json(folder / name, "a data folder has it"))
        elif name.endswith(".parquet"):
            mark = file_notes(folder / name).get("simulated")
            found = [] if mark is None and not simulated else [mark]
        findings.checked["marks"] += len(found)
        for mark in found:
            if mark not in (simulated, "true" if simulated else "false"):
                findings.add(name, "simulated", mark, "true" if simulated else "false")


_PARAMETERS = ("params", "generation_config")  # what a model was sent is its own: a parameter may have any name


def _marks(value: Any) -> list[Any]:
    """Return every member named `simulated` in a JSON document, a model's parameters left out."""
    if isinstance(value, list):
        return [mark for item in value for mark in _marks(item)]
    if not isinstance(value, dict):
        return []
    own = {key: item for key, item in value.items() if key not in _PARAMETERS}
    return [mark for key, item in own.items() for mark in ([item] if key == "simulated" else _marks(item))]


def _gates(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["rubric"]: row for row in rows if row["vendor"] == RUN_WIDE}
