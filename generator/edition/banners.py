"""The banners above a page: what kind of run its figures come from, and why it may be no publication.

See contract: publication, "Previews and banners".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from generator.edition import paths
from generator.edition.coverage import plan_coverage
from generator.edition.edition import Edition
from generator.edition.import_words import import_lines
from generator.edition.numbers import plural
from generator.schema.tables import RUN_WIDE
from generator.scoring.gate import PASSES
from generator.scoring.reasons import AuditReason, in_words

# What an edition is to a page: a page of its run, or a page of the root that quotes its figures, or none of them.
Source = Literal["run", "figures", "none"]


@dataclass(frozen=True)
class Notice:
    """A banner above a page.

    `kind` is `simulated`, `imported`, `preview`, `withheld`, `supersedes`, `superseded` or `source`; it names the
    style. `href` is a link relative to the page, None without one.
    """

    kind: str
    heading: str
    lines: tuple[str, ...]
    href: str | None = None


def mark_of(edition: Edition | None) -> str:
    """Return the word that marks figures which are no published result: `simulated`, `preview`, or nothing."""
    if edition is None:
        return ""
    return "simulated" if edition.simulated else "preview" if edition.standing.state == "preview" else ""


def notices(edition: Edition | None, page: str, source: Source = "run") -> tuple[Notice, ...]:
    """Return the banners of a page, the gravest first.

    Args:
        edition: the run whose figures the page shows; None without one.
        page: path of the page below `dist/`, from which links are made.
        source: what the page is to the run. A page of the run gets all banners, a page of the root that quotes its
            figures gets one, other pages get none.
    """
    if edition is None or source == "none":
        return ()
    if source == "figures":
        return _figures(edition, page)
    found = []
    if edition.simulated:
        text = "No real language model was asked. The answers and the votes come from programs with planted biases."
        found.append(Notice("simulated", "Simulated run", (text,)))
    if (collected := edition.run.manifest.imported) is not None:
        found.append(Notice("imported", "Imported run", import_lines(collected, audited=edition.run.audit is not None)))
    if edition.standing.state == "preview":
        lines = (preview_words(edition), *map(in_words, edition.standing.reasons))
        found.append(Notice("preview", "Preview with real models, not a result", lines))
    return (*found, *_withheld(edition), *_relations(edition, page))


def _figures(edition: Edition, page: str) -> tuple[Notice, ...]:
    """Return the one banner of a page of the root: whose figures it quotes, where these are no published result."""
    words = {"simulated": "which is simulated", "preview": "which is a preview and not a result"}
    mark = mark_of(edition)
    # A published live run needs no mark where it is quoted.
    if not mark:
        return ()
    link = paths.relative(page, paths.run_index(edition.run_id))
    return (Notice("source", f"Figures on this page come from run {edition.run_id}, {words[mark]}", (), link),)


def _withheld(edition: Edition) -> list[Notice]:
    standing = edition.standing
    if not standing.withheld:
        return []
    left_out = f"Left out of every score and page: {', '.join(sorted(standing.withheld))}."
    reasons = () if standing.state == "preview" else tuple(map(in_words, standing.reasons))
    return [Notice("withheld", "Published in part", (left_out, *reasons))]


def _relations(edition: Edition, page: str) -> list[Notice]:
    relations = (
        ("supersedes", "This run supersedes", edition.run.manifest.supersedes),
        ("superseded", "Superseded by", edition.superseded_by),
    )
    found = []
    for kind, words, other in relations:
        if other:
            link = paths.relative(page, paths.run_index(other)) if edition.links_to(other) else None
            found.append(Notice(kind, f"{words} {other}", (), link))
    return found


def preview_words(edition: Edition) -> str:
    """Say in plain words how much of a preview was asked, and which conditions of publication it does not meet."""
    asked = plan_coverage(edition.scored.tables["cells"], edition.run.manifest.repeats).values()
    concepts = frozenset[str]().union(*(one.concepts_given for one in asked))
    given, planned, failed = (sum(getattr(one, name) for one in asked) for name in ("given", "planned", "error"))
    all_ = max((one.concepts for one in asked), default=0)
    parts = [
        f"Asked: {len(concepts):,} of {plural(all_, 'concept')}, {given:,} of {plural(planned, 'planned answer')}"
        + (f", {failed:,} of which ended in an error." if failed else ".")
    ]
    return " ".join([*parts, *checks_failed(edition)])


def failing_rubrics(edition: Edition) -> tuple[list[str], int]:
    """Return the ids of the rubrics that do not pass the agreement gate, and how many rubrics there are."""
    whole = [row for row in edition.scored.tables["agreement"].to_pylist() if row["vendor"] == RUN_WIDE]
    return [row["rubric"] for row in whole if row["gate"] not in PASSES], len(whole)


def checks_failed(edition: Edition) -> list[str]:
    """Say which checks of its labels a run does not meet, one sentence each: the agreement gate, the human audit."""
    failing, rubrics = failing_rubrics(edition)
    found = []
    if failing:
        found.append(f"The judges do not pass the agreement gate on {len(failing)} of {plural(rubrics, 'rubric')}.")
    if edition.run.audit is None:
        found.append("No person has checked a sample of the labels.")
    elif any(isinstance(reason, AuditReason) for reason in edition.standing.reasons):
        found.append("The check of a sample of the labels by hand does not suffice.")
    return found
