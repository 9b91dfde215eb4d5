"""`eval --probe`: one real call per model, one per judge and rubric, and the lines of run.toml that mend what fails.

See contract: stages, "Probe". A call that an endpoint refuses for a reason that run.toml can mend is made again with
the mend, so that what is proposed has been tried. Every attempt is reserved and booked as in a stage.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from generator.schema.bank import Bank, Rubric
from generator.schema.canonical import sha256_hex
from generator.schema.shown import shown
from harness.cache.answers import Entry
from harness.calls.call import Answer, Call, CallError, EndpointError, Request
from harness.calls.client import HttpEndpoint, keys_of
from harness.engine.network import cost_of
from harness.eval.questions import bank_prompts, response_calls
from harness.judging.ballot import Ballot
from harness.masking.mask import mask_prompt
from harness.money.budget import RUN_ACCOUNT, Refusal, account_of, cap_name, worst_case
from harness.plan.records import Callee, RunPlan
from harness.stages.mends import Mend, Setting, longer, mend_of
from harness.stages.session import Session

MOST_CALLS = 6  # attempts with one model, each with another mend
AT_ONCE = 8
QUOTED = 100  # characters of a verdict that cannot be used
ACCEPTED = "one JSON object, alone, in one fence, or after one leading thought"
_WAITS = (1.0, 4.0)  # seconds before a passing failure is tried again


@dataclass(frozen=True)
class Target:
    """One thing to try: a model, or a judge under a rubric; `call` is what a stage would ask."""

    role: Literal["subject", "judge"]
    model: str
    call: Call
    rubric: str | None = None


@dataclass
class Probed:
    """What a probe found. Money in picodollars; `words` says what went wrong, None where an answer can be used.

    `capped` is the account whose cap refused the next attempt, and `worst` what that attempt could have cost.
    `form` is how a judge's JSON was asked for in the end; `mends` are what run.toml needs for that.
    """

    target: Target
    words: str | None = None
    capped: str | None = None
    worst: int = 0
    answer: Answer | None = None
    form: str | None = None
    calls: int = 0
    cost: int = 0
    seconds: float = 0.0
    mends: list[Mend] = field(default_factory=list)

    @property
    def works(self) -> bool:
        """Whether an answer came that can be used, be it with mends."""
        return self.words is None


def targets_of(plan: RunPlan, bank: Bank, models: Sequence[str]) -> list[Target]:
    """Return what to try: the first prompt for each model, and for each judge a made-up answer under each rubric."""
    prompts = bank_prompts(bank)
    found = [Target("subject", m, next(iter(response_calls(plan, m, prompts[:1])))) for m in models]
    first = {p.concept.rubric: p for p in reversed(prompts)}
    for slug, judge in plan.judge.items():
        for rubric in (r for r in bank.rubrics if r.id in first):
            ballot = Ballot(rubric)
            messages = ballot.messages(mask_prompt(first[rubric.id].rendered), made_up_answer(rubric))
            params = plan.sent_params(judge)
            request = Request(slug, judge.api_model, messages, params, 0, schema=ballot.schema)
            key = sha256_hex(f"probe|{slug}|{rubric.id}")
            found.append(Target("judge", slug, Call(key, "judge", judge.endpoint, request, ballot.check), rubric.id))
    return found


def made_up_answer(rubric: Rubric) -> str:
    """Return a plain answer that a judge can label: the middle of the scale, said in so many words."""
    verdict = "SCORE: 60" if rubric.scale == "score" else rubric.labels[len(rubric.labels) // 2].label
    return f"There are good reasons on both sides, and much depends on what else is known.\n\n{verdict}"


def probe(session: Session, models: Sequence[str], environment: Mapping[str, str]) -> list[Probed]:
    """Try every model and judge of a live run, a few at once; returns what was found, in the order of run.toml."""
    return asyncio.run(_probe_all(session, targets_of(session.plan, session.bank, models), environment))


def caps_needed(found: Sequence[Probed], committed: Callable[[str], int]) -> dict[str, int]:
    """Return, by account, the smallest cap under which everything that a cap refused could be asked, in picodollars.

    Args:
        found: what the probe found.
        committed: what an account has spent or reserved so far, in picodollars.
    """
    refused = [each for each in found if each.capped is not None]
    return {
        account: committed(account)
        + sum(each.worst for each in refused if account in (RUN_ACCOUNT, account_of(each.target.call)))
        for account in sorted({each.capped for each in refused if each.capped is not None})
    }


async def _probe_all(session: Session, targets: list[Target], environment: Mapping[str, str]) -> list[Probed]:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(target: Target) -> Probed:
        async with room:
            return await _Trial(session, target, environment).run()

    return list(await asyncio.gather(*(one(target) for target in targets)))


class _Trial:
    """The calls made for one target, each with what the one before it taught."""

    def __init__(self, session: Session, target: Target, environment: Mapping[str, str]) -> None:
        plan = session.plan
        known: Mapping[str, Callee] = plan.subject if target.role == "subject" else plan.judge
        self._session, self._environment = session, environment
        self._setting = Setting(known[target.model], plan.endpoints[target.call.endpoint], target.call.request)
        self._secrets = keys_of(plan.endpoints.values(), environment)
        self._found = Probed(target)

    async def run(self) -> Probed:
        found, waits = self._found, list(_WAITS)
        endpoint = self._endpoint()
        try:
            while found.calls < MOST_CALLS:
                mend, passing = await self._attempt(endpoint)
                if mend is not None:
                    found.mends.append(mend)
                    if not mend.in_place:  # the endpoint has stepped down by itself, and keeps that in mind
                        await endpoint.close()
                        self._setting = mend.applied(self._setting)
                        endpoint = self._endpoint()
                elif passing and waits:
                    await asyncio.sleep(waits.pop(0))
                else:
                    break
        finally:
            await endpoint.close()
        return found

    def _endpoint(self) -> HttpEndpoint:
        setting, name = self._setting, self._found.target.call.endpoint
        return HttpEndpoint(name, setting.endpoint, [setting.callee], self._environment, secrets=self._secrets)

    async def _attempt(self, endpoint: HttpEndpoint) -> tuple[Mend | None, bool]:
        """Make one call and book it; returns the mend to try next, and whether what failed may pass by itself."""
        found, setting, ledger = self._found, self._setting, self._session.ledger
        call = dataclasses.replace(found.target.call, request=setting.request)
        amount = worst_case(setting.request, setting.callee.prices)
        entry = ledger.reserve([(call, amount)])[0]
        if isinstance(entry, Refusal):
            found.words = f"not asked: the call could pass {cap_name(entry.account)}"
            found.capped, found.worst = entry.account, amount
            return None, False
        found.calls += 1
        began = time.monotonic()
        try:
            answer = await endpoint.complete(setting.request)
        except CallError as error:
            cost = {"none": 0, "unknown": None}[error.billed] if isinstance(error.billed, str) else error.billed
            self._book(entry, cost, amount, began)
            found.words = error.reason
            return mend_of(error, setting), error.retryable
        except EndpointError as error:
            self._book(entry, error.billed, amount, began)
            found.words = str(error)
            return None, False
        cost = cost_of(answer, setting.callee, amount)
        self._book(entry, cost, amount, began)
        return self._answered(call, answer, entry, cost, endpoint), False

    def _book(self, entry: int, cost: int | None, amount: int, began: float) -> None:
        self._session.ledger.settle({entry: cost})
        self._found.cost += amount if cost is None else cost
        self._found.seconds = time.monotonic() - began

    def _answered(self, call: Call, answer: Answer, entry: int, cost: int, endpoint: HttpEndpoint) -> Mend | None:
        """Note an answer; one that never left its thinking is tried again with room for more."""
        found = self._found
        found.answer, found.words = answer, self._useless(call, answer)
        if call.role == "judge":
            found.form = endpoint.form_of(self._setting.request)
        if answer.outcome == "cut_before_answer":
            return longer(self._setting)
        if found.works and call.role == "subject" and not found.mends:
            # What run.toml asks for as it stands: eval would ask, and pay for, the very same call.
            stored = Entry(call.key, call.role, call.request.model, answer, self._session.ledger.ticket(entry), cost)
            self._session.cache.store([dataclasses.replace(stored, answer=dataclasses.replace(answer, cost=cost))])
        return None

    def _useless(self, call: Call, answer: Answer) -> str | None:
        if answer.outcome == "filtered":
            return None if call.role == "subject" else f"filtered: {answer.filter_word}"
        if answer.outcome == "cut_before_answer":
            return f"all {answer.completion_tokens or 0:,} tokens went into thinking; no answer was left"
        code = call.check(answer) if call.check is not None else None
        if code is None:
            return None
        if call.role != "judge":
            return f"the answer cannot be used: {code}"
        text = answer.text or ""
        came = shown(text[:QUOTED]) + ("..." if len(text) > QUOTED else "")
        return f"the verdict cannot be used: {code}; accepted: {ACCEPTED}; what came: {came or 'nothing'}"
