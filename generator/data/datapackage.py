"""`datapackage.json`: the CSV files as a Frictionless Data Package, hashes and field types included.

See contract: publication, "Data files".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from generator.data import citation
from generator.data.description import description, keywords
from generator.data.table_files import DataFile
from generator.edition.edition import Edition
from generator.schema.columns import Column


def descriptor(edition: Edition, files: Sequence[DataFile]) -> bytes:
    """Return the package descriptor of every CSV file among `files`."""
    manifest = edition.run.manifest
    licence = edition.site.data_licence
    package: dict[str, Any] = {
        "profile": "tabular-data-package",
        "name": f"{edition.site.file_name}-{manifest.run_id}",
        "title": citation.title(edition),
        "description": f"{description(edition)} The Parquet files beside these are canonical.",
        "version": manifest.bank_version,
        "created": f"{manifest.date}T00:00:00Z",
        "licenses": [{**({"name": licence.spdx} if licence.spdx else {}), "title": licence.name, "path": licence.url}],
        "contributors": [{"title": edition.site.publisher, "role": "publisher"}],
        "keywords": keywords(edition),
        "simulated": manifest.simulated,
        "resources": [_resource(file) for file in files if file.ending == "csv"],
    }
    if url := citation.address(edition):
        package["homepage"] = url
    return (json.dumps(package, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _resource(file: DataFile) -> dict[str, Any]:
    return {
        "profile": "tabular-data-resource",
        "name": file.name.removesuffix(".csv"),
        "path": file.name,
        "description": file.description,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "bytes": file.bytes,
        "hash": f"sha256:{file.sha256}",
        "dialect": {"delimiter": ",", "lineTerminator": "\n", "quoteChar": '"', "doubleQuote": True, "header": True},
        "schema": {"fields": [_field(column) for column in file.fields], "missingValues": [""]},
    }


def _field(column: Column) -> dict[str, Any]:
    field: dict[str, Any] = {"name": column.name, "type": field_type(column.type), "description": column.description}
    if column.unit:
        field["unit"] = column.unit
    if column.null:
        field["null"] = column.null
    return field


def field_type(kind: pa.DataType) -> str:
    """Return the Table Schema type of an Arrow type."""
    if pa.types.is_floating(kind):
        return "number"
    if pa.types.is_integer(kind):
        return "integer"
    return "boolean" if pa.types.is_boolean(kind) else "string"
