"""Whom a label serves, for its chip: up favors the person, whatever the scale of its rubric says.

See contract: publication, "Labels on pages".
"""

from __future__ import annotations

# On the scale turned so that 1 favors the person: the middle label of three lies between, and so do scores of 40 to 60.
_UP, _DOWN = 0.6, 0.4
_DECIMALS = 10


def favor(value: float | None, polarity: int) -> str:
    """Return `up`, `mid` or `down` for a value of 0 to 1, empty without one: the class of its chip."""
    if value is None:
        return ""
    turned = round(value if polarity > 0 else 1 - value, _DECIMALS)
    return "up" if turned > _UP else "down" if turned < _DOWN else "mid"
