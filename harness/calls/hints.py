"""How long an endpoint asks to be left in peace, as read from headers and bodies.

A plain request comes first, in this order: `retry-after-ms`; `Retry-After` in seconds or as a date;
`RetryInfo.retryDelay` in the body. Only without any of them, and only for status 429, the reset of the limit that is
used up counts: `x-ratelimit-reset-*`, `ratelimit-reset`, `anthropic-ratelimit-*-reset`. It comes as seconds,
milliseconds or seconds since 1970, as a duration (`1m30s`, `6ms`), or as a date.

See contract: stages, "Attempts and waiting".
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

TOO_MANY = 429
LONGEST = 366 * 86_400.0  # seconds: what is beyond it is beyond any plan, and beyond a date that can be shown
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_DURATION = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d*)?", re.ASCII)
_RESET = re.compile(r"(?:(?:x-)?ratelimit-reset(?P<after>-[a-z0-9-]+)?|(?P<before>[a-z-]*ratelimit-[a-z-]+)-reset)")
_SINCE_1970 = 3e8  # a number beyond it is a moment, not a wait
_MILLISECONDS = 3e11
_DEEP = 12

_Found = tuple[float]  # a wait; a tuple, so that a wait of 0 is told from none


def asked_wait(status: int, headers: Mapping[str, str], body: bytes, now: float) -> float | None:
    """Return how many seconds a reply asks to wait, 0 or more; None where it asks for nothing.

    Args:
        status: HTTP status of the reply.
        headers: its headers, names in lower case.
        body: its body.
        now: seconds since 1970. A date is compared with the reply's own Date where it has one, so that a wrong clock
            here does no harm.
    """
    sent = _moment(headers.get("date", ""))
    clock = now if sent is None else sent
    asked = _milliseconds(headers) or _seconds_or_date(headers.get("retry-after", ""), clock) or _in_body(body)
    if asked is None and status == TOO_MANY:
        asked = _resets(headers, clock)
    return None if asked is None else min(max(asked[0], 0.0), LONGEST)


def _milliseconds(headers: Mapping[str, str]) -> _Found | None:
    value = headers.get("retry-after-ms", "").strip()
    return (_number(value) / 1000,) if _NUMBER.fullmatch(value) else None


def _seconds_or_date(value: str, clock: float) -> _Found | None:
    value = value.strip()
    if _NUMBER.fullmatch(value):
        return (_number(value),)
    moment = _moment(value)
    return None if moment is None else (moment - clock,)


def _number(digits: str) -> float:
    """Return a number of any length as a float; too many digits become infinity, which every bound cuts."""
    return float(digits)


def duration(value: str) -> float | None:
    """Return the seconds of a duration such as `1m30s`, `6ms` or `38.5s`; None for anything else."""
    text = value.strip().lower()
    if not _DURATION.fullmatch(text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def _moment(value: str) -> float | None:
    """Return the moment of an HTTP date or an ISO 8601 one, in seconds since 1970."""
    text = value.strip()
    for read in (dt.datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(text)
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
        try:
            return (found if found.tzinfo else found.replace(tzinfo=dt.UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    return None


def _in_body(body: bytes) -> _Found | None:
    """Return the wait in the first RetryInfo of a body, at any depth up to the bound."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    for fields in _objects(data, _DEEP):
        wait = _retry_delay(fields.get("retryDelay", fields.get("retry_delay")))
        if wait is not None:
            return (wait,)
    return None


def _objects(data: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if depth == 0:
        return
    if isinstance(data, Mapping):
        yield data
    inner = data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ()
    for item in inner:
        yield from _objects(item, depth - 1)


def _retry_delay(value: Any) -> float | None:
    """Return the seconds of a protobuf duration: `38s`, or `{seconds, nanos}`."""
    if isinstance(value, str):
        return duration(value)
    if not isinstance(value, Mapping):
        return None
    parts = [_amount(value.get("seconds", 0)), _amount(value.get("nanos", 0))]
    if None in parts:
        return None
    return (parts[0] or 0.0) + (parts[1] or 0.0) / 1e9


def _amount(value: Any) -> float | None:
    text = str(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else ""
    return float(text) if _NUMBER.fullmatch(text) else None


def _resets(headers: Mapping[str, str], clock: float) -> _Found | None:
    """Return the wait until the limits that are used up are reset; where no header says which are, the longest wait."""
    used_up, others = list[float](), list[float]()
    for name, value in headers.items():
        found = _RESET.fullmatch(name.lower())
        wait = _reset_wait(value, clock) if found else None
        if found is None or wait is None or not math.isfinite(wait):
            continue
        left = headers.get(_remaining(found))
        if left is None:
            others.append(wait)
        elif left.strip() in ("0", "0.0"):
            used_up.append(wait)
    waits = used_up or others
    return (max(waits),) if waits else None


def _remaining(found: re.Match[str]) -> str:
    """Return the name of the header that says how much is left of the limit whose reset a header gives."""
    if found["before"]:
        return f"{found['before']}-remaining"
    return f"{found.group().removesuffix(found['after'] or '').removesuffix('reset')}remaining{found['after'] or ''}"


def _reset_wait(value: str, clock: float) -> float | None:
    text = value.strip()
    if _NUMBER.fullmatch(text):
        number = float(text)
        # Vendors give the same header as a wait, as a moment in seconds, or as one in milliseconds; size tells them
        # apart.
        if number > _MILLISECONDS:
            return number / 1000 - clock
        return number - clock if number > _SINCE_1970 else number
    wait = duration(text)
    if wait is not None:
        return wait
    moment = _moment(text)
    return None if moment is None else moment - clock
