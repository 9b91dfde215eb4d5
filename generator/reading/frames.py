"""Published tables as pandas frames, each column with its description.

See contract: publication, "From Python".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from generator.schema.bank import Bank
from generator.schema.columns import ROW_KEY

# An integer or a flag that is absent stays absent: NumPy's own types would make 1.0 of 1, and of True an object.
_NULLABLE: dict[pa.DataType, Any] = {
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


def frame(tables: Sequence[pa.Table]) -> pd.DataFrame:
    """Return the parts of a published table as one frame; `attrs["columns"]` has the description of each column.

    Nulls are pandas' missing values; integers and flags are nullable types, so no value changes its type. Lists
    (`votes`, `mask_spans`) stay what Arrow makes of them: an array of dicts in each cell.
    """
    table = pa.concat_tables([part.replace_schema_metadata(None) for part in tables])
    found: pd.DataFrame = table.to_pandas(types_mapper=_NULLABLE.get)
    found.attrs["columns"] = {row["column"]: row["description"] for row in _described(tables[0].schema)}
    return found


def columns_frame(schema: pa.Schema) -> pd.DataFrame:
    """Return what a table's file says of its columns: `column`, `type`, `description`, `unit`, `null`."""
    return pd.DataFrame(_described(schema), columns=["column", "type", "description", "unit", "null"])


def _described(schema: pa.Schema) -> list[dict[str, str]]:
    rows = []
    for field in schema:
        notes = {key.decode(): value.decode(errors="replace") for key, value in (field.metadata or {}).items()}
        said = {key: notes.get(key, "") for key in ("description", "unit", "null")}
        rows.append({"column": field.name, "type": str(field.type), **said})
    return rows


def bank_frame(bank: Bank) -> pd.DataFrame:
    """Return the bank as one row a prompt: (attribute, concept, framing, group), sorted as receipts are."""
    places = [
        (concept, framing, group)
        for attribute in sorted(bank.attributes, key=lambda a: a.id.encode())
        for concept in bank.concepts_of(attribute.id, two_sided=None)
        for framing in sorted(bank.rules.framings, key=str.encode)
        for group in bank.groups_of(attribute.id)
    ]
    return pd.DataFrame(
        {
            "attribute": concept.attribute,
            "concept": concept.id,
            "framing": framing,
            "group": group.id,
            "category": concept.category,
            "rubric": concept.rubric,
            "polarity": concept.polarity,
            "two_sided": concept.two_sided,
            "prompt": bank.render(concept, framing, group).text,
        }
        for concept, framing, group in places
    )


def matched_set(receipts: pd.DataFrame, concept: str) -> pd.DataFrame:
    """Return a model's rows of one concept: the prompts that differ in nothing but the group, and their answers."""
    rows = receipts[receipts["concept"] == concept]
    front = [*ROW_KEY[2:], "prompt", "response", "status", "final_label", "value"]
    found = rows[[*front, *(name for name in rows.columns if name not in front)]]
    return found.reset_index(drop=True)
