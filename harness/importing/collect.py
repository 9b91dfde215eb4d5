"""All files of an import read by one map, and every fault told together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.importing.faults import ImportFaults
from harness.importing.import_map import Cell, ImportColumns, ImportMap
from harness.importing.lm_eval import MANY_FILTERS
from harness.importing.names import NameBook
from harness.importing.rows import HINT, ImportedRow, ImportedRows, RowReader, checked_rows
from harness.importing.sources import DEFAULTS, SourceFormat, format_of, read_source

_HINTS: dict[SourceFormat, str] = {"lm-eval": MANY_FILTERS}


def collected(tables: Sequence[Path], given: ImportMap) -> ImportedRows:
    """Return the rows of all files.

    Raises:
        InputError: every fault with file, row and column; or a file that cannot be read.
    """
    names, faults = NameBook(given), ImportFaults()
    readers: dict[SourceFormat, RowReader] = {}
    rows: list[ImportedRow] = []
    for path in tables:
        kind = format_of(path, given.source)
        reader = readers.setdefault(kind, _reader(kind, given, names, faults))
        rows += reader.read(read_source(path, given, wanted(reader.columns, given)))
    lost = {column: words for reader in readers.values() for column, words in reader.lost(_named(given)).items()}
    hint = " or ".join(dict.fromkeys(_HINTS.get(kind, HINT) for kind in readers))
    return checked_rows(rows, names, faults, lost, hint)


def _reader(found: SourceFormat, given: ImportMap, names: NameBook, faults: ImportFaults) -> RowReader:
    """Return a reader whose columns are the map's, and the format's own where the map says nothing."""
    own = {name: cell.model_dump(exclude_none=True) for name, cell in given.columns.given()}
    columns = ImportColumns.model_validate({**DEFAULTS[found], **own})
    return RowReader(given, columns, names, faults)


def wanted(columns: ImportColumns, given: ImportMap) -> list[str]:
    """Return every column that an import reads."""
    cells = [cell for _, cell in columns.given()] + [cell for _, cell in _judge_cells(given)]
    return [*(name for cell in cells for name in cell.names), *given.source.where]


def _named(given: ImportMap) -> dict[str, Cell]:
    """Return the cells that the map itself names, by what a fault calls them."""
    return {**{f"columns.{name}": cell for name, cell in given.columns.given()}, **dict(_judge_cells(given))}


def _judge_cells(given: ImportMap) -> list[tuple[str, Cell]]:
    return [
        (f"judges.{place}.{key}", cell)
        for place, judge in enumerate(given.judges)
        for key, cell in (("label", judge.label), ("score", judge.score), ("evidence", judge.evidence))
        if cell is not None
    ]
