"""Holds the files of a data folder against each list of hashes in it: SHA256SUMS, manifest.json, metadata.

See contract: publication, "Data files".
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from generator.data.folder import MANIFEST, SUMS
from generator.schema import json_files
from generator.schema.canonical import sha256_hex
from generator.schema.errors import InputError
from generator.schema.names import SHA256
from generator.verify.findings import ABSENT, Findings
from generator.verify.tables import read_table, table_files

RUN_MANIFEST = "run_manifest.json"
# Beside the files, and not among them: the page that lists them holds their hashes.
UNLISTED = ("index.html", SUMS)


def safe_name(name: str) -> bool:
    """Tell whether a name from SHA256SUMS stays below its folder and can be part of an address."""
    path = PurePosixPath(name)
    odd = "\\" in name or ":" in name or name != str(path) or not name.isprintable()
    return bool(path.parts) and not odd and not path.is_absolute() and ".." not in path.parts


def read_sums(text: str, where: str) -> dict[str, str]:
    """Return SHA-256 by file name from the text of SHA256SUMS; raises InputError naming every malformed line."""
    sums: dict[str, str] = {}
    faults = []
    for number, line in enumerate(text.splitlines(), 1):
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


def read_json(path: Path) -> Any:
    """Read a JSON file of the folder; raises InputError naming it when it is absent or not JSON."""
    return json_files.read_json(path, "a data folder has it")


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
    present = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    for name in sorted(present - sums.keys() - set(UNLISTED)):
        findings.add(name, f"SHA-256 in {SUMS}", ABSENT, "a file that nothing lists")


def check_manifest_files(folder: Path, findings: Findings) -> None:
    """Hold the hashes, sizes and row counts of manifest.json against the files."""
    manifest = read_json(folder / MANIFEST)
    for entry in entries(manifest.get("files"), f"{MANIFEST}: files"):
        name, path = str(entry.get("name")), folder / str(entry.get("name"))
        findings.checked["manifest entries"] += 1
        if not safe_name(name) or not path.is_file():
            findings.add(MANIFEST, f"files[{name}]", "listed", ABSENT)
            continue
        data = path.read_bytes()
        findings.compare(MANIFEST, f"files[{name}].sha256", entry.get("sha256"), sha256_hex(data), what="file hashes")
        findings.compare(MANIFEST, f"files[{name}].bytes", entry.get("bytes"), len(data))
        if name.endswith(".parquet") and "rows" in entry:
            rows = read_table(path).num_rows
            findings.compare(MANIFEST, f"files[{name}].rows", entry["rows"], rows)
    listed = {str(entry.get("name")) for entry in manifest["files"]}
    present = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    for name in sorted(present - listed - {MANIFEST, *UNLISTED}):
        findings.add(MANIFEST, f"files[{name}]", ABSENT, "a file that the manifest does not list")
    if "run" in manifest and (folder / RUN_MANIFEST).is_file():
        findings.compare(MANIFEST, "run", manifest["run"], read_json(folder / RUN_MANIFEST))


def entries(value: Any, where: str) -> list[dict[str, Any]]:
    """Return a JSON value as a list of objects; raises InputError when it is anything else."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InputError(f"{where}: expected a list of objects")
    return value


def check_metadata(folder: Path, findings: Findings) -> None:
    """Hold the hashes in croissant.json and datapackage.json against the files."""
    croissant, package = read_json(folder / "croissant.json"), read_json(folder / "datapackage.json")
    told = [("croissant.json", e.get("contentUrl"), e.get("sha256")) for e in croissant.get("distribution", [])]
    told += [
        ("datapackage.json", e.get("path"), str(e.get("hash")).removeprefix("sha256:"))
        for e in package.get("resources", [])
    ]
    for source, name, digest in told:
        path = folder / str(name)
        findings.checked["file hashes"] += 1
        seen = sha256_hex(path.read_bytes()) if safe_name(str(name)) and path.is_file() else ABSENT
        if digest != seen:
            findings.add(source, f"SHA-256 of {name}", digest, seen)


def check_records(folder: Path, findings: Findings) -> None:
    """Hold the Every Eval Ever records against the published scores."""
    files = table_files([p.name for p in folder.glob("scores*.parquet")], "scores")
    rows = pa.concat_tables([read_table(folder / f) for f in files]).to_pylist() if files else []
    scores = {(r["model"], f"{r['metric']}.{r['attribute']}"): r for r in rows if r.get("group") is None}
    for path in sorted((folder / "every_eval_ever").rglob("*.json")):
        name = path.relative_to(folder).as_posix()
        record = read_json(path)
        for result in record.get("evaluation_results", []):
            key = str(result.get("evaluation_result_id"))
            row = scores.get((record["model_info"]["id"], key), {})
            details = result["score_details"]
            findings.compare(name, f"{key}|score", details["score"], row.get("estimate"))
            bounds = details.get("uncertainty", {}).get("confidence_interval", {})
            findings.compare(name, f"{key}|lower", bounds.get("lower"), row.get("ci_low"))
            findings.compare(name, f"{key}|upper", bounds.get("upper"), row.get("ci_high"))
