"""What an OpenAI-compatible reply means: each kind of answer has one defined outcome (contract: stages, "Replies").

| reply | outcome |
|---|---|
| status 408, 409, 429, 5xx | asked again, then failed (`http_status`); not billed |
| 401, 402 | the stage stops |
| 403 | blocked by an intermediary: failed at once (`blocked`) |
| another status | failed at once (`http_status`) |
| 400 with error code `content_filter`, or `finish_reason: content_filter` | `filtered` |
| not UTF-8, not JSON, HTML, no choices, `finish_reason: error`, half a surrogate | again, then `provider_error` |
| `error` in a 200 body | by its code as a status would be; without a code as a 500 |
| larger than the endpoint's `max_bytes` | failed at once (`provider_error`) |
| another model than was asked | failed at once (`wrong_model`) |
| null content with a `refusal` text | that text is the answer |
| null or empty content | an answer of nothing, which the check refuses (`empty`) |
| `finish_reason: length` | `cut` |
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.calls.call import Answer, CallError, EndpointError
from harness.plan.records import PICO

RETRYABLE = frozenset({408, 409, 425, 429})
_CUT = frozenset({"length", "max_tokens"})
_FILTERED = "content_filter"
_DATED = re.compile(r"-(?:\d{3,4}|\d{6}|\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2})")
_SHOWN = 160
_LARGEST_COUNT = 2**31 - 1


@dataclass(frozen=True)
class Addressee:
    """Whom a reply must come from: the endpoint, its name for the model, and other names that are right too."""

    endpoint: str
    api_model: str
    served_as: tuple[str, ...] = ()
    key_env: str | None = None


def status_error(status: int, body: bytes, asked: Addressee, retry_after: float | None) -> CallError | EndpointError:
    """Return what a status other than 200 comes to; the provider's text goes only into the message for the operator."""
    return _coded_error(status, f"HTTP status {status}{_quoted(body)}", asked, retry_after)


def filtered_status(status: int, body: bytes) -> bool:
    """Tell whether a 400 says that the vendor's content filter stopped the prompt."""
    if status != 400:
        return False
    try:
        return bool(json.loads(body)["error"]["code"] == _FILTERED)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def read_reply(body: bytes, asked: Addressee) -> Answer:
    """Return the answer in the body of a 200; raises CallError or EndpointError for anything else."""
    data = _parsed(body)
    bill = _bill(data)
    if data.get("error"):
        raise _body_error(data["error"], asked, bill)
    choice = _choice(data, bill)
    finish = choice.get("finish_reason")
    if choice.get("error") or finish == "error":
        raise _body_error(choice.get("error") or {}, asked, bill)
    _check_model(data.get("model"), asked, bill)
    text = _text(choice.get("message"), bill)
    prompt_tokens, completion_tokens, cost = _usage(data)
    return Answer(
        text=text,
        outcome=_outcome(finish),
        finish_reason=finish if isinstance(finish, str) and finish else "unreported",
        served_by=_served_by(data, asked),
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cost=cost,
    )


def _outcome(finish: Any) -> Literal["answered", "cut", "filtered"]:
    if finish == _FILTERED:
        return "filtered"
    return "cut" if finish in _CUT else "answered"


def _coded_error(
    code: int,
    reason: str,
    asked: Addressee,
    retry_after: float | None = None,
    billed: int | Literal["none", "unknown"] = "none",
) -> CallError | EndpointError:
    if code == 401:
        where = f"the key in {asked.key_env}" if asked.key_env else "a call without a key (key_env in run.toml)"
        return EndpointError(f"{where} was refused: {reason}")
    if code == 402:
        return EndpointError(f"the account there has no credit left; pay, then run again: {reason}")
    if code == 403:
        return CallError("blocked", reason, retryable=False, billed=billed, status=code)
    retryable = code in RETRYABLE or code >= 500
    return CallError("http_status", reason, retryable=retryable, billed=billed, retry_after=retry_after, status=code)


def _body_error(error: Any, asked: Addressee, billed: int | Literal["unknown"]) -> CallError | EndpointError:
    fields = error if isinstance(error, Mapping) else {"message": error}
    code = fields.get("code")
    reason = f"an error inside a 200 reply{_quoted(str(fields.get('message') or code or 'without a message').encode())}"
    if isinstance(code, str) and code.isdecimal():
        code = int(code)
    if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600:
        found = _coded_error(code, reason, asked, billed=billed)
        if isinstance(found, CallError) and found.code == "http_status":
            found.code = "provider_error"
        return found
    return CallError("provider_error", reason, retryable=True, billed=billed)


def _parsed(body: bytes) -> dict[str, Any]:
    """Return the body's JSON object. A page of HTML comes from no model, so it costs nothing."""
    try:
        data = json.loads(body.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        reason = f"a reply that is not UTF-8 at byte {error.start}"
        raise CallError("provider_error", reason, retryable=True, billed="unknown") from None
    except (ValueError, RecursionError):
        billed: Literal["none", "unknown"] = "none" if body.lstrip()[:1] == b"<" else "unknown"
        reason = f"a reply that is not JSON{_quoted(body)}"
        raise CallError("provider_error", reason, retryable=True, billed=billed) from None
    if not isinstance(data, dict):
        raise CallError("provider_error", "a reply that is no JSON object", retryable=True, billed="unknown")
    return data


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def _choice(data: Mapping[str, Any], billed: int | Literal["unknown"]) -> Mapping[str, Any]:
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise CallError("provider_error", "a reply without choices", retryable=True, billed=billed)
    return choices[0]


def _text(message: Any, billed: int | Literal["unknown"]) -> str:
    """Return the text: content, the text parts of a list, or the refusal where there is no content."""
    fields = message if isinstance(message, Mapping) else {}
    content = fields.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "".join(part for part in parts if isinstance(part, str))
    refusal = fields.get("refusal")
    if not content and isinstance(refusal, str):
        content = refusal
    text = content if isinstance(content, str) else ""
    try:
        text.encode()
    except UnicodeEncodeError:
        reason = "a text with half of a surrogate pair, which no UTF-8 can hold"
        raise CallError("provider_error", reason, retryable=True, billed=billed) from None
    return text


def _check_model(answered: Any, asked: Addressee, billed: int | Literal["unknown"]) -> None:
    if not isinstance(answered, str) or not answered:
        return
    if not same_model(asked.api_model, answered, asked.served_as):
        reason = (
            f"asked for {asked.api_model!r}, answered by {answered[:_SHOWN]!r}; if that is right, list it in served_as"
        )
        raise CallError("wrong_model", reason, retryable=False, billed=billed)


def same_model(asked: str, answered: str, served_as: tuple[str, ...] = ()) -> bool:
    """Tell whether the name that answered is the one asked for.

    It may lack a variant (`:free`) or the vendor's prefix, and may add a release date (`-2026-08-06`, `-0806`).
    """
    got = answered.lower()
    if answered in served_as:
        return True
    whole = asked.lower()
    plain = whole.partition(":")[0]
    for name in {whole, plain, plain.rpartition("/")[2]}:
        if got == name or (got.startswith(name) and _DATED.fullmatch(got[len(name) :])):
            return True
    return False


def _served_by(data: Mapping[str, Any], asked: Addressee) -> str:
    model, provider = data.get("model"), data.get("provider")
    name = model if isinstance(model, str) and model else asked.api_model
    place = provider if isinstance(provider, str) and provider else asked.endpoint
    return f"{name[:_SHOWN]}@{place[:_SHOWN]}".encode(errors="replace").decode()


def _usage(data: Mapping[str, Any]) -> tuple[int | None, int | None, int | None]:
    """Return prompt tokens, completion tokens and reported cost in picodollars; None for what is absent or absurd."""
    usage = data.get("usage")
    fields = usage if isinstance(usage, Mapping) else {}
    cost = fields.get("cost")
    known = isinstance(cost, int | float) and not isinstance(cost, bool) and math.isfinite(cost) and 0 <= cost < 1e6
    pico = math.ceil(round(cost * PICO, 3)) if known and cost is not None else None
    return _count(fields.get("prompt_tokens")), _count(fields.get("completion_tokens")), pico


def _count(value: Any) -> int | None:
    right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT
    return value if right else None


def _bill(data: Mapping[str, Any]) -> int | Literal["unknown"]:
    """Return the reported cost of a reply that brings no answer, in picodollars."""
    cost = _usage(data)[2]
    return "unknown" if cost is None else cost


def _quoted(body: bytes) -> str:
    """Return the start of a provider's words for a message, on one line and without control characters."""
    words = " ".join("".join(c if c.isprintable() else " " for c in body[:2000].decode(errors="replace")).split())
    return f": {words[:_SHOWN]}" if words else ""
