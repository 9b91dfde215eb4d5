"""What the operator left in a run folder for its readers: a note, and who labeled the audit sample."""

from __future__ import annotations

import json
from pathlib import Path

from generator.schema.bounded_files import JSON, NOTE, read_text
from generator.schema.errors import InputError

NOTE_FILE = "note.txt"
AUDIT_RECORD = Path("audit", "draw.json")  # the harness's; a run may come without it


def reviewer(folder: Path) -> str:
    """Return who labeled a run's audit sample, as the record of the draw says: `human` or `simulated`.

    Empty without a record, or with one that cannot be read: it is a courtesy of the harness and no part of the run's
    contract (contract: stages, "Human audit").
    """
    try:
        record = json.loads(read_text(folder / AUDIT_RECORD, JSON))
    except (FileNotFoundError, InputError, ValueError, RecursionError):
        return ""
    found = record.get("reviewer") if isinstance(record, dict) else None
    return found if found in ("human", "simulated") else ""


def read_note(folder: Path) -> tuple[str, ...]:
    """Read the operator's note on a run, `note.txt` in its folder.

    Returns:
        Its paragraphs as plain text; none without the file.

    Raises:
        InputError: it is not UTF-8, or larger than its bound.
    """
    try:
        text = read_text(folder / NOTE_FILE, NOTE)
    except FileNotFoundError:
        return ()
    return tuple(" ".join(part.split()) for part in text.split("\n\n") if part.strip())
