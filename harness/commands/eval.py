"""`aibiasbench eval RUN`: ask every model of a run every prompt (contract: stages, "eval")."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from generator.schema.errors import CapError, InputError
from harness.bank.reader import read_bank_folder
from harness.engine.cache_choice import cache_words
from harness.engine.outcome import Outcome
from harness.eval.questions import Prompt, bank_prompts, chosen, response_calls
from harness.money.budget import RUN_ACCOUNT, caps_of, dollars, picodollars
from harness.money.fresh import FreshTokens
from harness.plan.records import SIMULATED
from harness.plan.run_toml import read_run_bank, run_folder
from harness.stages.judge_stage import unanswered
from harness.stages.probe import caps_needed, probe
from harness.stages.session import Session, asking_anew, open_session, unsent_lines
from harness.terminal.endings import endings
from harness.terminal.options import bank_option, cache_option, forecast_option, runs_option, summary_option
from harness.terminal.probe_table import cap_faults, probe_json, probe_lines
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
    usd,
)


@click.command("eval")
@click.argument("run")
@runs_option
@bank_option
@cache_option
@click.option("--model", "models", multiple=True, help="Only this model; may be given several times.")
@click.option("--concept", "concepts", multiple=True, help="Only this concept; may be given several times.")
@forecast_option
@click.option(
    "--fresh",
    is_flag=True,
    help="Ask again what the cache holds; continues until an `eval RUN --fresh` without --concept has finished.",
)
@click.option(
    "--probe",
    "probing",
    is_flag=True,
    help="Only try: one real call per model and one per judge and rubric; says what works and what run.toml needs.",
)
@click.option(
    "--settle-lost",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="Book all calls whose cost is unknown (crash, broken connection) at what the vendor billed for them.",
)
@summary_option
def command(
    run: str, runs_dir: Path, bank_path: Path, cache: Path | None, models: tuple[str, ...], concepts: tuple[str, ...],
    dry_run: bool, fresh: bool, probing: bool, settle_lost: float | None, as_json: bool,
) -> int:  # fmt: skip
    """Ask every model of RUN (an id in --runs-dir, or a folder) every prompt of the bank, each repeat.

    Answers are kept in the cache and never paid for twice; the run's ledger holds every attempt. Stop it at any
    time, and run it again to go on. Exit 3 at a spend cap, 130 after Ctrl-C.
    """
    folder = run_folder(run, runs_dir)
    bank = read_run_bank(folder, lambda: read_bank_folder(bank_path))
    answers = chosen_cache(folder, cache)
    if dry_run:
        show_forecast(folder, bank, answers, models=models, concepts=concepts, fresh=fresh, as_json=as_json)
        return 0
    now = int(time.time())
    try:
        with open_session(folder, stage="eval", bank=bank, cache=answers, now=now, environment=os.environ) as session:
            names = chosen(models, list(session.plan.subject), "model")
            if probing:
                return probed(session, names, as_json=as_json)
            prompts = bank_prompts(bank, chosen(concepts, list(bank.concept), "concept"))
            # Only now: a slip in a name must book nothing.
            if settle_lost is not None:
                click.echo(settled_line(session, settle_lost), err=True)
            outcome = ask(session, names, prompts, fresh=fresh, whole=not concepts, now=now)
            summary = summary_of(session, outcome)
            rest = unanswered(session) if models or concepts else 0
    except KeyboardInterrupt:  # while rows are planned or looked up; during the calls the engine stops itself
        click.echo(f"interrupted: no answer is lost; `aibiasbench eval {run}` goes on from here", err=True)
        return INTERRUPTED
    again = f"aibiasbench eval {run}"
    ends = [ending.line(again, "answers") for ending in endings([outcome])]
    click.echo(json.dumps(summary, indent=2) if as_json else "\n".join(summary_lines(summary, run, ends, rest)))
    return exit_code(outcome, again)


def ask(
    session: Session, models: Sequence[str], prompts: list[Prompt], *, fresh: bool, whole: bool, now: int
) -> Outcome:
    """Ask models, under new tokens with `fresh`; says first what is not sent. `whole`: these are all prompts."""
    begun: list[str] = []
    if fresh:
        session, begun = asking_anew(session, models, f"{session.plan.run_id}/{now}")
    notes = [
        f"note: {model} goes on with the fresh answers that were begun before;"
        " only a whole `eval RUN --fresh` (without --concept) ends the fresh pass"
        for model in begun
    ]
    for line in (*notes, *unsent_lines(session.plan)):
        click.echo(line, err=True)
    outcome = evaluate(session, models, prompts)
    if whole:
        ended = set(models) - {call.request.model for call in outcome.left}
        FreshTokens(session.ledger).end(sorted(ended))
    return outcome


def probed(session: Session, models: Sequence[str], *, as_json: bool) -> int:
    """Try models and judges and print what was found; returns 0 when run.toml works as it stands, else 2.

    Raises CapError where a cap left something untried.
    """
    if session.plan.kind == SIMULATED:
        raise InputError("the models of a simulated run answer inside this program: there is nothing to probe")
    found = probe(session, models, os.environ)
    click.echo(json.dumps(probe_json(found), indent=2) if as_json else "\n".join(probe_lines(found)))
    if faults := cap_faults(found, caps_needed(found, session.ledger.committed)):
        raise CapError(*faults)
    return 0 if all(each.works and not each.mends for each in found) else InputError.exit_code


def settled_line(session: Session, billed: float) -> str:
    """Book all calls whose cost is unknown at what was billed for them together, and say so."""
    settled = session.ledger.settle_lost(picodollars(billed))
    if not settled:
        return "there is no call of unknown cost: nothing was booked"
    return f"calls of unknown cost: {settled:,}, booked at {usd(billed)} together"


def evaluate(session: Session, models: Sequence[str], prompts: list[Prompt]) -> Outcome:
    """Ask models what is planned and not yet in the cache; shows progress on stderr."""
    plan = session.plan
    calls = (call for name in models for call in response_calls(plan, name, prompts))
    with stage_progress(stage_name("eval", plan.kind), cap=caps_of(plan)[RUN_ACCOUNT]) as watch:
        return session.engine.run(calls, watch=watch, keep=False)


def summary_of(session: Session, outcome: Outcome) -> dict[str, Any]:
    """Return the numbers of an eval that finished or was stopped."""
    tally, book = outcome.tally, session.ledger.book("subject")
    return {
        "run_id": session.plan.run_id,
        "kind": session.plan.kind,
        "stage": "eval",
        "planned": tally.planned,
        "from_cache": tally.cached,
        "asked": tally.asked,
        "attempts": tally.attempts,
        "outcomes": dict(sorted(tally.outcomes.items())),
        "failed": dict(sorted(Counter(outcome.failures.values()).items())),
        "reasons": outcome.reasons,
        "overspent": dict(sorted(tally.overspent.items())),
        "overlong": dict(sorted(tally.overlong.items())),
        "left": len(outcome.left),
        "left_by_model": dict(sorted(Counter(call.request.model for call in outcome.left).items())),
        "capped": sorted(outcome.capped),
        "stopped": outcome.stopped,
        "models": [ending.as_json() for ending in endings([outcome])],
        "interrupted": outcome.interrupted,
        "unknown_cost_usd": dollars(book.lost),
        "spent_usd": dollars(session.ledger.committed()),
        "cap_usd": session.plan.caps.run,
        "cache": str(session.cache.path),
        "warnings": tally.warnings,
    }


def summary_lines(summary: dict[str, Any], run: str, ends: Sequence[str], rest: int = 0) -> list[str]:
    """Return the summary in words, with how each model ended and the commands to look further.

    `rest`: planned rows of the whole run that have no answer yet.
    """
    where = cache_words(summary["cache"])
    planned, cached, asked = (summary[key] for key in ("planned", "from_cache", "asked"))
    lines = [
        f"eval of {summary['run_id']}: {planned:,} answers planned, {cached:,} from the cache, {asked:,} asked now",
        f"outcomes: {counts(summary['outcomes'].items())}",
    ]
    if summary["failed"]:
        lines.append(f"failed for good: {failed_counts(summary['failed'], summary['reasons'])}")
    if summary["outcomes"].get("unusable"):
        lines.append(
            f"unusable: nothing but white space, three times over; to ask again: aibiasbench cache prune{where}"
            " --outcome unusable"
        )
    if cut := summary["outcomes"].get("cut_before_answer"):
        lines.append(
            f"{cut:,} answers were cut before they began: thinking took the budget; raise max_tokens or lower the"
            " reasoning effort in run.toml"
        )
    lines.append(spent_line(summary))
    if summary["unknown_cost_usd"]:
        lines.append(
            f"of that {usd(summary['unknown_cost_usd'])} is the worst case of calls whose cost is unknown; when the"
            f" vendor's bill is there: aibiasbench eval {run} --settle-lost USD"
        )
    lines += overspent_lines(summary["overspent"], summary["overlong"])
    lines += [*ends, f"look further: aibiasbench cache list{where}"]
    if summary["stopped"] or summary["left"]:
        return lines
    judge = f"aibiasbench judge {run}" + (" --partial" if rest else "")
    if summary["failed"]:
        lines.append(f"next: aibiasbench eval {run} asks what failed again; {judge} takes it as errors")
    else:
        lines.append(f"next: {judge}")
    if rest:
        lines[-1] += f" ({rest:,} planned rows have no answer yet; aibiasbench eval {run} asks them)"
    return lines
