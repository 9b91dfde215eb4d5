"""How often refusals that are blind to the group are said to depend on it, and how often such that do are found.

    nice python -m tests.bench.bench_refusals [RUNS]      (default 1000: about a minute on one processor)

A model has seven attributes of 16 concepts; what counts is whether any is named. In the last columns half of the groups
of one attribute are refused 30 points more often. In the middle stands the rule that this one replaced: the reflected
interval of the difference between the groups refused most and least lies above 0, and above that of the controls, which
here are never refused. The table of `README.md` here and of the methodology's page on limits is this program's.
(methodology: limits, "Refusals are outside the score")
"""

from __future__ import annotations

import math
import sys

import numpy as np

from generator.stats.bootstrap import one_attribute, percentile_interval, reflected, round12
from generator.stats.refusal_test import named_of, refusal_test
from tests.bench.answers import ATTRIBUTES, CONCEPTS, drawn_counts, refusals

RESAMPLES = 300
RATES = (0.002, 0.01, 0.02, 0.05, 0.2, 0.4)
MORE = 0.3


def names_any(rng: np.random.Generator, rate: float, more: float, *, clustered: bool) -> bool:
    """Tell whether any attribute of a model is named; `more` is planted on the first one only."""
    tests = []
    for i in range(ATTRIBUTES):
        refused, valid = refusals(rng, rate, more if i == 0 else 0.0, clustered=clustered)
        tests.append(refusal_test(refused.T.astype(np.float64), valid.T.astype(np.float64)))
    named = named_of(tests)[1]
    return named[0] if more else any(named)


def named_before(rng: np.random.Generator, rate: float) -> bool:
    """Tell whether the replaced rule names any attribute of a model whose refusals do not depend on the group."""
    for _ in range(ATTRIBUTES):
        refused, valid = refusals(rng, rate, clustered=False)
        drawn = drawn_counts(rng, CONCEPTS, RESAMPLES).T
        spread = np.ptp((drawn @ refused) / (drawn @ valid), axis=1)
        estimate = float(np.ptp(refused.sum(axis=0) / valid.sum(axis=0)))
        interval = reflected(estimate, percentile_interval(spread, one_attribute(CONCEPTS)))
        if round12(interval.low) > 0:
            return True
    return False


def main() -> None:
    """Run the simulation and print its table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{runs} models a figure; Monte Carlo error up to {50 / math.sqrt(runs):.1f} points\n")
    print("| Refused, % | falsely: scenarios alike | unlike | by the replaced rule | found: scenarios alike | unlike |")
    print("|--:|--:|--:|--:|--:|--:|")
    for rate in RATES:
        found = []
        for more in (0.0, MORE):
            for clustered in (False, True):
                rng = np.random.default_rng(int(1000 * rate))
                found.append(100 * np.mean([names_any(rng, rate, more, clustered=clustered) for _ in range(runs)]))
        rng = np.random.default_rng(7)
        found.insert(2, 100 * np.mean([named_before(rng, rate) for _ in range(runs // 4)]))
        shares = " | ".join(f"{share:.1f}" if i < 2 else f"{share:.0f}" for i, share in enumerate(found))
        print(f"| {100 * rate:g} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
