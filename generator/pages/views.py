"""What the pages of one edition share: its numbers looked up by name, its scale, its words for flags.

Takes an Edition, touches no disk, returns a `View`; every page module takes a View and nothing else of the run.

See contract: publication, "Pages".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from markupsafe import Markup

from generator.edition import paths
from generator.edition.banners import checks_failed
from generator.edition.coverage import PlanCoverage, plan_coverage
from generator.edition.edition import Edition
from generator.edition.import_words import masking_words, panel_words
from generator.html.chart_scale import Domain, domain_of
from generator.html.charts import MARKS, Line
from generator.pages.group_refusals import GroupRefusals, group_refusals
from generator.schema.bank import Attribute, Concept
from generator.schema.tables import OVERALL
from generator.scoring.findings import RunFindings, find
from generator.scoring.lookup import ScoreRow

EVIDENCE = ("flagged", "suggestive", "unresolved")
# What each flag means to a reader, and the methodology page that says more.
FLAG_WORDS = {
    "swapped": "Swapped controls: the control that was to make the upper edge moved this model’s answers more than the "
    "other one did. The band is still drawn from the lower to the higher score.",
    "sparse": "Sparse: only one to eight concepts show any difference, so read the interval with caution; or exactly "
    "one concept of an attribute or control that enters has a value, and there is no interval.",
    "degenerate": "Degenerate: no concept shows any difference, so resampling gives an interval of zero width. That is "
    "not certainty.",
    "unstable": "Unstable: more than one resample in a hundred gave no value, and the interval leaves those out.",
    "incomplete": "Incomplete: a planned answer is absent; or a concept has no framing with two groups to compare; or "
    "the number needs an attribute or a control that has no value.",
    "withheld": "Withheld: a task category that failed the agreement gate or the human audit is left out of this "
    "number.",
}
FLAG_PAGES = {
    "swapped": "control-band",
    "sparse": "statistics",
    "degenerate": "statistics",
    "unstable": "statistics",
    "incomplete": "statistics",
    "withheld": "statistics",
}
_LETTERS = "abcdef"
# What a page says in the place of bands and evidence where the bank has no control.
NO_YARDSTICK = (
    "This benchmark has no control attribute. So no score can be held against a model’s own noise: there is no control "
    "band, no excess and no evidence tier."
)


class Footnotes:
    """Footnotes of one page: marks are lettered in the order in which the page first uses them."""

    def __init__(self, page: str) -> None:
        self._page = page
        self._order: list[str] = []

    def mark(self, flags: Iterable[str]) -> Markup:
        """Return the marks of some flags as links to their notes, or nothing."""
        listed = list(flags)
        marks = [self._mark(flag, last=flag == listed[-1]) for flag in listed]
        return Markup('<sup class="fn">{}</sup>').format(Markup().join(marks)) if marks else Markup()

    def _mark(self, flag: str, *, last: bool) -> Markup:
        own = Markup()
        if flag not in self._order:
            self._order.append(flag)
            own = Markup(' id="use-{}"').format(flag)  # where the note leads back to
        letter = _LETTERS[self._order.index(flag)]
        return Markup('<a href="#note-{0}"{2} aria-label="Note {1}: {0}">{1}{3}</a>').format(
            flag, letter, own, "" if last else ","
        )

    @property
    def notes(self) -> list[tuple[str, str, str, str]]:
        """Return (letter, flag, text, address) of every note used so far; call it after the marks are written."""
        return [
            (_LETTERS[i], flag, FLAG_WORDS[flag], paths.relative(self._page, paths.methodology_page(FLAG_PAGES[flag])))
            for i, flag in enumerate(self._order)
        ]


@dataclass(frozen=True)
class ConceptResult:
    """One concept of one model: D(c, f) by framing on 0-100 (None: the cell does not count) and what its rows became.

    `mean` is the mean over the framings that count, or None when neither does.
    """

    concept: Concept
    framings: dict[str, float | None]
    scored: int
    refused: int
    contested: int
    error: int

    @property
    def mean(self) -> float | None:
        """D(c): the mean over the framings that count."""
        known = [v for v in self.framings.values() if v is not None]
        return sum(known) / len(known) if known else None

    @property
    def asked(self) -> bool:
        """Whether any answer of the concept is there."""
        return self.scored + self.left_out > 0

    @property
    def left_out(self) -> int:
        """Rows without a value."""
        return self.refused + self.contested + self.error

    @property
    def missing(self) -> tuple[str, ...]:
        """Framings whose cell does not count."""
        return tuple(f for f, v in self.framings.items() if v is None)


def _records(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


class View:
    """An edition's numbers as pages ask for them.

    One view serves all pages that a process makes of a run: what several pages need is looked up once and kept. Numbers
    are on presentation scale (0-100), as in the published tables, and None where the table has null.
    """

    def __init__(self, edition: Edition) -> None:
        self.edition = edition
        self.run_id = edition.run_id
        self.manifest = edition.run.manifest
        self.bank = edition.run.bank
        self.models: tuple[str, ...] = tuple(edition.run.models)
        self.withheld: frozenset[str] = frozenset(edition.standing.withheld)
        self.book = edition.scored.book

    @cached_property
    def demographic(self) -> tuple[Attribute, ...]:
        """Demographic attributes in the bank's order."""
        return tuple(a for a in self.bank.attributes if a.kind == "demographic")

    @cached_property
    def controls(self) -> tuple[Attribute, ...]:
        """Control attributes, that of the lower edge first."""
        return tuple(self.bank.attribute[a] for a in self.bank.roles.controls if a in self.bank.attribute)

    @cached_property
    def bands(self) -> bool:
        """Whether the bank has a control for each edge of the band, so that a model can have one."""
        return len(self.bank.roles.controls) == 2

    @cached_property
    def held(self) -> bool:
        """Whether the bank has a control, so that scores are held against a model's own noise."""
        return bool(self.bank.roles.controls)

    @cached_property
    def yardstick(self) -> str:
        """Why no model can have a band, in a sentence or two; empty where the bank has a control for each edge."""
        if self.bands:
            return ""
        if not self.held:
            return NO_YARDSTICK
        control = self.label(self.bank.roles.controls[0])
        return (
            f"This benchmark has one control, “{control}”. So there is no control band: excess and evidence are read "
            "against that control alone."
        )

    @cached_property
    def concepts(self) -> tuple[Concept, ...]:
        """Concepts that have pages: those of no withheld category, sorted by id."""
        kept = (c for c in self.bank.concepts if c.category not in self.withheld)
        return tuple(sorted(kept, key=lambda c: c.id.encode()))

    def concepts_of(self, attribute: str) -> list[Concept]:
        """Return an attribute's concepts that have pages."""
        return [c for c in self.bank.concepts_of(attribute, two_sided=None) if c.category not in self.withheld]

    @cached_property
    def domain(self) -> Domain:
        """The scale of every consistency chart of the run."""
        values: list[float | None] = []
        for model in self.models:
            for attribute in (*(a.id for a in self.bank.attributes), OVERALL):
                row = self.book.row(model, "consistency", attribute)
                values += [row.estimate, row.ci_low]
        return domain_of(values)

    @cached_property
    def board_domain(self) -> Domain:
        """The scale of the leaderboard, where only overall scores and bands are drawn: tighter than `domain`."""
        values: list[float | None] = []
        for model in self.models:
            overall, (low, _) = self.book.row(model, "consistency"), self.band(model)
            values += [overall.estimate, overall.ci_low, low.estimate]
        return domain_of(values)

    @cached_property
    def asked(self) -> dict[str, PlanCoverage]:
        """What was asked of each model and what became of it."""
        return plan_coverage(self.edition.scored.tables["cells"], self.manifest.repeats)

    def has_set(self, model: str, concept: str) -> bool:
        """Tell whether a model has any answer to a concept, and with it a page of the matched set."""
        return model in self.asked and concept in self.asked[model].concepts_given

    @cached_property
    def judged(self) -> tuple[str, str]:
        """Who labeled the answers of this run, and what speaks for the labels: a heading and a text."""
        if self.edition.simulated:
            return "Programs judged the answers.", "The run is simulated: no language model gave a label."
        faults = checks_failed(self.edition)
        if self.manifest.imported is not None:
            words = [panel_words(self.manifest), masking_words(self.manifest.imported)]
            return "The labels were imported.", " ".join([*words, *faults])
        text = "Group terms were masked for them, and none labeled a model of its own vendor."
        checked = "They agree well enough, and a sample was checked by hand; single labels can be wrong all the same."
        return "Machines judged the answers.", " ".join([text, *(faults or [checked])])

    @cached_property
    def banded(self) -> bool:
        """Whether any model has a control band."""
        return any(self.band(model)[0].estimate is not None for model in self.models)

    @cached_property
    def labeled(self) -> bool:
        """Whether most concepts that are scored are judged by labels and not by a score."""
        scales = [self.bank.rubric[c.rubric].scale for c in self.concepts if not c.two_sided]
        return 2 * scales.count("ordinal") > len(scales)

    def judges(self, model: str) -> int:
        """Return how many judges a model's panel has."""
        return self.manifest.model(model).panel.size

    def band(self, model: str) -> tuple[ScoreRow, ScoreRow]:
        """Return the lower and the upper edge of a model's control band."""
        return self.book.row(model, "band_low"), self.book.row(model, "band_high")

    def evidence(self, model: str, attribute: str) -> str | None:
        """Return the evidence tier of a model on an attribute."""
        return self.book.row(model, "excess", attribute).evidence

    def evidence_counts(self, model: str) -> dict[str, int]:
        """Return how many attributes of a model have each evidence tier."""
        found = [self.evidence(model, a.id) for a in self.demographic]
        return {word: found.count(word) for word in EVIDENCE}

    @cached_property
    def findings(self) -> RunFindings:
        """What the run found, from its published tables."""
        tests = _records(self.edition.scored.tables["refusal_tests"])
        return find(self.book, tests, self.models, self.demographic, self.bank.leveled, self.withheld)

    @cached_property
    def group_refusals(self) -> dict[str, tuple[GroupRefusals, ...]]:
        """By model, the attributes on which its refusals depend on the group."""
        tests = _records(self.edition.scored.tables["refusal_tests"])
        return {model: group_refusals(tests, self.book, model, self.demographic) for model in self.models}

    def group_refusal(self, model: str, attribute: str) -> GroupRefusals | None:
        """Return how a model's refusals depend on the groups of an attribute, or None where no test says so."""
        return next((f for f in self.group_refusals[model] if f.attribute.id == attribute), None)

    def line(self, model: str, attribute: str, name: str, *, kind: str | None = None) -> Line:
        """Return a model's consistency on an attribute as a chart line, its own band behind it."""
        row = self.book.row(model, "consistency", attribute)
        low, high = self.band(model)
        tier = kind or self.evidence(model, attribute)
        if kind is None and attribute in self.bank.roles.controls:
            tier = "control"
        # The word beside the line: why there is no interval comes before how sure a finding is.
        note = ""
        if row.estimate is None:
            note = "no value"
        elif row.ci_low is None and (row.n_concepts or 0) < 2:
            note = "too little"
        elif tier in MARKS:
            note = f"{MARKS[tier][2]} {tier}"
        elif tier == "control":
            note = "control"
        return Line(name, row.estimate, row.ci_low, row.ci_high, low.estimate, high.estimate, tier or "plain", note)

    def edge(self, model: str) -> str | None:
        """Return the control with the larger disparity, or the only one, to which excess is compared."""
        return self.book.edge(model, self.bank.roles)

    @cached_property
    def tiers(self) -> list[dict[str, Any]]:
        """The rows of `tiers` in rank order, unranked models last."""
        return _records(self.edition.scored.tables["tiers"])

    @cached_property
    def comparisons(self) -> list[dict[str, Any]]:
        """The rows of `comparisons`."""
        return _records(self.edition.scored.tables["comparisons"])

    @cached_property
    def tier(self) -> dict[str, dict[str, Any]]:
        """The row of `tiers` by model."""
        return {row["model"]: row for row in self.tiers}

    @cached_property
    def cells(self) -> dict[tuple[str, str], dict[tuple[str, str], dict[str, Any]]]:
        """Rows of `cells` by (model, concept), then (framing, group)."""
        found: dict[tuple[str, str], dict[tuple[str, str], dict[str, Any]]] = defaultdict(dict)
        columns = ["model", "concept", "framing", "group", "mean_value"]
        columns += ["n_scored", "n_refused", "n_contested", "n_error", "unanimous"]
        for row in _records(self.edition.scored.tables["cells"].select(columns)):
            found[row["model"], row["concept"]][row["framing"], row["group"]] = row
        return dict(found)

    @cached_property
    def disparities(self) -> dict[tuple[str, str], dict[str, dict[str, Any]]]:
        """Rows of `disparities` by (model, concept), then framing."""
        found: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
        columns = ["model", "concept", "framing", "n_groups", "disparity", "gap"]
        for row in _records(self.edition.scored.tables["disparities"].select(columns)):
            found[row["model"], row["concept"]][row["framing"]] = row
        return dict(found)

    def concept_result(self, model: str, concept: Concept) -> ConceptResult:
        """Return what one concept came to for one model."""
        rows = self.cells.get((model, concept.id), {}).values()
        by_framing = self.disparities.get((model, concept.id), {})
        values = {
            f: None if row["disparity"] is None else 100 * row["disparity"] for f, row in sorted(by_framing.items())
        }
        totals = [sum(row[f"n_{status}"] for row in rows) for status in ("scored", "refused", "contested", "error")]
        return ConceptResult(concept, values, *totals)

    def concept_results(self, model: str, attribute: str) -> list[ConceptResult]:
        """Return an attribute's concepts for one model, largest disparity first, those without a value last."""
        found = [self.concept_result(model, c) for c in self.concepts_of(attribute) if not c.two_sided]
        # Rounded, so that two means which differ in their last bit keep the order of their ids on every machine.
        return sorted(found, key=lambda r: (r.mean is None, -round(r.mean or 0, 10), r.concept.id.encode()))

    def label(self, attribute: str) -> str:
        """Return an attribute's label."""
        found = self.bank.attribute.get(attribute)
        return found.label if found is not None else attribute  # the rules may name one that the bank lacks

    @cached_property
    def labels(self) -> dict[str, str]:
        """The label of each attribute by its id."""
        return {a.id: a.label for a in self.bank.attributes}

    def lines(self, model: str) -> Sequence[Line]:
        """Return the lines of a model's own chart: demographic attributes, then controls."""
        return [self.line(model, a.id, a.label) for a in (*self.demographic, *self.controls)]
