"""Read `content/bank/` and return the instrument as every later stage sees it (contract: bank, "bank.json").

Reads `bank.toml`, `attributes.toml`, `rubrics.toml` and `concepts/<attribute>.toml`; returns a `Bank`, or raises one
`InputError` that lists every fault with its file and concept. The rules themselves are in `harness.bank.faults`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from generator.schema.bank import (
    PROSE,
    Attribute,
    Bank,
    BankRules,
    Concept,
    Frozen,
    Group,
    Label,
    Rubric,
    rules_of_bank_1,
    validation_faults,
)
from generator.schema.canonical import hash_json
from generator.schema.errors import InputError, raise_faults
from generator.schema.places import own_folder
from generator.schema.plain_text import control_faults
from generator.schema.toml_files import read_toml
from harness.bank.faults import Sourced, bank_faults

T = TypeVar("T", bound=Frozen)
BANK_FOLDER = Path("content/bank")
BANK_DEFAULT = f"{BANK_FOLDER}, or the project's own where there is none"


class BankEntry(Frozen):
    """`bank.toml`: the version and the rules that the bank keeps; without rules it keeps those of bank 1.0.0."""

    version: str
    rules: BankRules = Field(default_factory=rules_of_bank_1)


class GroupEntry(Frozen):
    """A group as written; each of `mask_words` goes through the attribute's `mask_patterns`."""

    id: str
    label: str
    np: str
    mask_terms: tuple[str, ...] = Field(default=(), strict=False)
    mask_words: tuple[str, ...] = Field(default=(), strict=False)


class AttributeEntry(Frozen):
    """An attribute as written; a pattern holds `{word}` and may hold `{people}`."""

    id: str
    label: str
    kind: Literal["demographic", "control"]
    mask_patterns: tuple[str, ...] = Field(default=(), strict=False)
    group: tuple[GroupEntry, ...] = Field(strict=False)


class AttributesEntry(Frozen):
    """`attributes.toml`; `people` are the nouns that `{people}` stands for."""

    people: tuple[str, ...] = Field(default=(), strict=False)
    attribute: tuple[AttributeEntry, ...] = Field(strict=False)


class RubricEntry(Frozen):
    """A rubric as written: the loader computes its hash."""

    id: str
    scale: Literal["ordinal", "score"]
    labels: tuple[Label, ...] = Field(default=(), strict=False)
    instruction: str = ""
    judge_prompt: str
    mask_groups: bool


class RubricsEntry(Frozen):
    """`rubrics.toml`."""

    rubric: tuple[RubricEntry, ...] = Field(strict=False)


class ConceptEntry(Frozen):
    """A concept as written: its attribute is its file's name, its rubric that of its category unless told.

    framings: in the file a key each, beside the others.
    """

    id: str
    category: str
    rubric: str | None = None
    noun: str
    polarity: Literal[1, -1]
    ceiling: bool = False
    two_sided: bool = False
    framings: dict[str, str]


@dataclass
class _Reader:
    """Collects the faults of reading, so that one error can list all of them."""

    folder: Path
    faults: list[str] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)  # attributes that lack concepts because a concept has faults of shape

    def toml(self, name: str) -> dict[str, Any] | None:
        """Parse one file of the folder; None after a fault."""
        path = self.folder / name
        try:
            data = read_toml(path)
        except FileNotFoundError:
            self.faults.append(
                f"{path}: not found; run from the root of the checkout (a bank's files: content/bank/README.md)"
            )
        except InputError as error:
            self.faults += error.faults
        else:
            self.faults += control_faults(data, str(path), PROSE | _unknown_keys(data.get("concept")))
            return data
        return None

    def entry(self, shape: type[T], data: Any, where: str) -> T | None:
        """Validate one record; None after a fault."""
        try:
            return shape.model_validate(data)
        except ValidationError as error:
            self.faults += validation_faults(error, where)
            return None

    def file(self, shape: type[T], name: str) -> T | None:
        """Parse and validate a whole file."""
        data = self.toml(name)
        return None if data is None else self.entry(shape, data, str(self.folder / name))

    def concepts(self, framings: tuple[str, ...]) -> list[Sourced]:
        """Read every concepts file, in the order of their names; a file's name is its attribute."""
        found = []
        for path in sorted((self.folder / "concepts").glob("*.toml")):
            data = self.toml(f"concepts/{path.name}")
            if data is None:
                self.unread.add(path.stem)
                continue
            rows = data.get("concept")
            if set(data) != {"concept"} or not isinstance(rows, list):
                self.faults.append(f"{path}: a concepts file holds [[concept]] tables and nothing else")
                self.unread.add(path.stem)
                continue
            for index, row in enumerate(rows):
                concept = self.concept(row, framings, path, index)
                found += [] if concept is None else [Sourced(str(path), concept)]
        return found

    def concept(self, row: Any, framings: tuple[str, ...], path: Path, index: int) -> Concept | None:
        """Build one concept; faults of shape name it by id, or by place when it has none."""
        name = row.get("id", f"number {index + 1}") if isinstance(row, dict) else f"number {index + 1}"
        entry = self.entry(ConceptEntry, _gathered(row, framings), f"{path}: concept {name}")
        if entry is None:
            self.unread.add(path.stem)
            return None
        return Concept(
            id=entry.id,
            attribute=path.stem,
            category=entry.category,
            rubric=entry.rubric or entry.category,
            noun=entry.noun,
            polarity=entry.polarity,
            ceiling=entry.ceiling,
            two_sided=entry.two_sided,
            framings={framing: folded(text) for framing, text in entry.framings.items()},
        )


def _unknown_keys(rows: Any) -> frozenset[str]:
    """Return the keys of concepts that are framings, or a fault of their own: their texts may have line breaks."""
    tables = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return frozenset().union(*tables).difference(ConceptEntry.model_fields)


def _gathered(row: Any, framings: tuple[str, ...]) -> Any:
    """Put the framings of a concept as written, each a key of its own, under one key."""
    if not isinstance(row, dict) or "framings" in row:
        return row
    rest = {key: value for key, value in row.items() if key not in framings}
    return {**rest, "framings": {framing: row[framing] for framing in framings if framing in row}}


def folded(text: str) -> str:
    """Return a text with its line breaks folded into spaces; blank lines keep separating paragraphs."""
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n[ \t]*\n", text.strip()))


def expanded_terms(group: GroupEntry, patterns: tuple[str, ...], people: tuple[str, ...]) -> tuple[str, ...]:
    """Return a group's mask terms: those written, then each of its words in each pattern, no term twice.

    A pattern with `{people}` gives one term for each of `people`: so "tall person" is a term where "tall" is not.
    """
    terms = list(group.mask_terms)
    for word in group.mask_words:
        for pattern in patterns:
            nouns = people if "{people}" in pattern else ("",)
            terms += [pattern.replace("{word}", word).replace("{people}", noun) for noun in nouns]
    return tuple(dict.fromkeys(terms))


def _attribute(entry: AttributeEntry, people: tuple[str, ...]) -> Attribute:
    groups = tuple(
        Group(id=g.id, label=g.label, np=g.np, mask_terms=expanded_terms(g, entry.mask_patterns, people))
        for g in entry.group
    )
    return Attribute(id=entry.id, label=entry.label, kind=entry.kind, groups=groups)


def _rubric(entry: RubricEntry) -> Rubric:
    content = {
        **entry.model_dump(mode="json"),
        "instruction": folded(entry.instruction),
        "judge_prompt": entry.judge_prompt.strip(),
    }
    return Rubric.model_validate({**content, "sha256": hash_json(content)})


def _rules(rules: BankRules) -> BankRules:
    """Return rules as written in the form of the snapshot: an instruction is folded, and an empty one is none."""
    folded_ones = {rubric: folded(text or "") or None for rubric, text in rules.instructions.items()}
    return rules.model_copy(update={"instructions": folded_ones})


def bank_folder() -> Path:
    """Return the bank that is meant when none is named: that of the working folder, else the project's own."""
    return BANK_FOLDER if BANK_FOLDER.is_dir() else own_folder("content") / BANK_FOLDER.name


def read_bank_folder(folder: Path = BANK_FOLDER) -> Bank:
    """Read, check and return the bank of a folder; raises InputError with every fault found."""
    reader = _Reader(folder)
    head = reader.file(BankEntry, "bank.toml")
    attributes = reader.file(AttributesEntry, "attributes.toml")
    rubrics = reader.file(RubricsEntry, "rubrics.toml")
    concepts = reader.concepts((head.rules if head else rules_of_bank_1()).framings)
    if head is None or attributes is None or rubrics is None:
        raise_faults(reader.faults)
        raise AssertionError  # a file that gave no entry gave a fault
    bank = Bank(
        version=head.version,
        attributes=tuple(_attribute(entry, attributes.people) for entry in attributes.attribute),
        concepts=tuple(item.concept for item in concepts),
        rubrics=tuple(_rubric(entry) for entry in rubrics.rubric),
        rules=_rules(head.rules),
    )
    raise_faults([*reader.faults, *bank_faults(bank, concepts, folder, unread=reader.unread)])
    return bank
