"""How well a human reviewer agrees with the final labels: strata weighted back, effective sample size, interval.

Kish 1965 (effective sample size); Wilson 1927 (interval of a proportion).

See methodology: audit, "Agreement of people and panel".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from generator.stats.bootstrap import round12
from generator.stats.distributions import normal_quantile

UPPER_AT_LEAST = 0.80
ESTIMATE_AT_LEAST = 0.70
SCORE_TOLERANCE = 10.0
_Z = normal_quantile(0.975)


@dataclass(frozen=True)
class Audited:
    """The audited rows of one stratum of a rubric.

    `size` rows were in the stratum when the sample was drawn. `n` of them were audited, and in `agree` of those the
    reviewer gave the final label.
    """

    rubric: str
    size: int
    n: int
    agree: int


@dataclass(frozen=True)
class AuditSummary:
    """Agreement over some strata, each weighted by its size at the draw.

    `n` and `n_agree` are plain counts of audited rows. `n_effective` is Kish's effective number of rows. `agreement`
    and the ends of its 95 % interval, `low` and `high`, are in [0, 1]. Without an audited row the last four are NaN.
    """

    n: int
    n_agree: int
    n_effective: float
    agreement: float
    low: float
    high: float


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return the ends of the 95 % Wilson interval of a proportion (Wilson 1927), cut off at 0 and 1.

    Args:
        share: the proportion, in [0, 1].
        n: rows behind it, above 0; an effective number need not be whole.
    """
    z2 = _Z * _Z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    # On paper the formula ends at exactly 0 or 1 for such shares; in floating point it ends a bit beside them.
    return 0.0 if share <= 0 else max(0.0, centre - half), 1.0 if share >= 1 else min(1.0, centre + half)


def summarise(strata: Sequence[Audited]) -> AuditSummary:
    """Return the weighted agreement over strata: each audited row stands for size / n rows of its stratum.

    Args:
        strata: strata of one rubric or of all. A stratum without an audited row is left out.

    Returns:
        Counts, estimate and interval; the numbers are NaN when no stratum was audited.
    """
    used = [s for s in strata if s.n]
    n, agree = sum(s.n for s in used), sum(s.agree for s in used)
    if not used:
        return AuditSummary(0, 0, math.nan, math.nan, math.nan, math.nan)
    total = sum(s.size for s in used)
    share = sum(s.size * s.agree / s.n for s in used) / total
    # Kish: (sum u)^2 / sum u^2 over rows. A stratum's n rows share u = size / n, so its sum of squares is size^2 / n.
    effective = total**2 / sum(s.size**2 / s.n for s in used)
    low, high = wilson(share, effective)
    return AuditSummary(n, agree, effective, share, low, high)


def diverges(agreement: float, high: float) -> bool:
    """Tell whether people and panel differ so much that a rubric blocks (methodology: audit, "When it blocks").

    Args:
        agreement: the weighted agreement, in [0, 1].
        high: upper end of its interval, in [0, 1].
    """
    return round12(high) < UPPER_AT_LEAST or round12(agreement) < ESTIMATE_AT_LEAST


def agrees(label: str, human: str, value: float | None, *, is_score: bool) -> bool:
    """Tell whether the reviewer's entry agrees with a row's final label.

    See methodology: audit, "Agreement of people and panel".

    Args:
        label: the final label: a word of the rubric, a bin, or REFUSAL.
        human: what the reviewer entered: a label, or for capability 0 to 100 or REFUSAL.
        value: the final value, in [0, 1]; None for a refused row.
        is_score: whether the rubric is scored 0 to 100. Scores agree within 10 points.
    """
    if is_score and value is not None and human.isdigit():
        return round12(abs(int(human) / 100 - value)) * 100 <= SCORE_TOLERANCE
    return human == label
