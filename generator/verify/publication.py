"""Recomputes a publication from its receipts and holds it against everything that is published.

Three kinds of folder: a run folder as the harness hands it over, a downloaded data folder, and a whole site. A served
site is fetched first. What each check does stands in `verify_hashes`, `verify_data`, `verify_tables`,
`verify_pages`, `verify_remake` and `verify_root`.

See contract: publication, "Verify".
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from generator.data.folder import SUMS
from generator.runs.reader import load_run
from generator.schema.errors import InputError
from generator.scoring.run import score_here
from generator.verify.bytes import check_asset_names
from generator.verify.data import Recomputed, verify_data
from generator.verify.fetch import fetch_runs
from generator.verify.findings import Findings
from generator.verify.hashes import RUN_MANIFEST
from generator.verify.pages import RecomputedRows, verify_pages
from generator.verify.run import check_run_tables
from generator.verify.site import remake_site

_DATA_ALONE = "a data folder alone: of the words in its descriptions, and of the pages, only a whole site can tell"


def verify_path(path: Path, content: Path = Path("content")) -> Findings:
    """Check a run folder, a data folder or a site; raises InputError when `path` is none of them.

    `content` has the words of the site, where a site's pages are made anew.
    """
    if not path.is_dir():
        raise InputError(f"{path}: no such folder; give a run folder, a data folder or a site")
    if (path / RUN_MANIFEST).is_file() or (path / SUMS).is_file():
        return verify_folder(path)
    if (path / "manifest.json").is_file():
        return verify_run(path)
    if (path / "runs").is_dir():
        return verify_site(path, content)
    raise InputError(
        f"{path}: holds no manifest.json, no {SUMS} and no runs/; give a run folder, a data folder or a site"
    )


def verify_folder(data: Path) -> Findings:
    """Check a data folder without its site: nothing there says how pages and descriptions were made."""
    findings = verify_data(data)[0]
    findings.notes.append(_DATA_ALONE)
    return findings


def verify_run(folder: Path) -> Findings:
    """Check a run folder: everything that `load_run` checks, and the tables that `score` wrote beside it, if any."""
    findings = Findings()
    try:
        run = load_run(folder)
    except InputError as error:
        findings.faults(line.removeprefix(f"{folder}/") for line in error.faults)
        return findings
    findings.checked["receipts"] += sum(entry.rows for entry in run.manifest.shards)
    scored = score_here(run)
    check_run_tables(folder, scored, findings)
    return findings


def verify_site(dist: Path, content: Path = Path("content")) -> Findings:
    """Check every run of a site folder, make all files anew that this program made, and read every number."""
    findings = Findings()
    found: dict[str, Recomputed] = {}
    with tempfile.TemporaryDirectory(prefix="aibiasbench-verify-") as temporary:
        for data in sorted((dist / "runs").glob("*/data")):
            run_id = data.parent.name
            own, recomputed = verify_data(data, Path(temporary, "runs", run_id))
            findings.merge(own.below(f"runs/{run_id}/data"))
            if recomputed is not None:
                _check_name(run_id, recomputed, findings)
                found[run_id] = recomputed
        if not found and not findings.mismatches:
            raise InputError(f"{dist / 'runs'}: no run with a data folder; is {dist} a published site?")
        equal = remake_site(dist, found, content, Path(temporary, "made"), findings)
    check_asset_names(dist, findings)
    findings.merge(verify_pages(dist, {run: RecomputedRows(recomputed) for run, recomputed in found.items()}, equal))
    return findings


def _check_name(run_id: str, recomputed: Recomputed, findings: Findings) -> None:
    findings.compare(f"runs/{run_id}", "run_id", run_id, recomputed.run.manifest.run_id)


def verify_url(url: str) -> Findings:
    """Fetch what a served site or data folder lists, and check it."""
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="aibiasbench-verify-") as temporary:
        for name, folder in fetch_runs(url, Path(temporary)).items():
            findings.merge(verify_folder(folder).below(name))
    return findings
