"""`aibiasbench import TABLE... --map MAP RUN`: answers and labels that another harness collected become a run.

See contract: stages, "Import".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from generator.schema.errors import InputError
from generator.schema.json_files import read_json
from generator.schema.names import run_id_fault
from harness.importing.collect import collected
from harness.importing.import_map import ImportMap, read_map
from harness.importing.to_bank import bank_of
from harness.importing.write import ImportedRun, WrittenImport, check_import, write_import
from harness.stages.judge_stage import ROOT
from harness.stages.receipts import MANIFEST, RECEIPTS, harness_commit
from harness.terminal.options import runs_option, summary_option

_NOT_DONE = {
    "masking": "judges saw the group",
    "second_judge": "one judge",
    "repeats": "each prompt asked once",
    "audit": "no human audit",
}


@click.command("import")
@click.argument("tables", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.argument("run")
@click.option(
    "--map",
    "map_path",
    type=click.Path(path_type=Path),
    required=True,
    help="TOML: which column is what, which text is which label.",
)
@runs_option
@click.option("--check", "only_check", is_flag=True, help="Read and check everything; write nothing.")
@click.option("--replace", is_flag=True, help="Write over an earlier import of the same name.")
@summary_option
def command(
    tables: tuple[Path, ...], run: str, map_path: Path, runs_dir: Path, only_check: bool, replace: bool, as_json: bool
) -> int:
    """Take answers and labels of TABLES into a run of kind `imported` named RUN.

    TABLES are Parquet, CSV or JSON Lines, Inspect logs (.eval), samples of lm-evaluation-harness or results of
    promptfoo. Whatever is wrong is told with file, row and column, and then nothing is written.
    """
    folder = runs_dir / run
    if fault := run_id_fault(run):
        raise InputError(fault)
    check_place(folder, replace=replace)
    given = read_map(map_path)
    found = collected(tables, given)
    item = ImportedRun(run, given, found, bank_of(found, given), harness_commit(ROOT))
    check_import(item)
    written = None if only_check else write_import(folder, item)
    summary = summary_of(item, written)
    click.echo(json.dumps(summary, indent=2) if as_json else "\n".join(summary_lines(summary, folder, given)))
    return 0


def check_place(folder: Path, *, replace: bool) -> None:
    """Refuse a folder that holds another kind of run, or an import that is not to be replaced."""
    if not folder.exists():
        return
    if (folder / RECEIPTS).is_symlink():
        raise InputError(f"{folder / RECEIPTS}: a link; an import writes and deletes in a folder of its own alone")
    manifest = folder / MANIFEST
    kind = read_json(manifest, "").get("kind") if manifest.is_file() else None
    others = [path for path in folder.iterdir() if path.name not in (".DS_Store",)] if kind is None else []
    if kind not in (None, "imported") or others:
        raise InputError(f"{folder}: holds another run; give the import a name of its own")
    if kind == "imported" and not replace:
        raise InputError(f"{folder}: holds an import already; --replace writes over it")


def summary_of(item: ImportedRun, written: WrittenImport | None) -> dict[str, Any]:
    """Return what was found, and what was written if anything was."""
    rows = item.found.rows
    return {
        "run_id": item.run_id,
        "rows": len(rows),
        "models": len({row.model for row in rows}),
        "attributes": len(item.bank.attributes),
        "concepts": len(item.bank.concepts),
        "framings": list(item.bank.framings),
        "groups": [group.id for attribute in item.bank.attributes for group in attribute.groups],
        "repeats": item.repeats,
        "judges": list(item.judges.all),
        "not_done": item.not_done,
        "bank_version": item.bank.version,
        "bank_sha256": item.bank.sha256,
        "written": written is not None,
        "counts": None if written is None else dict(written.counts),
        "tiebreaks_left_out": None if written is None else written.left_out["tiebreak"],
    }


def summary_lines(summary: dict[str, Any], folder: Path, given: ImportMap) -> list[str]:
    """Return the summary in words, with the next step."""
    shape = f"{summary['concepts']:,} concepts in {_counted(summary['framings'], 'framing')}"
    lines = [
        f"{summary['rows']:,} rows of {summary['models']:,} models: {shape}, {_counted(summary['groups'], 'group')}",
        f"judges: {', '.join(summary['judges'])}",
        f"matched by {given.run.matched_by}; not done: {'; '.join(_NOT_DONE[step] for step in summary['not_done'])}",
        f"bank {summary['bank_version']}, sha256 {summary['bank_sha256']}",
    ]
    if not summary["written"]:
        return [*lines, "everything is right; nothing was written (--check)"]
    lines.append(", ".join(f"{n:,} {status}" for status, n in summary["counts"].items()))
    if left := summary["tiebreaks_left_out"]:
        lines.append(f"{left:,} tiebreak votes left out: the primaries agreed there, or one was in error")
    return [*lines, f"written to {folder}", f"next: aibiasbench publish {summary['run_id']} --preview"]


def _counted(items: Sequence[str], word: str) -> str:
    return f"{len(items)} {word}{'s' if len(items) != 1 else ''}"
