"""`aibiasbench judge RUN`: the panel labels every answer, and the receipts are written (SPEC 2, 3 and 7)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from generator.schema.bank import Bank
from generator.schema.errors import CapError, InputError, ToolError
from harness.bank import BANK_FOLDER, read_bank_folder
from harness.cache import DEFAULT_CACHE
from harness.calls import Call
from harness.evaluate import Prompt, bank_prompts, planned_rows
from harness.judge import Bench, Case, Seat, found_answers
from harness.outcome import Outcome, Watch
from harness.plan import run_folder
from harness.receipts import ReceiptsWriter, harness_commit
from harness.session import Session, open_session

ROOT = Path(__file__).parents[2]


def collect(session: Session, bench: Bench, prompts: list[Prompt], *, partial: bool) -> dict[str, list[Case]]:
    """Return the cases of every model, in the order of its shard.

    Raises InputError where stage eval has not asked every planned row, unless `partial` lets them be absent.
    """
    failures = session.ledger.failures()
    cases, absent = {}, 0
    for model in sorted(session.plan.subject, key=str.encode):
        rows = list(planned_rows(session.plan, model, prompts))
        answers = session.cache.lookup([row.key for row in rows])
        cases[model] = [bench.case(row, answer) for row, answer in found_answers(rows, answers, failures)]
        absent += len(rows) - len(cases[model])
    if absent and not partial:
        run = session.plan.run_id
        raise InputError(
            f"{session.folder}: {absent} planned rows have no answer yet; let `aibiasbench eval {run}` end first,"
            " or judge what is there with --partial (the run can then be published as a preview only)"
        )
    return cases


def deliberate(session: Session, bench: Bench, cases: dict[str, list[Case]], watch: Watch | None) -> None:
    """Ask the primaries of all cases, then the tiebreaks of the undecided ones; replaces the cases in place."""
    _wave(session, bench, cases, watch, bench.primaries)
    _wave(session, bench, cases, watch, lambda case: (bench.tiebreak(case),) if case.undecided else ())


def _wave(
    session: Session,
    bench: Bench,
    cases: dict[str, list[Case]],
    watch: Watch | None,
    seats_of: Callable[[Case], tuple[Seat, ...]],
) -> None:
    seats = {model: [seats_of(case) for case in listed] for model, listed in cases.items()}
    calls: list[Call] = [
        bench.call(case, seat)
        for model, listed in cases.items()
        for case, taken in zip(listed, seats[model], strict=True)
        for seat in taken
    ]
    outcome = session.engine.run(calls, watch=watch)
    stop_unless_done(session, outcome)
    for model, listed in cases.items():
        cases[model] = [
            bench.voted(case, taken, outcome) if taken else case
            for case, taken in zip(listed, seats[model], strict=True)
        ]


def stop_unless_done(session: Session, outcome: Outcome) -> None:
    """Raise what ended the stage early: Ctrl-C, an endpoint that serves nothing, a spend cap."""
    left = f"{len(outcome.left)} calls left; `aibiasbench judge {session.plan.run_id}` resumes where it stopped"
    if outcome.interrupted:
        click.echo(left, err=True)
        raise click.Abort
    if outcome.stopped is not None:
        raise ToolError(f"{outcome.stopped}; {left}")
    if outcome.left:
        accounts = ", ".join(sorted(outcome.capped))
        raise CapError(f"stopped at the spend cap of {accounts}: {left}; raise the cap in run.toml to go on")


def judge_run(
    folder: Path,
    *,
    bank: Bank,
    cache: Path,
    now: int,
    environment: Mapping[str, str],
    partial: bool = False,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Judge a run and write its receipts; returns the manifest."""
    with open_session(folder, stage="judge", bank=bank, cache=cache, now=now, environment=environment) as session:
        bench = Bench(session.plan, bank)
        cases = collect(session, bench, bank_prompts(bank), partial=partial)
        deliberate(session, bench, cases, watch)
        sha = harness_commit(ROOT)
        writer = ReceiptsWriter(folder, session.plan, harness_sha=sha, costs=session.ledger.costs())
        for model, listed in cases.items():
            writer.shard(model, listed)
        books = {role: session.ledger.book(role).total for role in ("subject", "judge")}
        return writer.finish(bank.canonical(), subjects=books["subject"], judges=books["judge"])


@click.command("judge")
@click.argument("run")
@click.option("--cache", type=click.Path(path_type=Path), default=DEFAULT_CACHE, show_default=True, help="Cache file.")
@click.option("--partial", is_flag=True, help="Judge what stage eval has asked so far; the other rows are absent.")
def command(run: str, cache: Path, partial: bool) -> None:
    """Have the panel label every answer of RUN, masked, and write its receipts."""
    bank = read_bank_folder(BANK_FOLDER)
    manifest = judge_run(
        run_folder(run), bank=bank, cache=cache, now=int(time.time()), environment=os.environ, partial=partial
    )
    counts = ", ".join(f"{n} {status}" for status, n in manifest["counts"].items())
    click.echo(f"{manifest['run_id']}: {counts}; ${manifest['spend']['total_usd']:.2f}")
