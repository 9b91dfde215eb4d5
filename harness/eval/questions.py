"""Stage eval: which prompts a run asks, of whom, and what of the answers can be used (contract: stages, "eval").

Reads a plan and its bank; the answers go to the cache, their cost to the ledger. Receipts are written by the judge
stage from the same `planned_rows`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from generator.schema.bank import Bank, Concept, Group, Rendered
from generator.schema.canonical import sha256_hex
from generator.schema.errors import InputError
from harness.bank.near_names import near_names
from harness.calls.call import Answer, Call, Message, Request
from harness.calls.keys import ResponseKeys
from harness.plan.records import RunPlan

MANY = 30  # names that a message does not list


@dataclass(frozen=True)
class Prompt:
    """One rendered prompt of the bank."""

    concept: Concept
    framing: str
    group: Group
    rendered: Rendered

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the prompt's UTF-8."""
        return sha256_hex(self.rendered.text)


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """One planned row of a model: a prompt, a repeat, and the cache key of the answer."""

    model: str
    prompt: Prompt
    repeat: int
    key: str


def bank_prompts(bank: Bank, concepts: Collection[str] = ()) -> list[Prompt]:
    """Return every prompt of the bank in the order of a shard; `concepts` limits it to some, if given."""
    attributes = sorted((a.id for a in bank.attributes), key=str.encode)
    return [
        Prompt(concept, framing, group, bank.render(concept, framing, group))
        for attribute in attributes
        for concept in bank.concepts_of(attribute, two_sided=None)
        if not concepts or concept.id in concepts
        for framing in bank.framings
        for group in bank.groups_of(attribute)
    ]


def planned_rows(plan: RunPlan, model: str, prompts: list[Prompt]) -> Iterator[PlannedRow]:
    """Yield a model's planned rows in the order of its shard: attribute, concept, framing, group, repeat."""
    keys = ResponseKeys(model, plan.effective_params(plan.subject[model]), plan.fresh.get(model))
    for prompt in prompts:
        for repeat in range(plan.repeats):
            yield PlannedRow(model, prompt, repeat, keys.key(prompt.sha256, repeat))


def response_calls(plan: RunPlan, model: str, prompts: list[Prompt]) -> Iterator[Call]:
    """Yield the call behind each planned row of a model."""
    subject = plan.subject[model]
    params = plan.sent_params(subject)
    for row in planned_rows(plan, model, prompts):
        messages = (Message("user", row.prompt.rendered.text),)
        request = Request(model, subject.api_model, messages, params, row.repeat)
        yield Call(row.key, "subject", subject.endpoint, request, blank)


def blank(answer: Answer) -> str | None:
    """Refuse an answer of nothing but white space, unless the reply says itself why it holds none."""
    told = answer.outcome in ("filtered", "cut_before_answer")
    return "empty" if not told and not answer.text.strip() else None


def _there_is(name: str, known: list[str], what: str) -> str:
    """Say which names there are: all of a few, the near ones of many."""
    if len(known) <= MANY:
        return f"it has: {', '.join(known)}"
    close = near_names(name, known)
    hint = f"did you mean {', '.join(close)}? " if close else ""
    return f"{hint}it has {len(known)} {what}s, which `aibiasbench bank show` lists"


def chosen(wanted: Collection[str], known: Collection[str], what: str) -> list[str]:
    """Return what a command line chose of what there is, in the plan's order; all when it chose nothing."""
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise InputError(f"--{what} {unknown[0]}: not in this run; {_there_is(unknown[0], list(known), what)}")
    return [name for name in known if not wanted or name in wanted]
