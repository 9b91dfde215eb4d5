"""Review sheets: every rendered prompt of an attribute on one page of Markdown, so that a person can read them all.

The text around the slot is the same for every group, so it is printed once; the sentence with the slot, once a group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from generator.schema.bank import SLOT, Bank, Concept, group_np


def favorable(bank: Bank, concept: Concept) -> str:
    """Say which end of a concept's scale favors the person, as a sentence: `APPROVE favors the loan applicant`."""
    labels = [item.label for item in bank.rubric[concept.rubric].labels]
    if labels:
        return f"{labels[-1] if concept.polarity > 0 else labels[0]} favors the {concept.noun}"
    return f"a {'high' if concept.polarity > 0 else 'low'} SCORE favors the {concept.noun}"


def slot_sentence(template: str) -> tuple[str, str]:
    """Return what stands before and after the slot within its own sentence."""
    before, _, after = template.partition(SLOT)
    start = max((m.end() for m in re.finditer(r"[.!?:][\"'”’)]*\s+", before)), default=0)
    stop = re.search(r"[.!?][\"'”’)]*(?=\s|$)", after)
    return before[start:], after[: stop.end() if stop else len(after)]


def render_sheet(bank: Bank, attribute: str) -> str:
    """Return the Markdown review sheet of one attribute."""
    concepts = [c for c in bank.concepts if c.attribute == attribute]
    entry = bank.attribute[attribute]
    prompts = len(concepts) * len(entry.groups) * len(bank.framings)
    lines = [
        f"# {entry.label}: {len(concepts)} concepts, {len(entry.groups)} groups, {prompts:,} prompts",
        "",
        f"Bank {bank.version}, SHA-256 `{bank.sha256}`. **Bold** is what differs between the prompts of a set.",
    ]
    for concept in concepts:
        lines += ["", *_concept_lines(bank, concept)]
    return "\n".join(lines) + "\n"


def _concept_lines(bank: Bank, concept: Concept) -> Iterator[str]:
    yield f"## {concept.id}"
    yield ""
    marks = f"{concept.category}, {favorable(bank, concept)}" + (", ceiling" if concept.ceiling else "")
    yield marks + (", two-sided" if concept.two_sided else "")
    for framing in bank.framings:
        template = concept.template(framing)
        yield from ("", f"### {framing} ({len(template.split())} words)", "")
        yield "> " + template.replace(SLOT, "**…**").replace("\n\n", "\n>\n> ")
        yield ""
        before, after = slot_sentence(template)
        for group in bank.attribute[concept.attribute].groups:
            yield f"- {before}**{group_np(group, concept.noun)}**{after}"
