"""The draw of the human audit: pure, so that the generator can replay what the harness drew.

See contract: stages, "The audit draw".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from generator.schema.canonical import sha256_hex

DEFAULT_SIZE = 150
LEAST_SIZE = 100
FLOOR = 5
AUDITED = ("scored", "refused")


@dataclass(frozen=True)
class Draw:
    """What was drawn: ids by stratum name, and how many rows each stratum held at the draw.

    `picked[name]` is in the order of the pick (smallest hash first); `sizes[name]` counts rows, so that a row of a
    stratum stands for `sizes[name] / len(picked[name])` rows.
    """

    picked: dict[str, tuple[str, ...]]
    sizes: dict[str, int]

    @property
    def ids(self) -> frozenset[str]:
        """Every receipt id drawn."""
        return frozenset(i for ids in self.picked.values() for i in ids)


def stratum_name(rubric: str, final_label: str) -> str:
    """Return the name of a stratum, by whose bytes ties are settled: `stance|MIXED`.

    The label is the final label of the row, `REFUSAL` for a refused one.
    """
    return f"{rubric}|{final_label}"


def auditable(status: str, n_votes: int) -> bool:
    """Tell whether a row can be drawn: scored or refused, with votes (a filter's refusal has none)."""
    return status in AUDITED and n_votes > 0


def sample_size(sizes: Mapping[str, int], asked: int) -> int:
    """Return how many rows to draw: max(asked, 100, sum of the floors), at most all there are.

    Args:
        sizes: rows of each stratum, by its name.
        asked: the number that the operator asked for, 150 unless told.
    """
    wanted = max(asked, LEAST_SIZE, sum(min(FLOOR, size) for size in sizes.values()))
    return min(wanted, sum(sizes.values()))


def allocate(sizes: Mapping[str, int], asked: int) -> dict[str, int]:
    """Return the rows to draw from each stratum: its floor, then a share of the rest.

    The rest goes in proportion to stratum size by largest remainder. A stratum whose share reaches its size is taken
    whole and leaves the division; ties go to the name that comes first as bytes. Shares are exact fractions.
    """
    given = {name: min(FLOOR, size) for name, size in sizes.items()}
    rest = sample_size(sizes, asked) - sum(given.values())
    unfilled = sorted((n for n in sizes if sizes[n] > given[n]), key=str.encode)
    # A stratum that is taken whole frees a part of its share, so the shares of the others are worked out again.
    while rest > 0:
        total = sum(sizes[n] for n in unfilled)
        share = {n: Fraction(rest * sizes[n], total) for n in unfilled}
        full = [n for n in unfilled if share[n] >= sizes[n] - given[n]]
        if not full:
            break
        for name in full:
            rest -= sizes[name] - given[name]
            given[name] = sizes[name]
        unfilled = [n for n in unfilled if n not in full]
    if rest > 0:
        for name in unfilled:
            given[name] += int(share[name])
            rest -= int(share[name])
        # int(share) - share is the negative remainder, so the largest comes first.
        by_remainder = sorted(unfilled, key=lambda n: (int(share[n]) - share[n], n.encode()))
        for name in by_remainder[:rest]:
            given[name] += 1
    return given


def draw_order(seed: int, receipt_id: str) -> str:
    """Return the key by which rows of a stratum are picked, smallest first: SHA-256 of `<seed>|<receipt_id>`."""
    return sha256_hex(f"{seed}|{receipt_id}")


def draw(strata: Mapping[str, Sequence[str]], *, asked: int = DEFAULT_SIZE, seed: int) -> Draw:
    """Draw the sample.

    Args:
        strata: receipt ids of the auditable rows by stratum name, in any order; empty strata are left out.
        asked: rows to draw at least.
        seed: `seeds.audit` of the manifest.

    Returns:
        The same draw for the same ids and seed, whatever their order: it depends on hashes of the ids alone.
    """
    sizes = {name: len(ids) for name, ids in strata.items() if ids}
    counts = allocate(sizes, asked)
    picked = {
        name: tuple(sorted(strata[name], key=lambda i: draw_order(seed, i))[: counts[name]])
        for name in sorted(sizes, key=str.encode)
    }
    return Draw(picked, {name: sizes[name] for name in picked})
