"""JSON Schemas of the files of a run, made from the models and columns that read and write those files.

`docs/schemas/` holds each of them; a site has them under `schemas/`. A file names its own in `$schema`, as the address
seen from where it lies on a site; bank hashes leave that key out.

See contract: publication, "JSON Schemas".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from generator.schema.bank import Bank
from generator.schema.columns import FORMATS, LATEST_FORMAT, MASK_SPANS, Column, receipt_columns, vote_fields
from generator.schema.manifest import SINCE_2, Manifest
from generator.schema.places import own_folder

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = own_folder("docs/schemas")
PUBLISHED = "schemas"  # below the root of a site
_CITATION = re.compile(r"\s*\((?:contract|methodology): [^)]*\)")
_KEY = {"$schema": {"type": "string", "format": "uri-reference", "description": "The address of this schema."}}


def schema_of(model: type[BaseModel], name: str, title: str, about: str) -> dict[str, Any]:
    """Return the schema of what a record reads, its key `$schema` included; `name` is that of the schema's file."""
    made = model.model_json_schema(by_alias=True)
    made["properties"] = {**_KEY, **made["properties"]}
    for record in made.get("$defs", {}).values():
        if "description" in record:
            record["description"] = _for_readers(record["description"])
    return {**made, "$schema": DIALECT, "$id": identity(name), "title": title, "description": about}


def _for_readers(docstring: str) -> str:
    """Return a docstring without line breaks, and without what it says of where in the contract its rule stands."""
    return " ".join(_CITATION.sub("", docstring).split())


def identity(name: str) -> str:
    """Return what a schema is called wherever it lies: a name, which no server has to answer to."""
    return f"urn:aibiasbench:{name.removesuffix('.schema.json')}"


def run_manifest_schema(format_: int) -> dict[str, Any]:
    """Return the schema of the harness's `manifest.json` of a format, whose every key must be there."""
    about = f"What the harness hands over with a run, format {format_}."
    made = schema_of(Manifest, f"run-manifest.{format_}.schema.json", "manifest.json of a run", about)
    for place, later in ((made, SINCE_2[0]), (made["$defs"]["ManifestModel"], SINCE_2[1])):
        if format_ == 1:
            for key in later:
                del place["properties"][key]
        place["required"] = [key for key in place["properties"] if key not in _KEY]
    made["properties"]["format"] = {"const": format_}
    if format_ == 1:
        made["required"].remove("format")
        for name in ("Imported", "Planted"):
            del made["$defs"][name]
    return made


def receipt_schema(format_: int) -> dict[str, Any]:
    """Return the schema of one row of the receipts of a format, votes and all."""
    columns = receipt_columns(format_)
    votes = next(fields for column in columns if (fields := vote_fields(column.type)))
    return {
        "$schema": DIALECT,
        "$id": identity(f"receipt.{format_}.schema.json"),
        "title": "a receipt",
        "description": f"One row of the receipts, format {format_}: a prompt, its answer, the votes, the final label.",
        **record_schema(columns),
        "$defs": {"vote": {"description": "One vote of a judge.", **record_schema(votes)}},
    }


def votes_schema(format_: int) -> dict[str, Any]:
    """Return the schema of the votes on one answer."""
    votes = receipt_schema(format_)
    about = f"The votes on one answer in panel order, format {format_}: two, and a third where a tiebreak was asked."
    return {
        "$schema": DIALECT,
        "$id": identity(f"votes.{format_}.schema.json"),
        "title": "votes",
        "description": about,
        **votes["properties"]["votes"],
        "$defs": votes["$defs"],
    }


def record_schema(columns: Sequence[Column]) -> dict[str, Any]:
    """Return the schema of a row with these columns."""
    return {
        "type": "object",
        "properties": {column.name: _value(column) for column in columns},
        "required": [column.name for column in columns],
        "additionalProperties": False,
    }


def _value(column: Column) -> dict[str, Any]:
    found = {**_kind(column.type), "description": column.description}
    if column.null:
        found["type"] = [found["type"], "null"]
        found["description"] += f" Null: {column.null}."
    return found


def _kind(kind: pa.DataType) -> dict[str, Any]:
    if vote_fields(kind):
        return {"type": "array", "maxItems": 3, "items": {"$ref": "#/$defs/vote"}}
    if kind == MASK_SPANS:
        place = {"type": "integer", "minimum": 0}
        span = {"type": "object", "properties": {"start": place, "end": place}, "required": ["start", "end"]}
        return {"type": "array", "items": {**span, "additionalProperties": False}}
    if pa.types.is_integer(kind):
        return {"type": "integer"}
    if pa.types.is_floating(kind):
        return {"type": "number"}
    return {"type": "boolean" if pa.types.is_boolean(kind) else "string"}


def run_schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (file name, schema) of the files that a run folder holds."""
    name = f"bank.{LATEST_FORMAT}.schema.json"
    yield name, schema_of(Bank, name, "bank.json", "The prompt bank of a run, with its rules.")
    for number in FORMATS:
        yield f"run-manifest.{number}.schema.json", run_manifest_schema(number)
        yield f"receipt.{number}.schema.json", receipt_schema(number)
        yield f"votes.{number}.schema.json", votes_schema(number)


def render_schema(schema: Mapping[str, Any]) -> bytes:
    """Return a schema as a file."""
    return (json.dumps(schema, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n").encode()


def schema_files() -> Iterator[tuple[str, bytes]]:
    """Yield (path below dist/, bytes) of every schema that a site serves."""
    for path in sorted(FOLDER.glob("*.schema.json")):
        yield f"{PUBLISHED}/{path.name}", path.read_bytes()
