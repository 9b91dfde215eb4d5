"""What an error body says: its codes, its messages, and the one message that gives the reason.

Vendors nest errors in each other, and routers put another vendor's whole reply into a string. So bodies are walked
instead of read at fixed places. The walk is bounded, because a body may be hostile.

See contract: stages, "Replies".
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

_MOST_NODES = 400
_CODES = (
    "code", "type", "status", "reason", "error_type", "error_code", "provider_code", "subcode", "status_code",
    "finish_reason", "native_finish_reason", "stop_reason",
)  # fmt: skip
_MESSAGES = ("message", "error", "detail", "details", "msg", "error_msg", "error_message", "status_msg", "title", "raw")
_INNER = ("metadata", "raw", "innererror", "inner_error", "cause", "error", "errors", "detail", "details")
SURROGATE = re.compile("[\ud800-\udfff]")


def load_json(text: str | bytes) -> Any:
    """Parse JSON from a stranger. A number of more than 40 digits comes back as infinity, which no field accepts.

    Raises:
        ValueError: it is not JSON, holds NaN or Infinity, or is nested too deep.
    """
    try:
        return json.loads(text, parse_int=_integer, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= 40 else float("inf")


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def whole(text: str) -> str:
    """Return a text in which half a surrogate pair, which UTF-8 cannot hold, is the replacement character U+FFFD."""
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)


def one_line(text: str, longest: int) -> str:
    """Return the start of a stranger's words on one line, without control characters, at most `longest` characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text[: 12 * longest]).split())[:longest]


def objects(body: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a body, outer ones first, at most 400 nodes deep or wide.

    JSON inside a string counts too.
    """
    waiting = deque([body])
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        node = waiting.popleft()
        if isinstance(node, str):
            node = _packed(node)
        if isinstance(node, Mapping):
            yield node
            waiting.extend(list(node.values())[:_MOST_NODES])
        elif isinstance(node, list):
            waiting.extend(node[:_MOST_NODES])


def _packed(text: str) -> Any:
    """Return the JSON that a string carries, None where it carries none."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return load_json(text)
    except ValueError:
        return None


def codes(body: Any) -> Iterator[str]:
    """Yield every code, type and reason in a body, outer ones first, numbers as text."""
    for entry in objects(body):
        for name in _CODES:
            value = entry.get(name)
            if isinstance(value, str):
                yield value
            elif isinstance(value, int) and not isinstance(value, bool):
                yield str(value)


def messages(body: Any) -> Iterator[str]:
    """Yield every text in a body that stands where vendors put messages, outer ones first."""
    for entry in objects(body):
        for name in _MESSAGES:
            value = entry.get(name)
            if isinstance(value, str):
                yield value


def innermost(body: Any) -> str | None:
    """Return the message that lies deepest, or None.

    A router's `Provider returned error` says nothing; the error that it wraps does.
    """
    best, node = None, body
    for _ in range(12):
        if isinstance(node, str):
            packed = _packed(node)
            if packed is None:
                return node if node.strip() else best
            node = packed
        if isinstance(node, list):
            node = next((item for item in node if item), None)
        if not isinstance(node, Mapping):
            return best
        best = _own_message(node) or best
        node = next((node[name] for name in _INNER if isinstance(node.get(name), Mapping | list | str)), None)
        if isinstance(node, str) and not node.strip():
            return best
    return best


def _own_message(entry: Mapping[str, Any]) -> str | None:
    for name in ("message", "msg", "error_msg", "error_message", "status_msg", "title"):
        value = entry.get(name)
        if isinstance(value, str) and value.strip():
            return value if _packed(value) is None else innermost(value)
    return None
