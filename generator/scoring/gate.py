"""Whether a run may be published, and as what: as it is, as a preview, or without the failing categories.

See contract: publication, "Gate"; methodology: audit, "Conditions of publication".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from generator.runs.reader import Run
from generator.schema.audit_draw import LEAST_SIZE
from generator.schema.errors import CheckError
from generator.schema.tables import RUN_WIDE
from generator.scoring.reasons import (
    AuditDiverges,
    AuditMissing,
    AuditTooSmall,
    JudgesDisagree,
    NoRankedModel,
    Reason,
    RowsAbsent,
    RubricReason,
    RubricUnaudited,
    TooFewPairs,
    in_words,
)
from generator.scoring.run import Scored
from generator.stats.audit import diverges

StandingState = Literal["published", "preview", "withheld"]
PASSES = ("kappa", "pabak")


@dataclass(frozen=True)
class Standing:
    """What a run is published as.

    `reasons` is what speaks against it; a simulated run is published in spite of them. `withheld` names the categories
    left out.
    """

    state: StandingState
    reasons: tuple[Reason, ...]
    withheld: frozenset[str] = frozenset()


def standing_of(run: Run, scored: Scored, *, preview: bool, withhold: bool) -> Standing:
    """Decide what a run may be published as.

    Args:
        run: the run as read and checked.
        scored: its scores, with or without categories withheld: the gate reads only tables that withholding leaves
            alone.
        preview: publish a live run that fails a condition, with the reasons on every page.
        withhold: leave out the categories of rubrics that fail.

    Raises:
        CheckError: a live run fails a condition that neither option meets, or every category fails. It names every
            reason.
    """
    reasons = (*_absent(run), *_ranked(scored), *_gate(scored), *_audit(run, scored))
    withheld = _categories(run, reasons) if withhold else frozenset()
    # Withholding meets the reasons of a rubric and no other.
    left = [reason for reason in reasons if not withhold or not isinstance(reason, RubricReason)]
    if withheld == {c.category for c in run.bank.concepts} and withheld:
        nothing = f"run {run.manifest.run_id}: every category fails; nothing is left to publish"
        raise CheckError(nothing, *map(in_words, reasons))
    if left and not run.manifest.simulated:
        if preview:
            return Standing("preview", reasons, withheld)
        raise CheckError(*(f"run {run.manifest.run_id}: {in_words(reason)}" for reason in left), _advice(left))
    # A simulated run gets here in spite of its reasons.
    return Standing("withheld" if withheld else "published", reasons, withheld)


def _advice(left: list[Reason]) -> str:
    if all(isinstance(reason, RubricReason) for reason in left):
        return "publish with --preview to show it with these reasons, or --withhold to leave the failing categories out"
    return "publish with --preview to show it with these reasons"


def _categories(run: Run, reasons: tuple[Reason, ...]) -> frozenset[str]:
    """Return the categories whose rubric fails."""
    rubrics = {reason.rubric for reason in reasons if isinstance(reason, RubricReason)}
    return frozenset(c.category for c in run.bank.concepts if c.rubric in rubrics)


def _absent(run: Run) -> list[Reason]:
    missing = {model: n for model, n in run.absent.items() if n}
    return [RowsAbsent(missing=missing)] if missing else []


def _ranked(scored: Scored) -> list[Reason]:
    ranks = scored.tables["tiers"]["rank"].to_pylist()
    return [] if any(rank is not None for rank in ranks) else [NoRankedModel()]


def _gate(scored: Scored) -> list[Reason]:
    """Return the rubrics whose primary judges do not agree well enough, or on too few rows."""
    found: list[Reason] = []
    for row in scored.tables["agreement"].to_pylist():
        # Agreement by vendor is published and blocks nothing.
        if row["vendor"] != RUN_WIDE or row["gate"] in PASSES:
            continue
        if row["gate"] == "insufficient":
            found.append(TooFewPairs(**{name: row[name] for name in ("rubric", "n_on_scale", "n_pairs")}))
        else:
            figures = {name: row[name] for name in ("rubric", "kappa", "pabak", "modal_prevalence")}
            found.append(JudgesDisagree(**figures))
    return found


def _audit(run: Run, scored: Scored) -> list[Reason]:
    """Return what is wrong with the human audit: missing, too small, a rubric not covered or diverging."""
    if run.audit is None:
        return [AuditMissing()]
    found: list[Reason] = []
    if len(run.audit) < LEAST_SIZE:
        found.append(AuditTooSmall(rows=len(run.audit)))
    summary = {row["rubric"]: row for row in scored.tables["audit_summary"].to_pylist()}
    for rubric in sorted({c.rubric for c in run.bank.concepts}, key=str.encode):
        row = summary.get(rubric)
        if row is None or not row["n"]:
            found.append(RubricUnaudited(rubric=rubric))
        elif diverges(row["agreement"], row["ci_high"]):
            found.append(AuditDiverges(rubric=rubric, agreement=row["agreement"], ci_high=row["ci_high"]))
    return found
