"""Whether a run may be published, and as what: as it is, as a preview, or without failing categories.

See contract: publication, "Gate".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from generator.runs.reader import Run
from generator.schema.audit_draw import LEAST_SIZE
from generator.schema.errors import CheckError
from generator.schema.tables import RUN_WIDE
from generator.scoring.run import Scored
from generator.stats.agreement import KAPPA_AT, LEAST_PAIRS, PABAK_AT
from generator.stats.audit import diverges

StandingState = Literal["published", "preview", "withheld"]
PASSES = ("kappa", "pabak")


@dataclass(frozen=True)
class Standing:
    """What a run is published as.

    reasons: what speaks against it, empty where nothing does; a simulated run is published all the same. withheld: the
    categories left out.
    """

    state: StandingState
    reasons: tuple[str, ...]
    withheld: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Finding:
    """One reason; `rubric` names the rubric whose categories may be withheld for it."""

    reason: str
    rubric: str | None = None


def standing_of(run: Run, scored: Scored, *, preview: bool, withhold: bool) -> Standing:
    """Return what a run may be published as.

    `scored` is the run's scores, with or without categories withheld. Raises CheckError (exit 1) with every reason
    where a live run may not be published as asked.
    """
    findings = [*_absent(run), *_gate(scored), *_audit(run, scored)]
    withheld = _categories(run, findings) if withhold else frozenset()
    left = [f for f in findings if f.rubric is None or not withhold]
    reasons = tuple(f.reason for f in findings)
    if withheld == {c.category for c in run.bank.concepts} and withheld:
        raise CheckError(f"run {run.manifest.run_id}: every category fails; nothing is left to publish", *reasons)
    if left and not run.manifest.simulated:
        if preview:
            return Standing("preview", reasons, withheld)
        raise CheckError(*(f"run {run.manifest.run_id}: {f.reason}" for f in left), _advice(left))
    return Standing("withheld" if withheld else "published", reasons, withheld)


def _advice(left: list[_Finding]) -> str:
    if all(f.rubric is not None for f in left):
        return "publish with --preview to show it with these reasons, or --withhold to leave the failing categories out"
    return "publish with --preview to show it with these reasons"


def _categories(run: Run, findings: list[_Finding]) -> frozenset[str]:
    rubrics = {f.rubric for f in findings}
    return frozenset(c.category for c in run.bank.concepts if c.rubric in rubrics)


def _absent(run: Run) -> list[_Finding]:
    missing = {model: n for model, n in run.absent.items() if n}
    if not missing:
        return []
    named = ", ".join(f"{model} {n:,}" for model, n in sorted(missing.items())[:5])
    more = f" and {len(missing) - 5:,} more models" if len(missing) > 5 else ""
    return [_Finding(f"{sum(missing.values()):,} planned rows are absent ({named}{more})")]


def _gate(scored: Scored) -> list[_Finding]:
    """Return the rubrics whose primary judges do not agree well enough, or on too few rows."""
    found = []
    for row in scored.tables["agreement"].to_pylist():
        if row["vendor"] != RUN_WIDE or row["gate"] in PASSES:
            continue
        if row["gate"] == "insufficient":
            pairs = f"{row['n_on_scale']:,} on-scale pairs of {row['n_pairs']:,}"
            seen = f"{pairs}, at least {LEAST_PAIRS} and half are needed"
        else:
            kappa = "undefined" if row["kappa"] is None else f"{row['kappa']:.3f}"
            seen = (
                f"kappa {kappa} is below {KAPPA_AT:.2f}, and PABAK {row['pabak']:.3f} at a prevalence of "
                f"{row['modal_prevalence']:.1%} does not stand in (PABAK {PABAK_AT:.2f} above 90 %)"
            )
        found.append(_Finding(f"agreement gate, rubric {row['rubric']}: {seen}", row["rubric"]))
    return found


def _audit(run: Run, scored: Scored) -> list[_Finding]:
    """Return what is wrong with the human audit: missing, too small, a rubric not covered or diverging."""
    if run.audit is None:
        return [_Finding("the human audit is missing (audit.csv)")]
    found = []
    if len(run.audit) < LEAST_SIZE:
        found.append(_Finding(f"the human audit has {len(run.audit):,} rows; at least {LEAST_SIZE} are needed"))
    summary = {row["rubric"]: row for row in scored.tables["audit_summary"].to_pylist()}
    for rubric in sorted({c.rubric for c in run.bank.concepts}, key=str.encode):
        row = summary.get(rubric)
        if row is None or not row["n"]:
            found.append(_Finding(f"the human audit covers no row of rubric {rubric}", rubric))
        elif diverges(row["agreement"], row["ci_high"]):
            seen = f"agreement {row['agreement']:.3f}, upper end {row['ci_high']:.3f}"
            found.append(_Finding(f"the human audit diverges on rubric {rubric}: {seen}", rubric))
    return found
