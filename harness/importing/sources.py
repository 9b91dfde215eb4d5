"""Which reader a file has, by what the map says or by the file's ending; rows that the map does not keep fall away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from harness.importing import inspect_log, lm_eval, promptfoo
from harness.importing.import_map import ImportMap, ImportSource
from harness.importing.records import ABSENT, CellError, Record, found_at, text_of
from harness.importing.tables import read_rows

SourceFormat = Literal["table", "inspect", "lm-eval", "promptfoo"]
# What a format's own names fill without the map; the map's columns go before them.
DEFAULTS: dict[SourceFormat, dict[str, Any]] = {
    "table": {},
    "inspect": inspect_log.DEFAULTS,
    "lm-eval": lm_eval.DEFAULTS,
    "promptfoo": promptfoo.DEFAULTS,
}


def format_of(path: Path, source: ImportSource) -> SourceFormat:
    """Return how a file is read."""
    return source.format or ("inspect" if path.suffix.lower() == ".eval" else "table")


def read_source(path: Path, given: ImportMap, wanted: Sequence[str]) -> Iterator[Record]:
    """Yield the records of a file that the map keeps; raises InputError where the file cannot be read."""
    found = format_of(path, given.source)
    if found == "inspect":
        records = inspect_log.read_log(path, unfinished=given.source.unfinished)
    elif found == "lm-eval":
        records = lm_eval.read_samples(path)
    elif found == "promptfoo":
        records = promptfoo.read_results(path)
    else:
        records = read_rows(path, given.source.delimiter, wanted)
    return (record for record in records if _kept(record, given.source))


def _kept(record: Record, source: ImportSource) -> bool:
    return all(_text(record, name) in _allowed(value) for name, value in source.where.items())


def _allowed(value: Any) -> list[str | None]:
    return [text_of(item) for item in (value if isinstance(value, tuple) else (value,))]


def _text(record: Record, name: str) -> str | None:
    found = found_at(record.data, name)
    try:
        return None if found is ABSENT else text_of(found)
    except CellError:
        return None
