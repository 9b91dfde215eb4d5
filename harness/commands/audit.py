"""`aibiasbench audit sample|import|review RUN`: the human spot-check of the judges.

See contract: stages, "Human audit".
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from generator.schema.audit_draw import DEFAULT_SIZE, LEAST_SIZE
from generator.schema.errors import InputError
from harness.audit.page import sheet_html
from harness.audit.sheet import (
    AUDIT,
    DRAW,
    LABELS_CSV,
    SHEET_CSV,
    SHEET_HTML,
    DrawRecord,
    Judged,
    checked_labels,
    draw_record,
    drawn_rubrics,
    items_of,
    labels_csv,
    open_judged,
    read_draw,
    sheet_csv,
)
from harness.audit.simulated_reviewer import reviewed
from harness.plan.run_toml import run_folder
from harness.stages.receipts import replace_file, replace_files
from harness.terminal.options import json_option, runs_option, tell


@click.group()
def command() -> None:
    """Draw a sample for a human reviewer, and import the labels."""


@command.command("sample", short_help="Draw rows, and write the review sheet.")
@click.argument("run")
@runs_option
@click.option("--size", default=DEFAULT_SIZE, show_default=True, type=click.IntRange(min=LEAST_SIZE), help="Rows.")
@click.option("--replace", is_flag=True, help="Draw again although labels were imported already; they go.")
@json_option
def sample(run: str, runs_dir: Path, size: int, replace: bool, as_json: bool) -> None:
    """Draw rows of RUN and write the review sheet: one HTML page that works offline, and the same as CSV."""
    folder = run_folder(run, runs_dir)
    judged = open_judged(folder)
    labels = folder / LABELS_CSV
    if labels.exists() and not replace:
        raise InputError(f"{labels}: this run has imported labels; --replace draws again and removes them")
    record = draw_record(judged, asked=size)
    items = items_of(judged, record)
    out = folder / AUDIT
    text = json.dumps(record.model_dump(mode="json"), indent=2, sort_keys=True)
    # The record of the draw goes last: where it is, its sheets are.
    replace_files(
        {
            out / SHEET_CSV: sheet_csv(items, judged.bank).encode(),
            out / SHEET_HTML: sheet_html(items, judged, record).encode(),
            out / DRAW: f"{text}\n".encode(),
        }
    )
    labels.unlink(missing_ok=True)
    tell(
        {"run_id": record.run_id, "rows": len(items), "html": str(out / SHEET_HTML), "csv": str(out / SHEET_CSV)},
        f"{len(items):,} rows drawn. Give the reviewer one of:\n  {out / SHEET_HTML}\n  {out / SHEET_CSV}",
        f"then: aibiasbench audit import {run} LABELS.csv",
        as_json=as_json,
    )


@command.command("import", short_help="Check the reviewer's labels, and keep them.")
@click.argument("run")
@click.argument("labels", type=click.Path(path_type=Path))
@runs_option
@json_option
def import_(run: str, labels: Path, runs_dir: Path, as_json: bool) -> None:
    """Check the reviewer's LABELS (CSV) against what was drawn for RUN, and keep them in its audit.csv."""
    folder = run_folder(run, runs_dir)
    judged, record = open_judged(folder), read_draw(folder)
    check_draw(judged, record)
    checked = checked_labels(labels, record, judged.bank)
    replace_file(folder / LABELS_CSV, labels_csv(checked).encode())
    out = folder / LABELS_CSV
    tell(
        {"run_id": record.run_id, "labels": len(checked), "reviewer": record.reviewer, "out": str(out)},
        f"{len(checked):,} labels of a {record.reviewer} reviewer imported into {out}",
        as_json=as_json,
    )


@command.command("review", short_help="Let the simulated reviewer fill in a sheet.")
@click.argument("run")
@click.argument("out", type=click.Path(path_type=Path))
@runs_option
@json_option
def review(run: str, out: Path, runs_dir: Path, as_json: bool) -> None:
    """Let the simulated reviewer fill in the sheet of a simulated RUN, and write its labels to OUT (CSV)."""
    folder = run_folder(run, runs_dir)
    judged, record = open_judged(folder), read_draw(folder)
    if not judged.manifest.simulated:
        raise InputError(
            f"{folder}: a live run; its audit needs a person, the simulated reviewer is for simulated runs"
        )
    labels = reviewed(items_of(judged, record), judged.bank, record.seed)
    replace_file(out, labels_csv(labels).encode())
    tell(
        {"run_id": record.run_id, "labels": len(labels), "reviewer": "simulated", "out": str(out)},
        f"{len(labels):,} labels of the simulated reviewer written to {out}",
        as_json=as_json,
    )


def check_draw(judged: Judged, record: DrawRecord) -> None:
    """Refuse labels of a draw that the receipts no longer give: rows were judged anew since."""
    if record.run_id != judged.manifest.run_id:
        raise InputError(f"{judged.folder / AUDIT / DRAW}: drawn for run {record.run_id}, not {judged.manifest.run_id}")
    if drawn_rubrics(judged, asked=record.asked, day=record.drawn_on) != record.rubrics:
        raise InputError(
            f"{judged.folder / AUDIT / DRAW}: the receipts changed since this sample was drawn;"
            f" draw again: aibiasbench audit sample {judged.folder.name} --replace"
        )
