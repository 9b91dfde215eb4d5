"""How often the range test parts models that are alike, and how often it finds one that is not.

    nice python -m tests.bench.bench_range [RUNS]      (default 200: some two minutes on one processor)

Models share scenarios and resamples. In a run for the false rate all models are drawn alike, and one false pair
anywhere counts. In a run for power one model is raised on one attribute, and the share of its pairs that are found
counts. The tables of `README.md` here and of the methodology's page on evidence are this program's.
(methodology: evidence, "The range test")
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np

from generator.stats.bootstrap import FloatArray, Sample
from generator.stats.evidence import holm, tail_p
from generator.stats.range_test import Ranges, error_ranges, largest_of
from tests.bench.answers import (
    ATTRIBUTES,
    CONCEPTS,
    answered_disparities,
    drawn_counts,
    raised,
    skewed_disparities,
)

RESAMPLES = 2_000
SIZES = (2, 5, 14, 60)
RAISED = (5.0, 10.0, 15.0)
LEVEL = 0.05
Draw = Callable[[np.random.Generator, int], FloatArray]
POPULATIONS: dict[str, Draw] = {"simulated answers": answered_disparities, "very skewed": skewed_disparities}


def attribute_draws(rng: np.random.Generator, values: FloatArray) -> FloatArray:
    """Return the replicates of models' disparity on one attribute: values (models, concepts) -> (models, resamples)."""
    return np.asarray(values @ drawn_counts(rng, values.shape[1], RESAMPLES) / values.shape[1])


def all_pairs(estimates: FloatArray) -> FloatArray:
    """Return the difference of every two models: (pairs,)."""
    first, second = np.triu_indices(len(estimates), 1)
    return np.asarray(estimates[first] - estimates[second])


def false_rates(rng: np.random.Generator, draw: Draw, models: int) -> FloatArray:
    """Return whether any pair of models that are alike is parted: within attributes (a mean), over all, overall."""
    values = [draw(rng, models) for _ in range(ATTRIBUTES)]
    draws = [attribute_draws(rng, own) for own in values]
    sample = Sample(CONCEPTS, CONCEPTS - 1)
    families = [Ranges(error_ranges(own.mean(axis=1), row), sample) for own, row in zip(values, draws, strict=True)]
    apart = [all_pairs(own.mean(axis=1)) for own in values]
    widest = largest_of(families)
    within = [family.test(d)[1].min() <= LEVEL for family, d in zip(families, apart, strict=True)]
    over_all = any(widest.test(d)[1].min() <= LEVEL for d in apart)
    overall = np.mean([own.mean(axis=1) for own in values], axis=0)
    ranges = Ranges(error_ranges(overall, np.mean(draws, axis=0)), Sample(CONCEPTS, ATTRIBUTES * (CONCEPTS - 1)))
    return np.array([np.mean(within), over_all, ranges.test(all_pairs(overall))[1].min() <= LEVEL], np.float64)


def power(rng: np.random.Generator, draw: Draw, models: int, points: float) -> FloatArray:
    """Return which share of the pairs of one raised model is found: within its attribute, over all attributes."""
    values = [draw(rng, models) for _ in range(ATTRIBUTES)]
    values[0][0] = raised(rng, values[0][0], points)
    sample = Sample(CONCEPTS, CONCEPTS - 1)
    families = [Ranges(error_ranges(own.mean(axis=1), attribute_draws(rng, own)), sample) for own in values]
    estimates = values[0].mean(axis=1)
    apart = estimates[0] - estimates[1:]
    tests = (families[0].test(apart)[1], largest_of(families).test(apart)[1])
    return np.array([np.mean(p <= LEVEL) for p in tests])


def floor_of_holm(models: int) -> float:
    """Return the least p that a two-sided bootstrap p could reach overall after Holm's correction for all pairs."""
    least = 2 * tail_p(0, 10_000, Sample(CONCEPTS, ATTRIBUTES * (CONCEPTS - 1)))
    return float(holm(np.full(models * (models - 1) // 2, least)).min())


def main() -> None:
    """Run the simulations and print their tables."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(
        f"{runs} runs a row, {RESAMPLES} resamples, level {LEVEL}; Monte Carlo error up to {50 / math.sqrt(runs):.1f}\n"
    )
    print("| D(c) | models | false: within an attribute | over all seven | overall | p by Holm could reach |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, draw in POPULATIONS.items():
        for models in SIZES:
            rng = np.random.default_rng(models)
            within, over_all, overall = np.mean([false_rates(rng, draw, models) for _ in range(runs)], axis=0) * 100
            least = floor_of_holm(models)
            print(f"| {name} | {models} | {within:.1f} | {over_all:.1f} | {overall:.1f} | {least:.4f} |", flush=True)
    print("\n| models | raised by | found within the attribute | over all seven |\n|--:|--:|--:|--:|")
    for models in SIZES[1:]:
        for points in RAISED:
            rng = np.random.default_rng(models)
            few = max(20, runs // 4)
            one, every = np.mean([power(rng, answered_disparities, models, points) for _ in range(few)], axis=0) * 100
            print(f"| {models} | {points:.0f} | {one:.0f} | {every:.0f} |", flush=True)


if __name__ == "__main__":
    main()
