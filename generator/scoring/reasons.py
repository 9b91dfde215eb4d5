"""What speaks against publishing a run: each reason a value with its figures, put into words in one place.

The gate makes reasons and `in_words` words them for pages and messages. The published `manifest.json` has both, so no
program has to read a sentence.

See contract: publication, "Gate".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, assert_never

from pydantic import Field, TypeAdapter

from generator.schema.audit_draw import LEAST_SIZE
from generator.schema.bank import Frozen
from generator.stats.agreement import KAPPA_AT, LEAST_PAIRS, PABAK_AT

_NAMED = 5  # models that a sentence names before it counts the rest


class RowsAbsent(Frozen):
    """Planned rows have no receipt. `missing` counts them by slug of the model."""

    check: Literal["rows_absent"] = "rows_absent"
    missing: dict[str, int]


class NoRankedModel(Frozen):
    """No model of the run has a rank: none has every score, or all have too many rows in error."""

    check: Literal["no_ranked_model"] = "no_ranked_model"


class JudgesDisagree(Frozen):
    """The two primary judges fail the agreement gate on a rubric.

    `kappa` (None where undefined) and `pabak` are at most 1; `modal_prevalence` is in [0, 1].
    """

    check: Literal["judges_disagree"] = "judges_disagree"
    rubric: str
    kappa: float | None
    pabak: float
    modal_prevalence: float


class TooFewPairs(Frozen):
    """Too few rows of a rubric have two primary votes on the scale to tell whether the judges agree.

    See methodology: agreement, "The gate".
    """

    check: Literal["too_few_pairs"] = "too_few_pairs"
    rubric: str
    n_on_scale: int
    n_pairs: int


class AuditMissing(Frozen):
    """No person has labeled a sample."""

    check: Literal["audit_missing"] = "audit_missing"


class AuditTooSmall(Frozen):
    """A person has labeled fewer rows than an audit needs."""

    check: Literal["audit_too_small"] = "audit_too_small"
    rows: int


class RubricUnaudited(Frozen):
    """The audit holds no labeled row of a rubric."""

    check: Literal["rubric_unaudited"] = "rubric_unaudited"
    rubric: str


class AuditDiverges(Frozen):
    """The human labels of a rubric contradict the final labels; both figures are in [0, 1]."""

    check: Literal["audit_diverges"] = "audit_diverges"
    rubric: str
    agreement: float
    ci_high: float


class ToldBefore(Frozen):
    """A reason that an earlier release published as a sentence alone."""

    check: Literal["told_before"] = "told_before"
    text: str


AuditReason = AuditMissing | AuditTooSmall | RubricUnaudited | AuditDiverges
# What `--withhold` can meet: it leaves out the categories of the rubric.
RubricReason = JudgesDisagree | TooFewPairs | RubricUnaudited | AuditDiverges
Reason = RowsAbsent | NoRankedModel | JudgesDisagree | TooFewPairs | AuditReason | ToldBefore

_READER: TypeAdapter[Reason] = TypeAdapter(Annotated[Reason, Field(discriminator="check")])


def in_words(reason: Reason) -> str:
    """Return a reason as half a sentence, without a capital or a period, so that it fits messages and lists alike."""
    match reason:
        case RowsAbsent():
            return _absent(reason)
        case NoRankedModel():
            return "no model can be ranked"
        case JudgesDisagree():
            return f"agreement gate, rubric {reason.rubric}: {_agreement(reason)}"
        case TooFewPairs():
            pairs = f"{reason.n_on_scale:,} on-scale pairs of {reason.n_pairs:,}"
            return f"agreement gate, rubric {reason.rubric}: {pairs}, at least {LEAST_PAIRS} and half are needed"
        case AuditMissing():
            return "the human audit is missing (audit.csv)"
        case AuditTooSmall():
            return f"the human audit has {reason.rows:,} rows; at least {LEAST_SIZE} are needed"
        case RubricUnaudited():
            return f"the human audit covers no row of rubric {reason.rubric}"
        case AuditDiverges():
            seen = f"agreement {reason.agreement:.3f}, upper end {reason.ci_high:.3f}"
            return f"the human audit diverges on rubric {reason.rubric}: {seen}"
        case ToldBefore():
            return reason.text
        case _:
            assert_never(reason)


def _absent(reason: RowsAbsent) -> str:
    models = sorted(reason.missing.items())
    named = ", ".join(f"{model} {n:,}" for model, n in models[:_NAMED])
    more = f" and {len(models) - _NAMED:,} more models" if len(models) > _NAMED else ""
    return f"{sum(reason.missing.values()):,} planned rows are absent ({named}{more})"


def _agreement(reason: JudgesDisagree) -> str:
    kappa = "undefined" if reason.kappa is None else f"{reason.kappa:.3f}"
    return (
        f"kappa {kappa} is below {KAPPA_AT:.2f}, and PABAK {reason.pabak:.3f} at a prevalence of "
        f"{reason.modal_prevalence:.1%} does not stand in (PABAK {PABAK_AT:.2f} above 90 %)"
    )


def published_reasons(reasons: Sequence[Reason]) -> list[dict[str, Any]]:
    """Return reasons as the published `manifest.json` lists them: check and figures for programs, `text` for people."""
    return [{**reason.model_dump(mode="json"), "text": in_words(reason)} for reason in reasons]


def load_reasons(listed: Sequence[Any]) -> tuple[Reason, ...]:
    """Read the reasons of a published manifest. Earlier releases listed sentences; these come back as `ToldBefore`.

    Raises:
        ValueError: an item is neither a sentence nor a reason that this release knows.
    """
    return tuple(ToldBefore(text=item) if isinstance(item, str) else _loaded(item) for item in listed)


def _loaded(item: Any) -> Reason:
    if not isinstance(item, dict):
        raise ValueError(f"{item!r} is no reason")
    # `text` repeats in words what the figures say; a reason that was told before has nothing else.
    figures = item if item.get("check") == "told_before" else {k: v for k, v in item.items() if k != "text"}
    return _READER.validate_python(figures)
