"""What a receipt page says in words: why a row ended as it did, what a vote was, how a value reads.

See contract: verdicts, "Final label".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.schema.bank import REFUSAL

Row = Mapping[str, Any]

NO_LABEL = "no label"
NO_RESPONSE = "No response: the call failed."
NO_TEXT = "No text: it was not in what was imported."
_ERRORS = {
    "blocked": "the answer was blocked",
    "cut": "the answer was cut off",
    "empty": "the answer was empty",
    "filtered": "the vendor's own filter answered",
    "http_status": "the endpoint answered with an error status",
    "not_json": "the answer was not JSON",
    "provider_error": "the provider reported an error",
    "transport": "the connection failed",
    "truncated": "the answer was cut off",
    "wrong_model": "another model answered",
    "wrong_shape": "the JSON had another shape than asked",
}

_OUTCOMES = {
    "answered": "answered",
    "filtered": "stopped by the vendor's own filter",
    "cut_before_answer": "cut off before the answer began: every token went into thinking",
}
_WRAPPINGS = {
    "fence": "a code fence",
    "thought": "its thoughts",
    "stop_token": "a stop token",
    "tool_call": "a tool call",
    "number_form": "another form of a number",
}


def framing_label(framing: str) -> str:
    """Return how a framing is headed, from its id: `Direct`, `As a colleague`."""
    return framing.replace("_", " ").capitalize()


def error_text(code: str) -> str:
    """Return in words why a vote has no label, or a call no usable answer."""
    return _ERRORS.get(code, code)


def outcome_text(outcome: str | None, failure: str | None) -> str:
    """Return in words what became of the question to the model; a dash where the run's format does not say."""
    if outcome == "failed":
        return f"failed: {error_text(str(failure))}"
    return "–" if outcome is None else _OUTCOMES[outcome]


def thinking_text(tokens: int | None) -> str:
    """Return what follows the tokens of an answer where some were spent thinking: `, 120 of them thinking`."""
    return "" if tokens is None else f", {tokens} of them thinking"


def reading_text(unwrapped: str | None, evidence_cut: bool | None) -> str:
    """Return what was done to a judge's reply to read it: ` (read without a code fence; evidence cut)`, or nothing."""
    parts = [_WRAPPINGS.get(item, item) for item in unwrapped.split(";")] if unwrapped else []
    notes = [f"read without {' and '.join(parts)}"] if parts else []
    notes += ["evidence cut to 15 words"] if evidence_cut else []
    return f" ({'; '.join(notes)})" if notes else ""


def vote_text(vote: Mapping[str, Any]) -> str:
    """Return a vote in a word or two: `SUPPORT`, `62 (60-79)`, `REFUSAL`, `error: the answer was not JSON`."""
    if vote["error"] is not None:
        return f"error: {error_text(vote['error'])}"
    if vote["score"] is not None:
        return f"{vote['score']} ({vote['label']})"
    return str(vote["label"])


def matches_text(matches: bool | None) -> str:
    """Return what a judge said about the verdict word: `agrees`, `contradicts`, or a dash where it was not asked."""
    return "–" if matches is None else "agrees" if matches else "contradicts"


def how_text(status: str) -> str:
    """Return what stands after a row's label where the label alone would not say how the row ended: ` contested`."""
    return f" {status}" if status in ("contested", "error") else ""


def value_text(value: float | None) -> str:
    """Return `value 0.585`, with up to three decimals, or `no value`."""
    return "no value" if value is None else "value " + f"{value:.3f}".rstrip("0").rstrip(".")


def why(row: Row) -> str:
    """Say in one sentence how the votes led to the row's status and label (contract: verdicts, "Final label")."""
    if row["outcome"] == "failed":
        return f"The call failed for good ({error_text(row['failure'])}), so there was nothing to judge."
    if row["outcome"] == "cut_before_answer":
        return "Every token that the model was allowed went into thinking, so there was no answer to judge."
    if row["response"] is None and row["outcome"] is None:
        return "The call failed for good, so there was nothing to judge."
    votes = row["votes"]
    if not votes:
        return _without_votes(row)
    failed = [v for v in votes[:2] if v["error"] is not None]
    if failed:
        start = f"{failed[0]['judge']} gave no usable vote ({vote_text(failed[0])})"
        return (
            f"{start}, and there is no other judge."
            if len(votes) == 1
            else f"{start}, and a row needs both primary judges."
        )
    return _from_votes(row, votes)


def _without_votes(row: Row) -> str:
    if row["status"] == "refused":
        return "The vendor's own content filter stopped the answer; that counts as a refusal, and no judge was asked."
    return "There is no usable answer, so no judge was asked."


def _from_votes(row: Row, votes: list[Mapping[str, Any]]) -> str:
    if len(votes) == 1:
        return f"The only judge said {vote_text(votes[0])}."
    a, b = votes[0], votes[1]
    if len(votes) == 2:
        if row["status"] == "contested":
            return f"The two judges disagree ({vote_text(a)} against {vote_text(b)}), and this model has no tiebreak."
        if a["score"] is not None and b["score"] is not None:
            return f"The scores {a['score']} and {b['score']} lie within 10 points; their mean is final."
        return f"Both primary judges said {a['label']}."
    third = votes[2]
    start = f"The primary judges disagree ({vote_text(a)} against {vote_text(b)})"
    if third["error"] is not None:
        return f"{start}, and the tiebreak gave no usable vote ({vote_text(third)})."
    if row["status"] == "contested":
        return f"{start}, and the tiebreak ({vote_text(third)}) did not settle it."
    if row["final_label"] == REFUSAL:
        return f"{start}; with the tiebreak, two of three saw a refusal."
    if third["score"] is not None or a["score"] is not None:
        return f"{start}; the tiebreak said {vote_text(third)}, and the closest scores decide."
    return f"{start}; the tiebreak said {vote_text(third)}, so two of three decide."
