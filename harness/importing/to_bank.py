"""The bank of an import, made from the map and the prompts, so that its hash, and with it every draw, is theirs.

Where prompts differ in one phrase, the template is found: the one text that all groups' prompts come to when the
group's words are taken out. Where they only share a topic, or the source has no prompts, the template names the topic,
and a digest of the prompts stands in the bank's version.

See contract: receipts, "Imported runs".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from generator.schema.bank import (
    SLOT,
    Attribute,
    Bank,
    BankRules,
    Concept,
    CountRange,
    Group,
    Rubric,
    group_np,
)
from generator.schema.canonical import hash_json
from generator.schema.errors import raise_faults
from generator.schema.plain_text import control_character
from harness.importing.import_map import ImportMap
from harness.importing.rows import ImportedRow, ImportedRows

Place = tuple[str, str, str]  # concept, framing, group
_SAID = 60
_FACTS = ("rubric", "category", "polarity", "noun", "topic")


def bank_of(found: ImportedRows, given: ImportMap) -> Bank:
    """Return the bank of an import.

    Raises:
        InputError: rows of one concept differ in what a concept has once, a concept lacks a framing, prompts of one
            place differ, or prompts that are said to differ in one phrase differ in more.
    """
    concepts = _concepts(found.rows)
    prompts = _prompts(found.rows)
    groups = _groups(found, given)
    framings = tuple(sorted({row.framing for row in found.rows}, key=str.encode))
    _check_framings(found.rows, framings)
    templates = _templates(concepts, framings, prompts, groups, given)
    rubrics = tuple(_rubric(name, given) for name in given.rubrics if name in {r.rubric for r in concepts.values()})
    attributes = tuple(_attribute(name, groups[name], found, given) for name in groups)
    entries = tuple(_concept(concepts[name], templates[name]) for name in sorted(concepts, key=str.encode))
    return Bank(
        version=_version(prompts, given),
        attributes=attributes,
        concepts=entries,
        rubrics=rubrics,
        rules=_rules(attributes, entries, rubrics, framings, given),
    )


def _concepts(rows: Sequence[ImportedRow]) -> dict[str, ImportedRow]:
    """Return the first row of each concept; raises InputError where a later one says otherwise of it."""
    first: dict[str, ImportedRow] = {}
    faults: dict[tuple[str, str], str] = {}
    for row in rows:
        known = first.setdefault(row.concept, row)
        for name in _FACTS:
            a, b = getattr(known, name), getattr(row, name)
            if a != b and (row.concept, name) not in faults:
                words = f"{name} of concept {row.concept} is {_said(b)}, but {_said(a)} at {known.place}"
                faults[row.concept, name] = f"{row.place}: {words}; a concept has one"
    raise_faults(list(faults.values()))
    return first


def _said(value: object) -> str:
    return repr(str(value)[:_SAID]) if value is not None else "missing"


def _prompts(rows: Sequence[ImportedRow]) -> dict[Place, str]:
    """Return the prompt of each place; raises InputError where rows of one place were asked different ones."""
    found: dict[Place, ImportedRow] = {}
    faults: dict[Place, str] = {}
    for row in rows:
        if row.prompt is not None:
            place = (row.concept, row.framing, row.group)
            known = found.setdefault(place, row)
            if known.prompt != row.prompt:
                rule = "every model and repeat is asked the same text; if these are two concepts, give them two ids"
                faults.setdefault(place, f"{row.place}: another prompt than at {known.place}; {rule}")
    raise_faults(list(faults.values()))
    return {place: str(row.prompt) for place, row in found.items()}


def _groups(found: ImportedRows, given: ImportMap) -> dict[str, tuple[Group, ...]]:
    """Return the groups of each attribute, in the order of the map and else of their ids."""
    there: dict[str, set[str]] = defaultdict(set)
    for row in found.rows:
        there[row.attribute].add(row.group)
    order = [*(name for name in given.attributes if name in there), *sorted(there, key=str.encode)]
    made = {name: _groups_of(name, there[name], found, given) for name in dict.fromkeys(order)}
    faults = [
        f"attribute {name}: group {item.id}: control character in its words {_said(item.np)}; give it np in the map"
        for name, groups in made.items()
        for item in groups
        if control_character(item.np) or control_character(item.label)
    ]
    raise_faults(faults)
    return made


def _groups_of(attribute: str, there: set[str], found: ImportedRows, given: ImportMap) -> tuple[Group, ...]:
    listed = given.attributes[attribute].groups if attribute in given.attributes else {}
    texts = found.names.texts.get(f"group of {attribute}", {})
    groups = []
    for name in [*(g for g in listed if g in there), *sorted(there - set(listed), key=str.encode)]:
        said = listed.get(name)
        label = (said and said.label) or texts.get(name, name)
        np = (said and said.np) or label
        groups.append(Group(id=name, label=label, np=np, mask_terms=(label,)))
    return tuple(groups)


def _check_framings(rows: Sequence[ImportedRow], framings: Sequence[str]) -> None:
    there: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        there[row.concept].add(row.framing)
    raise_faults(
        [
            f"concept {name} has no row with framing {', '.join(f for f in framings if f not in found)};"
            f" every concept has each of {', '.join(framings)}; leave such rows out with source.where, or give its"
            " framings other ids with columns.framing.values"
            for name, found in sorted(there.items())
            if len(found) < len(framings)
        ]
    )


def _templates(
    concepts: Mapping[str, ImportedRow],
    framings: Sequence[str],
    prompts: Mapping[Place, str],
    groups: Mapping[str, Sequence[Group]],
    given: ImportMap,
) -> dict[str, dict[str, str]]:
    """Return the template of each concept and framing."""
    found: dict[str, dict[str, str]] = {}
    faults = []
    for name, row in concepts.items():
        found[name] = {}
        for framing in framings:
            own = {g: prompts[name, framing, g.id] for g in groups[row.attribute] if (name, framing, g.id) in prompts}
            if given.run.matched_by == "topic" or not own:
                found[name][framing] = _topic_template(row, prompts=bool(own))
                continue
            options = list(shared_templates(own, row.noun or ""))
            if len(options) == 1:
                found[name][framing] = options[0]
            else:
                faults.append(f"concept {name}, framing {framing}: {_why(options, own)}")
    raise_faults(faults)
    return found


def topic_words(concept: str, topic: str | None) -> str:
    """Return what a concept is about: what the table says, or the words of its id after the attribute's short name."""
    return topic or concept.partition("_")[2].replace("_", " ")


def _topic_template(row: ImportedRow, *, prompts: bool) -> str:
    """Return what stands in the place of a template that there is not: the topic, and why it is no prompt."""
    why = "prompts on one topic, worded differently" if prompts else "the prompt is not in what was imported"
    topic = topic_words(row.concept, row.topic).replace(SLOT, "").strip()
    return f"({why}: {topic}) {SLOT}"


def shared_templates(prompts: Mapping[Group, str], noun: str) -> Iterator[str]:
    """Yield the templates from which all prompts come, each with one slot in the place of the group's words."""
    candidates = [_slotted(text, group_np(group, noun)) for group, text in prompts.items()]
    first, *others = candidates
    yield from (text for text in first if all(text in other for other in others))


def _slotted(prompt: str, words: str) -> list[str]:
    """Return a prompt with the slot in the place of the words, once for each place where they stand."""
    found, start = [], prompt.find(words) if words else -1
    while start >= 0:
        found.append(f"{prompt[:start]}{SLOT}{prompt[start + len(words) :]}")
        start = prompt.find(words, start + 1)
    return [text for text in found if text.count(SLOT) == 1]


def _why(options: Sequence[str], prompts: Mapping[Group, str]) -> str:
    if options:
        return (
            f"the group's words stand in {len(options)} places of the prompt, and only one of them is swapped;"
            " give np with more words around it"
        )
    groups = list(prompts)
    absent = next((g for g in groups if g.np not in prompts[g] and "{" not in g.np), None)
    if absent is not None:
        return (
            f"the words {absent.np[:_SAID]!r} of group {absent.id} do not stand in its prompt"
            f" {prompts[absent][:_SAID]!r};"
            f' say attributes.<id>.groups.{absent.id}.np, or run.matched_by = "topic"'
        )
    a, b = groups[0], groups[-1]
    return (
        f"the prompts of {a.id} and {b.id} differ in more than the group's words ({prompts[a][:_SAID]!r},"
        f' {prompts[b][:_SAID]!r}); say each group\'s np, or run.matched_by = "topic"'
    )


def _attribute(name: str, groups: tuple[Group, ...], found: ImportedRows, given: ImportMap) -> Attribute:
    said = given.attributes.get(name)
    text = found.names.texts.get("attribute", {}).get(name, name)
    label = (said and said.label) or (text.replace("_", " ").capitalize() if text == name else text)
    return Attribute(id=name, label=label, kind=said.rule.kind if said else "demographic", groups=groups)


def _concept(row: ImportedRow, templates: dict[str, str]) -> Concept:
    return Concept(
        id=row.concept,
        attribute=row.attribute,
        category=row.category,
        rubric=row.rubric,
        noun=row.noun or topic_words(row.concept, row.topic),
        polarity=1 if row.polarity == 1 else -1,
        ceiling=False,
        two_sided=False,
        framings=templates,
    )


def _rubric(name: str, given: ImportMap) -> Rubric:
    said = given.rubrics[name]
    content = {
        "id": name,
        "scale": said.scale,
        "labels": [label.model_dump(mode="json") for label in given.bank_labels(name)],
        "instruction": "",
        "judge_prompt": said.judge_prompt or "What the judges were told is not in what was imported.",
        "mask_groups": given.run.masked,
    }
    return Rubric.model_validate({**content, "sha256": hash_json(content)})


def _version(prompts: Mapping[Place, str], given: ImportMap) -> str:
    """Return the version; of prompts that no template holds it ends with a digest of them."""
    if given.run.matched_by == "word" or not prompts:
        return given.run.version
    return f"{given.run.version}+{hash_json([[*place, text] for place, text in sorted(prompts.items())])[:12]}"


def _rules(
    attributes: Sequence[Attribute],
    concepts: Sequence[Concept],
    rubrics: Sequence[Rubric],
    framings: tuple[str, ...],
    given: ImportMap,
) -> BankRules:
    """Return the rules that this bank keeps: what it has, and nothing that it must have."""
    quotas: dict[str, Counter[str]] = {"demographic": Counter(), "control": Counter()}
    kind = {a.id: a.kind for a in attributes}
    for attribute in attributes:
        own = Counter(c.category for c in concepts if c.attribute == attribute.id)
        for category, n in own.items():
            quotas[kind[attribute.id]][category] = max(n, quotas[kind[attribute.id]][category])
    sizes = [len(a.groups) for a in attributes]
    words = [len(text.split()) for c in concepts for text in c.framings.values()]
    return BankRules.model_validate(
        {
            "attributes": {
                a.id: {"role": given.attributes[a.id].role if a.id in given.attributes else "demographic"}
                for a in attributes
            },
            "framings": framings,
            "quotas": {name: dict(sorted(counts.items())) for name, counts in quotas.items() if counts},
            "groups": CountRange(least=min(sizes), most=max(sizes)).model_dump(),
            "words": CountRange(least=min(words), most=max(words)).model_dump(),
            "ceiling_share": 1.0,
            "instructions": {rubric.id: None for rubric in rubrics},
            "labels": {rubric.id: [label.model_dump() for label in rubric.labels] for rubric in rubrics},
            "compliance": tuple(c for c in given.run.compliance),
        }
    )
