"""JSON files of a run as they come from outside: read whole, or refused in one line that names the file.

See contract: run-folder, "JSON files".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from generator.schema.bounded_files import JSON, read_bytes
from generator.schema.canonical import canonical_json
from generator.schema.errors import InputError


def read_json(path: Path, absent: str) -> Any:
    """Return what a JSON file holds.

    Args:
        path: the file.
        absent: what to think of a file that is not there, as the end of the message: "is it a run folder?".

    Raises:
        InputError: the file is absent or cannot be read, is above the bound (contract: receipts, "Bounds"), is no JSON,
            nests too deep, or holds what JSON libraries let through and no hash can be taken of: NaN and infinities,
            lone surrogates, integers beyond 2**53. One line that begins with the path.
    """
    try:
        data = json.loads(read_bytes(path, JSON))
        canonical_json(data)
    except FileNotFoundError:
        raise InputError(f"{path}: not found; {absent}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    return data


def without_schema(data: Any) -> Any:
    """Return what a file says without `$schema`, the address of its JSON Schema, which may stand in any file."""
    if isinstance(data, dict) and isinstance(data.get("$schema"), str):
        return {key: value for key, value in data.items() if key != "$schema"}
    return data
