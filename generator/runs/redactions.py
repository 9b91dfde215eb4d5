"""`content/redactions.toml`: responses whose text is withdrawn, each with its reason.

A redaction replaces the text of one response wherever the run is published. The hash of what was said, the votes'
labels and the value stay, so every score can still be recomputed from the published files. The file:

    [[redaction]]
    receipt_id = "0123456789abcdef"
    reason = "names a private person"
    date = "2026-11-30"
    evidence = true        # optional: the judges' evidence of that row is withdrawn, too

See contract: publication, "Redactions".
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BeforeValidator, Field, ValidationError

from generator.schema.bank import Frozen, validation_faults
from generator.schema.canonical import sha256_hex
from generator.schema.errors import InputError, raise_faults
from generator.schema.plain_text import control_faults
from generator.schema.toml_files import read_toml

REDACTIONS_FILE = Path("content/redactions.toml")
_RECEIPT_ID = re.compile(r"[0-9a-f]{16}")


def _iso(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.date) and not isinstance(value, dt.datetime) else value


def withdrawn_text(reason: str, date: str) -> str:
    """Return the text that readers see in place of one that was withdrawn.

    Args:
        reason: the publisher's reason.
        date: day of the withdrawal, YYYY-MM-DD.
    """
    return f"[Withdrawn by the publisher on {date}: {reason}]"


class Redaction(Frozen):
    """One withdrawn response, as `content/redactions.toml` lists it.

    `evidence`: whether the judges' evidence of the row, which quotes the response, is withdrawn too.
    """

    receipt_id: str
    reason: str = Field(min_length=1, max_length=300)
    date: Annotated[str, BeforeValidator(_iso)]
    evidence: bool = False

    @property
    def text(self) -> str:
        """The text that stands in place of the response."""
        return withdrawn_text(self.reason, self.date)


class _RedactionFile(Frozen):
    redaction: tuple[Redaction, ...] = Field(strict=False, default=())


@dataclass(frozen=True)
class Redacted:
    """A redaction as the published manifest lists it.

    `response_sha256` is the hash of the withdrawn text's UTF-8: whoever has the text can prove what it was.
    """

    receipt_id: str
    reason: str
    date: str
    evidence_withdrawn: bool
    response_sha256: str


@dataclass(frozen=True)
class Redactions:
    """All redactions of the site, for any run. A response is found by its receipt id alone."""

    items: tuple[Redaction, ...] = ()

    @cached_property
    def by_id(self) -> dict[str, Redaction]:
        """Redactions by receipt id."""
        return {item.receipt_id: item for item in self.items}

    def rows(self, shard: pa.Table) -> list[int]:
        """Return which rows of a shard, counted from 0, have a response that is withdrawn.

        A row without a response has nothing to withdraw.
        """
        if not self.items:
            return []
        wanted = pa.array([item.receipt_id for item in self.items], pa.string())
        found = pc.indices_nonzero(pc.is_in(shard["receipt_id"].combine_chunks(), value_set=wanted)).to_pylist()
        nulls = shard["response"].is_null().to_pylist() if found else []
        return [row for row in found if not nulls[row]]

    def listed(self, shard: pa.Table) -> tuple[Redacted, ...]:
        """Return what the published manifest says of a shard's redactions.

        Args:
            shard: the shard before `apply`, because the withdrawn texts are hashed here.
        """
        found = []
        for row in self.rows(shard):
            item = self.by_id[shard["receipt_id"][row].as_py()]
            digest = sha256_hex(shard["response"][row].as_py())
            found.append(Redacted(item.receipt_id, item.reason, item.date, item.evidence, digest))
        return tuple(found)

    def apply(self, shard: pa.Table) -> pa.Table:
        """Return a shard with the withdrawn responses replaced by their reasons.

        The row's mask spans go too: they are places in the withdrawn text.

        Args:
            shard: a shard or some of its columns; it needs `receipt_id` and, for any change, `response`. Columns that
                it lacks are left alone.
        """
        if not self.items or "response" not in shard.column_names:
            return shard
        for row in self.rows(shard):
            shard = self._replace(shard, row)
        return shard

    def _replace(self, shard: pa.Table, row: int) -> pa.Table:
        item = self.by_id[shard["receipt_id"][row].as_py()]
        values: dict[str, Any] = {"response": item.text, "mask_spans": []}
        if item.evidence and "votes" in shard.column_names:
            votes = shard["votes"][row].as_py()
            values["votes"] = [{**v, "evidence": item.text if v["evidence"] is not None else None} for v in votes]
        for name, value in values.items():
            if name in shard.column_names:
                place = shard.column_names.index(name)
                one = pa.array([value], shard.schema.field(name).type)
                column = shard.column(name)
                # Arrow columns cannot be changed in place, so the column is cut around the row.
                parts = [*column.slice(0, row).chunks, one, *column.slice(row + 1).chunks]
                shard = shard.set_column(place, shard.schema.field(name), pa.chunked_array(parts, one.type))
        return shard


def read_redactions(path: Path = REDACTIONS_FILE) -> Redactions:
    """Read the site's redactions; without a file there are none.

    Raises:
        InputError: every fault of shape, id or date, or an id that stands twice.
    """
    try:
        data = read_toml(path)
        items = _RedactionFile.model_validate(data).redaction
    except FileNotFoundError:
        return Redactions()
    except ValidationError as error:
        raise InputError(*validation_faults(error, str(path))) from None
    ids = [item.receipt_id for item in items]
    faults = [
        f"{path}: receipt_id {text!r}: use the 16 hex digits of a receipt"
        for text in ids
        if _RECEIPT_ID.fullmatch(text) is None
    ]
    faults += [f"{path}: receipt {text} is redacted twice" for text in sorted(set(ids)) if ids.count(text) > 1]
    faults += [f"{path}: date {i.date!r} of {i.receipt_id}: use YYYY-MM-DD" for i in items if not _is_date(i.date)]
    raise_faults([*faults, *control_faults(data, str(path))])
    return Redactions(items)


def _is_date(text: str) -> bool:
    try:
        # fromisoformat reads `20261130` too; only one form is allowed.
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
