"""The errors that a person meets: each says what, where and what to do, and carries its exit code.

See contract: stages, "Exit codes".
"""

from __future__ import annotations

from collections.abc import Sequence

from generator.schema.shown import shown

SHOWN = 20
MOST_TOLD = 2_000


class ToolError(Exception):
    """Any error that ends a command with a message instead of a traceback."""

    exit_code = 1


class InputError(ToolError):
    """Bad input, refused whole before any work starts (exit 2).

    `faults` holds every fault found, one line each: file, place, value seen, values allowed, what to do. The message
    spells out what a terminal would obey, line breaks in foreign text among them.
    """

    exit_code = 2

    def __init__(self, *faults: str) -> None:
        self.faults: tuple[str, ...] = tuple(map(_line, faults))
        super().__init__(self._message())

    def _message(self) -> str:
        lines = [shown(fault) for fault in self.faults[:SHOWN]]
        if len(self.faults) > SHOWN:
            lines.append(f"... and {len(self.faults) - SHOWN:,} more faults")
        return "\n".join(lines)


class CheckError(ToolError):
    """The data or a check failed: a gate, a mismatch, an audit (exit 1)."""

    exit_code = 1

    def __init__(self, *findings: str) -> None:
        self.findings: tuple[str, ...] = findings
        super().__init__("\n".join(map(shown, findings)))


class CapError(ToolError):
    """A stage stopped at a spend cap (exit 3); the message says what is left, and with a higher cap it goes on."""

    exit_code = 3


def _line(fault: str) -> str:
    """Return a fault as one line of bounded length, whatever keys and values of the input it quotes."""
    told = shown(fault)
    return told if len(told) <= MOST_TOLD else f"{told[:MOST_TOLD]} ... ({len(told):,} characters)"


def raise_faults(faults: Sequence[str]) -> None:
    """Raise one `InputError` with all `faults`, or return when there are none.

    Checks collect what they find and end with this, so that a person sees every fault of an input at once.
    """
    if faults:
        raise InputError(*faults)
