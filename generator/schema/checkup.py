"""What a look at an installation found: one line each, with what to type where something is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Looked:
    """Where `doctor` looks: the content folder, the folder of the site, the environment (its values are never told)."""

    content: Path
    out: Path
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what, whether it is there, what was seen, and what to type where it is not."""

    what: str
    ok: bool
    seen: str
    do: str = ""
