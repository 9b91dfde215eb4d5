"""The map of an import: which column holds what, which label text is which label, what matches the prompts.

Written by hand as TOML beside the tables. It is read whole and refused whole, each fault with its place.
`docs/how-to/import.md` explains every key by example.

See contract: stages, "Import".
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from generator.schema.bank import REFUSAL, AttributeRule, Frozen, Label
from generator.schema.errors import InputError, raise_faults
from generator.schema.names import item_id_fault, model_fault, simulated
from generator.schema.plain_text import control_faults
from generator.schema.toml_files import read_toml
from generator.schema.verdict import VOTE_ERRORS

FORMATS = ("table", "inspect", "lm-eval", "promptfoo")
Scalar = str | int | float | bool
_LONGEST_LABEL = 48


class Cell(Frozen):
    """Where one field of a row comes from: a column, several joined, or a constant.

    `values` gives the text to take for a text of the column, and `default` the one for every other; without `values`
    the column's own text is taken.
    """

    column: str | None = None
    columns: tuple[str, ...] | None = Field(default=None, strict=False, min_length=1)
    join: str = "_"
    value: Scalar | None = None
    values: dict[str, Scalar] | None = None
    default: Scalar | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Cell:
        if sum(given is not None for given in (self.column, self.columns, self.value)) != 1:
            raise ValueError("needs one of column, columns or value")
        if self.value is not None and (self.values is not None or self.default is not None):
            raise ValueError("a constant value has neither values nor default")
        return self

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self.columns or (() if self.column is None else (self.column,))


class RepeatCell(Cell):
    """Which repeat a row is: a number from `first` on, or with `count` its place among the rows of one prompt."""

    first: int = 0
    count: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> RepeatCell:
        given = sum(found is not None for found in (self.column, self.columns, self.value))
        if given != (0 if self.count else 1):
            raise ValueError("needs one of column, value or count = true")
        return self


def _as_column(given: Any) -> Any:
    """Read a bare text as the name of a column."""
    return {"column": given} if isinstance(given, str) else given


From = Annotated[Cell, BeforeValidator(_as_column)]
FromRepeat = Annotated[RepeatCell, BeforeValidator(_as_column)]


class ImportColumns(Frozen):
    """Where each field of a row comes from; None where the source does not have it."""

    model: From | None = None
    attribute: From | None = None
    concept: From | None = None
    framing: From | None = None
    group: From | None = None
    repeat: FromRepeat | None = None
    category: From | None = None
    rubric: From | None = None
    polarity: From | None = None
    noun: From | None = None
    topic: From | None = None
    prompt: From | None = None
    response: From | None = None
    finish_reason: From | None = None
    served_by: From | None = None
    filter_word: From | None = None
    failure: From | None = None
    prompt_tokens: From | None = None
    completion_tokens: From | None = None
    reasoning_tokens: From | None = None
    cost_usd: From | None = None

    def given(self) -> Iterator[tuple[str, Cell]]:
        """Yield the fields that have a source."""
        for name in type(self).model_fields:
            cell = getattr(self, name)
            if cell is not None:
                yield name, cell


class ImportJudge(Frozen):
    """A judge of the source and where its label, its score and its reason stand."""

    model: str
    label: From | None = None
    score: From | None = None
    evidence: From | None = None
    tiebreak: bool = False


class ImportLabel(Frozen):
    """A label of a rubric, its value from 0 to 1, and the texts that mean it; without texts its own name does."""

    label: str = Field(min_length=1, max_length=_LONGEST_LABEL)
    value: float = Field(strict=False, ge=0, le=1)
    texts: tuple[str, ...] | None = Field(default=None, strict=False)


class ImportRubric(Frozen):
    """How the source's labels are read.

    `refusal` and `errors` name texts that are no label. `missing` is what a label that is null stands for: a fault of
    the table, or an error of the judge. A score runs from `least` to `most` and becomes 0 to 100.
    """

    scale: Literal["ordinal", "score"] = "ordinal"
    labels: tuple[ImportLabel, ...] = Field(default=(), strict=False)
    refusal: tuple[str, ...] = Field(default=(), strict=False)
    errors: dict[str, str] = Field(default_factory=dict)
    missing: Literal["refuse", "error"] = "refuse"
    least: float = Field(default=0.0, strict=False)
    most: float = Field(default=100.0, strict=False)
    round: bool = False
    judge_prompt: str = ""


class ImportGroup(Frozen):
    """A group: its label, the words that stand for it in a prompt, the texts that mean it in the table."""

    label: str | None = None
    np: str | None = None
    texts: tuple[str, ...] | None = Field(default=None, strict=False)


class ImportAttribute(Frozen):
    """An attribute and its groups, by id; what is not said is taken from the table."""

    label: str | None = None
    role: Literal["demographic", "band_lower", "band_upper"] = "demographic"
    groups: dict[str, ImportGroup] = Field(default_factory=dict)

    @property
    def rule(self) -> AttributeRule:
        """What the bank's rules say of the attribute."""
        return AttributeRule(role=self.role)


class ImportRun(Frozen):
    """Who collected the answers, and how. `matched_by`: the prompts of a set differ in one phrase, or share a topic."""

    collected_by: str = Field(min_length=1)
    source: str = Field(min_length=1)
    date: dt.date
    matched_by: Literal["word", "topic"]
    masked: bool = False
    version: str = Field(default="1.0.0", pattern=r"^[0-9A-Za-z][0-9A-Za-z.+-]{0,39}$")
    compliance: tuple[str, ...] = Field(default=(), strict=False)


class ImportSource(Frozen):
    """How the files are read. `where` keeps the rows whose columns have these texts."""

    format: Literal["table", "inspect", "lm-eval", "promptfoo"] | None = None
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    unfinished: bool = False
    where: dict[str, Scalar | Annotated[tuple[Scalar, ...], Field(strict=False)]] = Field(default_factory=dict)


class ImportMap(Frozen):
    """A whole map."""

    run: ImportRun
    source: ImportSource = Field(default_factory=ImportSource)
    columns: ImportColumns = Field(default_factory=ImportColumns)
    judges: tuple[ImportJudge, ...] = Field(strict=False, min_length=1, max_length=3)
    rubrics: dict[str, ImportRubric] = Field(min_length=1)
    attributes: dict[str, ImportAttribute] = Field(default_factory=dict)

    @property
    def ordered_judges(self) -> tuple[ImportJudge, ...]:
        """The judges in panel order: primaries first."""
        return tuple(sorted(self.judges, key=lambda judge: judge.tiebreak))

    def bank_labels(self, rubric: str) -> tuple[Label, ...]:
        """Return the labels of a rubric as the bank has them."""
        return tuple(Label(label=item.label, value=item.value) for item in self.rubrics[rubric].labels)


def read_map(path: Path) -> ImportMap:
    """Read and validate a map; raises InputError with every fault, each with its place."""
    try:
        data = read_toml(path)
    except FileNotFoundError:
        raise InputError(f"{path}: not found; an import needs a map (docs/how-to/import.md)") from None
    return load_map(data, str(path))


def load_map(data: Any, where: str) -> ImportMap:
    """Validate a parsed map; raises InputError with every fault."""
    try:
        found = ImportMap.model_validate(data)
    except ValidationError as error:
        raise InputError(*(_told(where, item) for item in error.errors())) from None
    except RecursionError:
        raise InputError(f"{where}: tables are nested too deep") from None
    faults = [*_name_faults(found), *_judge_faults(found), *_rubric_faults(found), *_group_faults(found)]
    raise_faults([*(f"{where}: {fault}" for fault in faults), *control_faults(data, where, {"judge_prompt"})])
    return found


def _told(where: str, item: Any) -> str:
    place = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"{where}: {place}: unknown key; docs/how-to/import.md lists the keys"
    seen = "" if item["type"] == "missing" else f" (saw {str(item.get('input'))[:80]!r})"
    return f"{where}: {place or 'top level'}: {item['msg'].removeprefix('Value error, ')}{seen}"


def _name_faults(found: ImportMap) -> list[str]:
    ids = [(f"rubrics.{name}", name) for name in found.rubrics]
    ids += [(f"attributes.{name}", name) for name in found.attributes]
    ids += [
        (f"attributes.{name}.groups.{group}", group) for name, item in found.attributes.items() for group in item.groups
    ]
    return [f"{place}: {fault}" for place, name in ids if (fault := item_id_fault(name))]


def _judge_faults(found: ImportMap) -> list[str]:
    faults = []
    for place, judge in enumerate(found.judges):
        where = f"judges.{place}"
        if fault := model_fault(judge.model):
            faults.append(f"{where}.model: {fault}")
        elif simulated(judge.model):
            faults.append(f"{where}.model: {judge.model}: vendors that begin with sim- are those of simulated runs")
        scales = {item.scale for item in found.rubrics.values()}
        for scale, key, cell in (("ordinal", "label", judge.label), ("score", "score", judge.score)):
            if scale in scales and cell is None:
                faults.append(f"{where}.{key}: missing; there is a rubric of scale {scale}")
    names = Counter(judge.model for judge in found.judges)
    faults += [f"judges: {name} is listed twice" for name, n in names.items() if n > 1]
    tiebreaks = sum(judge.tiebreak for judge in found.judges)
    if (len(found.judges), tiebreaks) not in ((1, 0), (2, 0), (3, 1)):
        faults.append("judges: one judge, two, or two and a third with tiebreak = true")
    return faults


def _rubric_faults(found: ImportMap) -> list[str]:
    faults = []
    for name, rubric in found.rubrics.items():
        where = f"rubrics.{name}"
        faults += [
            f"{where}: {fault}" for fault in (_score_faults if rubric.scale == "score" else _label_faults)(rubric)
        ]
        faults += [
            f"{where}.errors: {text!r} is {code!r}; allowed: {', '.join(VOTE_ERRORS)}"
            for text, code in rubric.errors.items()
            if code not in VOTE_ERRORS
        ]
        texts = Counter(text for text, _ in meanings(rubric))
        faults += [f"{where}: text {text!r} has two meanings" for text, n in texts.items() if n > 1]
    return faults


def _score_faults(rubric: ImportRubric) -> list[str]:
    faults = ["labels: a score has none; its labels are the five bins"] if rubric.labels else []
    if not rubric.least < rubric.most < float("inf") or rubric.least == float("-inf"):
        faults.append(f"least {rubric.least} and most {rubric.most}: least is below most, and both are finite")
    return faults


def _label_faults(rubric: ImportRubric) -> list[str]:
    names, values = [item.label for item in rubric.labels], [item.value for item in rubric.labels]
    faults = [] if len(names) > 1 else ["labels: at least two"]
    faults += [f"labels: {name} stands twice" for name, n in Counter(names).items() if n > 1]
    faults += [f"labels: {REFUSAL} is the class of refusals; list its texts under refusal"] if REFUSAL in names else []
    if values != sorted(set(values)):
        faults.append(f"labels: values {values}; labels stand from low to high, each with a value of its own")
    return faults


def _group_faults(found: ImportMap) -> list[str]:
    faults = []
    for name, attribute in found.attributes.items():
        texts = Counter(text for group, item in attribute.groups.items() for text in item.texts or (group,))
        faults += [f"attributes.{name}: text {text!r} means two groups" for text, n in texts.items() if n > 1]
    roles = Counter(item.role for item in found.attributes.values() if item.role != "demographic")
    return faults + [f"attributes: {n} have the role {role}; one at most" for role, n in roles.items() if n > 1]


def meanings(rubric: ImportRubric) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield every text of a rubric with what it means: (`label`, its name), (`refusal`, ``) or (`error`, its code)."""
    for item in rubric.labels:
        yield from ((text, ("label", item.label)) for text in item.texts or (item.label,))
    yield from ((text, ("refusal", "")) for text in rubric.refusal)
    yield from ((text, ("error", code)) for text, code in rubric.errors.items())
