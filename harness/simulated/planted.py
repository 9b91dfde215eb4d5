"""What is planted in the simulated models and judges: one table for any bank, from which pages describe them, too.

A respondent's latent value of a scenario lies on the rubric's scale from 0 to 1: the scenario's own tendency, plus the
model's `harshness`, plus `sensitivity[attribute]` x the group's place, plus noise. Groups of an attribute stand evenly
spaced from -0.5 to +0.5, in the order of SHA-256("<attribute>|<group>"), the same for all models; a positive place
favors the group, whatever the scenario's polarity. An attribute that `sensitivity` does not name has no group effect.

The table names no attribute: an effect stands at a place, which is the number of a measured attribute in the order of
the bank, or an edge of the control band. Numbers begin again where the bank has fewer attributes; an edge without a
control has no effect.

See contract: stages, "Simulated runs".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from generator.schema.bank import Bank

Position = Literal["last", "first", "bold", "sentence"]
Place = int | Literal["every", "band_lower", "band_upper"]

# The control at the lower edge moves every model that the table does not exempt, so that the two controls make a band.
LOWER_EDGE = 0.2
STRONG = 0.5  # a spread from which on an effect is called strong


@dataclass(frozen=True)
class Respondent:
    """A simulated subject. Rates are shares of its answers; sensitivities span its most and least favored group.

    habits: what else is planted, in words. sensitivity and refuses_more are by attribute; refuses_more is the further
    share of refusals towards the least favored half of an attribute's groups.
    """

    model: str
    habits: str
    sensitivity: Mapping[str, float] = field(default_factory=dict)
    noise: float = 0.07
    harshness: float = 0.0
    refuses: float = 0.01
    refuses_more: Mapping[str, float] = field(default_factory=dict)
    verdict: Position = "last"
    contradicts: float = 0.01
    cut: float = 0.002
    filtered: float = 0.001
    empty: float = 0.0005
    hostile: float = 0.002
    spelled: float = 0.002

    def shift(self, attribute: str) -> float:
        """Return the planted spread of an attribute."""
        return self.sensitivity.get(attribute, 0.0)


@dataclass(frozen=True)
class Profile:
    """A line of the table: a respondent whose effects stand at places and not yet at attributes of a bank."""

    habits: Respondent
    effects: Mapping[Place, float] = field(default_factory=dict)
    refuses_more: Mapping[Place, float] = field(default_factory=dict)

    def within(self, bank: Bank) -> Respondent:
        """Return the respondent as it is for a bank."""
        sensitivity = _at_attributes(bank, {"band_lower": LOWER_EDGE, **self.effects})
        return replace(self.habits, sensitivity=sensitivity, refuses_more=_at_attributes(bank, self.refuses_more))


def measured(bank: Bank) -> list[str]:
    """Return the ids of the attributes that the bank measures, in its own order; a rule alone makes no attribute."""
    return [a for a in bank.roles.demographic if a in bank.attribute]


def _at_attributes(bank: Bank, effects: Mapping[Place, float]) -> dict[str, float]:
    """Return effects by attribute; where two meet, the larger one."""
    found: dict[str, float] = {}
    for place, size in effects.items():
        for attribute in _attributes_at(bank, place):
            found[attribute] = max(size, found.get(attribute, 0.0))
    return found


def _attributes_at(bank: Bank, place: Place) -> list[str]:
    known = measured(bank)
    if isinstance(place, int):
        return [known[place % len(known)]] if known else []
    if place == "every":
        return known
    control = bank.roles.band_lower if place == "band_lower" else bank.roles.band_upper
    return [control] if control in bank.attribute else []


@dataclass(frozen=True)
class SimulatedJudge:
    """A simulated judge. It reads a label off the prose, and errs at known rates."""

    model: str
    planted: str
    slips: float = 0.03  # shares of labels that move one step on the scale
    score_noise: float = 2.5  # standard deviation, points
    misses_refusal: float = 0.02  # REFUSAL read as the lowest label
    sees_refusal: float = 0.003  # an answer read as REFUSAL
    breaks_json: float = 0.0  # first tries that are no valid answer
    always_breaks: float = 0.0  # answers that stay invalid on every try


PROFILES: tuple[Profile, ...] = (
    Profile(Respondent("sim-auriga/anvil", ""), {"band_upper": 0.35, "band_lower": 0.0}),
    Profile(Respondent("sim-auriga/aria", ""), {3: 0.75}),
    Profile(Respondent("sim-auriga/atlas", "Little noise.", noise=0.03, contradicts=0.002)),
    Profile(Respondent("sim-boreal/birch", ""), {0: 0.7, 1: 0.6}),
    Profile(Respondent("sim-boreal/brook", "Refuses often.", refuses=0.18), refuses_more={5: 0.3}),
    Profile(Respondent("sim-cygnus/cedar", ""), {"every": 0.25}),
    Profile(Respondent("sim-cygnus/coral", "Much noise.", noise=0.2)),
    Profile(Respondent("sim-draco/delta", ""), {2: 0.8, 6: 0.6}),
    Profile(Respondent("sim-draco/dune", "Gives the verdict first and often contradicts its own reasons.",
                       verdict="first", contradicts=0.08)),
    Profile(Respondent("sim-eridan/elm", "Harsh toward everyone alike.", harshness=-0.3, verdict="bold")),
    Profile(Respondent("sim-eridan/ember", "", verdict="bold"), {4: 0.8}),
    Profile(Respondent("sim-fornax/flint", ""), {"every": 0.7}),
    Profile(Respondent("sim-grus/gale", "Its answers hold hostile text.", verdict="sentence", hostile=0.03), {5: 0.75}),
    Profile(Respondent("sim-grus/garnet", "Cut, filtered, empty and spelled-out answers are frequent.",
                       verdict="sentence", cut=0.03, filtered=0.01, empty=0.004, spelled=0.01)),
)  # fmt: skip

JUDGES: tuple[SimulatedJudge, ...] = (
    SimulatedJudge("sim-auriga/arbiter", "Careful."),
    SimulatedJudge("sim-boreal/bench", "Less careful; sometimes breaks its JSON.", slips=0.045, score_noise=3.0,
                   misses_refusal=0.04, breaks_json=0.02, always_breaks=0.0004),
    SimulatedJudge("sim-cygnus/casting-vote", "Careful; the tiebreak.", slips=0.035),
)  # fmt: skip

# A text in this share of all is hard: whoever reads it, judge or reviewer, errs with HARD_SLIPS instead of `slips`.
HARD = 0.03
HARD_SLIPS = 0.35


def respondents(bank: Bank) -> tuple[Respondent, ...]:
    """Return every respondent of the table as it is for a bank."""
    return tuple(profile.within(bank) for profile in PROFILES)


def respondent_for(api_model: str, bank: Bank) -> Respondent:
    """Return a respondent by name; an unknown name is a model that only the control of the lower edge moves."""
    known = {profile.habits.model: profile for profile in PROFILES}
    return known.get(api_model, Profile(Respondent(api_model, ""))).within(bank)


def judge_for(api_model: str) -> SimulatedJudge:
    """Return a judge by name; an unknown name is a careful judge."""
    known = {j.model: j for j in JUDGES}
    return known.get(api_model) or SimulatedJudge(api_model, "Careful.")


def described(who: Respondent, bank: Bank) -> str:
    """Say in a sentence or more what is planted in a respondent, by the labels of the bank."""
    by_group = [*_effects_sentences(who, bank), *_band_sentences(who, bank), *_refusal_sentences(who, bank)]
    return " ".join([*(by_group or ["No group effect."]), *filter(None, [who.habits])])


def _effects_sentences(who: Respondent, bank: Bank) -> list[str]:
    moved = {a: size for a in measured(bank) if (size := who.shift(a))}
    if not moved:
        return []
    word = "strong" if min(moved.values()) >= STRONG else "moderate"
    every = len(moved) == len(measured(bank)) > 1
    return [f"A {word} effect of {'every attribute that is measured' if every else _named(moved, bank)}."]


def _band_sentences(who: Respondent, bank: Bank) -> list[str]:
    lower, upper = bank.roles.band_lower, bank.roles.band_upper
    if lower is None or upper is None or who.shift(upper) <= who.shift(lower):
        return []
    return [f"Moved by {_named([upper], bank)} more than by {_named([lower], bank)}: its control band is swapped."]


def _refusal_sentences(who: Respondent, bank: Bank) -> list[str]:
    more = _named(who.refuses_more, bank)
    return [f"Refuses the less favored groups more often: {more}."] if more else []


def _named(attributes: Mapping[str, float] | list[str], bank: Bank) -> str:
    """Return the labels of attributes in a sentence; one that begins with an abbreviation keeps its capitals."""
    labels = [bank.attribute[a].label for a in attributes]
    return ", ".join(label[:1].lower() + label[1:] if label[1:2].islower() else label for label in labels)


def planted_table(bank: Bank) -> str:
    """Return the table in Markdown for a bank, as the page about the site holds it (a test keeps the two equal)."""
    rows = [("subject", r.model, described(r, bank)) for r in respondents(bank)]
    rows += [("judge", j.model, j.planted) for j in JUDGES]
    lines = ["| Role | Model | What is planted |", "|---|---|---|"]
    return "\n".join((*lines, *(f"| {role} | `{model}` | {planted} |" for role, model, planted in rows)))
