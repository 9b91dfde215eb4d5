"""What an OpenAI-compatible reply means: each kind of answer has one defined outcome (contract: stages, "Replies").

| reply | outcome |
|---|---|
| a word of `harness.calls.refusals` as finish reason, or as code at 400, 403, 422, 451; a refusal field | `filtered` |
| thinking that never ends; thinking, or nothing, where the length limit came before an answer | `cut_before_answer` |
| `finish_reason: length` with a text | `cut` |
| status 408, 409, 429, 5xx | asked again, then failed (`http_status`); not billed |
| 401, 402 | the stage stops |
| 403 without a policy code | failed at once (`blocked`) |
| another status | failed at once (`http_status`) |
| not UTF-8, not JSON, HTML, no choices, `finish_reason: error`, half a surrogate | again, then `provider_error` |
| `error` in a 200 body | by its code as a status would be; without a code as a 500 |
| larger than the endpoint's `max_bytes`, unpacked | failed at once (`provider_error`) |
| another model than was asked | failed at once (`wrong_model`) |
| null or empty content | an answer of nothing, which the check refuses (`empty`) |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from generator.schema.verdict import FILTER_WORD_LENGTH
from harness.calls.call import Answer, AnswerOutcome, CallError, EndpointError
from harness.calls.error_text import SURROGATE, innermost, load_json, one_line, whole
from harness.calls.refusals import POLICY_STATUSES, error_word, finish_word, flag_word
from harness.calls.reply_text import Said, said_in, with_calls
from harness.calls.secret_text import Secrets
from harness.calls.served_model import same_model
from harness.calls.thinking import begins_thinking, without_thinking
from harness.calls.usage import Usage, usage_of
from harness.plan.records import Prices

RETRYABLE = frozenset({408, 409, 425, 429})
LENGTH = "length"  # whatever a vendor calls its length limit is kept under this name, and counted by it
UNREPORTED = "unreported"
_CUT = re.compile(
    r"(?:^|_)(?:length|max(?:_\w+)?_tokens|token_limit|context_window(?:_exceeded)?)(?:$|_)", re.IGNORECASE
)
_BROKEN = re.compile(r"(?:^|_)(?:error|insufficient_system_resource)$", re.IGNORECASE)
_SHOWN = 160
_REFUSAL = "refusal"
_AT_STATUS = "content_filter"  # the finish reason of a prompt that was refused before anything was written

Bill = int | Literal["none", "unknown"]


@dataclass(frozen=True)
class Addressee:
    """Whom a reply must come from, and what reading it takes.

    Attributes:
        endpoint: name of the endpoint in run.toml.
        api_model: the endpoint's name for the model that was asked.
        served_as: other names that are right too.
        key_env: environment variable of the key, for messages.
        secrets: keys that are taken out of whatever the reply says.
        prices: what bills a reply that has usage and no answer.
        verdict: a judge was asked. Its text is kept raw, because its packaging is read where the vote is made.
    """

    endpoint: str
    api_model: str
    served_as: tuple[str, ...] = ()
    key_env: str | None = None
    secrets: Secrets = field(default_factory=Secrets)
    prices: Prices | None = None
    verdict: bool = False

    def told(self, text: str, longest: int) -> str:
        """Return the start of a stranger's words on one line, without keys.

        Keys are masked before the cut, which would otherwise leave half of one.
        """
        return one_line(self.secrets.mask(whole(text)), longest)


def answer_of(status: int, body: bytes, asked: Addressee, wait: float | None = None) -> Answer:
    """Return the answer in a reply of any status. Results of a batch endpoint are read here too.

    Args:
        status: HTTP status.
        body: the reply's bytes, unpacked.
        asked: whom it must come from.
        wait: seconds that the endpoint asked to wait.

    Raises:
        CallError: the reply holds no answer.
        EndpointError: key or account were refused (401, 402).
    """
    if status == 200:
        return read_reply(body, asked)
    if status in POLICY_STATUSES and (word := _policy_word(body, asked)) is not None:
        served_by = f"{asked.api_model}@{asked.endpoint}"
        return Answer("", "filtered", _AT_STATUS, served_by, 0, 0, filter_word=word)
    raise status_error(status, body, asked, wait)


def status_error(status: int, body: bytes, asked: Addressee, retry_after: float | None) -> CallError | EndpointError:
    """Return what a status other than 200 comes to. The provider's text goes only into the message for the operator.

    Args:
        status: HTTP status.
        body: the reply's bytes.
        asked: whom the reply comes from.
        retry_after: seconds that the endpoint asked to wait.
    """
    return _coded_error(status, f"HTTP status {status}{_reason(body, asked)}", asked, retry_after)


def read_reply(body: bytes, asked: Addressee) -> Answer:
    """Return the answer in the body of a 200 (contract: stages, "Replies").

    Raises:
        CallError: there is none.
        EndpointError: an error inside the 200 says that key or account were refused.
    """
    data = _parsed(body, asked)
    if data.get("error"):
        return _refused_or_raise(data["error"], data, None, asked)
    choice = _choice(data, asked)
    if choice is None:
        # No choice and a word of the filter: the prompt itself was refused.
        return _filtered("", error_word(_beside_choices(data)) or "", data, None, asked)
    finish = choice.get("finish_reason")
    said = _masked(said_in(choice.get("message")), asked)
    word = finish_word(finish, choice.get("native_finish_reason"), choice.get("stop_reason"))
    broken = isinstance(finish, str) and _BROKEN.search(finish.strip())
    if word is None and (choice.get("error") or broken):
        return _refused_or_raise(choice.get("error") or {}, data, choice, asked)
    # The filter's word is looked for before the model's name is checked: a refusal may come from the router itself.
    usage = usage_of(data, answered=bool(said.text.strip() or said.calls or said.thought))
    _check_model(data.get("model"), asked, usage)
    word = word or (_REFUSAL if said.refusal.strip() else None)
    if word is None and not said.text.strip() and not said.calls:
        word = flag_word(_beside_choices(data))
    if word is not None:
        return _filtered(said.text or said.refusal, word, data, choice, asked)
    return _answer(said, choice, data, usage, asked)


def _answer(said: Said, choice: Mapping[str, Any], data: Mapping[str, Any], usage: Usage, asked: Addressee) -> Answer:
    """Return an answer that no filter stopped: whole, cut, or cut before it began."""
    text = with_calls(said.text, said.calls) if asked.verdict and said.calls else said.text
    thought = without_thinking(text)
    limited = _is_cut(choice.get("finish_reason"))
    thinks = thought.found or said.thought or bool(usage.reasoning_tokens)
    none_yet = not thought.answer.strip() and (thinks or limited)
    if thought.open or none_yet or (limited and begins_thinking(text)):
        kept: str = text if asked.verdict else ""
        return _told(kept, "cut_before_answer", choice, data, usage, asked)
    kept = text if asked.verdict else thought.answer
    return _told(kept, "cut" if limited else "answered", choice, data, usage, asked)


def _filtered(text: str, word: str, data: Mapping[str, Any], choice: Any, asked: Addressee) -> Answer:
    """Return a refusal by the vendor. What it had written until then is kept, without its thinking."""
    usage = usage_of(data, answered=bool(text.strip()))
    kept = text if asked.verdict else without_thinking(text).answer
    answer = _told(kept, "filtered", choice or {"finish_reason": _AT_STATUS}, data, usage, asked)
    return replace(answer, filter_word=word or _AT_STATUS)


def _told(
    text: str,
    outcome: AnswerOutcome,
    choice: Mapping[str, Any],
    data: Mapping[str, Any],
    usage: Usage,
    asked: Addressee,
) -> Answer:
    if SURROGATE.search(text):
        reason = "a text with half of a surrogate pair, which no UTF-8 can hold"
        raise CallError("provider_error", reason, retryable=True, billed=_bill(usage, asked))
    return Answer(
        text=text,
        outcome=outcome,
        finish_reason=_finish(choice.get("finish_reason"), asked),
        served_by=_served_by(data, asked),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cost=usage.cost,
        reasoning_tokens=usage.reasoning_tokens,
    )


def _masked(said: Said, asked: Addressee) -> Said:
    """Look for keys once more: the parts of a key may only have been joined when the message was read."""
    mask = asked.secrets.mask
    calls = tuple((mask(name), mask(arguments)) for name, arguments in said.calls)
    return Said(mask(said.text), mask(said.refusal), said.thought, calls)


def _is_cut(finish: Any) -> bool:
    return isinstance(finish, str) and bool(_CUT.search(finish[:200].strip()))


def _finish(finish: Any, asked: Addressee) -> str:
    if _is_cut(finish):
        return LENGTH
    return (asked.told(finish, FILTER_WORD_LENGTH) if isinstance(finish, str) else "") or UNREPORTED


def _beside_choices(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != "choices"}


def _bill(usage: Usage, asked: Addressee) -> int | Literal["unknown"]:
    """Return what a reply without an answer cost, in picodollars."""
    cost = usage.bill(asked.prices)
    return "unknown" if cost is None else cost


def _coded_error(
    code: int, reason: str, asked: Addressee, retry_after: float | None = None, billed: Bill = "none"
) -> CallError | EndpointError:
    cost = billed if isinstance(billed, int) else 0
    if code == 401:
        where = f"the key in {asked.key_env}" if asked.key_env else "a call without a key (key_env in run.toml)"
        return EndpointError(f"{where} was refused: {reason}", billed=cost)
    if code == 402:
        return EndpointError(f"the account there has no credit left; pay, then run again: {reason}", billed=cost)
    if code == 403:
        return CallError("blocked", reason, retryable=False, billed=billed, status=code)
    retryable = code in RETRYABLE or code >= 500
    return CallError("http_status", reason, retryable=retryable, billed=billed, retry_after=retry_after, status=code)


def _refused_or_raise(
    error: Any, data: Mapping[str, Any], choice: Mapping[str, Any] | None, asked: Addressee
) -> Answer:
    """Return a refusal that comes as an error inside a 200; any other error is raised."""
    code = _status_in(error)
    if (code is None or code in POLICY_STATUSES) and (word := error_word(error)) is not None:
        said = _masked(said_in(choice.get("message")), asked) if choice is not None else None
        return _filtered(said.text if said else "", word, data, choice, asked)
    bill = _bill(usage_of(data, answered=False), asked)
    reason = f"an error inside a 200 reply: {_message(error, asked) or 'without a message'}"
    if code is None:
        raise CallError("provider_error", reason, retryable=True, billed=bill)
    found = _coded_error(code, reason, asked, billed=bill)
    if isinstance(found, CallError) and found.code == "http_status":
        found.code = "provider_error"
    raise found


def _status_in(error: Any) -> int | None:
    """Return the code of an error inside a 200 where it is an HTTP status, otherwise None."""
    code = error.get("code") if isinstance(error, Mapping) else None
    if isinstance(code, str) and len(code) == 3 and code.isdecimal() and code.isascii():
        code = int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 else None


def _message(error: Any, asked: Addressee) -> str:
    code = error.get("code") if isinstance(error, Mapping) else None
    words = innermost(error) or (code if isinstance(code, str | int) else "")
    return asked.told(str(words), _SHOWN)


def _parsed(body: bytes, asked: Addressee) -> dict[str, Any]:
    """Return the body's JSON object. A page of HTML comes from no model, so it costs nothing."""
    try:
        data = load_json(asked.secrets.mask(body.decode()))
    except UnicodeDecodeError as error:
        reason = f"a reply that is not UTF-8 at byte {error.start}"
        raise CallError("provider_error", reason, retryable=True, billed="unknown") from None
    except ValueError:
        billed: Bill = "none" if body.lstrip()[:1] == b"<" else "unknown"
        reason = f"a reply that is not JSON{_reason(body, asked)}"
        raise CallError("provider_error", reason, retryable=True, billed=billed) from None
    if not isinstance(data, dict):
        raise CallError("provider_error", "a reply that is no JSON object", retryable=True, billed="unknown")
    return data


def _choice(data: Mapping[str, Any], asked: Addressee) -> Mapping[str, Any] | None:
    """Return the first choice; None where the reply has a word of the vendor's filter in its place."""
    choices = data.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    if error_word(_beside_choices(data)) is not None:
        return None
    bill = _bill(usage_of(data, answered=False), asked)
    raise CallError("provider_error", "a reply without choices", retryable=True, billed=bill)


def _check_model(answered: Any, asked: Addressee, usage: Usage) -> None:
    if not isinstance(answered, str) or not answered or same_model(asked.api_model, answered, asked.served_as):
        return
    name = asked.told(answered, _SHOWN)
    reason = f"asked for {asked.api_model!r}, answered by {name!r}; if that is right, list it in served_as"
    raise CallError("wrong_model", reason, retryable=False, billed=_bill(usage, asked))


def _served_by(data: Mapping[str, Any], asked: Addressee) -> str:
    model, provider = data.get("model"), data.get("provider")
    name = model if isinstance(model, str) and model else asked.api_model
    place = provider if isinstance(provider, str) and provider else asked.endpoint
    return f"{asked.told(name, _SHOWN)}@{asked.told(place, _SHOWN)}"


def _policy_word(body: bytes, asked: Addressee) -> str | None:
    try:
        return error_word(load_json(asked.secrets.mask(body.decode(errors="replace"))))
    except ValueError:
        return None


def _reason(body: bytes, asked: Addressee) -> str:
    """Return what a body gives as the reason, for a message: its innermost message, or else its start."""
    text = asked.secrets.mask(body.decode(errors="replace"))
    try:
        words = innermost(load_json(text)) or text
    except ValueError:
        words = text
    told = asked.told(words, _SHOWN)
    return f": {told}" if told else ""
