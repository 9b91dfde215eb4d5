"""Recomputes a publication from its receipts and holds it against everything that is published.

Three kinds of folder: a run folder as the harness hands it over, a downloaded data folder, and a whole site. A served
site is fetched first. What each check does stands in `hashes`, `data`, `tables`, `pages`, `remake`
and `root`.

See contract: publication, "Verify".
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from generator.data.folder import MANIFEST, SUMS
from generator.machine.workers import local_workers
from generator.publishing.provenance import read_publication
from generator.runs.reader import load_run
from generator.schema.errors import InputError
from generator.scoring.run import score_here
from generator.verify.bytes import check_asset_names
from generator.verify.data import Recomputed, verify_data
from generator.verify.fetch import DEADLINE, fetch_runs
from generator.verify.findings import ABSENT, Findings
from generator.verify.hashes import RUN_MANIFEST
from generator.verify.pages import RecomputedRows, check_links, verify_pages
from generator.verify.run import check_rows, check_run_tables
from generator.verify.site import remake_site
from generator.verify.stray import check_tree

_AGAIN = "nothing of the site was changed; verify again"
_DATA_ALONE = "a data folder alone: of the words in its descriptions, and of the pages, only a whole site can tell"


def verify_path(path: Path, content: Path = Path("content"), *, jobs: int = 1) -> Findings:
    """Check a run folder, a data folder or a site; raises InputError when `path` is none of them.

    `content` has the words of the site, where a site's pages are made anew, in `jobs` processes.
    """
    if not path.is_dir():
        raise InputError(f"{path}: no such folder; give a run folder, a data folder or a site")
    if (path / RUN_MANIFEST).is_file() or (path / SUMS).is_file():
        return verify_folder(path)
    if (path / "manifest.json").is_file():
        return verify_run(path)
    if (path / "runs").is_dir():
        return verify_site(path, content, jobs=jobs)
    raise InputError(
        f"{path}: holds no manifest.json, no {SUMS} and no runs/; give a run folder, a data folder or a site"
    )


def verify_folder(data: Path) -> Findings:
    """Check a data folder without its site: nothing there says how pages and descriptions were made."""
    findings = Findings()
    check_tree(data, findings)
    findings.merge(verify_data(data)[0])
    findings.notes.append(_DATA_ALONE)
    return findings


def verify_run(folder: Path) -> Findings:
    """Check a run folder: what `load_run` checks, rows that are missing, and the tables that `score` wrote, if any."""
    findings = Findings()
    check_tree(folder, findings)
    try:
        run = load_run(folder)
    except InputError as error:
        findings.faults(line.removeprefix(f"{folder}/") for line in error.faults)
        return findings
    findings.checked["receipts"] += sum(entry.rows for entry in run.manifest.shards)
    check_rows(run, findings)
    scored = score_here(run)
    check_run_tables(folder, scored, findings)
    return findings


def verify_site(dist: Path, content: Path = Path("content"), *, jobs: int = 1) -> Findings:
    """Check every run of a site folder, make all files anew that this program made, and read the other pages."""
    findings = Findings()
    check_tree(dist, findings)
    found: dict[str, Recomputed] = {}
    with (
        tempfile.TemporaryDirectory(prefix="aibiasbench-verify-") as temporary,
        local_workers(jobs, preload=remake_site.__module__, again=_AGAIN) as workers,
    ):
        each = workers.each if jobs > 1 else None
        for data in sorted((dist / "runs").glob("*/data")):
            run_id = data.parent.name
            own, recomputed = verify_data(data, Path(temporary, "runs", run_id), each)
            findings.merge(own.below(f"runs/{run_id}/data"))
            if recomputed is not None:
                _check_name(run_id, recomputed, findings)
                found[run_id] = recomputed
        if not found and not findings.mismatches:
            raise InputError(f"{dist / 'runs'}: no run with a data folder; is {dist} a published site?")
        made = remake_site(dist, found, content, Path(temporary, "made"), findings, workers)
    check_asset_names(dist, findings)
    findings.merge(verify_pages(dist, {run: RecomputedRows(recomputed) for run, recomputed in found.items()}, made))
    check_links(dist, _address(dist), findings)
    return findings


def _address(dist: Path) -> str | None:
    """Return where the site says that it lives; None where it does not, or its record cannot be read."""
    try:
        publication = read_publication(dist)
    except InputError:
        return None
    return publication.root.base_url if publication is not None else None


def _check_name(run_id: str, recomputed: Recomputed, findings: Findings) -> None:
    findings.compare(f"runs/{run_id}", "run_id", run_id, recomputed.run.manifest.run_id)


def verify_url(url: str, deadline: float = DEADLINE) -> Findings:
    """Fetch what a served site or data folder lists, in `deadline` seconds at most, and check it."""
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="aibiasbench-verify-") as temporary:
        for name, folder in fetch_runs(url, Path(temporary), deadline).items():
            findings.merge(verify_folder(folder).below(name))
    return findings


def check_pins(wanted: Sequence[str], findings: Findings) -> None:
    """Hold hashes that a reader kept against those of the publications that were checked.

    A pin that is none of theirs is a mismatch: what is published now is not what it was taken from.
    """
    there = ", ".join(findings.pins.values()) or ABSENT
    for pin in wanted:
        findings.checked["pins"] += 1
        if pin not in findings.pins.values():
            findings.add(next(iter(findings.pins), MANIFEST), "pin", there, pin)
