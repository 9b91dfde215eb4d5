"""The facts that prose quotes: whatever a page of content/pages says of a run is computed here from its files.

Reads an edition (run, tables, standing); returns the names that a Markdown page may use between `<<` and `>>`. Texts
are plain strings, which `markdown.plain` escapes on the way into the page; `Safe` marks Markdown or HTML of our own.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from generator.edition import paths
from generator.edition.edition import Edition
from generator.html.frame import cell, concept_title, number, score
from generator.html.markdown import Safe, plain
from generator.pages.rule_facts import rule_facts
from generator.runs.operator_notes import reviewer
from generator.schema.bank import BINS, Attribute, Bank
from generator.schema.tables import RUN_WIDE
from generator.scoring.lookup import ScoreBook, ScoreRow

_PIPE = "&#124;"


def element(markup: str) -> Safe:
    """Return an HTML element as a fact. Its pipes are references: as they are they would end a table cell."""
    return Safe(str.replace(markup, "|", _PIPE))  # str.replace: Markup would escape the entity


def ends(row: ScoreRow, digits: int = 1) -> Safe:
    """Return the two ends of a row's interval, or a dash when it has none."""
    if row.ci_low is None:
        return Safe(number(None))
    return element(f"{score(row, 'ci_low', digits)} to {score(row, 'ci_high', digits)}")


def verbatim(text: str) -> Safe:
    """Return a text as escaped HTML on one line, for use inside our own HTML blocks."""
    return Safe(escape(text).replace("\n", "&#10;"))


@dataclass(frozen=True)
class Links:
    """Addresses as one page of prose writes them; `page` is its path below dist/."""

    page: str
    run_id: str

    def to(self, name: str, anchor: str = "") -> Safe:
        """Return the address of a methodology page, or of a page of the run, such as `run-judging`."""
        return Safe(paths.relative(self.page, self._target(name) + (f"#{anchor}" if anchor else "")))

    def _target(self, name: str) -> str:
        special: dict[str, Callable[[], str]] = {
            "run-leaderboard": lambda: paths.run_index(self.run_id),
            "run-data": lambda: paths.data_page(self.run_id),
            "run-dictionary": lambda: paths.data_file(self.run_id, "DATA_DICTIONARY.html"),
            "run-explorer": lambda: paths.explorer_page(self.run_id),
            "run-run": lambda: paths.run_page(self.run_id, "run"),
            "run-judging": lambda: paths.run_page(self.run_id, "judging"),
            "run-audit": lambda: paths.run_page(self.run_id, "audit"),
            "runs": lambda: "runs/index.html",
            "about": lambda: "about.html",
            "changelog": lambda: "changelog.html",
        }
        return special[name]() if name in special else paths.methodology_page(name)

    def link(self, text: str, kind: str, item: str = "") -> Safe:
        """Return a Markdown link to a page of the run: run, model, attribute, concept or, as model/concept, set."""
        targets: dict[str, Callable[[], str]] = {
            "run": lambda: paths.run_index(self.run_id),
            "model": lambda: paths.model_page(self.run_id, item),
            "attribute": lambda: paths.attribute_page(self.run_id, item),
            "concept": lambda: paths.concept_page(self.run_id, item),
        }
        return Safe(f"[{plain(text)}]({paths.relative(self.page, targets[kind]())})")


@dataclass(frozen=True)
class RunFacts:
    """A run's plain figures."""

    id: str
    date: str
    simulated: bool
    bank_version: str
    bank_sha256: str
    harness_sha: str
    audit_seed: str
    repeats: int
    supersedes: str | None
    models: tuple[str, ...]
    primary: tuple[str, ...]
    tiebreak: str | None
    two_judges: tuple[str, ...]
    three_judges: tuple[str, ...]
    concepts: int
    two_sided: int
    rows_per_model: int
    rows_planned: int
    rows: int
    swapped: tuple[str, ...]


def _planned(bank: Bank, attribute: Attribute, repeats: int) -> int:
    concepts = len(bank.concepts_of(attribute.id, two_sided=None))
    return concepts * len(bank.framings) * len(attribute.groups) * repeats


def run_facts(edition: Edition, book: ScoreBook) -> RunFacts:
    """Return the figures of the edition's run."""
    manifest, bank = edition.run.manifest, edition.run.bank
    each = sum(_planned(bank, a, manifest.repeats) for a in bank.attributes)
    by_judges = {m.model: m.panel.size for m in manifest.models}
    models = tuple(sorted(by_judges, key=str.encode))
    return RunFacts(
        id=manifest.run_id,
        date=manifest.date,
        simulated=manifest.simulated,
        bank_version=manifest.bank_version,
        bank_sha256=manifest.bank_sha256,
        harness_sha=manifest.harness_sha,
        audit_seed=str(manifest.seeds.audit),  # a text, so that it is quoted without separators
        repeats=manifest.repeats,
        supersedes=manifest.supersedes,
        models=models,
        primary=manifest.judges.primary,
        tiebreak=manifest.judges.tiebreak,
        two_judges=tuple(m for m in models if by_judges[m] == 2),
        three_judges=tuple(m for m in models if by_judges[m] == 3),
        concepts=len(bank.concepts),
        two_sided=sum(c.two_sided for c in bank.concepts),
        rows_per_model=each,
        rows_planned=each * len(models),
        rows=sum(s.rows for s in manifest.shards),
        swapped=tuple(m for m in models if "swapped" in book.row(m, "band_low").flags),
    )


def attribute_facts(bank: Bank, repeats: int) -> list[dict[str, Any]]:
    """Return id, label, kind, groups, n_concepts, ceiling and rows of every attribute, in the bank's order."""
    found = []
    for a in bank.attributes:
        concepts = bank.concepts_of(a.id, two_sided=None)
        found.append(
            {
                "id": a.id,
                "label": a.label,
                "kind": a.kind,
                "groups": [g.label for g in a.groups],
                "n_concepts": len(concepts),
                "ceiling": sum(c.ceiling for c in concepts),
                "rows": _planned(bank, a, repeats),
            }
        )
    return found


def _control(bank: Bank, control: str | None) -> dict[str, Any] | None:
    """Return label and groups of a control; None where the bank lacks it."""
    found = bank.attribute.get(control or "")
    return {"label": found.label, "groups": [g.label for g in found.groups]} if found is not None else None


def _quotas(bank: Bank) -> list[dict[str, Any]]:
    """Return, for every category, how many concepts the rules ask of an attribute of each kind; none without quotas."""
    quotas = bank.rules.quotas
    return (
        []
        if not quotas
        else [
            {"category": c, **{kind: quotas.get(kind, {}).get(c, 0) for kind in ("demographic", "control")}}
            for c in bank.categories
        ]
    )


def bank_facts(bank: Bank) -> dict[str, Any]:
    """Return what the bank measures, by what its rules say.

    demographic, controls: labels, the control of the lower edge first. lower, upper: the control of that edge with its
    groups, or None. framings, leveled, compliance: ids, the latter two of categories. group_counts: of the attributes,
    smallest first.
    """
    label, roles = {a.id: a.label for a in bank.attributes}, bank.roles
    return {
        "demographic": [label.get(a, a) for a in roles.demographic],
        "controls": [label.get(a, a) for a in roles.controls],
        "lower": _control(bank, roles.band_lower),
        "upper": _control(bank, roles.band_upper),
        "framings": list(bank.framings),
        "group_counts": sorted(len(a.groups) for a in bank.attributes),
        "quotas": _quotas(bank),
        "ceiling_share": Safe(number(100 * bank.rules.ceiling_share, 0)) if bank.rules.ceiling_share < 1 else None,
        "leveled": list(bank.leveled),
        "compliance": [c for c in bank.categories if c in bank.compliance],
    }


def quota_rows(bank: Bank) -> list[dict[str, Any]]:
    """Return, for every category, how many concepts each attribute has of it."""
    counts = Counter((c.category, c.attribute) for c in bank.concepts)
    return [{"category": c, "counts": [counts[c, a.id] for a in bank.attributes]} for c in bank.categories]


def rubric_facts(bank: Bank) -> list[dict[str, Any]]:
    """Return the rubrics with label values as short text."""
    return [
        {
            "id": r.id,
            "labels": [{"label": item.label, "value": f"{item.value:g}"} for item in r.labels],
            "instruction": r.instruction,
            "judge_prompt": r.judge_prompt,
            "sha256": r.sha256,
        }
        for r in bank.rubrics
    ]


def example_set(bank: Bank) -> dict[str, Any] | None:
    """Return the rendered prompts of the first demographic concept in the bank's first framing."""
    for attribute in bank.attributes:
        concepts = bank.concepts_of(attribute.id)
        if attribute.kind == "demographic" and concepts:
            return _paired_prompts(bank, attribute, concepts[0].id)
    return None


def _paired_prompts(bank: Bank, attribute: Attribute, concept_id: str) -> dict[str, Any]:
    concept, framing, prompts = bank.concept[concept_id], bank.framings[0], []
    for group in bank.groups_of(attribute.id):
        shown = bank.render(concept, framing, group)
        parts: dict[str, Any] = {"before": shown.text[: shown.start], "np": shown.np, "after": shown.text[shown.end :]}
        parts |= {"start": shown.start, "end": shown.end}
        prompts.append({"label": group.label, **parts})
    return {
        "concept": concept.id,
        "title": concept_title(concept.id),
        "framing": framing,
        "attribute": attribute.label,
        "prompts": prompts,
    }


def band_facts(book: ScoreBook) -> dict[str, Safe] | None:
    """Return the run's mean band with its intervals, or None."""
    low, high = book.row(RUN_WIDE, "band_low"), book.row(RUN_WIDE, "band_high")
    if low.estimate is None or high.estimate is None:
        return None
    return {"low": element(score(low)), "low_ci": ends(low), "high": element(score(high)), "high_ci": ends(high)}


def bands_facts(book: ScoreBook, models: tuple[str, ...]) -> dict[str, Safe] | None:
    """Return the lowest and the highest edge of the models' own bands, or None where no model has a band."""
    rows = [book.row(model, f"band_{end}") for model in models for end in ("low", "high")]
    known = sorted((row for row in rows if row.estimate is not None), key=lambda row: float(row.estimate or 0.0))
    return {"low": element(score(known[0])), "high": element(score(known[-1]))} if known else None


def tier_facts(edition: Edition) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the tiers with founder, interval and size, and the models without one."""
    rows = edition.scored.tables["tiers"].to_pylist()
    found = []
    for row in rows:
        if row["model"] == row["founder"]:
            low, high = (cell("tiers", row["model"], f"ci_{end}", row[f"ci_{end}"], 1) for end in ("low", "high"))
            size = sum(other["tier"] == row["tier"] for other in rows)
            ci = element(f"{low} to {high}")
            found.append({"tier": row["tier"], "founder": row["founder"], "ci": ci, "n": size})
    return sorted(found, key=lambda t: int(t["tier"])), [r["model"] for r in rows if r["tier"] is None]


def gate_facts(edition: Edition) -> list[dict[str, Any]]:
    """Return the gate table: one row a rubric, all vendors."""
    found = []
    for row in edition.scored.tables["agreement"].to_pylist():
        if row["vendor"] != RUN_WIDE:
            continue
        key = f"{row['rubric']},{RUN_WIDE}"
        shown = {
            name: element(cell("agreement", key, name, row[name], digits))
            for name, digits in (("n_pairs", 0), ("n_on_scale", 0), ("kappa", 2), ("pabak", 2))
        }
        prevalence = element(cell("agreement", key, "modal_prevalence", row["modal_prevalence"], 3))
        words = {"modal_label": row["modal_label"] or "–", "gate": row["gate"] or "–"}
        found.append({"rubric": row["rubric"], **shown, "prevalence": prevalence, **words})
    return found


def _estimates(book: ScoreBook, metric: str, models: tuple[str, ...], bank: Bank) -> list[ScoreRow]:
    rows = (book.row(m, metric, a) for m in models for a in bank.roles.demographic)
    return [row for row in rows if row.estimate is not None]


def mde_facts(book: ScoreBook, models: tuple[str, ...], bank: Bank) -> dict[str, Safe] | None:
    """Return the smallest, middle and largest minimum detectable effect, or None."""
    rows = sorted(_estimates(book, "mde", models, bank), key=lambda r: float(r.estimate or 0.0))
    if not rows:
        return None
    middle = statistics.median(float(r.estimate or 0.0) for r in rows)
    low, high = element(score(rows[0])), element(score(rows[-1]))
    return {"low": low, "high": high, "median": Safe(number(middle))}


def level_facts(book: ScoreBook, models: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the lowest and highest overall favorability and the models whose overall level stands apart, or None."""
    rows = [row for row in (book.row(m, "favorability") for m in models) if row.estimate is not None]
    if not rows:
        return None
    rows.sort(key=lambda row: float(row.estimate or 0.0))
    gaps = [book.row(m, "favorability_gap") for m in models]
    apart = [{"model": plain(row.model), "word": row.evidence} for row in gaps if row.evidence]
    return {"low": element(score(rows[0])), "high": element(score(rows[-1])), "apart": apart}


def evidence_facts(book: ScoreBook, models: tuple[str, ...], bank: Bank) -> dict[str, int] | None:
    """Return how many (model, attribute) pairs have each evidence tier, or None when none has."""
    tiers = Counter(r.evidence for r in _estimates(book, "excess", models, bank) if r.evidence)
    names = ("flagged", "suggestive", "unresolved")
    return {"total": tiers.total(), **{n: tiers[n] for n in names}} if tiers else None


def audit_facts(edition: Edition) -> dict[str, Any] | None:
    """Return the overall human audit, or None when the run has none."""
    for row in edition.scored.tables["audit_summary"].to_pylist():
        if row["rubric"] == RUN_WIDE and row["n"]:
            low, high = (cell("audit_summary", RUN_WIDE, f"ci_{end}", row[f"ci_{end}"], 3) for end in ("low", "high"))
            agreement = cell("audit_summary", RUN_WIDE, "agreement", row["agreement"], 3)
            ci = element(f"{low} to {high}")
            who = {"human": "a person", "simulated": "a program"}.get(reviewer(edition.run.folder), "")
            return {
                "n": row["n"],
                "n_agree": row["n_agree"],
                "agreement": element(agreement),
                "ci": ci,
                "reviewer": who,
            }
    return None


def facts_of(edition: Edition, page: str) -> dict[str, Any]:
    """Return every name that a page of prose may use; `page` is its path below dist/."""
    book = edition.scored.book
    run, bank = run_facts(edition, book), edition.run.bank
    links, (tiers, unranked) = Links(page, run.id), tier_facts(edition)
    return {
        "to": links.to,
        "link": links.link,
        "verbatim": verbatim,
        "run": run,
        "attributes": attribute_facts(bank, run.repeats),
        **bank_facts(bank),
        "quota_rows": quota_rows(bank),
        "rubrics": rubric_facts(bank),
        "bins": BINS,
        "example": example_set(bank),
        "band": band_facts(book),
        "bands": bands_facts(book, run.models),
        "tiers": tiers,
        "unranked": unranked,
        "gate": gate_facts(edition),
        "mde": mde_facts(book, run.models, bank),
        "level": level_facts(book, run.models),
        "evidence": evidence_facts(book, run.models, bank),
        "audit": audit_facts(edition),
        "not_covered": list(coverage.not_covered) if (coverage := edition.scored.coverage) else [],
        "counts": edition.run.manifest.counts,
        "rules": rule_facts(bank),
        "site": edition.site,
    }
