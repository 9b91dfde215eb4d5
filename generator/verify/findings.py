"""What `verify` reports: each mismatch with its file, key and both values, and how much was checked.

See contract: publication, "Verify".
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from generator.schema.shown import shown as printable

TOLERANCE = 1e-9  # numbers are compared so far apart, on the scale of the file: other machines round sums differently
ABSENT = "absent"


@dataclass(frozen=True)
class Mismatch:
    """One difference: `published` is what the file says, `recomputed` what its receipts or hashes come to."""

    file: str
    key: str
    published: str
    recomputed: str

    def __str__(self) -> str:
        """One line for a person."""
        return printable(f"{self.file}: {self.key}: published {self.published}, recomputed {self.recomputed}")


@dataclass
class Findings:
    """Mismatches and counts, collected while a publication is checked.

    `notes` say what could not be compared. `pins`: of each data manifest, by its path, the hash that pins its files.
    `signed`: of each that has a signature, the key that made it, as `authorized_keys` has it.
    """

    mismatches: list[Mismatch] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    pins: dict[str, str] = field(default_factory=dict)
    signed: dict[str, str] = field(default_factory=dict)

    def add(self, file: str, key: str, published: Any, recomputed: Any) -> None:
        """Record one difference."""
        self.mismatches.append(Mismatch(file, key, shown(published), shown(recomputed)))

    def compare(self, file: str, key: str, published: Any, recomputed: Any, *, what: str = "values") -> None:
        """Count one value and record it when the two differ; of two objects, each member that differs."""
        if isinstance(published, dict) and isinstance(recomputed, dict):
            for name in sorted(published.keys() | recomputed.keys()):
                self.compare(file, f"{key}.{name}", published.get(name), recomputed.get(name), what=what)
            return
        self.checked[what] += 1
        if differs(published, recomputed):
            self.add(file, key, published, recomputed)

    def faults(self, lines: Iterable[str]) -> None:
        """Record faults that a reader of the run found; each line begins with its file."""
        for line in lines:
            file, _, rest = line.partition(": ")
            self.mismatches.append(Mismatch(file, rest or "unreadable", "as it stands", "refused"))

    def below(self, folder: str) -> Findings:
        """Return the same findings with every file named from one folder further up."""
        moved = [dataclasses.replace(m, file=f"{folder}/{m.file}") for m in self.mismatches]
        pins = {f"{folder}/{name}": digest for name, digest in self.pins.items()}
        signed = {f"{folder}/{name}": key for name, key in self.signed.items()}
        return Findings(moved, self.checked, self.notes, pins, signed)

    def merge(self, other: Findings) -> None:
        """Take over the findings of a part."""
        self.mismatches.extend(other.mismatches)
        self.checked.update(other.checked)
        self.notes.extend(other.notes)
        self.pins.update(other.pins)
        self.signed.update(other.signed)

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        found = [dataclasses.asdict(m) for m in self.mismatches]
        counts = dict(sorted(self.checked.items()))
        return {
            "ok": not found,
            "checked": counts,
            "not_compared": self.notes,
            "pins": self.pins,
            "signed": self.signed,
            "mismatches": found,
        }


def shown(value: Any) -> str:
    """Return a value as a report shows it: numbers in full, null as null, long text cut."""
    if value is None:
        return "null"
    text = repr(value) if isinstance(value, float) else str(value)
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text)} characters)"


def differs(a: Any, b: Any) -> bool:
    """Tell whether two values differ; floats within the tolerance are equal, whatever they are nested in."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is not b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return not abs(a - b) <= TOLERANCE
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() != b.keys() or any(differs(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) != len(b) or any(differs(x, y) for x, y in zip(a, b, strict=True))
    return bool(a != b)
