"""How often the published kind of interval holds the truth, and how often a model without excess is flagged.

    python -m tests.bench.bench_coverage [RUNS]      (default 2000; a few minutes)

Concepts are drawn from populations like that of D(c), from nearly symmetric (a model that moves on most concepts) to
very skewed (many small values, a few large ones). Nominal level 95 %. The plain percentile interval stands beside the
expanded one, so that the reason for the expansion is seen.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from generator.stats.bootstrap import Resamples, concept_counts, one_attribute, percentile_interval
from generator.stats.evidence import benjamini_hochberg, evidence_tier, excess_p

RESAMPLES = 2_000
POPULATIONS = {
    "beta(4, 6)": (4.0, 6.0),
    "beta(3, 12)": (3.0, 12.0),
    "beta(2, 12)": (2.0, 12.0),
    "beta(1, 6)": (1.0, 6.0),
    "beta(0.5, 4)": (0.5, 4.0),
}
SEVEN = 7


def coverage(n: int, a: float, b: float, runs: int) -> tuple[float, float]:
    """Return how often the expanded, and the plain, interval of a mean of n concepts holds the truth."""
    rng = np.random.default_rng(n)
    truth, sample = a / (a + b), one_attribute(n)
    held = np.zeros(2)
    for run in range(runs):
        draws = Resamples.of(concept_counts(f"{run:064x}", "age", n, RESAMPLES))
        means = draws.sums(rng.beta(a, b, n)[None])[0] / n
        expanded = percentile_interval(means, sample)
        low, high = np.quantile(means, [0.025, 0.975])
        held += [expanded.low <= truth <= expanded.high, low <= truth <= high]
    return float(held[0] / runs), float(held[1] / runs)


def false_flags(runs: int) -> float:
    """Return the share of models with a flagged attribute where all nine have the same disparity."""
    rng = np.random.default_rng(9)
    flagged = 0
    for run in range(runs):
        draws, estimates = [], []
        for attribute, n in enumerate([16] * SEVEN + [10, 10]):
            values = rng.beta(1.0, 6.0, n)
            resamples = Resamples.of(concept_counts(f"{run:064x}", f"a{attribute}", n, RESAMPLES))
            draws.append(resamples.sums(values[None])[0] / n)
            estimates.append(float(values.mean()))
        edge = SEVEN + int(estimates[SEVEN + 1] > estimates[SEVEN])
        sample = one_attribute(10)
        excess = [draws[a] - draws[edge] for a in range(SEVEN)]
        ps = [excess_p(e, sample) for e in excess]
        tiers = [
            evidence_tier(
                excess=percentile_interval(e, sample), p=p, p_adjusted=adjusted, lower=math.nan,
                edge=estimates[edge], degenerate=False,
            )
            for e, p, adjusted in zip(excess, ps, benjamini_hochberg(ps), strict=True)
        ]  # fmt: skip
        flagged += "flagged" in tiers
    return flagged / runs


def main() -> None:
    """Run the simulation."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"{runs} runs each, {RESAMPLES} resamples; Monte Carlo error about {100 / math.sqrt(runs) / 2:.1f} points")
    for n in (16, 10):
        for name, (a, b) in POPULATIONS.items():
            expanded, plain = coverage(n, a, b, runs)
            print(
                f"{n:3d} concepts, {name:<13} expanded {100 * expanded:5.1f} %   plain percentile {100 * plain:5.1f} %"
            )
    print(f"models flagged without any excess: {100 * false_flags(runs // 4):.1f} %")


if __name__ == "__main__":
    main()
