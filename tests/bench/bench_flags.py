"""How often an excess of one, one and a quarter and one and a half times the detectable effect is flagged.

    nice python -m tests.bench.bench_flags [RUNS]      (default 1000: about a minute on one processor)

Seven attributes and two controls are drawn from one population of D(c); then the first attribute is raised on every
concept by so many times the MDE of this very sample. The table of `README.md` here and of the methodology's page on
evidence is this program's. (methodology: evidence, "What could have been seen")
"""

from __future__ import annotations

import math
import sys

import numpy as np

from generator.stats.bootstrap import FloatArray, one_attribute, percentile_interval
from generator.stats.evidence import (
    benjamini_hochberg,
    evidence_tier,
    excess_p,
    minimum_detectable,
    standard_error,
)
from tests.bench.answers import drawn_counts
from tests.bench.bench_coverage import POPULATIONS, SEVEN, Draw

RESAMPLES = 2_000
CONTROL = 10
TIMES = (1.0, 1.25, 1.5)


def flagged(rng: np.random.Generator, draw: Draw, *, quiet: bool) -> FloatArray:
    """Return whether the first of seven attributes is flagged when raised by each of TIMES the MDE: (times,).

    quiet: the second control has a quarter of its disparity, so that the edge is nearly always the first.
    """
    sizes = [16] * SEVEN + [CONTROL, CONTROL]
    values = [draw(rng, n) for n in sizes]
    values[-1] = values[-1] / 4 if quiet else values[-1]
    stars = [own @ drawn_counts(rng, n, RESAMPLES) / n for own, n in zip(values, sizes, strict=True)]
    means = [float(own.mean()) for own in values]
    edge = SEVEN + int(means[SEVEN + 1] > means[SEVEN])
    sample = one_attribute(CONTROL)
    mde = minimum_detectable(standard_error(stars[0]), 16, standard_error(stars[edge]), CONTROL)
    excess = [own - stars[edge] for own in stars[:SEVEN]]
    others = [excess_p(own, sample) for own in excess[1:]]
    found = []
    for times in TIMES:
        raised = excess[0] + times * mde
        p = excess_p(raised, sample)
        tier = evidence_tier(
            excess=percentile_interval(raised, sample), p=p, p_adjusted=benjamini_hochberg([p, *others])[0],
            lower=math.nan, edge=means[edge], degenerate=not values[edge].any(),
        )  # fmt: skip
        found.append(tier == "flagged")
    return np.array(found, np.float64)


def main() -> None:
    """Run the simulation and print its table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{runs} models a figure, {RESAMPLES} resamples; Monte Carlo error up to {50 / math.sqrt(runs):.1f} points\n")
    heads = [f"{times:g} times, {how}" for how in ("controls alike", "one quiet") for times in TIMES]
    print("| Population of D(c) | " + " | ".join(heads) + " |\n|---|" + "--:|" * len(heads))
    for name, (_, draw) in POPULATIONS.items():
        shares: list[float] = []
        for quiet in (False, True):
            rng = np.random.default_rng(3)
            shares += np.mean([flagged(rng, draw, quiet=quiet) for _ in range(runs)], axis=0).tolist()
        print(f"| {name} | " + " | ".join(f"{100 * share:.0f}" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
