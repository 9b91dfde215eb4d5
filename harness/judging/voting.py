"""Stage judge: every answer of a run before its panel, masked, until each row has a verdict.

Answers of stage eval come from the cache. Both primaries of all rows are asked first; then the tiebreak, where they
disagree and the panel has one. What comes out becomes the rows of the receipts (`harness.stages.receipts`).

See contract: stages, "judge"; contract: verdicts, "Panel".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from generator.schema.bank import Bank, Rubric
from generator.schema.panel import Panel
from generator.schema.verdict import OUTCOMES, REFUSED, Verdict, Vote, final_verdict, primaries_agree
from harness.calls.call import Answer, Call, Message, Request
from harness.calls.keys import JudgeKeys
from harness.calls.reread import reread
from harness.engine.outcome import Outcome
from harness.eval.questions import PlannedRow
from harness.judging.ballot import Ballot, failed_vote
from harness.masking.mask import Masker, Span, apply_mask, mask_prompt, masker_for
from harness.plan.records import RunPlan

_ERROR = Verdict(None, None, "error")


@dataclass(frozen=True, slots=True)
class Seat:
    """One judge's place on the panel of one row, with the cache key of its call."""

    judge: str
    role: str
    key: str


@dataclass(frozen=True, slots=True)
class Case:
    """A planned row with its answer, and what the judges see of it.

    Attributes:
        row: the planned row.
        rubric: the rubric of its concept.
        panel: the judges of its model.
        answer: the model's answer; None where the call failed for good.
        spans: what was masked in the answer's text, in code points.
        leak: whether a term is still there after masking.
        shown: the messages for the judges. None where nobody votes: no answer, one that was cut before it began, or a
            refusal by the vendor's filter.
        votes: the votes so far, in panel order.
        keys: the cache keys of these votes.
        failure: why there is no answer, a code of `VOTE_ERRORS`.
    """

    row: PlannedRow
    rubric: Rubric
    panel: Panel
    answer: Answer | None
    spans: tuple[Span, ...] = ()
    leak: bool = False
    shown: tuple[Message, Message] | None = None
    votes: tuple[Vote, ...] = ()
    keys: tuple[str, ...] = ()
    failure: str | None = None

    @property
    def outcome(self) -> str:
        """What became of the question to the model, one of `OUTCOMES` (contract: receipts, "Outcome")."""
        if self.answer is None:
            return "failed"
        return self.answer.outcome if self.answer.outcome in OUTCOMES else "answered"

    @property
    def verdict(self) -> Verdict:
        """What the row comes to (contract: verdicts, "Final label")."""
        if self.outcome in ("failed", "cut_before_answer"):
            return _ERROR
        return REFUSED if self.outcome == "filtered" else final_verdict(self.votes, self.rubric)

    @property
    def undecided(self) -> bool:
        """Whether two valid primary votes disagree and a tiebreak can settle it."""
        if self.panel.tiebreak is None or len(self.votes) != 2 or any(v.error for v in self.votes):
            return False
        return not primaries_agree(self.votes, self.rubric)


@dataclass
class Bench:
    """The judges of a run: makes their calls, and turns their answers into votes."""

    plan: RunPlan
    bank: Bank
    ballots: dict[str, Ballot] = field(init=False)
    _keys: dict[tuple[str, str], JudgeKeys] = field(init=False, default_factory=dict)
    _maskers: dict[str, Masker] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.ballots = {rubric.id: Ballot(rubric) for rubric in self.bank.rubrics}

    def case(self, row: PlannedRow, found: Answer | str) -> Case:
        """Mask a row's answer, and write the ballot that its panel is shown.

        Args:
            row: the planned row.
            found: its answer, or the code of a call that failed for good.
        """
        concept = row.prompt.concept
        rubric, panel = self.bank.rubric[concept.rubric], self.plan.panel(row.model)
        answer = reread(found) if isinstance(found, Answer) else None
        if answer is None or answer.outcome == "unusable":
            return Case(row, rubric, panel, None, failure=answer.error if answer else str(found))
        if not rubric.mask_groups:
            shown = self._shown(rubric, row.prompt.rendered.text, answer)
            return Case(row, rubric, panel, answer, shown=shown)
        # One masker for all answers to a concept, so that its expressions are compiled once.
        masker = self._maskers.get(concept.id) or self._maskers.setdefault(concept.id, masker_for(self.bank, concept))
        spans = tuple(masker.spans(answer.text))
        masked = apply_mask(answer.text, spans)
        shown = self._shown(rubric, mask_prompt(row.prompt.rendered), replace(answer, text=masked))
        return Case(row, rubric, panel, answer, spans, masker.leaks(masked), shown)

    def _shown(self, rubric: Rubric, prompt: str, answer: Answer) -> tuple[Message, Message] | None:
        if answer.outcome in ("filtered", "cut_before_answer"):
            return None
        return self.ballots[rubric.id].messages(prompt, answer.text)

    def primaries(self, case: Case) -> tuple[Seat, ...]:
        """Return the two primary seats of a case; none where nobody votes."""
        return tuple(self._seat(case, judge, "primary") for judge in case.panel.primary) if case.shown else ()

    def tiebreaks(self, case: Case) -> tuple[Seat, ...]:
        """Return the seat of the tiebreak where a case is undecided, otherwise none."""
        return (self.tiebreak(case),) if case.undecided else ()

    def tiebreak(self, case: Case) -> Seat:
        """Return the seat of the tiebreak of an undecided case.

        The case must have a tiebreak on its panel; `tiebreaks` asks first.
        """
        assert case.panel.tiebreak is not None
        return self._seat(case, case.panel.tiebreak, "tiebreak")

    def _seat(self, case: Case, judge: str, role: str) -> Seat:
        keys = self._keys.get((judge, case.rubric.id))
        if keys is None:
            params = self.plan.effective_params(self.plan.judge[judge])
            schema = self.ballots[case.rubric.id].schema
            keys = self._keys[judge, case.rubric.id] = JudgeKeys(judge, params, case.rubric.sha256, schema)
        assert case.shown is not None
        return Seat(judge, role, keys.key(case.shown, case.row.repeat))

    def call(self, case: Case, seat: Seat) -> Call:
        """Return the call behind a seat. Seats with equal keys are asked once.

        Args:
            case: a case with messages for its judges.
            seat: one of its seats.
        """
        assert case.shown is not None
        judge, ballot = self.plan.judge[seat.judge], self.ballots[case.rubric.id]
        params = self.plan.sent_params(judge)
        request = Request(judge.model, judge.api_model, case.shown, params, case.row.repeat, schema=ballot.schema)
        return Call(seat.key, "judge", judge.endpoint, request, ballot.check, case.rubric.id)

    def voted(self, case: Case, seats: Iterable[Seat], outcome: Outcome) -> Case:
        """Return the case with the votes of some seats added.

        Args:
            case: the case.
            seats: seats in panel order. Each has an answer or a failure in `outcome`.
            outcome: what the judges' calls came to.

        Raises:
            KeyError: a seat has neither, because its call was left.
        """
        ballot = self.ballots[case.rubric.id]
        votes, keys = list(case.votes), list(case.keys)
        for seat in seats:
            answer = outcome.answers.get(seat.key)
            # Every seat that was asked has an answer or a code; a call that was left keeps its row from getting here.
            if answer is None:
                votes.append(failed_vote(outcome.failures[seat.key], judge=seat.judge, role=seat.role, key=seat.key))
            else:
                votes.append(ballot.vote(answer, judge=seat.judge, role=seat.role, key=seat.key))
            keys.append(seat.key)
        return replace(case, votes=tuple(votes), keys=tuple(keys))


def found_answers(
    rows: Iterable[PlannedRow], answers: Mapping[str, Answer], failures: Mapping[str, str]
) -> Iterator[tuple[PlannedRow, Answer | str]]:
    """Yield the rows that came to an end, each with its answer or with the code of the call that failed for good.

    Rows that were never asked are left out: they are absent and no errors.

    Args:
        rows: planned rows.
        answers: by key, from the cache.
        failures: by key, from the ledger.
    """
    for row in rows:
        if row.key in answers:
            yield row, answers[row.key]
        elif row.key in failures:
            yield row, failures[row.key]
