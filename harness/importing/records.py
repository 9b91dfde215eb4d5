"""One row of a file from outside, with the place that a fault names, and its values looked up by dotted names.

What a cell holds depends on who wrote the file: a label may be `1`, `1.0`, `true` or `"1"`, and a missing one null, NaN
or an empty cell of CSV. `text_of` makes one text of all of them, and None of what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_EXACT = 1 << 53  # whole numbers above it may already be rounded in a float


class Absent:
    """What a lookup gives where a record has no value of that name; not the same as null."""


ABSENT = Absent()


class CellError(ValueError):
    """A value that cannot be used; the message says what was seen and what to do."""


@dataclass(frozen=True, slots=True)
class Record:
    """A row of a file: `place` is `file: row 3`; `data` its values by name, nested as in the file."""

    place: str
    data: Mapping[str, Any]


def found_at(data: Any, name: str) -> Any:
    """Return the value under a name, with dots for what is nested: `metadata.group`, `resps.0`; ABSENT without one.

    A key that holds dots itself goes first: `scores.my.judge.value` finds the key `my.judge`.
    """
    if isinstance(data, dict):  # what JSON and Arrow give
        if name in data:
            return data[name]
        parts = name.split(".")
        for end in range(len(parts) - 1, 0, -1):
            key = ".".join(parts[:end])
            if key in data:
                found = found_at(data[key], ".".join(parts[end:]))
                if found is not ABSENT:
                    return found
        return ABSENT
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        head, _, rest = name.partition(".")
        if not (head.isascii() and head.isdigit() and len(head) < 7 and int(head) < len(data)):
            return ABSENT
        return found_at(data[int(head)], rest) if rest else data[int(head)]
    return ABSENT


def text_of(value: Any) -> str | None:
    """Return a value as text, None where it is missing: null, NaN.

    Raises:
        CellError: the value is a list or an object, an infinity, or a float too large to be told from its neighbors.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if -(10**40) < value < 10**40 else _refuse("a number of more than 40 digits")
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, Mapping):
        keys = ", ".join(str(key)[:30] for key in list(value)[:6])
        return _refuse(f"an object; name what is inside it with a dot ({keys})")
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return _refuse("a list; name one item of it with a dot and its place, counted from 0")
    return str(value)  # dates and decimals of Parquet


def _float_text(value: float) -> str | None:
    if math.isnan(value):
        return None
    if math.isinf(value):
        return _refuse("an infinity")
    if not value.is_integer():
        return repr(value)
    # A column of whole numbers with one gap comes out of many programs as floats: 1.0 is 1.
    return (
        str(int(value))
        if abs(value) < _EXACT
        else _refuse(f"{value!r}, a float too large to be exact; write it as text")
    )


def _refuse(words: str) -> str:
    raise CellError(words)


def number_of(value: Any) -> float | None:
    """Return a value as a finite number, None where it is missing or an empty text; raises CellError on others."""
    if isinstance(value, bool):
        return float(value)
    text = text_of(value)
    if text is None or not text.strip():
        return None
    try:
        found = float(text)
    except ValueError:
        raise CellError(f"{text[:40]!r} is no number") from None
    if not math.isfinite(found):
        raise CellError(f"{text[:40]!r} is not finite")
    return found
