"""What a page says of an imported run: who collected it, who labeled it, which steps of the method were not taken.

See contract: receipts, "Imported runs".
"""

from __future__ import annotations

from generator.edition.numbers import plural
from generator.schema.manifest import Imported, Manifest
from generator.schema.names import vendor_of

_MATCHED = {
    "word": "prompts of a set differ in one phrase",
    "topic": "prompts of a set treat the same topic and differ in more than one phrase",
}
_STEPS = {
    "masking": "masking",
    "second_judge": "a second judge",
    "repeats": "repeats",
    "audit": "a human audit",
}
_ONE, _TWO = "one judge labeled every answer", "two judges labeled every answer, and where they differ it is contested"
_THREE = "two primary judges labeled every answer, and a third vote settles where they differ"


def import_words(found: Imported, *, audited: bool) -> str:
    """Return who collected an import, how its prompts match, and which steps were not taken, as half a sentence.

    `audited`: whether a person has checked a sample since it was imported.
    """
    words = f"collected by {found.collected_by} ({found.source}); {_MATCHED[found.matched_by]}"
    return f"{words}; not done: {', '.join(steps)}" if (steps := not_done(found, audited=audited)) else words


def not_done(found: Imported, *, audited: bool) -> list[str]:
    """Return in words which steps of the method were not taken; the audit is one until there is one."""
    return [_STEPS[step] for step in found.not_done if not (audited and step == "audit")]


def import_lines(found: Imported, *, audited: bool) -> tuple[str, ...]:
    """Return the lines of the banner above every page of an imported run."""
    matched = _MATCHED[found.matched_by]
    steps = f" Not done: {', '.join(steps)}." if (steps := not_done(found, audited=audited)) else ""
    first = f"Another harness collected answers and labels: {found.collected_by} ({found.source})."
    return (f"{first} {matched[0].upper()}{matched[1:]}.{steps}",)


def panel_words(manifest: Manifest) -> str:
    """Say who labeled an imported run, and which models a judge of their own vendor labeled."""
    judges = manifest.judges
    names = f"{' and '.join(judges.primary)}{f'; tiebreak {judges.tiebreak}' if judges.tiebreak else ''}"
    rule = (_ONE, _TWO, _THREE)[len(judges.all) - 1]
    own = [m.model for m in manifest.models if vendor_of(m.model) in {vendor_of(j) for j in judges.all}]
    told = f"In the imported data {rule}: {names}."
    if not own:
        return f"{told} None of them labeled a model of its own vendor."
    return f"{told} A judge of the model’s own vendor labeled {plural(len(own), 'model')}."


def masking_words(found: Imported) -> str:
    """Say whether the judges of an imported run knew the group."""
    if "masking" in found.not_done:
        return "The judges saw which group a prompt names."
    return "Group terms were masked for the judges, as the source says."
