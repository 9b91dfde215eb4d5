"""The planted effects of a simulated run as data, as its manifest lists them (contract: stages, "Simulated runs").

Made from the profiles and the bank: every share, spread and habit of each subject and judge that is not zero, so that
what the statistics find can be held against what is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from generator.schema.bank import Bank
from harness.plan.records import Callee, RunPlan
from harness.simulated.endpoint import places
from harness.simulated.planted import (
    HARD,
    HARD_SLIPS,
    Respondent,
    SimulatedJudge,
    judge_for,
    respondent_for,
)

SCALE, SHARE, POINTS = "of the rubric's scale", "share of answers", "points"
_SUBJECT_SHARES = {
    "refuses": "Refuses, whoever asks.",
    "contradicts": "Gives a verdict word that contradicts its own reasons.",
    "cut": "Is cut off at the token limit.",
    "filtered": "Is stopped by the vendor's filter.",
    "empty": "Is empty on every try.",
    "hostile": "Holds text that tries to break the page or to command the judge.",
    "spelled": "Spells the group's name out with periods, which defeats the mask.",
}
_JUDGE_SHARES = {
    "slips": "Moves the label one step on the scale.",
    "misses_refusal": "Reads a refusal as the lowest label.",
    "sees_refusal": "Reads an answer as a refusal.",
    "breaks_json": "Breaks the JSON on the first try.",
    "always_breaks": "Breaks the JSON on every try.",
}
_VERDICTS = {
    "last": "Gives the verdict word last.",
    "first": "Gives the verdict word first.",
    "bold": "Gives the verdict word in bold.",
    "sentence": "Gives the verdict word inside a sentence.",
}


@dataclass(frozen=True)
class Effect:
    """One planted effect, with the fields of `generator.schema.manifest.Planted`."""

    who: str
    role: Literal["subject", "judge"]
    effect: str
    text: str
    attribute: str | None = None
    group: str | None = None
    category: str | None = None
    size: float | None = None
    unit: str | None = None

    def record(self) -> dict[str, Any]:
        """Return the effect as the manifest holds it."""
        keys = ("who", "role", "effect", "attribute", "group", "category", "size", "unit", "text")
        return {key: getattr(self, key) for key in keys}


def planted_effects(plan: RunPlan, bank: Bank) -> list[dict[str, Any]]:
    """Return what is planted in the subjects and judges of a simulated plan: subjects by slug, then judges in order."""
    effects: list[Effect] = []
    for subject in sorted(plan.models, key=lambda model: model.model.encode()):
        effects += subject_effects(subject.model, respondent_for(subject.api_model, bank), bank)
    for judge in _judges(plan):
        effects += judge_effects(judge.model, judge_for(judge.api_model))
    return [effect.record() for effect in effects]


def _judges(plan: RunPlan) -> Iterable[Callee]:
    return plan.judges.all


def subject_effects(who: str, profile: Respondent, bank: Bank) -> Iterator[Effect]:
    """Yield the effects of a subject: by group where it has any, then those that hold for everyone."""
    for attribute in bank.attributes:
        yield from _group_effects(who, profile, attribute.id, bank)
    if profile.harshness:
        text = f"Answers everyone {'less' if profile.harshness < 0 else 'more'} favorably alike."
        yield Effect(who, "subject", "harshness", text, size=profile.harshness, unit=SCALE)
    if profile.noise:
        yield Effect(who, "subject", "noise", "Varies from answer to answer (standard deviation).",
                     size=profile.noise, unit=SCALE)  # fmt: skip
    yield from _shares(who, "subject", profile, _SUBJECT_SHARES)
    yield Effect(who, "subject", "verdict", _VERDICTS[profile.verdict])


def _group_effects(who: str, profile: Respondent, attribute: str, bank: Bank) -> Iterator[Effect]:
    """Yield an attribute's effects; `group` is the most favored one, or one of those that are refused more often."""
    where = places(bank, attribute)
    order = sorted(where, key=lambda group: where[group])
    spread = profile.shift(attribute)
    if spread:
        text = f"Favors {order[-1]} most and {order[0]} least, the others evenly between: {', '.join(order)}."
        yield Effect(who, "subject", "group_effect", text, attribute, group=order[-1], size=spread, unit=SCALE)
    more = profile.refuses_more.get(attribute, 0.0)
    for group in (g for g in order if more and where[g] < 0):
        text = "Refuses this group more often, by this much."
        yield Effect(who, "subject", "refuses_more", text, attribute, group=group, size=more, unit=SHARE)


def judge_effects(who: str, profile: SimulatedJudge) -> Iterator[Effect]:
    """Yield the known errors of a judge."""
    yield from _shares(who, "judge", profile, _JUDGE_SHARES)
    yield Effect(who, "judge", "score_noise", "Varies around the score that the text supports (standard deviation).",
                 size=profile.score_noise, unit=POINTS)  # fmt: skip
    text = f"Errs in this share of labels on hard texts, which are {HARD:.0%} of all."
    yield Effect(who, "judge", "hard_slips", text, size=HARD_SLIPS, unit="share of hard answers")


def _shares(
    who: str, role: Literal["subject", "judge"], profile: Respondent | SimulatedJudge, texts: dict[str, str]
) -> Iterator[Effect]:
    for name, text in texts.items():
        if size := getattr(profile, name):
            yield Effect(who, role, name, text, size=size, unit=SHARE)
