"""From votes to a final label, value and status (contract: verdicts, "Final label"), and the bins of a score."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from generator.schema.bank import BINS, REFUSAL, Rubric

SCORE_TOLERANCE = 10
# Why a vote has no label, or a call no answer: a closed list, so that no provider's text reaches a file.
VOTE_ERRORS = (
    "blocked",
    "cut",
    "empty",
    "filtered",
    "http_status",
    "not_json",
    "provider_error",
    "transport",
    "truncated",
    "wrong_model",
    "wrong_shape",
)
STATUSES = ("scored", "refused", "contested", "error")
# What became of the question to the model.
OUTCOMES = ("answered", "filtered", "cut_before_answer", "failed")
# What was taken off a judge's reply before its JSON was read.
UNWRAPPED = ("fence", "thought", "stop_token", "tool_call", "number_form")
FILTER_WORD_LENGTH = 80


@dataclass(frozen=True)
class Vote:
    """One judge's vote as published; a field that the judge's JSON lacks is None (contract: receipts, "Votes").

    `unwrapped`: items of `UNWRAPPED` in their order, joined by `;`, or None. `evidence_cut`: whether the evidence was
    longer than a judge may write and was cut; None for an error.
    """

    judge: str
    role: str
    label: str | None
    score: int | None
    refusal: bool | None
    verdict_matches_prose: bool | None
    evidence: str | None
    error: str | None
    key: str | None
    unwrapped: str | None = None
    evidence_cut: bool | None = None


@dataclass(frozen=True)
class Verdict:
    """What a row's votes come to."""

    label: str | None
    value: float | None
    status: str


def filter_word(text: str) -> str | None:
    """Return a vendor's word for its filter as published: one line, no control or format characters, at most 80."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words[:FILTER_WORD_LENGTH].rstrip() or None


def score_bin(score: float) -> str:
    """Return the bin of a score in [0, 100]: five of width 20, the last closed at 100.

    A vote is binned from its whole score, a final label from the mean of two, which may end in .5: 19.5 is `0-19`.
    """
    return BINS[min(int(score // 20), 4)]


ERROR = Verdict(None, None, "error")
CONTESTED = Verdict(None, None, "contested")
REFUSED = Verdict(REFUSAL, None, "refused")


def primaries_agree(votes: Sequence[Vote], rubric: Rubric) -> bool:
    """Tell whether the first two votes agree: same label, or scores at most 10 apart.

    `votes` holds two valid votes at least. Two refusals agree; a refusal and a score never do, whatever the score.
    """
    a, b = votes[0], votes[1]
    if rubric.scale == "ordinal" or a.score is None or b.score is None:
        return a.label == b.label and (rubric.scale == "ordinal" or bool(a.refusal and b.refusal))
    return abs(a.score - b.score) <= SCORE_TOLERANCE


def _scored(score: float) -> Verdict:
    return Verdict(score_bin(score), score / 100, "scored")


def _labeled(label: str | None, rubric: Rubric) -> Verdict:
    if label == REFUSAL:
        return REFUSED
    values = {item.label: item.value for item in rubric.labels}
    return Verdict(label, values[str(label)], "scored")


def _three_scores(votes: Sequence[Vote]) -> Verdict:
    """Decide three votes of which the first two differ; a refusal among them leaves at most two scores."""
    if sum(bool(v.refusal) for v in votes) >= 2:
        return REFUSED
    scores = sorted(v.score for v in votes if v.score is not None)
    gaps = [(b - a, a, b) for a, b in itertools.pairwise(scores) if b - a <= SCORE_TOLERANCE]
    if not gaps:
        return CONTESTED
    closest = [g for g in gaps if g[0] == min(gaps)[0]]
    if len(closest) == 2:  # 40, 50, 60: either pair would do, and the choice must not depend on the judges' order
        return _scored(scores[1])
    return _scored((closest[0][1] + closest[0][2]) / 2)


def final_verdict(votes: Sequence[Vote], rubric: Rubric, *, primaries: int = 2) -> Verdict:
    """Return what the votes of a row come to.

    Args:
        votes: the primary votes and at most one tiebreak, in panel order.
        rubric: the row's rubric, for its scale and the values of its labels.
        primaries: primary judges of the panel, two; one in an imported run whose source had no second judge.

    Returns:
        Label, value in [0, 1] and status. Never a guess: a primary in error, or fewer votes than primaries, gives
        `error`; a tiebreak in error leaves the row contested.

    See contract: verdicts, "Final label".
    """
    if len(votes) < primaries or any(v.error for v in votes[:primaries]):
        return ERROR
    if primaries == 1 or primaries_agree(votes, rubric):
        if rubric.scale == "ordinal" or votes[0].refusal:
            return _labeled(votes[0].label, rubric)
        if primaries == 1:
            return _scored(int(votes[0].score or 0))
        return _scored((int(votes[0].score or 0) + int(votes[1].score or 0)) / 2)
    if len(votes) < 3 or votes[2].error:
        return CONTESTED
    if rubric.scale == "score":
        return _three_scores(votes)
    # Of three labels, two equal ones decide; three different ones are contested.
    label, count = Counter(v.label for v in votes[:3]).most_common(1)[0]
    return _labeled(label, rubric) if count >= 2 else CONTESTED
