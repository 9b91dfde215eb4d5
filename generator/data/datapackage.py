"""`datapackage.json`: the CSV files as a Frictionless Data Package, hashes and field types included.

See contract: publication, "Data files".
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from typing import Any

import pyarrow as pa

from generator.data import citation
from generator.data.description import description, keywords
from generator.data.table_files import DataFile, stem_of
from generator.edition.edition import Edition
from generator.edition.numbers import TABLE_KEYS
from generator.schema.columns import Column

# What tells a row of a table from all others; receipts, of any model, by their id.
_KEYS = {**TABLE_KEYS, "receipts": ("receipt_id",)}
_MODELS = (("model", "tiers", "model"),)  # every model of the run has a row there
_FOREIGN = {
    **dict.fromkeys(("cells", "disparities", "refusal_tests", "receipts"), _MODELS),
    "comparisons": (("model_a", "tiers", "model"), ("model_b", "tiers", "model")),
}
GUARD = {
    "character": "'",
    "before": ["=", "+", "-", "@", "\t", "\r", "'"],
    "description": (
        "In a field marked guarded, a cell that begins with one of these has one apostrophe before it, so that a "
        "spreadsheet runs nothing. To have the text, remove one leading apostrophe where there is one."
    ),
}


def descriptor(edition: Edition, files: Sequence[DataFile]) -> bytes:
    """Return the package descriptor of every CSV file among `files`."""
    manifest = edition.run.manifest
    licence = edition.site.data_licence
    csv = [file for file in files if file.ending == "csv"]
    whole = frozenset(file.table for file in csv if not file.part)
    package: dict[str, Any] = {
        "profile": "tabular-data-package",
        "name": f"{edition.site.file_name}-{manifest.run_id}",
        "title": citation.title(edition),
        "description": f"{description(edition)} The Parquet files of the same names are canonical.",
        "version": manifest.bank_version,
        "created": f"{manifest.date}T00:00:00Z",
        "licenses": [{**({"name": licence.spdx} if licence.spdx else {}), "title": licence.name, "path": licence.url}],
        "contributors": [{"title": edition.site.publisher, "role": "publisher"}],
        "keywords": keywords(edition),
        "simulated": manifest.simulated,
        "formulaGuard": GUARD,
        "resources": [_resource(file, whole) for file in csv],
    }
    if url := citation.address(edition):
        package["homepage"] = url
    return (json.dumps(package, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _resource(file: DataFile, whole: Container[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"fields": [_field(column) for column in file.fields], "missingValues": [""]}
    if key := _KEYS.get(file.table):
        schema["primaryKey"] = list(key)
    # A key can lead to a table in one file only; one in parts is no single resource.
    foreign = [_foreign(own, table, theirs) for own, table, theirs in _FOREIGN.get(file.table, ()) if table in whole]
    if foreign:
        schema["foreignKeys"] = foreign
    return {
        "profile": "tabular-data-resource",
        "name": stem_of(file.name),
        "path": file.name,
        "description": file.description,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "bytes": file.bytes,
        "hash": f"sha256:{file.sha256}",
        "dialect": {"delimiter": ",", "lineTerminator": "\n", "quoteChar": '"', "doubleQuote": True, "header": True},
        "schema": schema,
    }


def _field(column: Column) -> dict[str, Any]:
    field: dict[str, Any] = {"name": column.name, "type": field_type(column.type), "description": column.description}
    if column.unit:
        field["unit"] = column.unit
    if column.null:
        field["null"] = column.null
    if column.type == pa.string() and not column.raw:
        field["guarded"] = True
    return field


def _foreign(own: str, table: str, theirs: str) -> dict[str, Any]:
    return {"fields": own, "reference": {"resource": table, "fields": theirs}}


def field_type(kind: pa.DataType) -> str:
    """Return the Table Schema type of an Arrow type."""
    if pa.types.is_floating(kind):
        return "number"
    if pa.types.is_integer(kind):
        return "integer"
    return "boolean" if pa.types.is_boolean(kind) else "string"
