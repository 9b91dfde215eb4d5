"""Which judges label a model's answers (contract: verdicts, "Panel"): no judge ever scores its own vendor."""

from __future__ import annotations

from pydantic import Field

from generator.schema.bank import Frozen
from generator.schema.errors import InputError
from generator.schema.names import vendor_of


class Judges(Frozen):
    """A run's declared judges: two primaries and a tiebreak, of three vendors."""

    primary: tuple[str, str] = Field(strict=False)
    tiebreak: str


class Panel(Frozen):
    """The judges of one subject; `tiebreak` is None under the two-judge protocol."""

    primary: tuple[str, str] = Field(strict=False)
    tiebreak: str | None


def effective_panel(model: str, judges: Judges) -> Panel:
    """Return the judges of one subject: those of the run, without any of the subject's own vendor.

    Args:
        model: slug of the subject.
        judges: the run's judges.

    Returns:
        The panel in the order in which its votes stand. `tiebreak` is None where a judge shares the subject's vendor:
        either it took a primary's place, or it was the one that had to go.

    Raises:
        InputError: two of the judges share a vendor, so that for some subject no panel of two would be left.
    """
    vendors = [vendor_of(j) for j in (*judges.primary, judges.tiebreak)]
    if len(set(vendors)) < 3:
        raise InputError(f"judges {', '.join((*judges.primary, judges.tiebreak))}: use three vendors")
    own = vendor_of(model)
    if own not in vendors:
        return Panel(primary=judges.primary, tiebreak=judges.tiebreak)
    a, b = (judges.tiebreak if vendor_of(j) == own else j for j in judges.primary)
    return Panel(primary=(a, b), tiebreak=None)
