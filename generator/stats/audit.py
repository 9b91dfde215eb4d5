"""Agreement of the human reviewer with the final labels: stratified weights, Kish, Wilson.

Kish 1965 (effective size); Wilson 1927 (interval of a proportion).

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
    """Rows of one stratum: `size` at the draw, `n` audited, `agree` of them in agreement."""

    rubric: str
    size: int
    n: int
    agree: int


@dataclass(frozen=True)
class AuditSummary:
    """Agreement over some strata, weighted by their sizes; NaN without a row."""

    n: int
    n_agree: int
    n_effective: float
    agreement: float
    low: float
    high: float


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share of `n` (effective) rows.

    At a share of 0 or 1 the formula ends there exactly on paper, and a bit beside it in floating point.
    """
    z2 = _Z * _Z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return 0.0 if share <= 0 else max(0.0, centre - half), 1.0 if share >= 1 else min(1.0, centre + half)


def summarise(strata: Sequence[Audited]) -> AuditSummary:
    """Return the agreement over strata: a row stands for size / n rows of its stratum."""
    used = [s for s in strata if s.n]
    n, agree = sum(s.n for s in used), sum(s.agree for s in used)
    if not used:
        return AuditSummary(0, 0, math.nan, math.nan, math.nan, math.nan)
    total = sum(s.size for s in used)
    share = sum(s.size * s.agree / s.n for s in used) / total
    effective = total**2 / sum(s.size**2 / s.n for s in used)
    low, high = wilson(share, effective)
    return AuditSummary(n, agree, effective, share, low, high)


def diverges(agreement: float, high: float) -> bool:
    """Tell whether a rubric's audit blocks: upper end below .80, or estimate below .70."""
    return round12(high) < UPPER_AT_LEAST or round12(agreement) < ESTIMATE_AT_LEAST


def agrees(label: str, human: str, value: float | None, *, is_score: bool) -> bool:
    """Tell whether the reviewer agrees with the final label; scores within 10 points, REFUSAL only with REFUSAL."""
    if is_score and value is not None and human.isdigit():
        return round12(abs(int(human) / 100 - value)) * 100 <= SCORE_TOLERANCE
    return human == label
