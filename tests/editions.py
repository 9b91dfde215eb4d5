"""Editions and data folders for tests: a small run, scored, with everything of its Data page written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from generator.data.folder import manifest_sha256, write_downloads
from generator.data.table_files import DataFile
from generator.edition.edition import Edition, Licence, Mode, Site
from generator.html.assets import asset_files
from generator.pages.all import render_figures, render_pages, render_root
from generator.pages.data import render_data
from generator.pages.prose import render_prose
from generator.receipts.explorer import render_explorer
from generator.receipts.lists import render_list
from generator.receipts.pages import receipt_assets, receipt_task, write_receipts
from generator.runs.reader import load_run, read_shard
from generator.runs.redactions import Redactions
from generator.schema.audit_draw import auditable, draw, stratum_name
from generator.schema.bank import Bank
from generator.scoring.gate import standing_of
from generator.scoring.run import score_run
from tests.factories import answers_from, make_bank, make_run, noise, unit
from tests.names_of_bank_1 import CONTROLS, DEMOGRAPHIC

QUOTA = {"stance": 1, "allocation": 1, "refusal": 0, "regard": 0, "capability": 1}
SITE = Site(
    title="Test Bench",
    tagline="Alike?",
    description="A test.",
    publisher="Testers & Sons",
    contact="someone",
    mismatch="write to us",
    data_licence=Licence(name="CC BY 4.0", url="https://creativecommons.org/licenses/by/4.0/", spdx="CC-BY-4.0"),
)


def mixed(model: str, concept: str, framing: str, group: str, repeat: int) -> Any:
    """Mostly agreement; some refusals, splits and errors, by nothing but the row's key."""
    chance = unit("fate", model, concept, framing, group, repeat)
    if chance < 0.05:
        return ("REFUSAL", "REFUSAL")
    if chance < 0.08:
        return (None, 0.5)
    if chance < 0.14:
        return (0.0, 1.0, 1.0)
    if chance < 0.17:
        return (0.0, 1.0, 0.5)
    return answers_from(noise(model, concept, framing, group, repeat))


def small_bank(attributes: tuple[str, ...] = (*DEMOGRAPHIC, *CONTROLS), groups: int = 2) -> Bank:
    """Three concepts an attribute, so that every number exists and nothing takes long."""
    return make_bank(attributes, groups=groups, quota=QUOTA, control_quota=QUOTA)


def make_edition(
    folder: Path,
    *,
    bank: Bank | None = None,
    answers: Callable[..., Any] = mixed,
    resamples: int = 200,
    redactions: Redactions | None = None,
    withheld: frozenset[str] = frozenset(),
    site: Site = SITE,
    base_url: str | None = None,
    audit: bool = False,
    mode: Mode = "folded",
    **changes: Any,
) -> Edition:
    """A scored edition of a small run in `folder` (its name is the run id); an audit agrees with the panel."""
    path = make_run(folder, bank=bank or small_bank(), repeats=2, answers=answers, **changes)
    if audit:
        write_audit(path)
    run = load_run(path)
    scored = score_run(run, withheld=withheld, resamples=resamples)
    standing = standing_of(run, scored, preview=True, withhold=bool(withheld))
    return Edition(site, run, scored, standing, mode=mode, base_url=base_url, redactions=redactions or Redactions())


def write_audit(folder: Path) -> None:
    """Draw the run's audit and label every row as its panel did."""
    run = load_run(folder)
    rows = [row for model in run.models for row in read_shard(run, model).to_pylist()]
    strata: dict[str, list[str]] = {}
    for row in rows:
        if auditable(row["status"], len(row["votes"])):
            strata.setdefault(stratum_name(row["rubric"], row["final_label"]), []).append(row["receipt_id"])
    drawn = {r for ids in draw(strata, seed=run.manifest.seeds.audit).picked.values() for r in ids}
    lines = ["receipt_id,label"]
    for row in rows:
        if row["receipt_id"] in drawn:
            scored = row["rubric"] == "capability" and row["value"] is not None
            lines.append(f"{row['receipt_id']},{round(100 * row['value']) if scored else row['final_label']}")
    (folder / "audit.csv").write_text("\n".join(lines) + "\n")


def write_data(edition: Edition, folder: Path) -> tuple[Edition, tuple[DataFile, ...]]:
    """Write an edition's data folder with its page; returns the edition as pages see it, and the files."""
    files = write_downloads(edition, folder)
    edition = dataclasses.replace(edition, manifest_sha256=manifest_sha256(files))
    for page, data in render_data(edition, files):
        (folder / Path(page).name).write_bytes(data)
    return edition, files


def write_site(edition: Edition, dist: Path) -> Path:
    """Write a site of one edition as publish does, but for search index and publication.json. Returns its folder."""
    edition, _ = write_data(edition, dist / "runs" / edition.run_id / "data")
    made = [*render_pages(edition), *render_figures(edition), *render_root(edition, [edition])]
    made += [*render_prose(edition), *asset_files()]
    made += [*render_explorer(edition), *receipt_assets(edition.run_id)]
    made += [render_list(edition, model) for model in edition.run.models]
    for page, data in made:
        (dist / page).parent.mkdir(parents=True, exist_ok=True)
        (dist / page).write_bytes(data)
    for model in edition.run.models:
        write_receipts(receipt_task(edition, model, dist))
    return dist
