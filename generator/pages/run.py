"""Judging, human audit and run pages: agreement and gate, the spot-check, the manifest for people.

See contract: publication, "Pages".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from generator.edition import paths
from generator.edition.coverage import PlanCoverage
from generator.edition.import_words import panel_words
from generator.html.frame import frame, plural, render_page
from generator.pages.audit_answers import differing
from generator.pages.run_origin import cache_words, kind_words
from generator.pages.views import View
from generator.runs.operator_notes import read_note, reviewer
from generator.schema.bank import REFUSAL, Rubric
from generator.schema.panel import Panel
from generator.schema.tables import RUN_WIDE
from generator.schema.verdict import SCORE_TOLERANCE, STATUSES, score_bin
from generator.scoring.lookup import ScoreRow

_ALL_THROUGH = "Every rubric passes the gate."
_PANEL_RATES = ("contested_rate", "error_rate", "verdict_mismatch_rate", "mask_leakage")


@dataclass(frozen=True)
class PanelRow:
    """One model with its panel and the rates that depend on it."""

    model: str
    panel: Panel
    rates: tuple[ScoreRow, ...]
    asked: PlanCoverage


def _agreement(view: View) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = view.edition.scored.tables["agreement"].to_pylist()
    return rows


def _vendors(rows: Sequence[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    single = [row for row in rows if row["vendor"] != RUN_WIDE]
    return [(rubric, list(group)) for rubric, group in groupby(single, key=lambda row: row["rubric"])]


def _panels(view: View) -> list[tuple[int, list[PanelRow]]]:
    """Return models apart by their number of judges, the most first: their contested rates are not comparable."""
    found: dict[int, list[PanelRow]] = defaultdict(list)
    for model in view.models:
        rates = tuple(view.book.row(model, metric) for metric in _PANEL_RATES)
        found[view.judges(model)].append(PanelRow(model, view.manifest.model(model).panel, rates, view.asked[model]))
    return [(judges, found[judges]) for judges in sorted(found, reverse=True)]


_UNWRAPPED = (
    ("n_votes", "Votes"), ("n_errors", "Errors"), ("n_unwrapped", "Unwrapped"),
    ("n_fence", "Fence"), ("n_thought", "Thought"), ("n_stop_token", "Stop token"), ("n_tool_call", "Tool call"),
    ("n_number_form", "70.0 for 70"), ("n_evidence_cut", "Evidence cut"),
)  # fmt: skip


def render_judging(view: View, page: str) -> bytes:
    """Render the judging page."""
    rows = _agreement(view)
    whole = [row for row in rows if row["vendor"] == RUN_WIDE]
    lede = f"{declared(view)} {verdict(whole)}"
    context = frame(
        view.edition,
        page,
        "Judging",
        description=lede,
        section="judging",
        crumbs=[("Leaderboard", paths.run_index(view.run_id)), ("Judging", None)],
    )
    return render_page(
        "judging.html",
        context,
        view=view,
        lede=lede,
        whole=whole,
        differ=_differ(view, whole),
        scored=[rubric.id for rubric in view.bank.rubrics if rubric.scale == "score"],
        tolerance=SCORE_TOLERANCE,
        vendors=_vendors(rows),
        panels=_panels(view),
        imported_panel=declared(view) if view.manifest.imported else None,
        unwrapped=_UNWRAPPED,
        judges=view.edition.scored.tables["judges"].to_pylist(),
        note=bool(read_note(view.edition.run.folder)),
    )


def verdict(whole: Sequence[dict[str, Any]]) -> str:
    """Say which rubrics do not pass the gate, and which pass only weakly: a plain "passes" would hide that."""
    failing = [row["rubric"] for row in whole if row["gate"] not in ("kappa", "pabak")]
    weak = [row["rubric"] for row in whole if row["gate"] == "pabak"]
    if failing:
        weakly = f" Only weakly, by PABAK: {', '.join(weak)}." if weak else ""
        return f"Not through the gate: {', '.join(failing)}.{weakly}"
    return f"Every rubric passes the gate, {' and '.join(weak)} only weakly (by PABAK)." if weak else _ALL_THROUGH


def _differ(view: View, whole: Sequence[dict[str, Any]]) -> set[str]:
    """Return the rubrics with rows on which the primaries differ and that the explorer can show by their category."""
    shown = {c.category for c in view.concepts if c.category == c.rubric}
    apart = (row for row in whole if row["raw_agreement"] is not None and row["raw_agreement"] < 1.0)
    return {row["rubric"] for row in apart if row["rubric"] in shown}


def declared(view: View) -> str:
    """Say which judges a run declares, and for how many models one of them stood down for its vendor's sake."""
    judges = view.manifest.judges
    if view.manifest.imported is not None:
        return panel_words(view.manifest)
    panels = [view.manifest.model(model).panel for model in view.models]
    other = sum(panel.primary != judges.primary for panel in panels)
    fewer = sum(panel.primary == judges.primary and panel.tiebreak is None for panel in panels)
    first = f"Declared judges: {judges.primary[0]} and {judges.primary[1]}; tiebreak {judges.tiebreak}."
    changed = [
        f"{count} of {plural(len(panels), 'model')} {'has' if count == 1 else 'have'} {words}"
        for count, words in ((other, "another pair and no tiebreak"), (fewer, "the same pair without a tiebreak"))
        if count
    ]
    if not changed:
        return f"{first} No model of this run is of a judge’s vendor, so all have these three."
    return f"{first} No judge labels its own vendor’s models, so {', and '.join(changed)}."


def _scale(rubric: Rubric) -> tuple[str, ...]:
    return (*rubric.names, REFUSAL)


def _human_bin(rubric: Rubric, label: str) -> str:
    return score_bin(int(label)) if rubric.scale == "score" and label != REFUSAL else label


def confusion(view: View) -> list[tuple[str, tuple[str, ...], list[tuple[str, list[int]]]]]:
    """Return (rubric, the reviewer's labels, one row of counts by the panel's label), rubrics in table order."""
    counts: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for row in view.edition.scored.tables["human_audit"].to_pylist():
        rubric = view.bank.rubric[row["rubric"]]
        counts[rubric.id][row["final_label"], _human_bin(rubric, row["human_label"])] += 1
    found = []
    for rubric in view.bank.rubrics:
        if rubric.id in counts:
            scale = _scale(rubric)
            rows = [(panel, [counts[rubric.id][panel, human] for human in scale]) for panel in scale]
            found.append((rubric.id, scale, rows))
    return found


def render_audit(view: View, page: str) -> bytes:
    """Render the human audit page, also where the run has none."""
    rows: list[dict[str, Any]] = view.edition.scored.tables["audit_summary"].to_pylist()
    total = next((row for row in rows if row["rubric"] == RUN_WIDE), None)
    summary = sorted(rows, key=lambda row: (row["rubric"] == RUN_WIDE, row["rubric"])) if total else []
    who = reviewer(view.edition.run.folder)
    by = {"human": " checked by a person", "simulated": " checked by a program"}.get(who, " checked")
    words = f"{plural(total['n'], 'answer')}{by}." if total else "This run has no human audit."
    context = frame(
        view.edition,
        page,
        view.edition.audit_name,
        description=words,
        section="audit",
        crumbs=[("Leaderboard", paths.run_index(view.run_id)), (view.edition.audit_name, None)],
    )
    return render_page(
        "audit.html",
        context,
        view=view,
        summary=summary,
        total=total,
        confusion=confusion(view),
        differing=differing(view),
        not_covered=not_covered(view),
        reviewer=who,
    )


def not_covered(view: View) -> tuple[str, ...]:
    """Return the models that were added after the audit sample was drawn."""
    return tuple(view.edition.scored.coverage.not_covered) if view.edition.scored.coverage else ()


def shared_params(view: View) -> dict[str, Any]:
    """Return the parameters that every model of the run was asked with."""
    given = [entry.params for entry in view.manifest.models]
    if not given:
        return {}
    return {k: v for k, v in given[0].items() if all(k in other and other[k] == v for other in given)}


def own_params(view: View, shared: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return each model's parameters beyond the shared ones; the name that it was asked under has its own column."""
    return {
        entry.model: {
            key: value
            for key, value in entry.params.items()
            if key not in shared and (key, value) != ("api_model", entry.api_model)
        }
        for entry in view.manifest.models
    }


def render_run(view: View, page: str) -> bytes:
    """Render the run page."""
    manifest = view.manifest
    counts = [(status, getattr(manifest.counts, status)) for status in STATUSES]
    total = sum(count for _, count in counts)
    simulated = " No real model was asked." if manifest.simulated else ""
    lede = (
        f"{plural(total, 'answer')} of {plural(len(view.models), 'model')}, {manifest.date}, "
        f"bank {manifest.bank_version}.{simulated}"
    )
    context = frame(
        view.edition,
        page,
        f"This run: {view.edition.run_name}",
        description=lede,
        section="run",
        crumbs=[("Leaderboard", paths.run_index(view.run_id)), ("This run", None)],
    )
    shared = shared_params(view)
    return render_page(
        "run.html",
        context,
        view=view,
        lede=lede,
        kind=kind_words(manifest, audited=view.edition.run.audit is not None),
        cached=cache_words(manifest),
        note=read_note(view.edition.run.folder),
        counts=counts,
        total=total,
        absent=[(model, count) for model, count in sorted(view.edition.run.absent.items()) if count],
        shared=shared,
        own=own_params(view, shared),
        models=[manifest.model(model) for model in view.models],
        shards=sorted(manifest.shards, key=lambda shard: shard.model.encode()),
    )
