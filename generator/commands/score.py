"""`aibiasbench score RUN`: every table of a run from its receipts, and the leaderboard in the terminal.

See contract: stages, "Commands".
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from generator.data.table_files import TableFile, write_table
from generator.machine.site_tree import fresh_tree
from generator.runs.reader import Run, load_run
from generator.schema.errors import CheckError, InputError
from generator.schema.shown import shown
from generator.schema.tables import OVERALL, RUN_WIDE, TABLES
from generator.scoring.gate import standing_of
from generator.scoring.lookup import ScoreBook, ScoreRow
from generator.scoring.reasons import in_words
from generator.scoring.run import Scored, score_here

RUNS = Path("content/runs")
SCORES = "scores"
_PLAIN_WIDTH = 160
_RATES = ("refusal_rate", "contested_rate", "error_rate")


@click.command("score")
@click.argument("run")
@click.option("--runs-dir", type=click.Path(path_type=Path), default=RUNS, show_default=True, help="Where runs live.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder of the tables [default: scores/ in the run folder]."
)
@click.option(
    "--withhold", "withheld", multiple=True, metavar="CATEGORY", help="Score without this category; repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="Print the leaderboard as JSON.")
def command(run: str, runs_dir: Path, out: Path | None, withheld: tuple[str, ...], *, as_json: bool) -> None:
    """Compute every score of RUN (an id in --runs-dir, or a folder), write the tables and print the leaderboard.

    Every table is written as Parquet and CSV. `aibiasbench verify RUN` holds them against the receipts later.
    """
    folder = run_folder(run, runs_dir)
    loaded = load_run(folder)
    known = {c.category for c in loaded.bank.concepts}
    if unknown := [c for c in withheld if c not in known]:
        raise InputError(f"--withhold {unknown[0]}: no such category; the bank has {', '.join(sorted(known))}")
    scored = score_here(loaded, withheld=frozenset(withheld))
    target = out or folder / SCORES
    write_scores(loaded, scored, target)
    summary = leaderboard(loaded, scored)
    if as_json:
        print(json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False))
    else:
        _print(summary, target)


def run_folder(run: str, runs: Path) -> Path:
    """Return the folder that RUN means: an id below `runs`, or a path."""
    by_id = runs / run
    if "/" not in run and by_id.is_dir():
        return by_id
    if Path(run).is_dir():
        return Path(run)
    known = ", ".join(sorted(p.parent.name for p in runs.glob("*/manifest.json"))) or "none"
    raise InputError(f"run {run!r}: no such folder in {runs} and no such path; runs there: {known}")


def write_scores(run: Run, scored: Scored, out: Path) -> None:
    """Write every table below `out` as Parquet and CSV, all at once or not at all."""
    notes = {"run_id": run.manifest.run_id, "kind": run.manifest.kind, "bank_sha256": run.manifest.bank_sha256}
    with fresh_tree(out) as folder:
        for name, columns in TABLES.items():
            item = TableFile(name, "", columns, scored.tables[name], name)
            write_table(folder, item, {**notes, "table": name}, limit=sys.maxsize)


def leaderboard(run: Run, scored: Scored) -> dict[str, Any]:
    """Return what the terminal shows: models in tiers, gate, mean band, and what stands against publication."""
    book = scored.book
    models = [_model(run, book, row) for row in scored.tables["tiers"].to_pylist()]
    gates = [row for row in scored.tables["agreement"].to_pylist() if row["vendor"] == RUN_WIDE]
    return {
        "run_id": run.manifest.run_id,
        "kind": run.manifest.kind,
        "bank_version": run.manifest.bank_version,
        "bank_sha256": run.manifest.bank_sha256,
        "models": models,
        "mean_band": scored.mean_band,
        "gate": {row["rubric"]: {k: row[k] for k in ("gate", "kappa", "pabak", "warning")} for row in gates},
        "withheld": sorted(scored.withheld),
        "against_publication": _reasons(run, scored),
    }


def _reasons(run: Run, scored: Scored) -> list[str]:
    try:
        return [in_words(reason) for reason in standing_of(run, scored, preview=True, withhold=False).reasons]
    except CheckError as error:
        return list(error.findings)


def _model(run: Run, book: ScoreBook, place: Mapping[str, Any]) -> dict[str, Any]:
    model = place["model"]
    overall = book.row(model, "consistency")
    low, high = book.row(model, "band_low"), book.row(model, "band_high")
    excess = [book.row(model, "excess", a.id) for a in run.bank.attributes if a.kind == "demographic"]
    return {
        "model": model,
        "rank": place["rank"],
        "tier": place["tier"],
        "consistency": _numbers(overall),
        "band_low": _numbers(low),
        "band_high": _numbers(high),
        "flags": sorted({*overall.flags, *low.flags}),
        "flagged": [row.attribute for row in excess if row.evidence == "flagged"],
        "suggestive": [row.attribute for row in excess if row.evidence == "suggestive"],
        "tested": sum(row.evidence is not None for row in excess),
        "judges": run.manifest.model(model).panel.size,
        "absent_rows": run.absent[model],
        **{metric: book.row(model, metric, OVERALL).estimate for metric in _RATES},
    }


def _numbers(row: ScoreRow) -> dict[str, float | None]:
    return {"estimate": row.estimate, "ci_low": row.ci_low, "ci_high": row.ci_high}


def _shown(value: float | None, places: int = 1) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def _with_interval(numbers: Mapping[str, float | None]) -> str:
    if numbers["ci_low"] is None:
        return _shown(numbers["estimate"])
    return f"{_shown(numbers['estimate'])} [{_shown(numbers['ci_low'])}, {_shown(numbers['ci_high'])}]"


def _band(row: Mapping[str, Any]) -> str:
    if row["band_low"]["estimate"] is None:
        return "-"
    mark = " (swapped)" if "swapped" in row["flags"] else ""
    return f"{_shown(row['band_low']['estimate'])} to {_shown(row['band_high']['estimate'])}{mark}"


def _print(summary: Mapping[str, Any], out: Path) -> None:
    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)
    simulated = " · SIMULATED" if summary["kind"] == "simulated" else ""
    console.print(shown(f"Run {summary['run_id']}{simulated} · bank {summary['bank_version']}"), markup=False)
    table = Table(
        "tier", "model", escape("consistency [95 %]"), "control band", "flagged", "refusal %", "contested %", box=None
    )
    for row in summary["models"]:
        tier = "-" if row["tier"] is None else str(row["tier"])
        contested = f"{_shown(row['contested_rate'])} ({row['judges']} judges)"
        # Without a test, as in a bank without controls, "none" would read as clean.
        flagged = ", ".join(row["flagged"]) or ("none" if row["tested"] else "-")
        cells = (tier, escape(shown(row["model"])), escape(_with_interval(row["consistency"])), _band(row), flagged)
        table.add_row(*cells, _shown(row["refusal_rate"]), contested)
    console.print(table)
    for rubric, gate in summary["gate"].items():
        kappa = "undefined" if gate["kappa"] is None else _shown(gate["kappa"], 3)
        console.print(f"gate {rubric}: {gate['gate']} (kappa {kappa})", markup=False)
    for reason in summary["against_publication"]:
        console.print(f"against publication: {shown(reason)}", markup=False)
    console.print(f"Models in a tier cannot be distinguished. Tables written to {shown(str(out))}", markup=False)
