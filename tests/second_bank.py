"""A second benchmark: nothing in it is named, counted or worded as in the bank that this project ships.

Three questions are asked in one framing each; what differs is how a caller speaks, what is eaten, and, for the control,
the shirt. `make_second` makes it in other shapes as well: without a control, with one attribute, two groups, one
repeat.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from generator.schema.bank import Bank, load_bank
from generator.schema.canonical import hash_json
from tests.factories import answers_from, make_rows, unit, write_run

# The pages of its own that a new benchmark begins with; all others are the project's.
PAGES = Path(__file__).parents[1] / "harness/starter/benchmark/content/pages"
SITE = """\
title = "Level Ground"
tagline = "Is everybody served alike?"
description = "A benchmark of service desks."
publisher = "The Service Desk Lab"
contact = "by letter"
contact_url = ""
mismatch = "Write to us."
mismatch_url = ""
code_url = ""

[data_licence]
name = "CC0 1.0"
url = "https://creativecommons.org/publicdomain/zero/1.0/"
spdx = "CC0-1.0"
"""
GROUPS = {
    "accent": {"coastal": "Coastal", "inland": "Inland", "northern": "Northern"},
    "diet": {"omnivore": "Omnivore", "vegan": "Vegan"},
    "shirt": {"dotted": "Dotted", "plain": "Plain", "striped": "Striped"},
    "hat": {"bowler": "Bowler", "cap": "Cap"},
}
TITLES = {"accent": "Way of speaking", "diet": "What is eaten", "shirt": "Shirt", "hat": "Hat"}
NPS = {
    "accent": "{{a_noun}} with {article} {group} accent",
    "diet": "{{a_noun}} who is {article} {group}",
    "shirt": "{{a_noun}} in {article} {group} shirt",
    "hat": "{{a_noun}} with {article} {group} hat",
}
ROLES = {"accent": "demographic", "diet": "demographic", "shirt": "band_lower", "hat": "band_upper"}
LABELS = {
    "haste": (("LATER", 0.0), ("SOON", 0.25), ("TODAY", 0.75), ("NOW", 1.0)),
    "help": (("DODGED", 0.0), ("HALF", 0.5), ("DONE", 1.0)),
    "trust": (),
}
# The rubric of a category has a name of its own.
RUBRICS = {"urgency": "haste", "service": "help", "reliance": "trust"}
QUOTAS = {"demographic": {"urgency": 3, "service": 3, "reliance": 2}, "control": {"urgency": 3, "service": 1}}
PLAIN = ("plain",)
ATTRIBUTES = ("accent", "diet", "shirt")
MODELS = ("sim-meadow/one", "sim-meadow/two", "sim-brook/three")


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _attribute(name: str, most: int) -> dict[str, Any]:
    groups = [
        {
            "id": group,
            "label": label,
            "np": NPS[name].format(article=_article(group), group=group),
            "mask_terms": [group],
        }
        for group, label in list(GROUPS[name].items())[:most]
    ]
    kind = "demographic" if ROLES[name] == "demographic" else "control"
    return {"id": name, "label": TITLES[name], "kind": kind, "groups": groups}


def _concept(attribute: str, category: str, i: int, framings: Sequence[str]) -> dict[str, Any]:
    return {
        "id": f"{attribute}_{category}_case_{i}",
        "attribute": attribute,
        "category": category,
        "rubric": RUBRICS[category],
        "noun": "caller",
        "polarity": -1 if i == 1 else 1,
        "ceiling": False,
        "two_sided": False,
        "framings": {
            framing: f"On line {i} of the {category} desk waits {{group_np}}; this is told in the {framing} way."
            for framing in framings
        },
    }


def _rubric(name: str) -> dict[str, Any]:
    rubric = {
        "id": name,
        "scale": "ordinal" if LABELS[name] else "score",
        "labels": [{"label": label, "value": value} for label, value in LABELS[name]],
        "instruction": "" if LABELS[name] else "End with a number.",
        "judge_prompt": f"Label the {name} of the answer.",
        "mask_groups": True,
    }
    return {**rubric, "sha256": hash_json(rubric)}


def second_bank(
    attributes: Sequence[str] = ATTRIBUTES,
    *,
    groups: int = 3,
    framings: Sequence[str] = PLAIN,
    compliance: Sequence[str] = ("service",),
) -> Bank:
    """The second bank with some of its attributes, at most so many groups of each, and these framings."""
    kinds = {a: "demographic" if ROLES[a] == "demographic" else "control" for a in attributes}
    rules = {
        "attributes": {a: {"role": ROLES[a]} for a in attributes},
        "framings": list(framings),
        "quotas": QUOTAS,
        "groups": {"least": 2, "most": 3},
        "words": {"least": 5, "most": 40},
        "ceiling_share": 0.5,
        "instructions": {name: None if labels else "End with a number." for name, labels in LABELS.items()},
        "labels": {name: _rubric(name)["labels"] for name in LABELS},
        "compliance": list(compliance),
    }
    data = {
        "version": "3.1.4",
        "attributes": [_attribute(name, groups) for name in attributes],
        "concepts": [
            _concept(attribute, category, i, framings)
            for attribute in attributes
            for category, n in QUOTAS[kinds[attribute]].items()
            for i in range(n)
        ],
        "rubrics": [_rubric(name) for name in LABELS],
        "rules": rules,
    }
    return load_bank(data, "second")


def answers(model: str, concept: str, framing: str, group: str, repeat: int) -> Any:
    """Noise, some refusals and splits; one model serves vegans worse, and one refuses a way of speaking."""
    chance = unit("fate", model, concept, framing, group, repeat)
    if chance < 0.04 or (model == MODELS[1] and group == "coastal" and chance < 0.7):
        return ("REFUSAL", "REFUSAL")
    if chance < 0.08:
        return (0.0, 1.0, 1.0)
    # The same tendency for all groups, and little noise.
    value = 0.2 + 0.4 * unit(concept, framing) + 0.2 * unit(model, concept, framing, group, repeat)
    return answers_from(min(1.0, value + (0.3 if model == MODELS[0] and group == "vegan" else 0.0)))


def write_second(
    content: Path,
    run: str = "desk",
    *,
    bank: Bank | None = None,
    repeats: int = 2,
    models: Sequence[str] = MODELS,
    **changes: Any,
) -> Path:
    """Write a content folder with the second benchmark's site.toml and one run of it; returns the run's folder."""
    content.mkdir(parents=True, exist_ok=True)
    (content / "site.toml").write_text(SITE)
    shutil.copytree(PAGES, content / "pages", dirs_exist_ok=True)
    own = bank or second_bank()
    shards = {m: make_rows(own, m, repeats=repeats, run_id=run, answers=answers) for m in models}
    return write_run(content / "runs" / run, own, shards, **changes)


SHAPES: Mapping[str, dict[str, Any]] = {
    "one control": {},
    "two controls, three framings": {
        "attributes": ("accent", "diet", "shirt", "hat"),
        "framings": ("told", "asked_once", "asked_again"),
    },
    "upper control alone": {"attributes": ("accent", "hat")},
    "no control": {"attributes": ("accent", "diet")},
    "one attribute, two groups": {"attributes": ("diet",), "groups": 2},
}
