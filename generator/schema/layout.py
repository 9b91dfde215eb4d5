"""Where every planned row of a bank stands: attribute, concept, framing, group, repeat, ids sorted as bytes.

A model's shard holds at most these rows. Each attribute is one contiguous block, so that a flat array over the plan
reshapes to (concepts, framings, groups, repeats) without a copy.

See contract: receipts, "Order of rows".
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from generator.schema.bank import Bank
from generator.schema.parquet_files import SHARD

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """The planned rows of one attribute: a box of shape (concepts, framings, groups, repeats) from `start` on."""

    attribute: str
    kind: str
    concepts: tuple[str, ...]
    framings: tuple[str, ...]
    groups: tuple[str, ...]
    repeats: int
    start: int

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Return (concepts, framings, groups, repeats)."""
        return len(self.concepts), len(self.framings), len(self.groups), self.repeats

    @property
    def size(self) -> int:
        """Return the number of planned rows."""
        c, f, g, r = self.shape
        return c * f * g * r

    @property
    def rows(self) -> slice:
        """Return the block's place in an array over the whole plan."""
        return slice(self.start, self.start + self.size)


@dataclass(frozen=True)
class Layout:
    """The planned rows of a bank, one block an attribute.

    Every model of a run has the same plan, so a layout is made once for a run. `repeats` is that of the manifest.
    """

    bank: Bank
    repeats: int

    @cached_property
    def framings(self) -> tuple[str, ...]:
        """The framings of the bank, sorted."""
        return tuple(sorted(self.bank.rules.framings))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The attributes sorted by id as bytes."""
        found, start = [], 0
        for attribute in sorted(self.bank.attributes, key=lambda a: a.id.encode()):
            block = Block(
                attribute=attribute.id,
                kind=attribute.kind,
                concepts=tuple(c.id for c in self.bank.concepts_of(attribute.id, two_sided=None)),
                framings=self.framings,
                groups=tuple(g.id for g in self.bank.groups_of(attribute.id)),
                repeats=self.repeats,
                start=start,
            )
            found.append(block)
            start += block.size
        return tuple(found)

    @property
    def size(self) -> int:
        """Return the number of planned rows of a model."""
        return sum(block.size for block in self.blocks)

    @property
    def faults(self) -> list[str]:
        """Return what is wrong with the size of the plan (contract: receipts, "Bounds")."""
        if self.size <= SHARD.rows:
            return []
        planned = f"{self.size // self.repeats:,} prompts x repeats {self.repeats:,} = {self.size:,} rows a model"
        return [f"{planned}; at most {SHARD.rows:,} are read"]

    def positions(self, table: pa.Table) -> IntArray:
        """Return each row's place in the plan, -1 for a row that is not of the bank.

        `table` has the string columns concept, framing, group and the integer column repeat, no nulls. The concept
        settles the attribute; a row whose `attribute` column says otherwise is for the caller to find.
        """
        concept, concepts = _encoded(table, "concept")
        framing, framings = _encoded(table, "framing")
        group, groups = _encoded(table, "group")
        repeat = table["repeat"].to_numpy().astype(np.int64)
        place = {name: (b, i) for b, block in enumerate(self.blocks) for i, name in enumerate(block.concepts)}
        known = np.array([place.get(name, (-1, -1)) for name in concepts], np.int64).reshape(-1, 2)
        block_of, index = known[concept].T
        f_of = np.array([_index(self.framings, name) for name in framings], np.int64)[framing]
        lookup = np.array([[_index(b.groups, name) for name in groups] for b in self.blocks], np.int64)
        g_of = lookup.reshape(len(self.blocks), -1)[block_of, group]
        start = np.array([b.start for b in self.blocks])[block_of]
        n_groups = np.array([len(b.groups) for b in self.blocks])[block_of]
        found = start + ((index * len(self.framings) + f_of) * n_groups + g_of) * self.repeats + repeat
        foreign = (block_of < 0) | (f_of < 0) | (g_of < 0) | (repeat < 0) | (repeat >= self.repeats)
        return np.where(foreign, -1, found)

    @cached_property
    def keys(self) -> tuple[tuple[str, str, str, str, int], ...]:
        """The (attribute, concept, framing, group, repeat) of every planned row, in the order of the plan."""
        return tuple(
            (block.attribute, *rest)
            for block in self.blocks
            for rest in itertools.product(block.concepts, block.framings, block.groups, range(block.repeats))
        )

    def key(self, position: int) -> tuple[str, str, str, str, int]:
        """Return the (attribute, concept, framing, group, repeat) of a place in the plan, `0 <= position < size`."""
        return self.keys[position]


def _encoded(table: pa.Table, column: str) -> tuple[IntArray, list[str]]:
    """Return (codes, distinct values) of a string column, so that each distinct name is looked up only once."""
    coded = table[column].combine_chunks().dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_pylist()


def _index(items: tuple[str, ...], name: str) -> int:
    return items.index(name) if name in items else -1
