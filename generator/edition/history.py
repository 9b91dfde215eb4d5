"""`content/history.toml`: which runs were withdrawn or superseded, and when.

The file is part of the repository. A clone without a site therefore publishes the same tree as one that has it.

Imports nothing heavy: a publish with nothing to do reads it, too.

See contract: publication, "History".
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from generator.schema.bank import Frozen, validation_faults
from generator.schema.errors import InputError, raise_faults
from generator.schema.plain_text import control_faults
from generator.schema.toml_files import read_toml

HISTORY = "history.toml"
REASON_LENGTH = 500


def _iso(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.date) and not isinstance(value, dt.datetime) else value


Date = Annotated[str, BeforeValidator(_iso)]


class Withdrawal(Frozen):
    """A run that is published no more: its address keeps a tombstone with date and reason."""

    run: str = Field(min_length=1)
    date: Date
    reason: str = Field(min_length=1, max_length=REASON_LENGTH)


class Supersession(Frozen):
    """A run that another one replaces; both stay published."""

    run: str = Field(min_length=1)
    by: str = Field(min_length=1)
    date: Date


class History(Frozen):
    """The whole file; without a file it is empty."""

    withdrawn: tuple[Withdrawal, ...] = Field(default=(), strict=False)
    superseded: tuple[Supersession, ...] = Field(default=(), strict=False)

    def withdrawal(self, run: str) -> Withdrawal | None:
        """Return the entry of a withdrawn run, None for any other."""
        return next((entry for entry in self.withdrawn if entry.run == run), None)

    @property
    def withdrawn_runs(self) -> frozenset[str]:
        """The ids of all withdrawn runs."""
        return frozenset(entry.run for entry in self.withdrawn)

    def successors(self, by_manifest: Mapping[str, str]) -> dict[str, str]:
        """Return which run replaces which, by the older one.

        Args:
            by_manifest: what the manifests of published runs say themselves; an entry of the history goes first.
        """
        gone = self.withdrawn_runs
        return {**by_manifest, **{e.run: e.by for e in self.superseded if e.by not in gone}}


def read_history(path: Path) -> History:
    """Read a history; without a file it is empty. Raises InputError with every fault."""
    try:
        data = read_toml(path)
        found = History.model_validate(data)
    except FileNotFoundError:
        return History()
    except ValidationError as error:
        raise InputError(*validation_faults(error, str(path))) from None
    raise_faults([*(f"{path}: {fault}" for fault in _faults(found)), *control_faults(data, str(path))])
    return found


def _faults(history: History) -> Iterator[str]:
    entries: tuple[Withdrawal | Supersession, ...] = (*history.withdrawn, *history.superseded)
    for entry in entries:
        if not _is_date(entry.date):
            yield f"date {entry.date!r} of run {entry.run}: use YYYY-MM-DD"
    for word, runs in (
        ("withdrawn", [e.run for e in history.withdrawn]),
        ("superseded", [e.run for e in history.superseded]),
    ):
        yield from (f"run {run} is {word} twice" for run in sorted(set(runs)) if runs.count(run) > 1)
    following = {entry.run: entry.by for entry in history.superseded}
    for run, by in following.items():
        seen, at = {run}, by
        while at in following and at not in seen:
            seen.add(at)
            at = following[at]
        if at == run:
            yield f"run {run} would supersede itself"


def _is_date(text: str) -> bool:
    try:
        # fromisoformat reads `20261130` too; only one form is allowed.
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def add_entry(path: Path, table: str, entry: Mapping[str, str]) -> None:
    """Add an entry at the end of a history; what stands there stays as it is.

    The new file is checked whole before it takes the place of the old one. Raises InputError with every fault.
    """
    old = path.read_bytes().decode() if path.is_file() else ""
    read_history(path)  # a fault of the old file is told as such
    lines = [f"[[{table}]]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items())]
    between = "\n" if old else ""
    fresh = path.with_name(f".{path.name}.new")
    try:
        text = old + ("" if old.endswith("\n") or not old else "\n") + between + "\n".join(lines) + "\n"
        fresh.write_bytes(text.encode())
        try:
            read_history(fresh)
        except InputError as error:
            raise InputError(*(fault.replace(str(fresh), str(path)) for fault in error.faults)) from None
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
