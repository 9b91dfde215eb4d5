"""How often the published kind of interval holds the truth, and how often a model without excess is flagged.

    python -m tests.bench.bench_coverage [RUNS]      (default 2000; some minutes on one processor)

Concepts are drawn from populations like that of D(c), from nearly symmetric (a model that moves on most concepts) to
very skewed (many zeros, a few large values). Nominal level 95 %. The plain percentile interval and the BCa interval
stand beside the expanded one, so that the reason for the choice is seen. The tables of `README.md` here and of the
methodology's page on statistics are this program's.

Efron 1987 (BCa).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np

from generator.stats.bootstrap import (
    FloatArray,
    Resamples,
    concept_counts,
    one_attribute,
    percentile_interval,
)
from generator.stats.distributions import normal_cdf, normal_quantile
from generator.stats.evidence import benjamini_hochberg, evidence_tier, excess_p

RESAMPLES = 2_000
Draw = Callable[[np.random.Generator, int], FloatArray]


def _beta(a: float, b: float, zeros: float = 0.0) -> tuple[float, Draw]:
    """Return the mean of a population and its draws: beta(a, b), of which the share `zeros` is 0 instead."""

    def draw(rng: np.random.Generator, n: int) -> FloatArray:
        return np.asarray(rng.beta(a, b, n) * (rng.random(n) >= zeros))

    return (1 - zeros) * a / (a + b), draw


POPULATIONS = {
    "beta(4, 6)": _beta(4.0, 6.0),
    "beta(3, 12)": _beta(3.0, 12.0),
    "beta(2, 12)": _beta(2.0, 12.0),
    "beta(1, 6)": _beta(1.0, 6.0),
    "beta(0.5, 4), very skewed": _beta(0.5, 4.0),
    "half 0, half beta(2, 6)": _beta(2.0, 6.0, zeros=0.5),
}
KINDS = ("expanded", "plain", "BCa")
SEVEN = 7


def bca(ordered: FloatArray, values: FloatArray) -> tuple[float, float]:
    """Return the bias-corrected and accelerated interval of a mean from its sorted replicates."""
    apart = values.mean() - values  # of the jackknife, up to a factor that cancels
    cubes, squares = float((apart**3).sum()), float((apart**2).sum())
    skew = cubes / (6 * squares**1.5) if squares > 0 else 0.0
    below = np.mean(ordered < values.mean()) + np.mean(ordered == values.mean()) / 2
    bias = normal_quantile(float(np.clip(below, 1e-6, 1 - 1e-6)))
    shifted = [bias + normal_quantile(p) for p in (0.025, 0.975)]
    low, high = (float(np.quantile(ordered, normal_cdf(bias + z / (1 - skew * z)))) for z in shifted)
    return low, high


def coverage(n: int, runs: int) -> dict[str, FloatArray]:
    """Return by population how often each of KINDS holds the mean that n concepts were drawn from."""
    rng = np.random.default_rng(n)
    sample, held = one_attribute(n), {name: np.zeros(len(KINDS)) for name in POPULATIONS}
    for run in range(runs):
        draws = Resamples.of(concept_counts(f"{run:064x}", "age", n, RESAMPLES))
        concept_counts.cache_clear()
        for name, (truth, draw) in POPULATIONS.items():
            values = draw(rng, n)
            means = draws.sums(values[None])[0] / n
            expanded, ordered = percentile_interval(means, sample), np.sort(means)
            intervals = (
                (expanded.low, expanded.high),
                tuple(np.quantile(ordered, (0.025, 0.975))),
                bca(ordered, values),
            )
            held[name] += [low <= truth <= high for low, high in intervals]
    return {name: counts / runs for name, counts in held.items()}


def _is_flagged(values: list[FloatArray], draws: list[Resamples]) -> bool:
    """Tell whether any of seven attributes is flagged against the noisier of the two controls that follow them."""
    stars = [d.sums(v[None])[0] / len(v) for d, v in zip(draws, values, strict=True)]
    estimates = [float(v.mean()) for v in values]
    edge = SEVEN + int(estimates[SEVEN + 1] > estimates[SEVEN])
    sample = one_attribute(len(values[edge]))
    excess = [stars[a] - stars[edge] for a in range(SEVEN)]
    ps = [excess_p(e, sample) for e in excess]
    return any(
        evidence_tier(
            excess=percentile_interval(e, sample), p=p, p_adjusted=adjusted, lower=math.nan,
            edge=estimates[edge], degenerate=not values[edge].any(),
        ) == "flagged"
        for e, p, adjusted in zip(excess, ps, benjamini_hochberg(ps), strict=True)
    )  # fmt: skip


def false_flags(runs: int) -> dict[str, FloatArray]:
    """Return by population the share of models with a flagged attribute where no attribute exceeds the edge.

    First with all nine drawn from the population, then with one control at a quarter of its values, so that the edge is
    nearly always the other one.
    """
    rng = np.random.default_rng(9)
    sizes = [16] * SEVEN + [10, 10]
    flagged = {name: np.zeros(2) for name in POPULATIONS}
    for run in range(runs):
        draws = [Resamples.of(concept_counts(f"{run:064x}", f"a{i}", n, RESAMPLES)) for i, n in enumerate(sizes)]
        concept_counts.cache_clear()
        for name, (_, draw) in POPULATIONS.items():
            values = [draw(rng, n) for n in sizes]
            flagged[name] += [_is_flagged(values, draws), _is_flagged([*values[:-1], values[-1] / 4], draws)]
    return {name: found / runs for name, found in flagged.items()}


def main() -> None:
    """Run the simulation and print its table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"{runs} runs each, {RESAMPLES} resamples; Monte Carlo error about {100 / math.sqrt(runs) / 2:.1f} points\n")
    sixteen, ten, flags = coverage(16, runs), coverage(10, runs), false_flags(runs)
    columns = (*(f"{n}: {kind}" for n in (16, 10) for kind in KINDS), "flagged", "flagged, one control quiet")
    print("| population of D(c) | " + " | ".join(columns) + " |\n|---|" + "--:|" * len(columns))
    for name in POPULATIONS:
        shares = (*sixteen[name], *ten[name], *flags[name])
        print(f"| {name} | " + " | ".join(f"{100 * share:.1f}" for share in shares) + " |")


if __name__ == "__main__":
    main()
