"""`aibiasbench eval RUN`: ask every model of a run every prompt (SPEC 2 and 7)."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path

import click

from generator.schema.errors import CapError, InputError
from harness.bank import BANK_FOLDER, read_bank_folder
from harness.budget import RUN_ACCOUNT, caps_of, dollars, picodollars
from harness.cache import DEFAULT_CACHE
from harness.evaluate import bank_prompts, chosen, response_calls
from harness.outcome import Outcome
from harness.plan import RUNS, run_folder
from harness.progress import stage_progress
from harness.session import Session, open_session

INTERRUPTED = 130


@click.command("eval")
@click.argument("run")
@click.option("--runs-dir", type=click.Path(path_type=Path), default=RUNS, show_default=True, help="Where runs live.")
@click.option("--bank", "bank_folder", type=click.Path(path_type=Path), default=BANK_FOLDER, show_default=True)
@click.option("--cache", type=click.Path(path_type=Path), default=DEFAULT_CACHE, show_default=True)
@click.option("--model", "models", multiple=True, help="Ask only this model; may be given several times.")
@click.option("--concept", "concepts", multiple=True, help="Ask only this concept; may be given several times.")
@click.option("--dry-run", is_flag=True, help="Say what eval and judge would cost, and ask nothing.")
@click.option(
    "--settle-lost",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="Book the calls that a crash or a broken connection lost at what was billed for all of them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def command(
    run: str, runs_dir: Path, bank_folder: Path, cache: Path, models: tuple[str, ...], concepts: tuple[str, ...],
    dry_run: bool, settle_lost: float | None, as_json: bool,
) -> int:  # fmt: skip
    """Ask every model of RUN (an id in --runs-dir, or a folder) every prompt of the bank, each repeat.

    Answers are kept in the cache and never paid twice; the run's ledger holds every attempt. Stop it at any time, and
    run it again to go on. Exit 3 at a spend cap, 130 after Ctrl-C.
    """
    bank = read_bank_folder(bank_folder)
    folder = run_folder(run, runs_dir)
    with open_session(
        folder, stage="eval", bank=bank, cache=cache, now=int(time.time()), environment=os.environ
    ) as session:
        if settle_lost is not None:
            click.echo(f"{session.ledger.settle_lost(picodollars(settle_lost))} lost calls settled", err=True)
        names = chosen(models, list(session.plan.subject), "model")
        prompts = bank_prompts(bank, chosen(concepts, list(bank.concept), "concept") if concepts else ())
        if dry_run:
            raise NotImplementedError
        cap = caps_of(session.plan)[RUN_ACCOUNT]
        calls = [call for name in names for call in response_calls(session.plan, name, prompts)]
        with stage_progress("eval", cap=cap) as watch:
            outcome = session.engine.run(calls, watch=watch, keep=False)
        summary = summary_of(session, outcome)
    click.echo(json.dumps(summary, indent=2) if as_json else "\n".join(summary_lines(summary)))
    return exit_code(outcome, str(folder))


def summary_of(session: Session, outcome: Outcome) -> dict[str, object]:
    """Return the numbers of a finished or stopped eval."""
    tally, book = outcome.tally, session.ledger.book("subject")
    return {
        "run_id": session.plan.run_id,
        "stage": "eval",
        "planned": tally.planned,
        "from_cache": tally.cached,
        "asked": tally.asked,
        "attempts": tally.attempts,
        "outcomes": dict(sorted(tally.outcomes.items())),
        "failed": dict(sorted(Counter(outcome.failures.values()).items())),
        "left": len(outcome.left),
        "left_by_model": dict(sorted(Counter(call.request.model for call in outcome.left).items())),
        "capped": sorted(outcome.capped),
        "stopped": outcome.stopped,
        "interrupted": outcome.interrupted,
        "lost_calls": session.lost,
        "spent_usd": dollars(session.ledger.committed()),
        "cap_usd": session.plan.caps.run,
        "subjects_usd": dollars(book.total),
        "reused_usd": dollars(book.reused),
        "warnings": tally.warnings,
    }


def summary_lines(summary: dict[str, object]) -> list[str]:
    """Return the summary in words, with the commands to look further."""
    return [f"{key}: {value}" for key, value in summary.items()]


def exit_code(outcome: Outcome, run: str) -> int:
    """Return 0 or 130; raises CapError or InputError where a cap or an endpoint stopped the stage."""
    left = f"{len(outcome.left):,} calls are left; `aibiasbench eval {run}` goes on from here"
    if outcome.interrupted:
        click.echo(f"interrupted: {left}", err=True)
        return INTERRUPTED
    if outcome.stopped is not None:
        raise InputError(f"{outcome.stopped}\n{left}")
    if outcome.capped:
        raise CapError(f"stopped at a spend cap ({', '.join(sorted(outcome.capped))}): {left}")
    return 0
