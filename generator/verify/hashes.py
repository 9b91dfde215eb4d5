"""Holds the files of a data folder against each list of hashes in it: SHA256SUMS, manifest.json, metadata.

See contract: publication, "Data files".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from generator.data.folder import MANIFEST, SIGNATURE, SUMS
from generator.machine.walk import file_names
from generator.schema.canonical import sha256_hex
from generator.schema.errors import InputError, raise_faults
from generator.schema.names import SHA256
from generator.verify.findings import ABSENT, Findings
from generator.verify.tables import read_table, row_count, table_files
from generator.verify.told import ToldCroissant, ToldPackage, ToldRecord, ToldRun, read_told

RUN_MANIFEST = "run_manifest.json"
# Beside the files, and not among them: the page that lists them holds their hashes.
UNLISTED = ("index.html", SUMS, SIGNATURE)
CROISSANT, PACKAGE = "croissant.json", "datapackage.json"
_ADDRESSES = ("https://", "http://")
# Of a name: the deepest published file lies three folders down, and no file system takes a longer part.
MOST_PARTS, MOST_LETTERS = 8, 255
MOST_NAMES = 100_000  # a thousand models have some six thousand files


def safe_name(name: str) -> bool:
    """Tell whether a name from SHA256SUMS stays below its folder and can be part of an address."""
    path = PurePosixPath(name)
    odd = "\\" in name or ":" in name or name != str(path) or not name.isprintable()
    longest = max((len(part.encode(errors="replace")) for part in path.parts), default=0)
    large = len(path.parts) > MOST_PARTS or longest > MOST_LETTERS
    return bool(path.parts) and not odd and not large and not path.is_absolute() and ".." not in path.parts


def read_sums(text: str, where: str) -> dict[str, str]:
    """Return SHA-256 by file name from the text of SHA256SUMS; raises InputError naming every malformed line."""
    sums: dict[str, str] = {}
    faults = []
    lines = text.splitlines()
    if len(lines) > MOST_NAMES:
        raise InputError(f"{where}: {len(lines):,} lines; at most {MOST_NAMES:,} are read")
    for number, line in enumerate(lines, 1):
        digest, gap, name = line[:64], line[64:66], line[66:]
        if SHA256.fullmatch(digest) is None or gap != "  " or not safe_name(name):
            faults.append(f"{where}: line {number}: {line[:90]!r} is not '<64 hex digits>  <name below this folder>'")
        elif name in sums:
            faults.append(f"{where}: line {number}: {name} is listed twice")
        else:
            sums[name] = digest
    if faults:
        raise InputError(*faults)
    return sums


def check_sums(folder: Path, findings: Findings) -> None:
    """Hold every file against SHA256SUMS, and SHA256SUMS against the files that are there."""
    sums = read_sums((folder / SUMS).read_text(encoding="utf-8", errors="replace"), SUMS)
    for name, digest in sums.items():
        path = folder / name
        findings.checked["file hashes"] += 1
        if not path.is_file():
            findings.add(name, "file", f"SHA-256 {digest}", ABSENT)
        elif (seen := sha256_hex(path.read_bytes())) != digest:
            findings.add(name, f"SHA-256 in {SUMS}", digest, seen)
    for name in sorted(set(file_names(folder)) - sums.keys() - set(UNLISTED)):
        findings.add(name, f"SHA-256 in {SUMS}", ABSENT, "a file that nothing lists")


def check_manifest_files(folder: Path, manifest: dict[str, Any], findings: Findings) -> None:
    """Hold the hashes, sizes and row counts of manifest.json against the files."""
    for entry in manifest["files"]:
        name, path = entry["name"], folder / entry["name"]
        findings.checked["manifest entries"] += 1
        if not safe_name(name) or not path.is_file():
            findings.add(MANIFEST, f"files[{name}]", "listed", ABSENT)
            continue
        data = path.read_bytes()
        findings.compare(MANIFEST, f"files[{name}].sha256", entry["sha256"], sha256_hex(data), what="file hashes")
        findings.compare(MANIFEST, f"files[{name}].bytes", entry["bytes"], len(data))
        if name.endswith(".parquet") and "rows" in entry:
            findings.compare(MANIFEST, f"files[{name}].rows", entry["rows"], row_count(data, name))
    listed = {entry["name"] for entry in manifest["files"]}
    for name in sorted(set(file_names(folder)) - listed - {MANIFEST, *UNLISTED}):
        findings.add(MANIFEST, f"files[{name}]", ABSENT, "a file that the manifest does not list")
    if (folder / RUN_MANIFEST).is_file():
        findings.compare(MANIFEST, "run", manifest["run"], read_told(folder / RUN_MANIFEST, ToldRun))


def check_metadata(folder: Path, findings: Findings) -> None:
    """Hold the hashes in croissant.json and datapackage.json against the files."""
    croissant = read_told(folder / CROISSANT, ToldCroissant)
    package = read_told(folder / PACKAGE, ToldPackage)
    objects = [entry for entry in croissant["distribution"] if entry.get("@type") != "cr:FileSet"]
    told = [(CROISSANT, entry["name"], entry["sha256"]) for entry in objects]
    for entry in objects:
        name, address = entry["name"], entry["contentUrl"]
        if address != name and not (address.startswith(_ADDRESSES) and address.endswith(f"/data/{quote(name)}")):
            findings.add(CROISSANT, f"contentUrl of {name}", address, f"{name}, or its address on the site")
    told += [(PACKAGE, entry["path"], entry["hash"].removeprefix("sha256:")) for entry in package["resources"]]
    for source, name, digest in told:
        path = folder / name
        findings.checked["file hashes"] += 1
        seen = sha256_hex(path.read_bytes()) if safe_name(name) and path.is_file() else ABSENT
        if digest != seen:
            findings.add(source, f"SHA-256 of {name}", digest, seen)


def check_records(folder: Path, findings: Findings) -> None:
    """Hold the Every Eval Ever records against the published scores."""
    files = table_files([p.name for p in folder.glob("scores*.parquet")], "scores")
    tables = [read_table(folder / f) for f in files]
    # A file of other columns is told where tables are compared; a record then has no row to be held against.
    rows = [row for table in tables if _has_types(table, RECORD_COLUMNS) for row in table.to_pylist()]
    scores = {(r["model"], f"{r['metric']}.{r['attribute']}"): r for r in rows if r.get("group") is None}
    faults: list[str] = []
    for name in sorted(n for n in file_names(folder) if n.startswith("every_eval_ever/") and n.endswith(".json")):
        try:
            _check_record(name, read_told(folder / name, ToldRecord), scores, findings)
        except InputError as error:
            faults += error.faults
    raise_faults(faults)


# What a record is held against, by column of the published scores.
RECORD_COLUMNS = {
    **dict.fromkeys(("model", "metric", "attribute"), pa.string()),
    **dict.fromkeys(("estimate", "ci_low", "ci_high"), pa.float64()),
}


def _has_types(table: pa.Table, types: Mapping[str, pa.DataType]) -> bool:
    schema = table.schema
    return all(schema.names.count(name) == 1 and schema.field(name).type == kind for name, kind in types.items())


def _check_record(name: str, record: dict[str, Any], scores: Mapping[Any, dict[str, Any]], findings: Findings) -> None:
    for result in record["evaluation_results"]:
        key, details = result["evaluation_result_id"], result["score_details"]
        row = scores.get((record["model_info"]["id"], key), {})
        findings.compare(name, f"{key}|score", details["score"], row.get("estimate"))
        bounds = details.get("uncertainty", {}).get("confidence_interval", {})
        findings.compare(name, f"{key}|lower", bounds.get("lower"), row.get("ci_low"))
        findings.compare(name, f"{key}|upper", bounds.get("upper"), row.get("ci_high"))
