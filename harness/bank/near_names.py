"""Names like one that was mistyped, for messages that propose what was meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

# How many are proposed, how like the typed name they are (difflib's ratio), and how much of a name must be typed.
NEAR, LIKENESS, LEAST_PART = 3, 0.75, 4


def near_names(typed: str, names: Sequence[str]) -> list[str]:
    """Return up to three names like the one typed: slips of the keyboard first, then names that hold it whole."""
    close = difflib.get_close_matches(typed.lower(), names, n=NEAR, cutoff=LIKENESS)
    holding = [name for name in names if len(typed) >= LEAST_PART and typed.lower() in name and name not in close]
    return [*close, *holding][:NEAR]
