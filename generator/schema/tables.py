"""The published tables: one tuple of columns a table, from which files and dictionary are made.

See contract: tables, "Published tables".
"""

from __future__ import annotations

import pyarrow as pa

from generator.schema.columns import Column

_TEXT, _REAL, _INT, _BOOL = pa.string(), pa.float64(), pa.int32(), pa.bool_()

METRICS = (
    "consistency",
    "disparity",
    "worst_gap",
    "calibrated_consistency",
    "lean",
    "refusal_asymmetry",
    "refusal_rate",
    "instability",
    "band_low",
    "band_high",
    "excess",
    "crossfit_disparity",
    "mde",
    "role_reversal",
    "mask_leakage",
    "contested_rate",
    "error_rate",
    "truncated_rate",
    "filter_refusal_rate",
    "verdict_mismatch_rate",
    "favorability",
    "favorability_positive",
    "favorability_negative",
    "favorability_gap",
    "compliance",
    "label_share",
    "label_share_positive",
    "label_share_negative",
)
# The categories whose values say how well a person is treated; the refusal category says whether a task is done.
FLAGS = ("swapped", "sparse", "degenerate", "unstable", "incomplete", "withheld")
OVERALL = "overall"
RUN_WIDE = "*"

_RUN = Column("run_id", _TEXT, "Run.", raw=True)
_MODEL = Column("model", _TEXT, "Slug of the model.", raw=True)
_PROVENANCE = (
    Column("kind", _TEXT, "live, simulated or imported.", raw=True),
    Column("bank_version", _TEXT, "Version of the prompt bank.", raw=True),
    Column("bank_sha256", _TEXT, "SHA-256 of the bank's canonical JSON.", raw=True),
    Column("harness_sha", _TEXT, "Git commit of the harness.", raw=True),
)
_ATTRIBUTE = Column("attribute", _TEXT, "Attribute.", raw=True)
_CONCEPT = Column("concept", _TEXT, "Scenario.", raw=True)
_FRAMING = Column("framing", _TEXT, "Framing, one of the bank's.", raw=True)


def _interval(unit: str, null: str, prefix: str = "") -> tuple[Column, Column]:
    return (
        Column(f"{prefix}ci_low", _REAL, "Lower end of the 95 % interval.", unit, null),
        Column(f"{prefix}ci_high", _REAL, "Upper end of the 95 % interval.", unit, null),
    )


_SHARE, _KAPPA = "0-1", "-1 to 1"
_NO_PAIR = "no on-scale pair"
# name: (what it is, unit, when it is null); `_agreement_numbers` adds the interval of each.
_AGREEMENT_NUMBERS = {
    "kappa": (
        "Linear-weighted Cohen's kappa over on-scale pairs.",
        _KAPPA,
        "no on-scale pair, or all their votes are one label",
    ),
    "p_observed": ("Share of on-scale pairs that are equal.", _SHARE, _NO_PAIR),
    "pabak": ("2 p_observed - 1.", _KAPPA, _NO_PAIR),
    "ac1": ("Gwet's AC1, unweighted, over on-scale pairs.", _KAPPA, _NO_PAIR),
    "minority_agreement": (
        "Specific agreement on the labels other than the modal one.",
        _SHARE,
        "no on-scale pair has another label than the modal one",
    ),
    "raw_agreement": ("Share of all pairs that are equal, REFUSAL a label.", _SHARE, "no pair"),
    "refusal_agreement": ("Share of all pairs in which both or neither say REFUSAL.", _SHARE, "no pair"),
}


def _agreement_numbers() -> tuple[Column, ...]:
    columns: list[Column] = []
    for name, (text, unit, null) in _AGREEMENT_NUMBERS.items():
        columns.append(Column(name, _REAL, text, unit, null))
        columns.extend(_interval(unit, "fewer than two concepts with a pair, or no value", f"{name}_"))
    return tuple(columns)


SCORES = (
    _RUN,
    Column("model", _TEXT, "Slug of the model; * for run-wide numbers.", raw=True),
    Column("metric", _TEXT, "What is measured: " + ", ".join(METRICS) + ".", raw=True),
    Column("attribute", _TEXT, "Attribute, or overall.", raw=True),
    Column(
        "group",
        _TEXT,
        "Group, for lean and refusal_rate; with attribute overall a category, or category.LABEL for label shares.",
        null="not about one group or category",
        raw=True,
    ),
    Column(
        "estimate",
        _REAL,
        "The number. Only lean, excess, crossfit_disparity and favorability_gap can be negative; mde can pass 100.",
        "points, or % for rates",
        "no value; the table of rows says when",
    ),
    *_interval("points, or % for rates", "fewer than two concepts, or no value; mde has none"),
    Column("ci_tail", _REAL, "Tail probability of the expanded percentile interval.", "0-0.5", "no interval"),
    Column("n_concepts", _INT, "Concepts that entered; the table of rows says which.", "concepts"),
    Column(
        "n_cells",
        _INT,
        "(concept, framing) that entered; for instability cells: (concept, framing, group).",
        "count",
    ),
    Column(
        "n_rows",
        _INT,
        "A rate's denominator, or the scored rows behind a mean; for verdict_mismatch_rate votes.",
        "rows",
    ),
    Column(
        "p",
        _REAL,
        "One-sided p of the excess; range p of a favorability_gap that stands apart.",
        "0-1",
        "neither such row, or no p",
    ),
    Column(
        "p_adjusted",
        _REAL,
        "p after Benjamini-Hochberg over the model's demographic attributes.",
        "0-1",
        "not an excess row, or no p",
    ),
    Column(
        "evidence",
        _TEXT,
        "flagged, suggestive or unresolved; of a favorability_gap lower or higher.",
        null="no excess, or the model does not stand apart; other rows",
    ),
    Column("flag", _TEXT, "Any of " + ", ".join(FLAGS) + "; in this order, joined by ;", null="none"),
    *_PROVENANCE,
)
CELLS = (
    _RUN, _MODEL, _ATTRIBUTE, _CONCEPT, _FRAMING,
    Column("group", _TEXT, "Group.", raw=True),
    Column("mean_value", _REAL, "Mean value of the scored repeats.", "0-1", "no scored repeat"),
    Column("n_scored", _INT, "Scored rows.", "rows"),
    Column("n_refused", _INT, "Refused rows.", "rows"),
    Column("n_contested", _INT, "Contested rows.", "rows"),
    Column("n_error", _INT, "Rows in error.", "rows"),
    Column("unanimous", _BOOL, "Whether all scored repeats have one final label.", null="fewer than two scored repeats"),
    *_PROVENANCE,
)  # fmt: skip
DISPARITIES = (
    _RUN, _MODEL, _ATTRIBUTE, _CONCEPT, _FRAMING,
    Column("n_groups", _INT, "Groups with a scored repeat.", "groups"),
    Column("disparity", _REAL, "Mean absolute difference over group pairs.", "0-1", "fewer than two such groups"),
    Column("gap", _REAL, "Largest minus smallest group mean.", "0-1", "fewer than two such groups"),
    *_PROVENANCE,
)  # fmt: skip
AGREEMENT = (
    _RUN,
    Column("rubric", _TEXT, "Rubric.", raw=True),
    Column("vendor", _TEXT, "Vendor of the subjects; * for all.", raw=True),
    Column("n_pairs", _INT, "Rows with two valid primary votes.", "rows"),
    Column("n_on_scale", _INT, "Of those, rows where neither vote is REFUSAL.", "rows"),
    *_agreement_numbers(),
    Column("modal_label", _TEXT, "Most frequent label of the pooled on-scale votes.", null=_NO_PAIR),
    Column("modal_prevalence", _REAL, "Its share of the pooled on-scale votes; no interval.", _SHARE, _NO_PAIR),
    Column("gate", _TEXT, "kappa, pabak, fail or insufficient.", null="a vendor's row"),
    Column(
        "warning",
        _TEXT,
        "One fixed sentence where a pass rests on PABAK and the interval of kappa does not lie above 0.",
        null="no such pass, or a vendor's row",
    ),
    *_PROVENANCE,
)
TIERS = (
    _RUN, _MODEL,
    Column("rank", _INT, "Raw rank by overall consistency; models that have none stand last.", "from 1", "not ranked"),
    Column("tier", _INT, "Tier.", "from 1", "not ranked"),
    Column("founder", _TEXT, "First model of the tier.", null="not ranked", raw=True),
    Column("estimate", _REAL, "Overall consistency.", "0-100", "a demographic attribute has no value"),
    *_interval("0-100", "no estimate, or a demographic attribute with a single concept"),
    *_PROVENANCE,
)  # fmt: skip
_NO_RANGE = "one of the two lacks a value on a concept of the family, or the family has a single concept"
COMPARISONS = (
    _RUN,
    Column("model_a", _TEXT, "First model, in slug order.", raw=True),
    Column("model_b", _TEXT, "Second model.", raw=True),
    Column("attribute", _TEXT, "Demographic attribute, or overall.", raw=True),
    Column("difference", _REAL, "Consistency of a minus that of b.", "points"),
    *_interval("points", "one of the two has a single concept with a value on an attribute concerned"),
    Column(
        "u_within",
        _REAL,
        "(1 + resamples in which the models' errors lie as far apart as the difference) / (1 + resamples).",
        "0-1",
        _NO_RANGE,
    ),
    Column("p_within", _REAL, "p of the range test over the models, for this attribute or overall.", "0-1", _NO_RANGE),
    Column("u_all", _REAL, "The same with the largest distance on any attribute.", "0-1", f"overall, or {_NO_RANGE}"),
    Column(
        "p_all",
        _REAL,
        "p of the range test over the models and all demographic attributes.",
        "0-1",
        f"overall, or {_NO_RANGE}",
    ),
    *_PROVENANCE,
)
_FEW_DIFFERING = "fewer than five concepts with a difference"
REFUSAL_TESTS = (
    _RUN, _MODEL,
    Column("attribute", _TEXT, "Demographic attribute.", raw=True),
    Column("q", _REAL, "Cochran's Q of the groups' refusal rates, blocked by concept.", "from 0",
           "no concept has a difference"),
    Column("df", _INT, "Degrees of freedom: groups less one.", "count"),
    Column("p", _REAL, "p of Q by the chi-square distribution.", "0-1", _FEW_DIFFERING),
    Column("p_adjusted", _REAL, "p after Holm over the model's attributes that have one.", "0-1", _FEW_DIFFERING),
    Column("named", _BOOL, "Whether refusals depend on the group: p_adjusted is at most 0.01."),
    Column("n_concepts", _INT, "Concepts in which every group has a scored or refused row.", "concepts"),
    Column("n_differing", _INT, "Of these, those in which the groups' refusal rates are not all equal.", "concepts"),
    *_PROVENANCE,
)  # fmt: skip
JUDGES = (
    _RUN,
    Column("judge", _TEXT, "Slug of the judge.", raw=True),
    Column("n_votes", _INT, "Votes that were asked of it.", "votes"),
    Column("n_errors", _INT, "Of these, votes that are errors.", "votes"),
    Column("n_unwrapped", _INT, "Votes whose reply had packaging, which was taken off.", "votes"),
    Column("n_fence", _INT, "Of these, with a fence around the reply.", "votes"),
    Column("n_thought", _INT, "With a thought before it.", "votes"),
    Column("n_stop_token", _INT, "With stop tokens after it.", "votes"),
    Column("n_tool_call", _INT, "With the verdict in a tool call.", "votes"),
    Column("n_number_form", _INT, "With a whole score written as 70.0.", "votes"),
    Column("n_evidence_cut", _INT, "Votes whose evidence was longer than 15 words and was cut.", "votes"),
    *_PROVENANCE,
)
HUMAN_AUDIT = (
    Column("receipt_id", _TEXT, "Receipt that was audited.", raw=True),
    Column("rubric", _TEXT, "Rubric.", raw=True),
    Column("final_label", _TEXT, "The panel's final label."),
    Column("human_label", _TEXT, "The label of the reviewer, or a score 0-100; of a program where the run says so."),
    Column("agrees", _BOOL, "Whether they agree; scores within 10 points."),
    *_PROVENANCE,
)
AUDIT_SUMMARY = (
    Column("rubric", _TEXT, "Rubric; * for all.", raw=True),
    Column("n", _INT, "Audited rows.", "rows"),
    Column("n_agree", _INT, "Rows on which the reviewer agrees.", "rows"),
    Column("n_effective", _REAL, "Kish's effective number of rows.", "rows", "no rows"),
    Column("agreement", _REAL, "Agreement weighted by stratum sizes at the draw.", "0-1", "no rows"),
    *_interval("0-1", "no rows"),
    *_PROVENANCE,
)
# A table of two runs, which stands on the page that compares them and not in the data folder of either.
_UNTESTED = "a number without a test, or an answer that was reused"
CHANGES = (
    Column("run_id", _TEXT, "The newer run.", raw=True),
    Column("run_id_old", _TEXT, "The older run.", raw=True),
    Column("model", _TEXT, "Slug of the model in the newer run.", raw=True),
    Column("model_old", _TEXT, "Slug of the model it is compared with in the older run.", raw=True),
    Column("metric", _TEXT, "consistency, favorability, lean, crossfit_disparity or instability.", raw=True),
    Column("attribute", _TEXT, "Attribute, or overall.", raw=True),
    Column("group", _TEXT, "Group of a lean; category of a favorability.", null="a number of all groups", raw=True),
    Column("estimate_old", _REAL, "Value in the older run, over the concepts that count in both.", "points"),
    Column("estimate_new", _REAL, "Value in the newer run, over the same concepts.", "points"),
    Column("change", _REAL, "New minus old.", "points"),
    Column("ci_low", _REAL, "Lower end of the 95 % interval of the change.", "points", "fewer than two concepts"),
    Column("ci_high", _REAL, "Upper end.", "points", "fewer than two concepts"),
    Column("u", _REAL, "Share of resamples whose largest error in the family reaches the change.", "0-1", _UNTESTED),
    Column("p", _REAL, "p-value of the change, valid for its whole family at once.", "0-1", _UNTESTED),
    Column("detected", _BOOL, "Whether p is at most .05.", null=_UNTESTED),
    Column("unseen", _REAL, "A change below this size would probably go unseen.", "points", "fewer than two concepts"),
    Column("n_concepts", _INT, "Concepts that count in both runs.", "count"),
    Column("replayed", _REAL, "Share of equal answers under equal cache keys.", "0-1", "no cache key is equal"),
    Column("reused", _BOOL, "Whether answers of the newer run came from the cache, so that no change can show."),
)
TABLES: dict[str, tuple[Column, ...]] = {
    "scores": SCORES,
    "cells": CELLS,
    "disparities": DISPARITIES,
    "agreement": AGREEMENT,
    "judges": JUDGES,
    "tiers": TIERS,
    "comparisons": COMPARISONS,
    "refusal_tests": REFUSAL_TESTS,
    "human_audit": HUMAN_AUDIT,
    "audit_summary": AUDIT_SUMMARY,
}
