"""How codes of the published tables read on pages: one word, label or shape for each, for all templates.

Templates reach them as `words.NAME[code]`; a code without a word stops the build.
"""

from __future__ import annotations

from generator.html.charts import MARKS
from generator.scoring.gate import PASSES

SHAPES = {tier: shape for tier, (_, _, shape) in MARKS.items()}
STANDING = {"published": "published", "preview": "preview", "withheld": "published in part"}
STANDING_AT_LENGTH = {**STANDING, "preview": "preview, not a publication"}
GATE = {
    "kappa": "passes by kappa",
    "pabak": "passes by PABAK",
    "fail": "fails",
    "insufficient": "too little to judge",
}
SOURCE = {"run": "Run", "figures": "Figures of this page: run", "none": "Links into a run lead to run"}
# Why an attribute counts as suggestive.
SIGNS = {"p": "p before adjustment", "disparity": "disparity above the control"}
# Who labeled the sample of an audit, as the record of its draw says; "" where it says nothing.
REVIEWER = {
    "simulated": "The reviewer was a program, as the record of the draw says.",
    "human": "The reviewer was a person, as the record of the draw says.",
    "": "The run’s files do not say whether the reviewer was a person or a program.",
}
# Column heads of tables of scores, by metric; on a phone each number bears its own.
METRIC = {
    "consistency": "Consistency",
    "excess": "Excess, points",
    "worst_gap": "Worst gap, points",
    "calibrated_consistency": "Calibrated consistency",
    "refusal_rate": "Refused, %",
    "refusal_asymmetry": "Refusal asymmetry, points",
    "instability": "Unstable cells, %",
    "crossfit_disparity": "Cross-fit disparity, points",
    "contested_rate": "Contested, %",
    "error_rate": "Errors, %",
    "verdict_mismatch_rate": "Verdict against prose, %",
    "mask_leakage": "Group term left, %",
}
# The same for measures of agreement.
AGREEMENT = {
    "kappa": "Kappa",
    "pabak": "PABAK",
    "p_observed": "Equal, on scale",
    "ac1": "Gwet’s AC1",
    "minority_agreement": "On the rarer labels",
    "raw_agreement": "Equal, all pairs",
    "refusal_agreement": "On refusal",
}


def passes(gate: str) -> bool:
    """Tell whether a rubric passes the agreement gate, by its code."""
    return gate in PASSES
