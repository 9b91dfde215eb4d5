"""What the operator left in a run folder for its readers: a note, and who labeled the audit sample."""

from __future__ import annotations

import json
from pathlib import Path

NOTE_FILE = "note.txt"
AUDIT_RECORD = Path("audit", "draw.json")  # the harness's; a run may come without it


def reviewer(folder: Path) -> str:
    """Return who labeled a run's audit sample by the record of its draw: human, simulated, or nothing without one."""
    try:
        record = json.loads((folder / AUDIT_RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    found = record.get("reviewer") if isinstance(record, dict) else None
    return found if found in ("human", "simulated") else ""


def read_note(folder: Path) -> tuple[str, ...]:
    """Read the operator's note on a run (`note.txt` in its folder): paragraphs of plain text, none without the file."""
    file = folder / NOTE_FILE
    if not file.is_file():
        return ()
    return tuple(" ".join(part.split()) for part in file.read_text(encoding="utf-8").split("\n\n") if part.strip())
