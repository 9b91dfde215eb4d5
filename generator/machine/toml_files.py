"""The operator's TOML files: read whole, or refused in one line that names the file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from generator.schema.bounded_files import TOML, read_text
from generator.schema.errors import InputError


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds; raises FileNotFoundError where it is absent, InputError for any other fault."""
    try:
        return tomllib.loads(read_text(path, TOML))
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, or nesting without end
        raise InputError(f"{path}: not TOML: {error}") from None
