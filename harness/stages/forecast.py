"""What a run would still cost: calls, tokens and US dollars, before anything is spent (contract: stages, "Dry run").

Cached calls are left out. Expected: a prompt token for every four bytes, an answer of half of the subject's max_tokens,
`JUDGE_TOKENS` of a judge, a tiebreak on `TIEBREAK_SHARE` of the rows that may need one. At most: each attempt at the
worst case that is reserved for it, every tiebreak asked, answers that are not there yet as long as max_tokens allows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from generator.schema.bank import Bank
from harness.cache.answers import Cache
from harness.calls.call import TRIES, Answer, Call
from harness.engine.outcome import Outcome
from harness.eval.questions import PlannedRow, Prompt, planned_rows, response_calls
from harness.judging.voting import Bench, Case, Seat
from harness.masking.mask import mask_prompt
from harness.money.budget import dollars, worst_case
from harness.plan.records import PICO, SIMULATED, Callee, RunPlan

BYTES_PER_TOKEN = 4
JUDGE_TOKENS = 60
TIEBREAK_SHARE = 0.25
_CHUNK = 4_000


@dataclass
class Forecast:
    """What one model or judge would be asked; `calls` is fractional where tiebreaks are only expected."""

    role: str
    model: str
    cached: int = 0
    calls: float = 0.0
    most_calls: int = 0
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0
    expected: float = 0.0  # picodollars
    most: int = 0

    def add(
        self, call: Call, callee: Callee, *, tries: int, share: float = 1.0, most: int | None = None, times: int = 1
    ) -> None:
        """Add `times` such calls, each made with probability `share` and tried at most `tries` times.

        `most` is the worst case of one try where it differs from the call's own, in picodollars.
        """
        limit = int(call.request.params["max_tokens"])
        size = sum(len(m.content.encode()) for m in call.request.messages)
        prompt = size / BYTES_PER_TOKEN
        completion = min(limit, JUDGE_TOKENS) if call.role == "judge" else limit / 2
        price = callee.prices
        cost = (price.prompt_per_million * prompt + price.completion_per_million * completion) * (PICO / 1e6)
        self.calls += times * share
        self.most_calls += times
        self.prompt_tokens += times * share * prompt
        self.completion_tokens += times * share * completion
        self.expected += times * share * (cost + price.request * PICO)
        self.most += times * tries * (worst_case(call.request, price) if most is None else most)

    def as_json(self) -> dict[str, str | int | float]:
        """Return the forecast as a JSON object, in whole calls and tokens and US dollars."""
        return {
            "role": self.role,
            "model": self.model,
            "cached": self.cached,
            "calls": round(self.calls),
            "most_calls": self.most_calls,
            "prompt_tokens": round(self.prompt_tokens),
            "completion_tokens": round(self.completion_tokens),
            "expected_usd": round(dollars(round(self.expected)), 6),
            "most_usd": round(dollars(self.most), 6),
        }


@dataclass
class Forecaster:
    """Goes through a run as eval and judge would, asking nobody."""

    plan: RunPlan
    bank: Bank
    cache: Cache
    subjects: dict[str, Forecast] = field(init=False)
    judges: dict[str, Forecast] = field(init=False)

    def __post_init__(self) -> None:
        self.subjects = {m.model: Forecast("subject", m.model) for m in self.plan.models}
        self.judges = {j.model: Forecast("judge", j.model) for j in self.plan.judges.all}
        self._bench = Bench(self.plan, self.bank)

    def add(self, model: str, prompts: list[Prompt]) -> None:
        """Add a model's rows: the calls to it, and those to its panel."""
        rows = list(planned_rows(self.plan, model, prompts))
        calls = list(response_calls(self.plan, model, prompts))
        for i in range(0, len(rows), _CHUNK):
            there = self.cache.lookup([row.key for row in rows[i : i + _CHUNK]])
            self._subject(model, calls[i : i + _CHUNK], there)
            self._panel(model, rows[i : i + _CHUNK], there)

    def _subject(self, model: str, calls: Sequence[Call], there: dict[str, Answer]) -> None:
        entry, callee = self.subjects[model], self.plan.subject[model]
        for call in calls:
            if call.key in there:
                entry.cached += 1
            else:
                entry.add(call, callee, tries=self._tries(callee))

    def _tries(self, callee: Callee) -> int:
        """Return how often a call may be paid for: broken connections up to the last attempt, then unusable answers."""
        if callee.endpoint == SIMULATED:
            return TRIES
        return self.plan.endpoints[callee.endpoint].max_attempts - 1 + TRIES

    def _vote(self, case: Case, seat: Seat, *, share: float = 1.0) -> None:
        judge = self.plan.judge[seat.judge]
        self.judges[seat.judge].add(self._bench.call(case, seat), judge, tries=self._tries(judge), share=share)

    def _panel(self, model: str, rows: Sequence[PlannedRow], there: dict[str, Answer]) -> None:
        """Add the votes on rows: those that are known to be missing, and those on answers still to come."""
        limit = int(self.plan.sent_params(self.plan.subject[model])["max_tokens"])
        known = [self._bench.case(row, there[row.key]) for row in rows if row.key in there]
        for case in self._primaries(known):
            self._tiebreak(case, 1.0 if case.votes else TIEBREAK_SHARE)
        likely, longest = ("word " * (limit * BYTES_PER_TOKEN * n // 10) for n in (1, 2))
        missing = [row for row in rows if row.key not in there]
        for _, same in itertools.groupby(missing, key=lambda row: row.prompt):
            repeats = list(same)
            self._unanswered(repeats[0], likely, longest, len(repeats))

    def _primaries(self, cases: list[Case]) -> Iterator[Case]:
        """Add the primary votes that are missing; yields the cases that may need a tiebreak, with votes where known."""
        seats = {case.row.key: self._bench.primaries(case) for case in cases}
        found = self.cache.lookup([seat.key for chosen in seats.values() for seat in chosen])
        for case in cases:
            missing = [seat for seat in seats[case.row.key] if seat.key not in found]
            for seat in seats[case.row.key]:
                if seat in missing:
                    self._vote(case, seat)
                else:
                    self.judges[seat.judge].cached += 1
            if missing:
                yield case
            elif (voted := self._bench.voted(case, seats[case.row.key], Outcome(answers=found))).undecided:
                yield voted

    def _tiebreak(self, case: Case, share: float) -> None:
        if case.panel.tiebreak is None or case.shown is None:
            return
        seat = self._bench.tiebreak(case)
        if self.cache.lookup([seat.key]):
            self.judges[seat.judge].cached += 1
        else:
            self._vote(case, seat, share=share)

    def _stand_in(self, row: PlannedRow, text: str) -> Case:
        """Return the case of an answer that is only guessed at: it names nobody, so nothing is looked for to mask."""
        rubric = self.bank.rubric[row.prompt.concept.rubric]
        shown = self._bench.ballots[rubric.id].messages(mask_prompt(row.prompt.rendered), text)
        return Case(row, rubric, self.plan.panel(row.model), Answer(text), shown=shown)

    def _unanswered(self, row: PlannedRow, likely: str, longest: str, times: int) -> None:
        """Add the votes on the answers to one prompt, `times` repeats, from stand-ins of their likely length."""
        cases = [self._stand_in(row, text) for text in (likely, longest)]
        seats = [(seat, 1.0) for seat in self._bench.primaries(cases[0])]
        if cases[0].panel.tiebreak is not None:
            seats.append((self._bench.tiebreak(cases[0]), TIEBREAK_SHARE))
        for seat, share in seats:
            callee = self.plan.judge[seat.judge]
            most = worst_case(self._bench.call(cases[1], seat).request, callee.prices)
            call = self._bench.call(cases[0], seat)
            self.judges[seat.judge].add(call, callee, tries=self._tries(callee), share=share, most=most, times=times)
