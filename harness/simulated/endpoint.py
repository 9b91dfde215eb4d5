"""The embedded endpoint `simulated`: seeded respondents and judges with documented biases, for offline runs.

Every answer is a pure function of seed, model, parameters and the request's own text: same request, same answer, in
any batch and any process. What is planted stands in `harness.simulated.planted`.

See contract: stages, "Simulated runs".
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generator.schema.bank import REFUSAL, Bank, Concept, Rubric
from generator.schema.canonical import canonical_json, sha256_hex
from harness.calls.call import Answer, Request
from harness.judging.ballot import Ballot, unfenced
from harness.simulated.planted import (
    HARD,
    HARD_SLIPS,
    Respondent,
    SimulatedJudge,
    judge_for,
    respondent_for,
)
from harness.simulated.text import (
    CLOSERS,
    HOSTILE,
    MENTIONS,
    OPENERS,
    REASONS,
    REFUSALS,
    SCORE_MARKERS,
    markers_of,
    reader_for,
    with_verdict,
)

# Where a category's scenarios lie from 0 to 1 before any group effect; most requests of `refusal` are complied with.
TENDENCY = {"stance": (0.1, 0.9), "allocation": (0.1, 0.95), "refusal": (0.8, 1.25), "regard": (0.15, 1.0)}
TENDENCY_ELSE = (0.35, 0.85)
CEILING = 1.4
_SHORTEST, _CUT_AT = 40, 0.6


@dataclass(frozen=True)
class Scenario:
    """A prompt of the bank, recognized: its scenario, the group's place in [-0.5, 0.5] and its noun phrase."""

    concept: Concept
    rubric: Rubric
    tendency: float
    place: float
    np: str


class Dice:
    """32 numbers in [0, 1) that depend on nothing but the text given."""

    __slots__ = ("_numbers",)

    def __init__(self, text: str) -> None:
        self._numbers: tuple[int, ...] = struct.unpack(
            ">32H", hashlib.sha512(text.encode("utf-8", "surrogatepass")).digest()
        )

    def share(self, i: int) -> float:
        """Return number i."""
        return self._numbers[i] / 65536

    def pick(self, i: int, options: Sequence[str]) -> str:
        """Choose one of the options by number i."""
        return options[self._numbers[i] * len(options) >> 16]

    def normal(self, i: int) -> float:
        """Return a draw close to the standard normal, bounded by 3.5, from numbers i to i + 3."""
        return (sum(self._numbers[i : i + 4]) / 65536 - 2) * math.sqrt(3)


def unit(*parts: str) -> float:
    """Return a number in [0, 1) that depends on nothing but its parts."""
    return int(sha256_hex("|".join(parts))[:8], 16) / 2**32


def places(bank: Bank, attribute: str) -> dict[str, float]:
    """Return each group's place: evenly spaced from -0.5 to 0.5 in the order of SHA-256("<attribute>|<group>")."""
    order = sorted((g.id for g in bank.attribute[attribute].groups), key=lambda g: sha256_hex(f"{attribute}|{g}"))
    return {group: i / max(1, len(order) - 1) - 0.5 for i, group in enumerate(order)}


def tendency(concept: Concept, framing: str) -> float:
    """Return where a scenario lies for a model without bias, on the rubric's scale; framings differ a little."""
    low, high = TENDENCY.get(concept.category, TENDENCY_ELSE)
    if concept.ceiling:
        return CEILING
    return low + (high - low) * (0.85 * unit("scenario", concept.id) + 0.15 * unit("framing", concept.id, framing))


def cases_of(bank: Bank) -> dict[str, Scenario]:
    """Return every prompt of the bank with what it is about."""
    found = {}
    for concept in bank.concepts:
        where = places(bank, concept.attribute)
        for framing in bank.framings:
            at = tendency(concept, framing)
            for group in bank.attribute[concept.attribute].groups:
                prompt = bank.render(concept, framing, group)
                rubric = bank.rubric[concept.rubric]
                found[prompt.text] = Scenario(concept, rubric, at, where[group.id], prompt.np)
    return found


class Simulated:
    """The endpoint: answers whole batches in this process; implements `harness.calls.call.BatchEndpoint`."""

    batch_size = 2000

    def __init__(self, bank: Bank, seed: int) -> None:
        self._seed = seed
        self._cases = cases_of(bank)
        self._bank = bank
        self._ballots = {ballot.rubric.judge_prompt: ballot for ballot in map(Ballot, bank.rubrics)}
        self._respondents: dict[str, Respondent] = {}
        self._judges: dict[str, SimulatedJudge] = {}

    def complete_batch(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer all requests: as a judge where the system message is a rubric's, else as a respondent."""
        return [self._complete(request) for request in requests]

    def _complete(self, request: Request) -> Answer:
        first, last = request.messages[0], request.messages[-1]
        name = request.api_model
        ballot = self._ballots.get(first.content) if first.role == "system" else None
        dice = Dice(f"{self._seed}|{name}|{_settings(request.params)}|{request.repeat}|{last.content}")
        if ballot is not None:
            judge = self._judges.get(name) or self._judges.setdefault(name, judge_for(name))
            text = judged(judge, ballot, last.content, dice, request.try_)
            return _answer(request, text, "answered", "stop")
        respondent = self._respondents.get(name) or self._respondents.setdefault(name, respondent_for(name, self._bank))
        return responded(respondent, self._cases.get(last.content), dice, request)


def _settings(params: Mapping[str, Any]) -> str:
    return canonical_json(dict(params)).decode()


def _answer(request: Request, text: str, outcome: Any, finish: str) -> Answer:
    size = sum(len(m.content) for m in request.messages)
    return Answer(
        text=text,
        outcome=outcome,
        finish_reason=finish,
        served_by=f"{request.api_model}@simulated",
        prompt_tokens=size // 4 + 4,
        completion_tokens=len(text) // 4 + 1,
    )


def responded(who: Respondent, case: Scenario | None, dice: Dice, request: Request) -> Answer:
    """Return a respondent's answer to one prompt; `case` is None for a prompt that is not of the bank."""
    if dice.share(5) < who.filtered:
        return _answer(request, "", "filtered", "content_filter")
    # Half of the empty answers stay empty on every try; the other half comes right when asked again.
    if dice.share(6) < who.empty or (dice.share(6) < 2 * who.empty and request.try_ == 0):
        return _answer(request, " \n", "answered", "stop")
    text = prose_of(who, case, dice)
    room = 4 * int(request.params.get("max_tokens", 10_000))
    if dice.share(7) < who.cut and len(text) > _SHORTEST:
        room = min(room, int(len(text) * _CUT_AT))
    if len(text) > room:
        return _answer(request, text[:room], "cut", "length")
    return _answer(request, text, "answered", "stop")


def latent(who: Respondent, case: Scenario, dice: Dice) -> float:
    """Return the answer's value on the rubric's scale, before it is cut to labels, with the planted effects."""
    shift = who.shift(case.concept.attribute) * case.place + who.harshness
    return case.tendency + case.concept.polarity * shift + who.noise * dice.normal(0)


def prose_of(who: Respondent, case: Scenario | None, dice: Dice) -> str:
    """Write the whole answer."""
    opener, reason = dice.pick(12, OPENERS), dice.pick(13, REASONS)
    if case is None:
        return f"{opener} {reason} {dice.pick(14, CLOSERS)}"
    more = who.refuses_more.get(case.concept.attribute, 0.0) if case.place < 0 else 0.0
    if dice.share(4) < who.refuses + more:
        return f"{dice.pick(11, REFUSALS)} {dice.pick(14, CLOSERS)}"
    value = latent(who, case, dice)
    marker, word = _marker(who, case.rubric, value, dice)
    parts = [opener, marker, reason, *_mention(who, case, dice), dice.pick(14, CLOSERS)]
    if dice.share(8) < who.hostile:
        parts.insert(3, dice.pick(18, HOSTILE))
    prose = " ".join(parts)
    if case.rubric.scale == "score":
        return f"{prose}\nSCORE: {word}"
    return with_verdict(prose, word, who.verdict) if case.rubric.instruction else prose


def _marker(who: Respondent, rubric: Rubric, value: float, dice: Dice) -> tuple[str, str]:
    """Return the marker sentence of a value and the verdict word (or score) beside it."""
    if rubric.scale == "score":
        score = round(100 * min(1.0, max(0.0, value)))
        return SCORE_MARKERS[min(score // 20, 4)], str(score)
    label = min(rubric.labels, key=lambda item: abs(item.value - value)).label
    word = label
    if dice.share(10) < who.contradicts:
        word = dice.pick(20, [item.label for item in rubric.labels if item.label != label])
    return dice.pick(11, markers_of(label)), word


def _mention(who: Respondent, case: Scenario, dice: Dice) -> list[str]:
    """Return a sentence that names the person, in two answers of three; `spelled` ones defeat the mask."""
    bare = case.np.split(" ", 1)[1] if case.np.lower().startswith(("a ", "an ")) else case.np
    if dice.share(9) < who.spelled:
        return [f"For {'.'.join(bare)} the usual standard applies."]
    if dice.share(15) > 2 / 3:
        return []
    return [dice.pick(16, MENTIONS).format(np=case.np, bare=bare, upper=bare.upper())]


def judged(who: SimulatedJudge, ballot: Ballot, message: str, dice: Dice, try_: int) -> str:
    """Return a judge's answer to a ballot, as text: strict JSON unless it breaks."""
    _, response = unfenced(message)
    reading = reader_for(ballot.rubric).read(response)
    hard = is_hard(response)
    if ballot.rubric.scale == "score":
        data = _scored(who, reading.label == REFUSAL, reading.score, dice, hard)
    else:
        label = slipped(ballot, reading.label, dice, HARD_SLIPS if hard else who.slips, who)
        matches = reading.verdict is None or reading.label is None or reading.verdict == reading.label
        data = {"label": label, "verdict_matches_prose": matches, "evidence": dice.pick(10, _EVIDENCE)}
    text = json.dumps(data)
    if dice.share(11) < who.always_breaks or (dice.share(12) < who.breaks_json and try_ == 0):
        return dice.pick(13, _BROKEN).replace("JSON", text)
    return text


def slipped(ballot: Ballot, label: str | None, dice: Dice, slips: float, who: SimulatedJudge) -> str:
    """Return the label that a judge of known errors gives where the prose says `label`; unreadable prose is guessed."""
    scale = [item.label for item in ballot.rubric.labels]
    if label is None:
        return dice.pick(7, scale)
    if label == REFUSAL:
        return scale[0] if dice.share(5) < who.misses_refusal else REFUSAL
    if dice.share(5) < who.sees_refusal:
        return REFUSAL
    if dice.share(4) >= slips:
        return label
    at = scale.index(label)
    step = 1 if dice.share(6) < 0.5 else -1
    return scale[at + step] if 0 <= at + step < len(scale) else scale[at - step]


def _scored(who: SimulatedJudge, refused: bool, score: int | None, dice: Dice, hard: bool) -> dict[str, Any]:
    evidence = dice.pick(10, _EVIDENCE)
    if dice.share(5) >= who.misses_refusal if refused else dice.share(5) < who.sees_refusal:
        return {"score": None, "refusal": True, "evidence": evidence}
    middle = 50 if score is None else score
    spread = who.score_noise * (3 if hard else 1)
    given = round(middle + spread * dice.normal(0))
    return {"score": min(100, max(0, given)), "refusal": False, "evidence": evidence}


def is_hard(response: str) -> bool:
    """Tell whether a masked answer is one of the share HARD that readers get wrong more often."""
    return Dice(f"hard|{response}").share(0) < HARD


_EVIDENCE = (
    "The closing sentences say so plainly.",
    "The main reason given points this way.",
    "States a clear position and keeps to it.",
    "The wording leaves little doubt.",
    "Weighs both points, then settles.",
    "The tone and the stated outcome agree.",
    "Says what should happen with [PERSON].",
    "The last paragraph decides it.",
)
_BROKEN = (
    "```json\nJSON\n```",
    "Here is my answer: JSON",
    "JSON I hope this helps.",
    '{"label": "UNSURE", "verdict_matches_prose": true, "evidence": "cannot tell"}',
    '{"score": 101, "refusal": false, "evidence": "beyond the scale"}',
)
