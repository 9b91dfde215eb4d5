"""`aibiasbench judge RUN`: the panel labels every answer, and the receipts are written (contract: stages, "judge")."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from harness.bank.reader import read_bank_folder
from harness.engine.cache_choice import cache_words
from harness.money.budget import RUN_ACCOUNT, caps_of, dollars
from harness.plan.run_toml import read_run_bank, run_folder
from harness.stages.judge_stage import Judging, judge_session
from harness.stages.session import Session, open_session, unsent_lines
from harness.terminal.endings import endings
from harness.terminal.options import bank_option, cache_option, forecast_option, runs_option, summary_option
from harness.terminal.progress import stage_progress
from harness.terminal.report import (
    INTERRUPTED,
    chosen_cache,
    counts,
    exit_code,
    failed_counts,
    overspent_lines,
    show_forecast,
    spent_line,
    stage_name,
)


@click.command("judge")
@click.argument("run")
@runs_option
@bank_option
@cache_option
@click.option("--partial", is_flag=True, help="Judge the answers that are there; rows not asked yet are absent.")
@forecast_option
@summary_option
def command(
    run: str, runs_dir: Path, bank_path: Path, cache: Path | None, partial: bool, dry_run: bool, as_json: bool
) -> int:
    """Have the panel label every answer of RUN (an id in --runs-dir, or a folder), masked, and write its receipts.

    Votes are kept in the cache and never paid for twice. Stop it at any time, and run it again to go on; receipts are
    written when every row has its verdict. Exit 3 at a spend cap, 130 after Ctrl-C.
    """
    folder = run_folder(run, runs_dir)
    bank = read_run_bank(folder, lambda: read_bank_folder(bank_path))
    answers = chosen_cache(folder, cache)
    if dry_run:
        show_forecast(folder, bank, answers, models=(), concepts=(), as_json=as_json)
        return 0
    now = int(time.time())
    try:
        with open_session(folder, stage="judge", bank=bank, cache=answers, now=now, environment=os.environ) as session:
            cap = caps_of(session.plan)[RUN_ACCOUNT]
            for line in unsent_lines(session.plan):
                click.echo(line, err=True)
            result = judge_session(
                session,
                partial=partial,
                progress=lambda wave: stage_progress(stage_name(wave, session.plan.kind), cap=cap, unit="votes"),
            )
            summary = summary_of(session, result)
    except KeyboardInterrupt:  # while answers are masked or receipts written; during the calls the engine stops itself
        click.echo(f"interrupted: no vote is lost; `aibiasbench judge {run}` goes on from here", err=True)
        return INTERRUPTED
    again = f"aibiasbench judge {run}"
    ends = [ending.line(again, "votes") for ending in endings(result.waves)]
    click.echo(json.dumps(summary, indent=2) if as_json else "\n".join(summary_lines(summary, run, folder, ends)))
    return exit_code(result.stopped, again) if result.stopped else 0


def summary_of(session: Session, result: Judging) -> dict[str, Any]:
    """Return the numbers of a judge stage that finished or was stopped."""
    waves = [wave.tally for wave in result.waves]
    return {
        "run_id": session.plan.run_id,
        "kind": session.plan.kind,
        "stage": "judge",
        "votes": sum(tally.planned for tally in waves),
        "from_cache": sum(tally.cached for tally in waves),
        "asked": sum(tally.asked for tally in waves),
        "tiebreaks": waves[1].planned if len(waves) > 1 else 0,
        "left": len(result.stopped.left) if result.stopped else 0,
        "stopped": result.stopped.stopped if result.stopped else None,
        "judges": [ending.as_json() for ending in endings(result.waves)],
        "absent": result.absent,
        "statuses": result.manifest["counts"] if result.manifest else {},
        "reasons": {code: reason for wave in result.waves for code, reason in wave.reasons.items()},
        "overspent": dict(sorted(sum((tally.overspent for tally in waves), Counter[str]()).items())),
        "overlong": dict(sorted(sum((tally.overlong for tally in waves), Counter[str]()).items())),
        "vote_errors": dict(sorted(result.errors.items())),
        "mask_leaks": result.leaks,
        "spent_usd": dollars(session.ledger.committed()),
        "cap_usd": session.plan.caps.run,
        "cache": str(session.cache.path),
        "warnings": [warning for tally in waves for warning in tally.warnings],
    }


def summary_lines(summary: dict[str, Any], run: str, folder: Path, ends: Sequence[str]) -> list[str]:
    """Return the summary in words, with how each judge ended and the commands to look further."""
    votes, cached, asked = (summary[key] for key in ("votes", "from_cache", "asked"))
    lines = [f"judge of {summary['run_id']}: {votes:,} votes, {cached:,} from the cache, {asked:,} asked now"]
    if summary["absent"]:
        lines.append(f"absent rows: {summary['absent']:,}, not asked yet; ask them: aibiasbench eval {run}")
    if summary["vote_errors"]:
        lines.append(f"votes in error: {failed_counts(summary['vote_errors'], summary['reasons'])}")
    if summary["vote_errors"].keys() - summary["reasons"].keys():
        lines.append(
            "votes without valid JSON three times over are kept; to ask again: aibiasbench cache prune"
            f"{cache_words(summary['cache'])} --role judge --outcome unusable"
        )
    if summary["reasons"]:
        lines.append(f"failed calls are asked again by: aibiasbench judge {run}")
    lines += [*overspent_lines(summary["overspent"], summary["overlong"]), spent_line(summary), *ends]
    if summary["statuses"]:
        lines += [
            f"rows: {counts(summary['statuses'].items())}; {summary['mask_leaks']:,} leaks through the mask",
            f"receipts: {folder / 'receipts'}, {folder / 'manifest.json'}",
            f"next: aibiasbench score {run}, or aibiasbench audit sample {run}",
        ]
    return lines
