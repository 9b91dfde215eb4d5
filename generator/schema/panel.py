"""Which judges label a model's answers (contract: verdicts, "Panel"): no judge of a live run scores its own vendor."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from generator.schema.bank import Frozen
from generator.schema.errors import InputError
from generator.schema.names import vendor_of


class Judges(Frozen):
    """A run's declared judges: two primaries and a tiebreak, of three vendors. Only an imported run may have fewer."""

    primary: tuple[str, ...] = Field(strict=False, min_length=1, max_length=2)
    tiebreak: str | None

    @property
    def all(self) -> tuple[str, ...]:
        """Every judge, in panel order."""
        return (*self.primary, *([] if self.tiebreak is None else [self.tiebreak]))


class Panel(Judges):
    """The judges of one subject; `tiebreak` is None under the two-judge protocol."""

    @property
    def size(self) -> int:
        """How many judges there are: one to three."""
        return len(self.all)

    @property
    def roles(self) -> tuple[str, ...]:
        """What each judge of `all` is: `primary` or `tiebreak`."""
        return ("primary",) * len(self.primary) + ("tiebreak",) * (self.tiebreak is not None)


def judge_faults(judges: Judges, *, imported: bool) -> list[str]:
    """Say what is wrong with a run's judges; vendors are for `effective_panel` to check."""
    named: Sequence[str] = judges.all
    faults = [f"judges: {name} is listed twice" for name in dict.fromkeys(named) if named.count(name) > 1]
    if judges.tiebreak is not None and len(judges.primary) < 2:
        faults.append("judges: a tiebreak needs two primary judges")
    if len(named) < 3 and not imported:
        faults.append("judges: two primary judges and a tiebreak; only an imported run may have fewer")
    return faults


def declared_panel(judges: Judges) -> Panel:
    """Return the panel of every model of an imported run: the judges that its source had, whatever their vendors."""
    return Panel(primary=judges.primary, tiebreak=judges.tiebreak)


def effective_panel(model: str, judges: Judges) -> Panel:
    """Return the judges of one subject: those of the run, without any of the subject's own vendor.

    Args:
        model: slug of the subject.
        judges: the run's judges, two primaries and a tiebreak.

    Returns:
        The panel in the order in which its votes stand. `tiebreak` is None where a judge shares the subject's vendor:
        either it took a primary's place, or it was the one that had to go.

    Raises:
        InputError: there are fewer than three judges, or two of them share a vendor, so that for some subject no panel
            of two would be left.
    """
    vendors = [vendor_of(j) for j in judges.all]
    if len(set(vendors)) < 3 or judges.tiebreak is None:
        raise InputError(f"judges {', '.join(judges.all)}: use three vendors")
    own = vendor_of(model)
    if own not in vendors:
        return Panel(primary=judges.primary, tiebreak=judges.tiebreak)
    primary = tuple(judges.tiebreak if vendor_of(j) == own else j for j in judges.primary)
    return Panel(primary=primary, tiebreak=None)
