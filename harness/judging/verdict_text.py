"""A judge's reply down to the JSON of its verdict: packaging comes off, what is inside stays as strict as ever.

Packaging is what a model or its server puts around an answer without a choice of words: one surrounding fence, one
leading thought, stop tokens at the end, a tool call.

See contract: verdicts, "Packaging of a verdict".
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, NamedTuple

from generator.schema.verdict import UNWRAPPED
from harness.calls.error_text import whole
from harness.calls.thinking import without_thinking

# Every part may be empty, so it matches at once and never looks back.
_INFO = re.compile(r"[ \t]*[\w+.-]*[ \t]*\r?\n?")
_STOP_TOKENS = (
    "<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>", "<|call|>",
    "<|end_of_turn|>", "<|END_OF_TURN_TOKEN|>", "<|user|>", "<|observation|>", "<|endofprompt|>", "<|stop|>",
    "<end_of_turn>", "<turn|>", "<eos>", "</s>", "[EOS]", "[/INST]", "<｜end▁of▁sentence｜>", "<|EOT|>", "<EOT>",
    "<|eos|>", "<|end_of_sentence|>", "<|role_end|>", "<|eom|>", "<|eot|>", "<|end_of_role|>", "<|end_of_box|>",
)  # fmt: skip
_LONGEST_NUMBER = 40
NO_JSON = object()


class VerdictText(NamedTuple):
    """The parsed JSON of a reply, and what was taken off to get at it.

    `data` is `NO_JSON` where there is none; nothing counts as taken off then.
    """

    data: Any
    unwrapped: frozenset[str]


def read_verdict(text: str) -> VerdictText:
    """Parse a judge's reply, as it is or without its packaging.

    A reply that is JSON as it stands is never touched, but for a verdict in the arguments of a single tool call.
    """
    # As it stands first: a string inside valid JSON may hold a fence or a stop token.
    found = _load(text)
    if found is not NO_JSON:
        called = _called(found)
        return VerdictText(found, frozenset()) if called is None else _unpacked(called, {"tool_call"})
    return _unpacked(text, set())


def in_order(unwrapped: frozenset[str]) -> str | None:
    """Return what was taken off as a vote has it: in the order of `UNWRAPPED`, joined by `;`; None for nothing."""
    return ";".join(name for name in UNWRAPPED if name in unwrapped) or None


def _unpacked(text: str, off: set[str]) -> VerdictText:
    inner = _without_stop_tokens(text, off)
    thought = without_thinking(inner)
    # No answer follows a thought that never ends, so nothing is taken off.
    if thought.found and not thought.open:
        off.add("thought")
        inner = _without_stop_tokens(thought.answer, off)
    if (fenced := _inside_fence(inner.strip())) is not None:
        off.add("fence")
        inner = _without_stop_tokens(fenced, off)
    data = _load(inner)
    return VerdictText(data, frozenset(off) if data is not NO_JSON else frozenset())


def _inside_fence(text: str) -> str | None:
    """Return what one fence around a whole text holds, None where there is none; linear in its length."""
    mark = text[:1]
    if mark not in ("`", "~"):
        return None
    size = len(text) - len(text.lstrip(mark))
    info = _INFO.match(text, size)
    start, end = info.end() if info else size, len(text) - size
    return text[start:end] if size >= 3 and start <= end and text.endswith(mark * size) else None


def _without_stop_tokens(text: str, off: set[str]) -> str:
    inner = text.strip()
    # The end moves instead of the text being copied: a reply may be nothing but stop tokens.
    end = len(inner)
    while (token := next((token for token in _STOP_TOKENS if inner.endswith(token, 0, end)), None)) is not None:
        end -= len(token)
        while end and inner[end - 1].isspace():
            end -= 1
        off.add("stop_token")
    return inner[:end]


def _called(data: Any) -> str | None:
    """Return the arguments where a reply is one tool call and nothing else (`harness.calls.reply_text.with_calls`)."""
    calls = data.get("tool_calls") if isinstance(data, dict) and set(data) == {"tool_calls"} else None
    call = calls[0] if isinstance(calls, list) and len(calls) == 1 else None
    arguments = call.get("arguments") if isinstance(call, dict) and set(call) == {"name", "arguments"} else None
    return arguments if isinstance(arguments, str) else None


def _load(text: str) -> Any:
    """Parse strict JSON; `NO_JSON` where it is none, or an object holds a key twice."""
    try:
        return json.loads(
            text, object_pairs_hook=_no_repeated_key, parse_int=_integer, parse_float=_fraction, parse_constant=_refuse
        )
    except (ValueError, ArithmeticError, RecursionError):
        # Decimal's errors are no ValueError: they are of arithmetic.
        return NO_JSON


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else _refuse(digits)


def _fraction(digits: str) -> Decimal:
    # As a float, 69.99999999999999999 would be 70.
    return Decimal(digits) if len(digits) <= _LONGEST_NUMBER else _refuse(digits)


def _refuse(token: str) -> Any:
    raise ValueError(token[:_LONGEST_NUMBER])


def _no_repeated_key(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        # json would keep the last of the two; which one the judge meant would be a guess.
        raise ValueError("a key occurs twice")
    return found


def whole_number(value: Any) -> Any:
    """Return `70.0` as 70, which JSON Schema takes for an integer too; any other value as it is."""
    if isinstance(value, Decimal) and 0 <= value <= 100 and value == value.to_integral_value():
        return int(value)
    return value


def cut_evidence(text: str, words: int, characters: int) -> tuple[str, bool]:
    """Return the start of a judge's evidence, and whether any of it was cut off.

    Args:
        text: the evidence.
        words: most words.
        characters: most code points, for a text without spaces.
    """
    clean = whole(text)
    # Only the beginning is split into words: a reply may be megabytes long.
    found = list(re.finditer(r"\S+", clean[: 20 * characters]))
    end = found[words - 1].end() if len(found) > words else len(clean)
    kept = clean[: min(end, characters)]
    return kept, len(kept) < len(clean)
