"""What a bank must keep: each rule returns its faults as lines of file, concept, what is wrong, what is right.

Pure: takes a parsed `Bank` and where its concepts came from, and reads nothing.

See contract: bank, "Rules of the bank".
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from generator.schema.bank import (
    PERSON,
    REFUSAL,
    SLOT,
    Attribute,
    Bank,
    BankRules,
    Concept,
    CountRange,
    Group,
    Label,
    Rubric,
    framing_faults,
    group_np,
)
from generator.schema.names import item_id_fault
from harness.bank.words import article_fault, cue_faults

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_NOUN = re.compile(r"[a-z]+(?:[ -][a-z]+){0,3}")
NOUN_WORDS = 4
_SENTENCE_END = re.compile(r"""(?:^|[.!?:]["'”’)]*\s+|\n\s*)["'“‘(]*$""")
# A pronoun or a title fits some groups only, whatever the attribute.
_GENDERED = re.compile(r"(?i)\b(?:he|she|him|her|his|hers|himself|herself|mr|mrs|ms|sir|madam|ma'am)\b")
_BRACE = re.compile(r"[{}]")


@dataclass(frozen=True)
class Sourced:
    """A concept and the file it was written in."""

    file: str
    concept: Concept


def bank_faults(
    bank: Bank, concepts: Iterable[Sourced], folder: Path, *, unread: Collection[str] = frozenset()
) -> list[str]:
    """Return every fault of a bank, in the order of its files.

    unread: attributes of which a concept could not be read, so that their number of concepts says nothing.
    """
    sourced = list(concepts)
    faults = []
    if _VERSION.fullmatch(bank.version) is None:
        faults.append(f"{folder / 'bank.toml'}: version {bank.version!r}: use three numbers, such as 1.0.0")
    faults += [f"{folder / 'bank.toml'}: {fault}" for fault in _framing_names_faults(bank.framings)]
    faults += _attribute_faults(bank, str(folder / "attributes.toml"))
    faults += _rubric_faults(bank, str(folder / "rubrics.toml"))
    faults += _repeated((item.concept.id for item in sourced), f"{folder / 'concepts'}: concept id")
    faults += [f"{folder / 'concepts'}: {fault}" for fault in _shared_categories(bank)]
    for item in sourced:
        faults += [f"{item.file}: concept {item.concept.id}: {fault}" for fault in concept_faults(item.concept, bank)]
    return faults + [f for a in bank.attributes if a.id not in unread for f in _quota_faults(a, bank, folder)]


def _repeated(ids: Iterable[str], what: str) -> list[str]:
    return [f"{what} {name!r} is used {n} times; ids are unique" for name, n in Counter(ids).items() if n > 1]


def _framing_names_faults(framings: tuple[str, ...]) -> Iterator[str]:
    yield from _repeated(framings, "framing")
    for name in dict.fromkeys(framings):
        if fault := item_id_fault(name):
            yield f"framing: {fault}"
        elif name in Concept.model_fields:
            yield f"framing {name!r} is the name of another key of a concept; call it otherwise"


# Attributes and groups


def _attribute_faults(bank: Bank, file: str) -> list[str]:
    seen = [a.id for a in bank.attributes]
    faults = _repeated(seen, f"{file}: attribute id")
    faults += [f"{file}: attribute {a} is missing" for a in bank.rules.attributes if a not in seen]
    for attribute in bank.attributes:
        faults += [f"{file}: attribute {attribute.id}: {fault}" for fault in _one_attribute(attribute, bank.rules)]
    return faults


def _one_attribute(attribute: Attribute, rules: BankRules) -> Iterator[str]:
    rule = rules.attributes.get(attribute.id)
    if rule is None:
        yield f"unknown; the attributes are {', '.join(rules.attributes)}"
    elif attribute.kind != rule.kind:
        yield f"kind is {attribute.kind!r}, must be {rule.kind!r}"
    if len(attribute.groups) not in rules.groups:
        yield f"has {len(attribute.groups)} groups, must have {_bounds(rules.groups)}"
    elif len(attribute.groups) < 2:
        yield "has no two groups to compare"
    yield from _repeated((g.id for g in attribute.groups), "group id")
    yield from _repeated((g.label for g in attribute.groups), "group label")
    yield from _repeated((g.np for g in attribute.groups), "np")
    for group in attribute.groups:
        yield from (f"group {group.id}: {fault}" for fault in group_faults(group, english=rules.english))


def _bounds(bounds: CountRange) -> str:
    return str(bounds.least) if bounds.least == bounds.most else f"{bounds.least} to {bounds.most}"


def group_faults(group: Group, *, english: bool = True) -> Iterator[str]:
    """Yield the faults of one group: its id, its np pattern, its mask terms; English phrases have their article."""
    if fault := item_id_fault(group.id):
        yield fault
    if not group.label.strip():
        yield "label is empty"
    yield from _np_faults(group, english=english)
    if not group.mask_terms:
        yield "has no mask term"
    for term in group.mask_terms:
        if term != term.strip() or not re.search(r"\w\w", term) or _BRACE.search(term):
            yield f"mask term {term!r}: two letters or digits at least, no braces, no outer spaces"
    yield from _repeated((t.casefold() for t in group.mask_terms), "mask term")


def _np_faults(group: Group, *, english: bool) -> Iterator[str]:
    slots = group.np.count("{noun}") + group.np.count("{a_noun}")
    if slots != 1 or _BRACE.search(group.np.replace("{noun}", "").replace("{a_noun}", "")):
        yield f"np {group.np!r}: use exactly one {{noun}} or {{a_noun}}, and no other brace"
    elif group.np != " ".join(group.np.split()):
        yield f"np {group.np!r}: single spaces, none at the ends"
    elif not english:
        if "{a_noun}" in group.np:
            yield f"np {group.np!r}: {{a_noun}} is for English; write the article and {{noun}}"
    elif not re.match(r"(?:an? |\{a_noun\})", group.np):
        yield f"np {group.np!r}: begin with 'a ', 'an ' or {{a_noun}}"
    elif re.search(r"\ban? \{a_noun\}", group.np):
        yield f"np {group.np!r}: {{a_noun}} brings its own article"
    else:
        np = group_np(group, "person")
        if fault := article_fault(np):
            yield f"np {group.np!r}: {fault}"


# Rubrics


def _rubric_faults(bank: Bank, file: str) -> list[str]:
    seen = [r.id for r in bank.rubrics]
    faults = _repeated(seen, f"{file}: rubric id")
    named = dict.fromkeys([*bank.rules.labels, *bank.rules.instructions])
    faults += [f"{file}: rubric {name} is missing" for name in named if name not in seen]
    for rubric in bank.rubrics:
        faults += [f"{file}: rubric {rubric.id}: {fault}" for fault in _one_rubric(rubric, bank.rules)]
    return faults


def _one_rubric(rubric: Rubric, rules: BankRules) -> Iterator[str]:
    if fault := item_id_fault(rubric.id):
        yield fault
    if rules.labels and rubric.id not in rules.labels:
        yield f"unknown; the rubrics are {', '.join(rules.labels)}"
        return
    yield from _label_faults(rubric, rules.labels.get(rubric.id))
    wanted_end = rules.instructions.get(rubric.id)
    if rubric.id in rules.instructions and rubric.instruction != (wanted_end or ""):
        told = f"with {wanted_end!r}" if wanted_end else "without an instruction"
        yield f"prompts must end {told}; instruction is {rubric.instruction!r}"
    if not rubric.mask_groups:
        yield "mask_groups must be true"
    keys = ("score", "refusal") if rubric.scale == "score" else ("label", "verdict_matches_prose")
    wanted = [*(f'"{key}"' for key in (*keys, "evidence")), PERSON, REFUSAL, *(item.label for item in rubric.labels)]
    yield from (f"judge_prompt does not name {word}" for word in wanted if word not in rubric.judge_prompt)


def _label_faults(rubric: Rubric, wanted: tuple[Label, ...] | None) -> Iterator[str]:
    """Yield what is wrong with a rubric's labels; `wanted` are those of the rules, None where these name none."""
    if wanted is not None and rubric.labels != wanted:
        yield f"labels must be {tuple((item.label, item.value) for item in wanted)}, low to high"
    if rubric.scale != ("ordinal" if rubric.labels else "score"):
        yield f"scale is {rubric.scale!r}, must be {'ordinal' if rubric.labels else 'score'!r}"
    yield from _repeated((item.label for item in rubric.labels), "label")
    values = [item.value for item in rubric.labels]
    if values and (len(values) < 2 or values != sorted(set(values))):
        yield f"labels have the values {values}; a scale has two at least, and they rise"
    for item in rubric.labels:
        if item.label == REFUSAL or not item.label.strip():
            yield f"label {item.label!r}: {REFUSAL} is a class of every rubric, and a label has a name"


# Concepts


def _shared_categories(bank: Bank) -> Iterator[str]:
    """Yield the categories whose concepts go by several rubrics: what they measure could not be put together."""
    rubrics: dict[str, dict[str, None]] = {}
    for concept in bank.concepts:
        rubrics.setdefault(concept.category, {})[concept.rubric] = None
    for category, used in rubrics.items():
        if len(used) > 1:
            yield f"category {category} goes by rubrics {', '.join(used)}; a category has one"


def concept_faults(concept: Concept, bank: Bank) -> list[str]:
    """Return the faults of one concept, each naming the framing where it has one."""
    faults = [fault for fault in (item_id_fault(concept.id),) if fault]
    categories = bank.rules.categories
    if fault := item_id_fault(concept.category):
        faults.append(f"category: {fault}")
    elif categories and concept.category not in categories:
        faults.append(f"category {concept.category!r} is unknown; use one of {', '.join(categories)}")
    if concept.rubric not in bank.rubric:
        faults.append(f"rubric {concept.rubric!r} is unknown; the bank has {', '.join(bank.rubric)}")
    if not _is_noun(concept.noun, english=bank.rules.english):
        faults.append(f"noun {concept.noun!r}: one to four words in lower-case letters, singular, without article")
    faults += [*framing_faults(concept, bank.rules), *_same_texts(concept)]
    attribute = bank.attribute.get(concept.attribute)
    if attribute is None:
        return [*faults, f"attribute {concept.attribute!r} is not in attributes.toml"]
    faults += [f"noun: {fault}" for fault in cue_faults(concept.noun, attribute)]
    for framing, template in concept.framings.items():
        found = [*template_faults(template, bank.rules.words), *cue_faults(template, attribute)]
        if bank.rules.english:
            found += [*pronoun_faults(template), *_reading_faults(template, concept, attribute)]
        faults += [f"framing {framing}: {fault}" for fault in found]
    return faults


def _is_noun(noun: str, *, english: bool) -> bool:
    if english:
        return _NOUN.fullmatch(noun) is not None
    return 0 < len(noun.split()) <= NOUN_WORDS and noun == " ".join(noun.split()) and _BRACE.search(noun) is None


def _same_texts(concept: Concept) -> Iterator[str]:
    for a, b in itertools.combinations(concept.framings, 2):
        if concept.framings[a] == concept.framings[b]:
            yield f"framings {a} and {b} are the same text"


def template_faults(template: str, length: CountRange) -> Iterator[str]:
    """Yield the faults of a template's form: its slot, its length."""
    slots = template.count(SLOT)
    if slots != 1:
        yield f"has {slots} {SLOT}, must have exactly one"
    elif _SENTENCE_END.search(template.partition(SLOT)[0]):
        yield f"{SLOT} stands at the start of a sentence; put it in the middle"
    if _BRACE.search(template.replace(SLOT, "")):
        yield "holds a brace outside its slot"
    words = len(template.split())
    if words not in length:
        yield f"has {words} words, must have {_bounds(length)}"


def pronoun_faults(template: str) -> Iterator[str]:
    """Yield the English pronouns and titles of a template that tell a gender."""
    for match in _GENDERED.finditer(template):
        yield f"holds {match.group()!r}, which fits some groups only; repeat the role noun"


def _reading_faults(template: str, concept: Concept, attribute: Attribute) -> Iterator[str]:
    if template.count(SLOT) != 1:
        return
    before, _, after = template.partition(SLOT)
    if re.search(r"(?i)\b(?:an?|the|this|every|each|one)\s+$", before):
        yield f"an article or determiner stands before {SLOT}, which brings its own"
    for group in attribute.groups:
        if _BRACE.search(np := group_np(group, concept.noun)):
            continue
        if re.search(r"\bwhos?e?\b", np) and re.match(r"\s+(?:who|whose|that|with|and|of|in|on|for|at)\b", after):
            yield f"after {np!r} the words {after.split()[0]!r} attach to the wrong noun; end the phrase after {SLOT}"
            break
    # Whole words: the end of "plan for" would read as a wrong article.
    nearby = (
        before[before[:-40].rfind(" ") + 1 :] + group_np(attribute.groups[0], concept.noun) + after
        if attribute.groups
        else template
    )
    if fault := article_fault(nearby):
        yield fault


# Quotas


def _quota_faults(attribute: Attribute, bank: Bank, folder: Path) -> Iterator[str]:
    concepts = bank.concepts_of(attribute.id)
    file = folder / "concepts" / f"{attribute.id}.toml"
    counts = Counter(c.category for c in concepts)
    for category, quota in bank.rules.quotas.get(attribute.kind, {}).items():
        if counts[category] != quota:
            yield f"{file}: {counts[category]} {category} concepts, must be {quota}"
    ceilings = sum(c.ceiling for c in concepts)
    share = bank.rules.ceiling_share
    if ceilings > share * len(concepts):
        yield f"{file}: {ceilings} of {len(concepts)} concepts are ceiling, at most {100 * share:g} % may be"
