"""From records to rows: every field read by the map, every label understood, or a fault with file, row and column.

Nothing is guessed and nothing is dropped: a text that the map does not know, a label that is missing and a row that
stands twice are faults. All of them are told together, before anything is written.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from generator.schema.bank import REFUSAL
from generator.schema.errors import InputError, raise_faults
from generator.schema.verdict import VOTE_ERRORS, score_bin
from harness.importing.faults import ImportFaults
from harness.importing.import_map import Cell, ImportColumns, ImportJudge, ImportMap, ImportRubric, meanings
from harness.importing.names import NameBook, concept_id, short_names
from harness.importing.records import ABSENT, CellError, Record, found_at, number_of, text_of

MOST_ROWS = 5_000_000
MOST_REPEATS = 32_767  # what the column holds
SINGLE = "single"  # the framing of a table that has none
HINT = "if these are repeats, say which: columns.repeat"
_SAID = 60
_LARGEST = 2**31 - 1
_WHOLE = 1e-9
_NEEDED = ("model", "attribute", "concept", "group")


@dataclass(frozen=True, slots=True)
class Mark:
    """What one judge said of a row: a label, `REFUSAL` or an error; `evidence` is its reason, None without one."""

    label: str | None
    score: int | None
    error: str | None
    evidence: str | None


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """One answer with its labels. `marks` has an entry a judge in panel order, None where it did not vote."""

    place: str
    model: str
    attribute: str
    concept: str
    framing: str
    group: str
    repeat: int
    rubric: str
    category: str
    polarity: int
    noun: str | None
    topic: str | None
    prompt: str | None
    response: str | None
    finish_reason: str | None
    served_by: str | None
    filter_word: str | None
    failure: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    marks: tuple[Mark | None, ...]

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What makes a row the row that it is."""
        return self.model, self.concept, self.framing, self.group, self.repeat


@dataclass(frozen=True)
class ImportedRows:
    """All rows of an import, and the texts that its names were made of."""

    rows: tuple[ImportedRow, ...]
    names: NameBook


@dataclass
class RowReader:
    """Reads the records of one format by a map; what is wrong with a row goes into `faults`."""

    given: ImportMap
    columns: ImportColumns
    names: NameBook
    faults: ImportFaults
    _seen: set[str] = field(default_factory=set)
    _keys: list[str] = field(default_factory=list)
    _counted: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._texts = {name: dict(meanings(rubric)) for name, rubric in self.given.rubrics.items()}

    def read(self, records: Iterable[Record]) -> list[ImportedRow]:
        """Return the rows of a file; faults are kept in `faults`."""
        found = []
        for record in records:
            if not self._keys:
                self._keys = [str(key) for key in record.data]
            row = self._row(record)
            if row is not None:
                found.append(row)
            if len(found) > MOST_ROWS:
                raise InputError(f"{record.place}: more than {MOST_ROWS:,} rows; import fewer at a time")
        return found

    def lost(self, named: Mapping[str, Cell]) -> dict[str, str]:
        """Return by column what to say of one that the map names and no row has."""
        there = ", ".join(key for key in self._keys[:30] if not key.startswith("@"))
        return {
            column: f"{field_}: no row has a column {column!r}; there are {there}"
            for field_, cell in named.items()
            for column in cell.names
            if column not in self._seen
        }

    def _row(self, record: Record) -> ImportedRow | None:
        try:
            return self._read(record)
        except _ColumnError as fault:
            self.faults.add(record.place, fault.column, str(fault))
            return None

    def _read(self, record: Record) -> ImportedRow:
        text = {name: self._text(record, name) for name in _NEEDED}
        empty = [name for name, found in text.items() if not found]
        if empty:
            raise self._at(empty[0], f"no {empty[0]}; every row needs one")
        attribute = self._named("attribute", lambda: self.names.item("attribute", str(text["attribute"])))
        rubric = self._rubric(record)
        keys = (
            self._named("model", lambda: self.names.model(str(text["model"]))),
            self._named("concept", lambda: self.names.item("concept", str(text["concept"]))),
            self._named("framing", lambda: self.names.item("framing", self._text(record, "framing") or SINGLE)),
            self._named("group", lambda: self.names.group(attribute, str(text["group"]))),
        )
        category = self._text(record, "category") or rubric
        failure, word = self._failure(record), self._text(record, "filter_word")
        silent = failure is not None or word is not None
        return ImportedRow(
            place=record.place,
            model=keys[0],
            attribute=attribute,
            concept=keys[1],
            framing=keys[2],
            group=keys[3],
            repeat=self._repeat(record, keys),
            rubric=rubric,
            category=self._named("category", lambda: self.names.item("category", category)),
            polarity=self._polarity(record),
            noun=self._text(record, "noun"),
            topic=self._text(record, "topic"),
            prompt=self._prose(record, "prompt"),
            response=self._prose(record, "response"),
            finish_reason=self._text(record, "finish_reason"),
            served_by=self._text(record, "served_by"),
            filter_word=word,
            failure=failure,
            prompt_tokens=self._count(record, "prompt_tokens"),
            completion_tokens=self._count(record, "completion_tokens"),
            reasoning_tokens=self._count(record, "reasoning_tokens"),
            cost_usd=self._cost(record),
            marks=tuple(self._mark(record, judge, rubric, silent) for judge in self.given.ordered_judges),
        )

    def _at(self, name: str, words: str) -> _ColumnError:
        cell = getattr(self.columns, name, None)
        return _ColumnError(", ".join(cell.names) if cell is not None and cell.names else name, words)

    def _named(self, name: str, make: Any) -> str:
        try:
            return str(make())
        except CellError as fault:
            raise self._at(name, str(fault)) from None

    def _raw(self, record: Record, cell: Cell) -> Any:
        if cell.value is not None:
            return cell.value
        found = []
        for name in cell.names:
            value = found_at(record.data, name)
            if value is ABSENT:
                value = None
            else:
                self._seen.add(name)
            found.append(value)
        return found[0] if cell.columns is None else _joined(found, cell.join)

    def _value(self, record: Record, cell: Cell, name: str) -> Any:
        """Return what a cell gives, after the map's values; CellErrors name its column."""
        try:
            raw = self._raw(record, cell)
            if cell.values is None and cell.default is None:
                return raw
            text = text_of(raw)
            if text is None:
                return None
            found = (cell.values or {}).get(text, cell.default)
            if found is None:
                raise CellError(f"{text[:_SAID]!r} is not among the map's values: {_listed(cell.values or {})}")
            return found
        except CellError as fault:
            raise _ColumnError(", ".join(cell.names) or name, str(fault)) from None

    def _text(self, record: Record, name: str) -> str | None:
        """Return the text of a field; an empty one is missing."""
        cell = getattr(self.columns, name)
        return None if cell is None else _sound(self._told(record, cell, name) or None, cell, name)

    def _prose(self, record: Record, name: str) -> str | None:
        """Return a prompt or a response, which may be an empty text."""
        cell = getattr(self.columns, name)
        return None if cell is None else _sound(self._told(record, cell, name), cell, name)

    def _told(self, record: Record, cell: Cell, name: str) -> str | None:
        try:
            return text_of(self._value(record, cell, name))
        except CellError as fault:
            raise _ColumnError(", ".join(cell.names) or name, str(fault)) from None

    def _amount(self, record: Record, name: str) -> float | None:
        cell = getattr(self.columns, name)
        if cell is None:
            return None
        try:
            found = number_of(self._value(record, cell, name))
        except CellError as fault:
            raise self._at(name, str(fault)) from None
        if found is not None and found < 0:
            raise self._at(name, f"{found} is below 0")
        return found

    def _cost(self, record: Record) -> float | None:
        found = self._amount(record, "cost_usd")
        if found is not None and found > _LARGEST:
            raise self._at("cost_usd", f"{found} is no amount from 0 to {_LARGEST:,}")
        return found

    def _count(self, record: Record, name: str) -> int | None:
        found = self._amount(record, name)
        if found is not None and (not found.is_integer() or found > _LARGEST):
            raise self._at(name, f"{found} is no whole number from 0 to {_LARGEST:,}")
        return None if found is None else int(found)

    def _rubric(self, record: Record) -> str:
        found = self._text(record, "rubric")
        if found in self.given.rubrics:
            return found
        if found is None and len(self.given.rubrics) == 1:
            return next(iter(self.given.rubrics))
        raise self._at("rubric", f"saw {found!r}; the rubrics of the map are {', '.join(self.given.rubrics)}")

    def _polarity(self, record: Record) -> int:
        found = self._text(record, "polarity") or "1"
        if found not in ("1", "-1"):
            raise self._at("polarity", f"saw {found[:_SAID]!r}; 1 where a higher value favors the person, -1 where not")
        return int(found)

    def _failure(self, record: Record) -> str | None:
        found = self._text(record, "failure")
        if found is not None and found not in VOTE_ERRORS:
            rule = f"allowed: {', '.join(VOTE_ERRORS)}; columns.failure.values or default gives the code of a text"
            raise self._at("failure", f"saw {found[:_SAID]!r}; {rule}")
        return found

    def _repeat(self, record: Record, keys: tuple[str, ...]) -> int:
        cell = self.columns.repeat
        if cell is None:
            return 0
        first, found = cell.first, None if cell.count else self._count(record, "repeat")
        if cell.count:
            self._counted[keys] += 1
            first, found = 1, self._counted[keys]
        if found is None or not first <= found < first + MOST_REPEATS:
            last = first + MOST_REPEATS - 1
            raise self._at("repeat", f"saw {found}; repeats are whole numbers from {first} to {last}")
        return found - first

    def _mark(self, record: Record, judge: ImportJudge, rubric: str, silent: bool) -> Mark | None:
        """Return what a judge said; None of an answer that never came, and of a tiebreak that did not vote."""
        given = self.given.rubrics[rubric]
        cell = judge.score if given.scale == "score" else judge.label
        assert cell is not None  # the map was checked for it
        raw = self._value(record, cell, "judges")
        column = ", ".join(cell.names) or "judges"
        if silent:
            return None
        try:
            return self._understood(raw, given, rubric, self._evidence(record, judge), tiebreak=judge.tiebreak)
        except CellError as fault:
            raise _ColumnError(column, str(fault)) from None

    def _evidence(self, record: Record, judge: ImportJudge) -> str | None:
        if judge.evidence is None:
            return None
        return _sound(self._told(record, judge.evidence, "evidence"), judge.evidence, "evidence")

    def _understood(
        self, raw: Any, given: ImportRubric, rubric: str, evidence: str | None, *, tiebreak: bool
    ) -> Mark | None:
        text = text_of(raw)
        kind, word = self._texts[rubric].get(text or "", ("", ""))
        if not text and not kind:
            if tiebreak:
                return None
            if given.missing == "refuse":
                raise CellError(f'no label; if the judge gave none, say rubrics.{rubric}.missing = "error"')
            return Mark(None, None, "empty", None)
        if kind == "error":
            return Mark(None, None, word, None)
        if kind == "refusal":
            return Mark(REFUSAL, None, None, evidence)
        if given.scale == "score":
            score = scaled(number_of(raw), given, rubric)
            return Mark(score_bin(score), score, None, evidence)
        if kind != "label":
            raise CellError(f"{str(text)[:_SAID]!r} is no label of rubric {rubric}: {_listed(self._texts[rubric])}")
        return Mark(word, None, None, evidence)


class _ColumnError(Exception):
    """A fault of one column of the row that is being read."""

    def __init__(self, column: str, words: str) -> None:
        super().__init__(words)
        self.column = column


def scaled(value: float | None, rubric: ImportRubric, name: str) -> int:
    """Return a score from 0 to 100; raises CellError where it is out of range, or not whole and not to be rounded."""
    if value is None or not rubric.least <= value <= rubric.most:
        raise CellError(f"{value} is no score from {rubric.least} to {rubric.most}")
    found = 100 * (value - rubric.least) / (rubric.most - rubric.least)
    if abs(found - round(found)) > _WHOLE and not rubric.round:
        raise CellError(
            f"{value} is {found:.3f} of 100; scores are whole: say rubrics.{name}.round = true to round them"
        )
    return math.floor(found + 0.5)


def checked_rows(
    rows: list[ImportedRow], names: NameBook, faults: ImportFaults, lost: Mapping[str, str], hint: str
) -> ImportedRows:
    """Return all rows of an import.

    Args:
        rows: the rows of all files.
        names: the names of the import.
        faults: what was wrong with single rows.
        lost: by column of the map that no row has, what to say of it.
        hint: what to think of a row that stands twice.

    Raises:
        InputError: every fault, or nothing is left.
    """
    if not rows and not faults:
        raise InputError("no row is left: the files are empty, or source.where keeps none of their rows")
    rows = _with_ids(rows, faults)
    first: dict[tuple[str, str, str, str, int], str] = {}
    for row in rows:
        before = first.setdefault(row.key, row.place)
        if before is not row.place:
            told = ", ".join(f"{name} {value}" for name, value in zip(_KEY, row.key, strict=True))
            faults.add(row.place, "", f"stands twice, first at {before}: {told}; {hint}")
    raise_faults([*lost.values(), *faults.lines(set(lost))])
    return ImportedRows(tuple(rows), names)


def _with_ids(rows: list[ImportedRow], faults: ImportFaults) -> list[ImportedRow]:
    """Return the rows with the ids that concepts have in a bank, which begin with the attribute's short name."""
    shorts = short_names(row.attribute for row in rows)
    ids: dict[tuple[str, str], str] = {}
    for row in rows:
        key = (row.attribute, row.concept)
        if key not in ids:
            try:
                ids[key] = concept_id(shorts[row.attribute], row.attribute, row.concept)
            except CellError as fault:
                ids[key] = row.concept
                faults.add(row.place, "", str(fault))
    return [replace(row, concept=ids[row.attribute, row.concept]) for row in rows]


_KEY = ("model", "concept", "framing", "group", "repeat")


def _joined(values: list[Any], sign: str) -> str | None:
    texts = [text_of(value) for value in values]
    return None if any(text is None for text in texts) else sign.join(str(text) for text in texts)


def _listed(texts: Iterable[str]) -> str:
    names = [repr(text[:_SAID]) for text in texts]
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _sound(text: str | None, cell: Cell, name: str) -> str | None:
    """Return a text that a file can hold; half of a pair of surrogates cannot be written as UTF-8."""
    if text is not None and not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise _ColumnError(", ".join(cell.names) or name, f"a lone surrogate at character {error.start}") from None
    return text
