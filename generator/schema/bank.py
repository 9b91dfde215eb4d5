"""The bank as every stage sees it: attributes, groups, concepts, rubrics, rendering, hashes.

`bank.json` in a run folder is the bank's snapshot; the hash of it without its rules pins the instrument.

See contract: bank, "bank.json".
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from generator.schema.canonical import canonical_json, hash_json, sha256_hex
from generator.schema.errors import InputError, raise_faults
from generator.schema.json_files import read_json, without_schema
from generator.schema.places import schema_address
from generator.schema.plain_text import control_faults

REFUSAL = "REFUSAL"
MANY = 10_000  # of what a rule sets no bound for
BINS = ("0-19", "20-39", "40-59", "60-79", "80-100")  # of a score: [0,20), [20,40), [40,60), [60,80), [80,100]
PERSON = "[PERSON]"
SLOT = "{group_np}"
# Keys of a bank whose texts may have line breaks; every other text of it stands in one line.
PROSE = frozenset(("framings", "instruction", "instructions", "judge_prompt"))


class Frozen(BaseModel):
    """A strict, immutable record: unknown keys and wrong types are faults."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Group(Frozen):
    """One group of an attribute; `np` is a pattern over `{noun}` or `{a_noun}`."""

    id: str
    label: str
    np: str
    mask_terms: tuple[str, ...] = Field(strict=False)


class Attribute(Frozen):
    """An attribute with its groups."""

    id: str
    label: str
    kind: Literal["demographic", "control"]
    groups: tuple[Group, ...] = Field(strict=False)


class Concept(Frozen):
    """One scenario; polarity +1: a higher value favors the person, -1: it does not.

    framings: a template by the id of its framing, each with exactly one `{group_np}`; those that the bank's rules name.
    """

    id: str
    attribute: str
    category: str
    rubric: str
    noun: str
    polarity: Literal[1, -1]
    ceiling: bool
    two_sided: bool
    framings: dict[str, str] = Field(min_length=1)

    def template(self, framing: str) -> str:
        """Return the template of a framing."""
        return self.framings[framing]


class Label(Frozen):
    """One ordinal label and its value in [0, 1]."""

    label: str
    value: float = Field(strict=False, ge=0, le=1)


class Rubric(Frozen):
    """How answers of a category are labeled; `labels` run low to high, empty for a score."""

    id: str
    scale: Literal["ordinal", "score"]
    labels: tuple[Label, ...] = Field(strict=False)
    instruction: str
    judge_prompt: str
    mask_groups: bool
    sha256: str

    @property
    def names(self) -> tuple[str, ...]:
        """The scale low to high: the labels, or the five bins of a score."""
        return BINS if self.scale == "score" else tuple(item.label for item in self.labels)

    def content_sha256(self) -> str:
        """Return the hash of the rubric without its own `sha256` key (contract: bank, "Hashes")."""
        return hash_json(self.model_dump(mode="json", exclude={"sha256"}))


@dataclass(frozen=True)
class Rendered:
    """A prompt with its swap span in code points: `text[start:end] == np`."""

    text: str
    np: str
    start: int
    end: int


class CountRange(Frozen):
    """The least and the most that may be, both allowed."""

    least: int = Field(ge=0)
    most: int = Field(ge=0)

    def __contains__(self, count: int) -> bool:
        """Tell whether a count lies within the bounds."""
        return self.least <= count <= self.most


class AttributeRule(Frozen):
    """What an attribute is for: what is measured, or one edge of the control band."""

    role: Literal["demographic", "band_lower", "band_upper"]

    @property
    def kind(self) -> Literal["demographic", "control"]:
        """The kind of an attribute with this role."""
        return "demographic" if self.role == "demographic" else "control"


class BankRules(Frozen):
    """A bank's own rules (contract: bank, "Rules of the bank"); `bank check` holds the bank against them.

    attributes: by id, all that the bank has. framings: in the order of pages. quotas: number of concepts by kind of
    attribute and category. groups: of an attribute. words: of a template. ceiling_share: the largest share, 0-1, of an
    attribute's concepts that may be `ceiling`. instructions and labels by rubric: what its prompts end with, None for
    nothing, and its labels low to high, none for a score. A rule that is empty or left out binds nothing. language:
    tag of the language that the templates are in; English ones are held to their articles and pronouns. compliance: the
    categories that have it in the place of favorability (methodology: level, "What stands beside it"); None in rules
    that do not say, which then have those of bank 1.0.0.
    """

    attributes: dict[str, AttributeRule]
    framings: tuple[str, ...] = Field(strict=False, min_length=1)
    quotas: dict[Literal["demographic", "control"], dict[str, int]] = Field(default_factory=dict)
    groups: CountRange = CountRange(least=2, most=MANY)
    words: CountRange = CountRange(least=1, most=MANY)
    ceiling_share: float = Field(default=1.0, strict=False, ge=0, le=1)
    instructions: dict[str, str | None] = Field(default_factory=dict)
    labels: dict[str, Annotated[tuple[Label, ...], Field(strict=False)]] = Field(default_factory=dict)
    language: str = Field(default="en", pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")
    compliance: tuple[str, ...] | None = Field(default=None, strict=False)

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories that the quotas name; a bank without quotas has any."""
        return tuple(dict.fromkeys(category for quota in self.quotas.values() for category in quota))

    @property
    def english(self) -> bool:
        """Whether the templates are in English."""
        return self.language.lower().split("-")[0] == "en"


_RULES_1 = Path(__file__).with_name("bank_rules_1.json")


@functools.cache
def rules_of_bank_1() -> BankRules:
    """Return the rules of bank 1.0.0, which hold for every bank that comes without its own."""
    return BankRules.model_validate_json(_RULES_1.read_bytes())


@dataclass(frozen=True)
class Roles:
    """What the attributes of a bank are for (contract: bank, "Rules of the bank").

    demographic: those that are measured, in the order of the bank. band_lower, band_upper: the control at each edge of
    the control band, None in a bank without one.
    """

    demographic: tuple[str, ...]
    band_lower: str | None
    band_upper: str | None

    @property
    def controls(self) -> tuple[str, ...]:
        """The controls there are, that of the lower edge first."""
        return tuple(control for control in (self.band_lower, self.band_upper) if control is not None)

    def as_published(self) -> dict[str, list[str]]:
        """Return them as the data manifest has them (contract: publication, "Data manifest")."""
        return {"demographic": list(self.demographic), "controls": list(self.controls)}


class Bank(Frozen):
    """The whole instrument, with the rules that it keeps; the rules are no part of its hash."""

    version: str
    attributes: tuple[Attribute, ...] = Field(strict=False)
    concepts: tuple[Concept, ...] = Field(strict=False)
    rubrics: tuple[Rubric, ...] = Field(strict=False)
    rules: BankRules = Field(default_factory=rules_of_bank_1)

    @cached_property
    def attribute(self) -> dict[str, Attribute]:
        """Attributes by id."""
        return {a.id: a for a in self.attributes}

    @cached_property
    def roles(self) -> Roles:
        """What the attributes are for, by the bank's rules; one that the rules name and the bank lacks counts, too."""
        # The snapshot's keys are sorted: the bank's own order is that of its attributes.
        ordered = [*(a.id for a in self.attributes if a.id in self.rules.attributes), *self.rules.attributes]
        found: dict[str, list[str]] = {"demographic": [], "band_lower": [], "band_upper": []}
        for name in dict.fromkeys(ordered):
            found[self.rules.attributes[name].role].append(name)
        lower, upper = (next(iter(found[role]), None) for role in ("band_lower", "band_upper"))
        return Roles(tuple(found["demographic"]), lower, upper)

    @cached_property
    def concept(self) -> dict[str, Concept]:
        """Concepts by id."""
        return {c.id: c for c in self.concepts}

    @cached_property
    def rubric(self) -> dict[str, Rubric]:
        """Rubrics by id."""
        return {r.id: r for r in self.rubrics}

    @property
    def framings(self) -> tuple[str, ...]:
        """The framings of every concept, in the order of pages."""
        return self.rules.framings

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """The categories that concepts have: in the order of their rubrics, then of the concepts."""
        order = {rubric.id: place for place, rubric in enumerate(self.rubrics)}
        ranked = sorted(self.concepts, key=lambda c: order.get(c.rubric, len(order)))
        return tuple(dict.fromkeys(c.category for c in ranked))

    @cached_property
    def compliance(self) -> frozenset[str]:
        """The categories whose values say how far a task is done, and not how well the person is served."""
        own = self.rules.compliance
        return frozenset((rules_of_bank_1().compliance or ()) if own is None else own)

    @cached_property
    def leveled(self) -> tuple[str, ...]:
        """The categories with a favorability: those of demographic concepts, but for those of compliance.

        One that the rules ask for and the bank lacks counts, too.
        """
        measured = {c.category for c in self.concepts if c.attribute in self.roles.demographic and not c.two_sided}
        own = (name for name in self.categories if name in measured)
        # The snapshot's keys are sorted, so their order says nothing.
        asked = sorted(category for category, n in self.rules.quotas.get("demographic", {}).items() if n)
        return tuple(name for name in dict.fromkeys((*own, *asked)) if name not in self.compliance)

    @cached_property
    def sha256(self) -> str:
        """The bank's hash: SHA-256 of its canonical JSON."""
        return sha256_hex(self.canonical())

    def canonical(self) -> bytes:
        """Return the canonical JSON of what is hashed: the bank without its rules (contract: bank, "Hashes")."""
        return canonical_json(self.model_dump(mode="json", exclude={"rules"}))

    def snapshot(self) -> bytes:
        """Return the bytes of `bank.json`: canonical JSON of the bank and its rules (contract: bank, "bank.json")."""
        data = {"$schema": schema_address("bank.2.schema.json"), **self.model_dump(mode="json")}
        if self.rules.compliance is None:
            del data["rules"]["compliance"]
        return canonical_json(data)

    def concepts_of(self, attribute: str, *, two_sided: bool | None = False) -> list[Concept]:
        """Return an attribute's concepts sorted by id as bytes; `two_sided=None` keeps both kinds."""
        found = [
            c for c in self.concepts if c.attribute == attribute and (two_sided is None or c.two_sided == two_sided)
        ]
        return sorted(found, key=lambda c: c.id.encode())

    def groups_of(self, attribute: str) -> list[Group]:
        """Return an attribute's groups sorted by id as bytes."""
        return sorted(self.attribute[attribute].groups, key=lambda g: g.id.encode())

    def render(self, concept: Concept, framing: str, group: Group) -> Rendered:
        """Render one prompt of the paired set; the rubric's instruction, if any, follows the template."""
        return render(concept, framing, group, self.rubric[concept.rubric])


# Vowel letters that sound like consonants, and silent h: enough for role nouns; bank check reads the rest.
_AN = re.compile(r"(?i)(?:[aeio]|u(?!ni(?!n)|se|sa|ti|ro))(?!ne-|nce)|hon(?:o|e)|hour|heir")
_A = re.compile(r"(?i)(?:one\b|once\b|eu|ewe)")


def with_article(noun: str) -> str:
    """Return the noun with its indefinite article: `an applicant`, `a tenant`, `a user`.

    The rule is part of the contract, because prompts are checked against it (contract: bank, "Rendering").
    """
    an = _AN.match(noun) is not None and _A.match(noun) is None
    return f"{'an' if an else 'a'} {noun}"


def group_np(group: Group, noun: str) -> str:
    """Return the noun phrase of a group for a role noun, with its article."""
    return group.np.replace("{a_noun}", with_article(noun)).replace("{noun}", noun)


def render(concept: Concept, framing: str, group: Group, rubric: Rubric) -> Rendered:
    """Render a template for one group: byte-identical to its siblings outside the span.

    Args:
        concept: the scenario.
        framing: one of the bank's.
        group: a group of the concept's attribute.
        rubric: the concept's rubric; its instruction, if any, follows after a blank line.

    Returns:
        The prompt, and where in it the noun phrase stands, in code points.

    Raises:
        InputError: the template has no slot.

    See contract: bank, "Rendering".
    """
    before, slot, after = concept.template(framing).partition(SLOT)
    if not slot:
        raise InputError(f"concept {concept.id}, framing {framing}: no {SLOT} in the template")
    np = group_np(group, concept.noun)
    tail = f"\n\n{rubric.instruction}" if rubric.instruction else ""
    return Rendered(before + np + after + tail, np, len(before), len(before) + len(np))


def validation_faults(error: ValidationError, where: str) -> list[str]:
    """Turn a pydantic error into lines that name file, place, fault and the value seen."""
    faults = []
    for item in error.errors():
        place = ".".join(str(part) for part in item["loc"])
        seen = "" if item["type"] == "missing" else f" (saw {str(item.get('input'))[:80]!r})"
        faults.append(f"{where}: {place or 'top level'}: {item['msg']}{seen}")
    return faults


def _without_siblings(data: Any) -> Any:
    """Leave out what may stand beside the bank and says nothing of it: `$schema`, and rules that are null."""
    data = without_schema(data)
    if isinstance(data, dict) and data.get("rules") is None:
        return {key: value for key, value in data.items() if key != "rules"}
    return data


def load_bank(data: Any, where: str) -> Bank:
    """Validate a parsed `bank.json`.

    Args:
        data: what the file holds.
        where: the file's name, with which every fault begins.

    Raises:
        InputError: a key is missing, unknown or of another type, a rubric does not hash to its own `sha256`, or a text
            holds a control character. Whether the whole bank is the pinned one is for the reader of the run to check.
    """
    try:
        bank = Bank.model_validate(_without_siblings(data))
    except ValidationError as error:
        raise InputError(*validation_faults(error, where)) from None
    faults = [
        f"{where}: rubric {r.id}: sha256 is {r.sha256}, its content hashes to {r.content_sha256()}"
        for r in bank.rubrics
        if r.sha256 != r.content_sha256()
    ]
    faults += [f"{where}: concept {c.id}: {fault}" for c in bank.concepts for fault in framing_faults(c, bank.rules)]
    raise_faults([*faults, *control_faults(data, where, PROSE)])
    return bank


def framing_faults(concept: Concept, rules: BankRules) -> list[str]:
    """Return a fault for a concept whose framings are not those that the bank's rules name."""
    there, named = set(concept.framings), set(rules.framings)
    lacking = [f"lacks framing {name}" for name in rules.framings if name not in there]
    return lacking + [
        f"has framing {name}; the framings are {', '.join(rules.framings)}" for name in sorted(there - named)
    ]


def read_bank(path: Path) -> Bank:
    """Read and validate a run's `bank.json`."""
    return load_bank(read_json(path, "a run folder needs its bank.json"), str(path))
