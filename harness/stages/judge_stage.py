"""Drives stage judge over an open session: collects the answers, asks the panel, writes the receipts.

See contract: stages, "judge".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.schema.errors import InputError
from harness.calls.call import Call
from harness.engine.outcome import Outcome, Watch
from harness.eval.questions import Prompt, bank_prompts, planned_rows
from harness.judging.voting import Bench, Case, Seat, found_answers
from harness.money.fresh import FreshTokens
from harness.plan.records import SIMULATED
from harness.stages.receipts import ReceiptsWriter, harness_commit
from harness.stages.session import Session

ROOT = Path(__file__).parents[2]


@dataclass
class Judging:
    """What stage judge came to: the waves asked so far and, when nothing stopped it, the manifest."""

    absent: int = 0
    waves: list[Outcome] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    leaks: int = 0
    manifest: dict[str, Any] | None = None

    @property
    def stopped(self) -> Outcome | None:
        """The wave that a cap, a closed lane or Ctrl-C stopped, or a first one without any vote; None otherwise."""
        last = self.waves[-1] if self.waves else None
        if last is None:
            return None
        return last if last.unfinished or (len(self.waves) == 1 and last.barren) else None


def collect(
    session: Session, bench: Bench, prompts: list[Prompt], *, partial: bool
) -> tuple[dict[str, list[Case]], int]:
    """Return the cases of every model in the order of its shard, and how many planned rows are absent.

    Raises InputError where stage eval has not asked every planned row, unless `partial` lets them be absent.
    """
    failures = session.ledger.failures()
    cases: dict[str, list[Case]] = {}
    absent = 0
    for model in sorted(session.plan.subject, key=str.encode):
        rows = list(planned_rows(session.plan, model, prompts))
        answers = session.cache.lookup([row.key for row in rows])
        cases[model] = [bench.case(row, found) for row, found in found_answers(rows, answers, failures)]
        absent += len(rows) - len(cases[model])
    if absent and not partial:
        raise InputError(
            f"{session.folder}: {absent:,} planned rows have no answer yet; finish `aibiasbench eval"
            f" {session.plan.run_id}` first, or judge what is there with --partial (with absent rows a run can be"
            " published as a preview only)"
        )
    return cases, absent


def unanswered(session: Session) -> int:
    """Return how many planned rows of a run have neither an answer nor a call that failed for good."""
    plan = session.plan.model_copy(update={"fresh": FreshTokens(session.ledger).by_model()})  # as stage judge reads it
    failures, prompts = session.ledger.failures(), bank_prompts(session.bank)
    absent = 0
    for model in plan.subject:
        rows = list(planned_rows(plan, model, prompts))
        answers = session.cache.lookup([row.key for row in rows])
        absent += len(rows) - sum(1 for _ in found_answers(rows, answers, failures))
    return absent


@contextmanager
def unwatched(_name: str) -> Iterator[Watch]:
    """Watch nothing."""
    yield lambda _tally: None


def judge_session(
    session: Session, *, partial: bool = False, progress: Callable[[str], AbstractContextManager[Watch]] = unwatched
) -> Judging:
    """Judge a run and, when nothing stopped it, write its receipts; `progress` watches each wave by name."""
    bench, result = Bench(session.plan, session.bank), Judging()
    cases, result.absent = collect(session, bench, bank_prompts(session.bank), partial=partial)
    for name, seats_of in (("judge", bench.primaries), ("tiebreak", bench.tiebreaks)):
        with progress(name) as watch:
            result.waves.append(_wave(session, bench, cases, seats_of, watch))
        if result.stopped is not None:
            return result
    for listed in cases.values():
        result.errors.update(vote.error for case in listed for vote in case.votes if vote.error)
        result.leaks += sum(case.leak for case in listed)
    result.manifest = write_receipts(session, cases)
    return result


def _wave(
    session: Session,
    bench: Bench,
    cases: dict[str, list[Case]],
    seats_of: Callable[[Case], tuple[Seat, ...]],
    watch: Watch,
) -> Outcome:
    """Ask some seats of every case; replaces the cases by those with their votes, unless something stopped the wave."""
    seats = {model: [seats_of(case) for case in listed] for model, listed in cases.items()}
    calls: list[Call] = [
        bench.call(case, seat)
        for model, listed in cases.items()
        for case, taken in zip(listed, seats[model], strict=True)
        for seat in taken
    ]
    outcome = session.engine.run(calls, watch=watch)
    if outcome.unfinished:
        return outcome
    for model, listed in cases.items():
        cases[model] = [
            bench.voted(case, taken, outcome) if taken else case
            for case, taken in zip(listed, seats[model], strict=True)
        ]
    return outcome


def from_cache(session: Session, cases: Sequence[Case]) -> float:
    """Return the share of a model's answers that were not asked for this run but taken from the cache; 0 of none."""
    keys = [case.row.key for case in cases if case.answer is not None]
    asked = session.ledger.asked(session.cache.tickets(keys))
    return (len(keys) - len(asked)) / len(keys) if keys else 0.0


def _planted(session: Session) -> list[dict[str, Any]] | None:
    if session.plan.kind != SIMULATED:
        return None
    from harness.simulated.planted_effects import planted_effects

    return planted_effects(session.plan, session.bank)


def write_receipts(session: Session, cases: dict[str, list[Case]]) -> dict[str, Any]:
    """Write shards, bank and manifest of a judged run; returns the manifest."""
    writer = ReceiptsWriter(
        session.folder,
        session.plan,
        harness_sha=harness_commit(ROOT),
        costs=session.ledger.costs(),
        planted=_planted(session),
    )
    for model, listed in cases.items():
        writer.shard(model, listed, from_cache=from_cache(session, listed))
    subjects, judges = (session.ledger.book(role).total for role in ("subject", "judge"))
    planned = len(bank_prompts(session.bank)) * session.plan.repeats
    partial = any(len(cases.get(model, ())) < planned for model in session.plan.subject)
    return writer.finish(session.bank.snapshot(), subjects=subjects, judges=judges, partial=partial)
