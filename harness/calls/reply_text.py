"""What the message of a reply says: text, refusal, a verdict in a tool call, and whether the model thought elsewhere.

See contract: stages, "Thinking".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_TEXT_PARTS = frozenset({"text", "output_text"})
_THOUGHTS = ("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks", "thought")
_MOST_CALLS = 3  # two are already one too many


class Said(NamedTuple):
    """What a reply's message holds.

    Attributes:
        text: the text of its content alone.
        refusal: the text in the vendor's own refusal field, empty without one.
        thought: whether thinking stands in another field or part.
        calls: tool calls as (name, arguments), both as they came.
    """

    text: str
    refusal: str
    thought: bool
    calls: tuple[tuple[str, str], ...]


def said_in(message: Any) -> Said:
    """Read a message of any shape. Whatever is not of the right type counts as absent."""
    fields = message if isinstance(message, Mapping) else {}
    content = fields.get("content")
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    text = content if isinstance(content, str) else "".join(_texts(parts))
    refusal = fields.get("refusal")
    refusals = [refusal] if isinstance(refusal, str) else []
    refusals += [part["refusal"] for part in parts if isinstance(part.get("refusal"), str)]
    elsewhere = any(fields.get(name) for name in _THOUGHTS) or any(_is_thought(part) for part in parts)
    return Said(text, "".join(refusals), elsewhere, tuple(_calls(fields)))


def _texts(parts: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the text of those parts that are text. Thoughts, images and parts of unknown type are left out."""
    for part in parts:
        kind, text = part.get("type"), part.get("text")
        if isinstance(kind, str) and kind in _TEXT_PARTS and isinstance(text, str):
            yield text


def _is_thought(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    return isinstance(kind, str) and ("think" in kind or "reason" in kind or "thought" in kind)


def _calls(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    listed = fields.get("tool_calls")
    # A verdict is one call, so more than two need not be told apart.
    found = listed[:_MOST_CALLS] if isinstance(listed, list) else []
    functions = [call.get("function") for call in found if isinstance(call, Mapping)]
    for function in (*functions, fields.get("function_call")):
        arguments = function.get("arguments") if isinstance(function, Mapping) else None
        if isinstance(function, Mapping) and isinstance(arguments, str):
            name = function.get("name")
            yield name if isinstance(name, str) else "", arguments


def with_calls(text: str, calls: tuple[tuple[str, str], ...]) -> str:
    """Return a judge's text and tool calls as one JSON text, which `harness.judging.verdict_text` takes apart.

    The cache has one field for text, so this keeps the reply whole in it.
    """
    listed = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return json.dumps({"content": text, "tool_calls": listed} if text.strip() else {"tool_calls": listed})
