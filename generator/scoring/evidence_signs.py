"""Which of the two weaker signs made an attribute suggestive, read off the published scores.

The pages word the answer. See methodology: evidence, "Evidence tiers".
"""

from __future__ import annotations

from generator.scoring.attribute import POINTS
from generator.scoring.lookup import ScoreRow
from generator.stats.bootstrap import round12
from generator.stats.evidence import SUGGESTIVE_AT

BY_P, BY_DISPARITY = "p", "disparity"


def suggestive_signs(excess: ScoreRow, disparity: ScoreRow, edge: ScoreRow) -> tuple[str, ...]:
    """Return the signs that hold for a suggestive attribute, `p` or `disparity` or both; for any other attribute none.

    Args:
        excess: the attribute's row of metric `excess`.
        disparity: the attribute's row of metric `disparity`, in points.
        edge: the disparity row of the noisier control, in points.
    """
    if excess.evidence != "suggestive":
        return ()
    low, yardstick = disparity.ci_low, edge.estimate
    held = {
        BY_P: excess.p is not None and round12(excess.p) <= SUGGESTIVE_AT,
        BY_DISPARITY: low is not None and yardstick is not None and round12(low / POINTS) > round12(yardstick / POINTS),
    }
    return tuple(sign for sign, holds in held.items() if holds)
