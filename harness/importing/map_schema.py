"""The JSON Schema of an import's map, made from its records (contract: publication, "JSON Schemas").

`python -m harness.importing.map_schema docs/schemas` writes it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from generator.schema.json_schemas import render_schema, schema_of
from harness.importing.import_map import ImportMap

NAME = "import-map.schema.json"
_CELLS = ("#/$defs/Cell", "#/$defs/RepeatCell")


def map_schema() -> bytes:
    """Return the schema; where a table says which column to read, the name of the column alone may stand, too."""
    made = schema_of(ImportMap, NAME, "map of an import", "How answers that were collected elsewhere become receipts.")
    del made["properties"]["$schema"]  # TOML names its schema in a comment
    return render_schema({key: _with_names(part) for key, part in made.items()})


def _with_names(node: Any) -> Any:
    if isinstance(node, list):
        return [_with_names(part) for part in node]
    if not isinstance(node, dict):
        return node
    if node.get("$ref") in _CELLS:
        return {"anyOf": [{"type": "string"}, node]}
    return {key: _with_names(part) for key, part in node.items()}


if __name__ == "__main__":
    Path(sys.argv[1], NAME).write_bytes(map_schema())
