"""The operator's TOML files: read whole, or refused in one line that names the file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from generator.schema.bounded_files import TOML, read_text
from generator.schema.errors import InputError

DEEPEST = 32  # parts of a dotted key; the parser's time grows with their square
# Each part begins where the one before it ended, so that no text is looked at twice.
_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')[ \t]*"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}\.[ \t]*){{{DEEPEST}}}")


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds; raises FileNotFoundError where it is absent, InputError for any other fault."""
    text = read_text(path, TOML)
    if found := _LONG_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise InputError(f"{path}: not TOML that is read: line {line}: a name of more than {DEEPEST} parts")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, or nesting without end
        raise InputError(f"{path}: not TOML: {error}") from None
