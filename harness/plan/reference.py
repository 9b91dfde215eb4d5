"""The reference of run.toml and its JSON Schema, both made from the records (contract: stages, "run.toml").

`python -m harness.plan.reference docs` writes `run-toml.md` and `schemas/run.toml.schema.json` into a folder.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from generator.schema.json_schemas import DIALECT, identity
from generator.schema.json_schemas import render_schema as render_json_schema
from harness.plan.records import RunPlan
from harness.plan.run_toml import OUTSIDE

PAGE, SCHEMA = "run-toml.md", "schemas/run.toml.schema.json"
_HEAD = """# run.toml

Every key of a run's plan, made from the code by `make reference`. A key without a default has to be given. An unknown
key is refused with the keys that are known at that place. `docs/examples/` has a working plan for each kind of
endpoint, and `docs/schemas/run.toml.schema.json` is the JSON Schema of what follows.
"""
_COLUMNS = "| Key | Type | Default | Meaning |\n|---|---|---|---|\n"


def tables(record: type[BaseModel] = RunPlan, place: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield every table of run.toml with its place, outermost first; a name that the author gives is `NAME`."""
    yield place, record
    for name, field in record.model_fields.items():
        if name in OUTSIDE and record is RunPlan:
            continue
        inner, form = _record_of(field.annotation)
        if inner is not None:
            yield from tables(inner, f"{place}.{name}{form}".removeprefix("."))


def render_reference() -> str:
    """Return the reference as Markdown: a heading for each table, a row for each key."""
    parts = [_HEAD]
    for place, record in tables():
        about = (record.__doc__ or "").partition("\n")[0]
        parts.append(f"\n## {_heading(place)}\n\n{about}\n\n{_COLUMNS}")
        parts += [_row(name, field) for name, field in _keys(record)]
    return "".join(parts)


def render_schema() -> str:
    """Return the JSON Schema of run.toml."""
    schema = RunPlan.model_json_schema()
    for name in OUTSIDE:
        del schema["properties"][name]
    schema["required"] = [name for name in schema["required"] if name not in OUTSIDE]
    return render_json_schema(
        {**schema, "$schema": DIALECT, "$id": identity("run.toml.schema.json"), "title": "run.toml"}
    ).decode()


def _keys(record: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    hidden = OUTSIDE if record is RunPlan else set()
    return ((name, field) for name, field in record.model_fields.items() if name not in hidden)


def _heading(place: str) -> str:
    if not place:
        return "The top level"
    return f"`[[{place.removesuffix('[]')}]]`" if place.endswith("[]") else f"`[{place}]`"


def _row(name: str, field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True) if not field.is_required() else PydanticUndefined
    shown = "" if default is PydanticUndefined else "none" if default is None else f"`{_toml(default)}`"
    return f"| `{name}` | {_words(field.annotation)} | {shown} | {field.description} |\n"


def _toml(value: Any) -> str:
    if isinstance(value, BaseModel):
        return "{}"
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def _words(annotation: Any) -> str:
    """Return a type in words of TOML."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(f'`"{value}"`' for value in inner)
    if origin in (Union, types.UnionType):
        return " or ".join(_words(part) for part in inner if part is not type(None))
    if hasattr(annotation, "__metadata__"):
        return _words(inner[0])
    if origin is tuple:
        return "list of " + ("tables" if _record_of(annotation)[0] else "texts")
    if origin is dict or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return "table"
    return {str: "text", int: "whole number", float: "number"}[annotation]


def _record_of(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """Return the record inside an annotation, and how its table is written: as itself, in a list, by a name."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin not in (tuple, dict):
        return None, ""
    found = next((part for part in inner if isinstance(part, type) and issubclass(part, BaseModel)), None)
    return found, "[]" if origin is tuple else ".NAME"


def write_reference(docs: Path) -> None:
    """Write reference and schema into the folder of documents."""
    (docs / SCHEMA).parent.mkdir(parents=True, exist_ok=True)
    (docs / PAGE).write_text(render_reference())
    (docs / SCHEMA).write_text(render_schema())


if __name__ == "__main__":
    write_reference(Path(sys.argv[1]))
