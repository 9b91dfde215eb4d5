"""How often a model is marked as lower or higher than all others when none is, and how often one that is gets its mark.

    nice python -m tests.bench.bench_level [RUNS]      (default 200: some two minutes on one processor)

Models share scenarios and resamples. Levels are the same for all models, or differ as those of real models do; then one
model is put below the others. A mark in any of the five families (four categories and overall) counts.
(methodology: level, "Models that stand apart")
"""

from __future__ import annotations

import math
import sys

import numpy as np

from generator.stats.bootstrap import FloatArray, Sample
from generator.stats.level import LOWER, apart
from generator.stats.range_test import Ranges, error_ranges
from tests.bench.answers import answered_levels, drawn_counts

RESAMPLES = 2_000
CATEGORIES = (28, 35, 14, 14)
SIZES = (5, 14, 60)
BELOW = 30.0
SPREADS = (0.0, 3.0, 8.0)


def families(rng: np.random.Generator, shifts: FloatArray) -> list[tuple[FloatArray, Ranges]]:
    """Return (levels, ranges) of each category and of all together, for models whose levels are moved by `shifts`.

    `shifts`: float array (models,), on the 0-1 scale.
    """
    found, draws = [], []
    for concepts in CATEGORIES:
        values = answered_levels(rng, shifts, concepts)
        draws.append(values @ drawn_counts(rng, concepts, RESAMPLES) / concepts)
        ranges = Ranges(error_ranges(values.mean(axis=1), draws[-1]), Sample(concepts, concepts - 1))
        found.append((values.mean(axis=1), ranges))
    overall = np.mean([levels for levels, _ in found], axis=0)
    sample = Sample(min(CATEGORIES), sum(CATEGORIES) - len(CATEGORIES))
    return [*found, (overall, Ranges(error_ranges(overall, np.mean(draws, axis=0)), sample))]


def false_mark(rng: np.random.Generator, models: int) -> bool:
    """Return whether any of models with equal levels is marked."""
    return any(any(apart(levels, ranges)) for levels, ranges in families(rng, np.zeros(models)))


def found_mark(rng: np.random.Generator, models: int, spread: float) -> bool:
    """Return whether the one model that lies below all others is marked as lower overall."""
    shifts = rng.normal(0, spread / 100, models)
    shifts[0] = shifts.min() - BELOW / 100
    marks = apart(*families(rng, shifts)[-1])
    return marks[0] is not None and marks[0][0] == LOWER


def main() -> None:
    """Run the simulations and print their table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{runs} runs a figure, {RESAMPLES} resamples; Monte Carlo error up to {50 / math.sqrt(runs):.1f}\n")
    print("| models | false, levels equal | " + " | ".join(f"found, sd {spread:.0f}" for spread in SPREADS) + " |")
    print("|--:" * (2 + len(SPREADS)) + "|")
    for models in SIZES:
        rng = np.random.default_rng(models)
        shares = [np.mean([false_mark(rng, models) for _ in range(runs)])]
        shares += [np.mean([found_mark(rng, models, spread) for _ in range(runs)]) for spread in SPREADS]
        print(f"| {models} | " + " | ".join(f"{share * 100:.1f}" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
