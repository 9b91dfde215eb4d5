"""How a run is headed: by its models and its month, `Fourteen models, November 2026`. Its id stays the name to cite."""

from __future__ import annotations

from datetime import date

_WORDS = (
    "No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve", "Thirteen",
    "Fourteen", "Fifteen", "Sixteen", "Seventeen", "Eighteen", "Nineteen", "Twenty",
)  # fmt: skip
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


# The audit of a run, by who labeled its sample (contract: stages, "Human audit"); "" where no file says who did.
AUDIT_NAMES = {"human": "Human audit", "simulated": "Simulated reviewer", "": "Audit"}


def run_name(models: int, day: str) -> str:
    """Return the heading of a run of so many models, asked on a day written as `2026-11-30`.

    A day that is no date stands as it is written.
    """
    count = _WORDS[models] if models < len(_WORDS) else f"{models:,}"
    try:
        when = date.fromisoformat(day)
        month = f"{_MONTHS[when.month - 1]} {when.year}"
    except ValueError:
        month = day
    return f"{count} model{'' if models == 1 else 's'}, {month}"
