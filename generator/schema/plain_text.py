"""Names, titles and settings from outside hold no control characters: they are refused where they come in.

Answers, evidence and what a vendor says are another matter: they are kept as they are and shown as code points.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Container
from typing import Any

_BREAKS = "\n\t"
# Controls (C0, delete, C1), the marks that turn the direction of text, line and paragraph separators, lone surrogates.
_REFUSED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def control_character(text: str, *, prose: bool = False) -> str | None:
    """Return the first character that has no place in a name or title, or None; prose may have line breaks and tabs."""
    found = (match[0] for match in _REFUSED.finditer(text))
    return next((c for c in found if not (prose and c in _BREAKS)), None)


def control_faults(data: Any, where: str, prose: Container[str] = ()) -> list[str]:
    """Return a fault for each text of parsed JSON or TOML that holds a control character, keys included.

    Below a key in `prose` texts may have line breaks and tabs.
    """
    faults: list[str] = []
    # A queue and no recursion, because a stranger decides how deep this is nested.
    waiting: deque[tuple[str, Any, bool]] = deque([("", data, False)])
    while waiting:
        place, value, free = waiting.popleft()
        if isinstance(value, str):
            if found := control_character(value, prose=free):
                said = f"control character U+{ord(found):04X} in {value[:80]!r}; leave it out"
                faults.append(f"{where}: {place or 'top level'}: {said}")
        elif isinstance(value, dict):
            for key, item in value.items():
                if isinstance(key, str) and (found := control_character(key)):
                    said = f"control character U+{ord(found):04X} in key {key[:80]!r}; leave it out"
                    faults.append(f"{where}: {place or 'top level'}: {said}")
                waiting.append((f"{place}.{key}" if place else str(key), item, free or key in prose))
        elif isinstance(value, list | tuple):
            waiting.extend((f"{place}.{i}" if place else str(i), item, free) for i, item in enumerate(value))
    return faults
