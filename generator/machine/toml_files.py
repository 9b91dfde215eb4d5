"""The operator's TOML files: read whole, or refused in one line that names the file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from generator.schema.errors import InputError


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds; raises FileNotFoundError where it is absent, InputError for any other fault."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, or nesting without end
        raise InputError(f"{path}: not TOML: {error}") from None
