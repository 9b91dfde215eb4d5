"""What the operator is told when a lane is closed: the cause, and what to change.

See contract: stages, "Stopping".
"""

from __future__ import annotations

import datetime as dt

from harness.calls.call import Answer, Call, CallError
from harness.engine.lanes import IN_A_ROW, Closure, lane_of

_AT_ONCE = {
    403: "check that the key of endpoint {endpoint} may use {api_model}",
    404: "check api_model ({api_model}) in run.toml, and base_url of endpoint {endpoint}",
}
_IN_TIME = {
    "wrong_model": "if that name is right, list it in served_as of {model}",
    "transport": "see whether endpoint {endpoint} is up and its timeouts in run.toml are long enough",
}
_REQUEST_REFUSED = (
    "change what {model} is sent: `drop` in run.toml takes a parameter away, `params` overrides one,"
    " max_tokens_name and response_format are set on its endpoint"
)
_PATIENCE = "run again when endpoint {endpoint} answers"


def refused_at_once(call: Call, error: CallError) -> Closure | None:
    """Return the closure for a status that asking again will not change (403, 404); None for any other failure."""
    words = _AT_ONCE.get(error.status or 0)
    return None if words is None else Closure(error.reason, _filled(words, call))


def failed_in_a_row(call: Call, error: CallError) -> Closure:
    """Return the closure after too many failed calls.

    Args:
        call: the last of them.
        error: how it failed; its kind decides what is advised.
    """
    words = _IN_TIME.get(error.code)
    if words is None:
        refused = error.status is not None and 400 <= error.status < 500 and not error.retryable
        words = _REQUEST_REFUSED if refused else _PATIENCE
    return Closure(f"{IN_A_ROW} calls in a row failed, the last with: {error.reason}", _filled(words, call))


def unusable_in_a_row(call: Call, answer: Answer, cache: str = "") -> Closure:
    """Return the closure after too many answers that cannot be used.

    These answers are stored, so the advice names the command that forgets them, for a cause outside the request.

    Args:
        call: the last call of the row.
        answer: its answer; its outcome decides what is advised.
        cache: the option that names the cache on a command line, empty for the usual one.
    """
    which = f"--role {call.role} --model {call.request.model} --outcome {answer.outcome}"
    prune = f"`aibiasbench cache prune{cache} {which}`"
    limit = call.request.params.get("max_tokens")
    if answer.outcome == "cut_before_answer":
        why = f"{IN_A_ROW} answers in a row ended before a word of theirs: max_tokens = {limit} went into thinking"
        return Closure(why, _filled("raise max_tokens of {model} in run.toml, or lower its reasoning effort", call))
    if call.role == "judge":
        word = answer.error or answer.outcome
        why = f"{IN_A_ROW} votes in a row cannot be used, the last: {word} (finish_reason {answer.finish_reason})"
        change = _filled(
            "set response_format of endpoint {endpoint}, raise max_tokens of {model}, or choose another judge", call
        )
    else:
        why = f"{IN_A_ROW} answers in a row hold nothing, the last with finish_reason {answer.finish_reason}"
        change = _filled("see what {model} sends, raise its max_tokens or change its params", call)
    return Closure(why, f"{change}; where that leaves the request as it is, {prune} forgets these answers")


def too_long_a_wait(call: Call, error: CallError, wait: float, now: float, bound: float) -> Closure:
    """Return the closure for a wait beyond `total_wait`.

    Args:
        call: the call.
        error: the endpoint's reply.
        wait: seconds that it asks for.
        now: seconds since 1970; the closure says until when.
        bound: `total_wait` in seconds.
    """
    until = dt.datetime.fromtimestamp(now + wait, tz=dt.UTC)
    why = f"{error.reason}: asks for a wait of {wait:,.0f} s, until {until:%Y-%m-%d %H:%M} UTC"
    words = "run again after that, or raise total_wait (%g s) of endpoint {endpoint}"
    return Closure(why, _filled(words % bound, call))


def refused_key(call: Call, reason: str) -> Closure:
    """Return the closure for a key or an account that the endpoint refuses (401, 402)."""
    return Closure(reason, _filled("mend the key or the account of endpoint {endpoint}", call))


def unreachable(call: Call, error: CallError) -> Closure:
    """Return the closure for an endpoint at which nobody answers."""
    words = error.remedy or "is it running, and is base_url of endpoint {endpoint} in run.toml right?"
    return Closure(error.reason, _filled(words, call))


def _filled(words: str, call: Call) -> str:
    asked = call.request
    return words.replace("{endpoint}", call.endpoint).replace("{model}", asked.model).replace(
        "{api_model}", asked.api_model
    )  # fmt: skip


def place(call: Call) -> str:
    """Return whom and where a call is put to, in words for messages."""
    return f"{lane_of(call)} at endpoint {call.endpoint}"
