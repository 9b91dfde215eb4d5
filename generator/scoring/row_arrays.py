"""A model's shard spread over the bank's plan as arrays: the one step between receipts and statistics.

See contract: receipts, "Columns"; methodology: scoring, "Values".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from generator.runs.reader import Run
from generator.runs.vote_checks import NONE, REFUSED, label_codes, rubric_codes
from generator.schema.bank import Bank
from generator.schema.layout import Block
from generator.schema.verdict import STATUSES
from generator.scoring.audit import Strata, strata_of
from generator.scoring.judges import JudgeCounts, judge_counts
from generator.stats.bootstrap import BoolArray, IntArray
from generator.stats.cells import ABSENT, Rows
from generator.stats.tally import ByConcept, by_concept

_CODED = ("concept", "framing", "group", "rubric", "status", "final_label")
_PLAIN = ("repeat", "value", "finish_reason", "outcome", "mask_leak")
_VOTE_FIELDS = ("label", "verdict_matches_prose", "error")
_READ_OF_VOTES = (*_VOTE_FIELDS, "judge", "unwrapped", "evidence_cut")
_PRIMARIES = 2
# Whatever a vendor calls its length limit is stored under this name.
CUT = "length"


@dataclass(frozen=True)
class Stack:
    """The rows of all attributes that have as many groups, concepts of one attribute after those of another.

    Working concept by concept takes hardly longer for a stack than for one attribute. `places` says where the concepts
    of each attribute stand.
    """

    places: dict[str, slice]
    rows: Rows

    @cached_property
    def found(self) -> ByConcept:
        """Every ratio, concept by concept, worked out once for all attributes of the stack."""
        return by_concept(self.rows)

    def concepts(self, attribute: str, chosen: BoolArray) -> IntArray:
        """Return the places of some concepts of an attribute in the stack.

        Args:
            attribute: one of the stack's attributes.
            chosen: mask over the attribute's own concepts, bool array (concepts,).
        """
        return np.asarray(self.places[attribute].start + np.flatnonzero(chosen))


@dataclass(frozen=True)
class ModelRows:
    """One model's rows, ready for the statistics.

    Attributes:
        model: its slug.
        stack: by attribute id, the stack that holds it.
        votes: counts of pairs of labels by the two primaries, over rows with two valid primary votes: int array
            (concepts of all attributes, codes, codes), codes as `ModelReader.codes` counts them.
        strata: its part in the draw of the audit; empty without an audit.
        judges: its votes counted by judge.
    """

    model: str
    stack: dict[str, Stack]
    votes: IntArray
    strata: Strata
    judges: JudgeCounts


def label_places(bank: Bank) -> dict[str, int]:
    """Return a code for every label of a bank's rubrics; labels of one name share a code across rubrics."""
    return {name: i for i, name in enumerate(dict.fromkeys(n for rubric in bank.rubrics for n in rubric.names))}


class ModelReader:
    """Reads the shards of one run.

    What is the same for every model is worked out once, when the reader is made.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._stacks: dict[tuple[int, ...], list[Block]] = {}
        # Attributes of equal shape share a stack, so that the statistics run once over all of them.
        for block in run.layout.blocks:
            self._stacks.setdefault(block.shape[1:], []).append(block)
        # Flat arrays stand in the order of the stacks, so that each stack is a box without a copy.
        self._place = np.empty(run.layout.size, np.int64)
        self._concept = np.empty(run.layout.size, np.int64)
        start = concepts = 0
        for block in (b for stack in self._stacks.values() for b in stack):
            self._place[block.rows] = np.arange(start, start + block.size)
            start += block.size
        for block in run.layout.blocks:
            n = len(block.concepts)
            self._concept[block.rows] = np.repeat(np.arange(concepts, concepts + n), block.size // n if n else 0)
            concepts += n
        self._n_concepts = concepts
        self._labels = label_places(run.bank)

    @property
    def codes(self) -> int:
        """How many codes `ModelRows.votes` tells apart.

        As many as the longest scale has labels, and a last one for REFUSAL.
        """
        return 1 + max(len(rubric.names) for rubric in self._run.bank.rubrics)

    def read(self, model: str) -> ModelRows:
        """Read a model's shard and spread it over the plan; planned rows that it lacks become ABSENT."""
        run = self._run
        table = self._table(model)
        positions = run.layout.positions(table)
        row, primary, votes = _primary_votes(table)
        labels = label_codes(votes["label"], rubric_codes(table, run.bank)[row], run.bank.rubrics)
        valid = votes["error"].is_null().to_numpy(zero_copy_only=False)
        flat = self._spread(table, self._place[positions], row, votes)
        return ModelRows(
            model=model,
            stack=self._boxes(flat),
            votes=self._counted(self._concept[positions], row, primary, np.where(valid, labels, NONE)),
            strata=Strata() if run.audit is None else strata_of(run, table),
            judges=judge_counts(table["votes"].combine_chunks()),
        )

    def _table(self, model: str) -> pa.Table:
        """Read what scoring needs of a shard. Ids and labels come as dictionaries, which is how the file holds them."""
        with pq.ParquetFile(self._run.shard_path(model), read_dictionary=list(_CODED)) as file:
            wanted = {*_CODED, *_PLAIN, *(("receipt_id",) if self._run.audit is not None else ())}
            paths = [c.path for c in file.schema]
            fields = [p for p in paths if p.startswith("votes.") and p.rpartition(".")[2] in _READ_OF_VOTES]
            # By one thread: models are scored by several threads or processes already.
            return file.read([*(p for p in paths if p in wanted), *fields], use_threads=False)

    def _spread(
        self, table: pa.Table, places: IntArray, row: IntArray, votes: dict[str, pa.Array]
    ) -> dict[str, npt.NDArray[np.generic]]:
        """Return the arrays of `Rows` over the whole plan, flat; absent rows hold the empty value of each array."""
        n = table.num_rows
        status_of = {name: code for code, name in enumerate(STATUSES)}
        status, label = (table[c].combine_chunks() for c in ("status", "final_label"))
        # Coded through the dictionary, which holds each text once.
        codes = np.array([status_of[s] for s in status.dictionary.to_pylist()], np.int8)[status.indices.to_numpy()]
        says = votes["verdict_matches_prose"]
        silent = table["votes"].combine_chunks().value_lengths().to_numpy() == 0
        wrong = pc.fill_null(pc.invert(says), False).to_numpy(zero_copy_only=False)
        told = says.is_valid().to_numpy(zero_copy_only=False)
        finish = table["finish_reason"].combine_chunks()
        columns: dict[str, tuple[npt.NDArray[np.generic], object]] = {
            "values": (table["value"].to_numpy(), np.nan),
            "status": (codes, ABSENT),
            "label": (self._label_codes(label), -1),
            "answered": (_answered(table), False),
            "cut": (pc.fill_null(pc.equal(finish, CUT), False).to_numpy(zero_copy_only=False), False),
            "leaked": (pc.fill_null(table["mask_leak"], False).to_numpy(), False),
            "finish_known": (finish.is_valid().to_numpy(zero_copy_only=False), False),
            "mask_known": (table["mask_leak"].is_valid().to_numpy(), False),
            # No judge is asked about an answer that the vendor's filter refused.
            "filtered": ((codes == status_of["refused"]) & silent, False),
            "verdict_votes": (np.bincount(row[told], minlength=n).astype(np.int8), 0),
            "mismatches": (np.bincount(row[wrong], minlength=n).astype(np.int8), 0),
        }
        flat = {}
        for name, (values, empty) in columns.items():
            flat[name] = np.full(len(self._place), empty, values.dtype)
            flat[name][places] = values
        return flat

    def _label_codes(self, label: pa.DictionaryArray) -> npt.NDArray[np.int16]:
        """Return final labels as codes, the same in every shard (`label_places`); -1 for none and for REFUSAL."""
        code = np.array([self._labels.get(name, -1) for name in label.dictionary.to_pylist()] + [-1], np.int16)
        return np.asarray(code[pc.fill_null(label.indices, -1).to_numpy()], np.int16)

    def _boxes(self, flat: dict[str, npt.NDArray[np.generic]]) -> dict[str, Stack]:
        found, start = {}, 0
        for shape, blocks in self._stacks.items():
            ends = np.cumsum([len(block.concepts) for block in blocks]).tolist()
            box = slice(start, start + sum(block.size for block in blocks))
            polarity = [self._run.bank.concept[name].polarity for block in blocks for name in block.concepts]
            arrays = {name: values[box].reshape(ends[-1], *shape) for name, values in flat.items()}
            rows = Rows(polarity=np.array(polarity, np.int8), **arrays)
            places = {b.attribute: slice(end - len(b.concepts), end) for b, end in zip(blocks, ends, strict=True)}
            found.update(dict.fromkeys(places, Stack(places, rows)))
            start = box.stop
        return found

    def _counted(self, concept: IntArray, row: IntArray, primary: IntArray, codes: IntArray) -> IntArray:
        """Count the pairs of codes of the rows that have two valid primary votes."""
        # One row for each primary. NONE stays where a vote is missing or an error.
        pairs = np.full((_PRIMARIES, len(concept)), NONE, np.int64)
        pairs[primary, row] = np.where(codes == REFUSED, self.codes - 1, codes)
        both = (pairs >= 0).all(axis=0)
        # A histogram over (concept, first code, second code), by one bincount over flattened indices.
        flat = (concept[both] * self.codes + pairs[0, both]) * self.codes + pairs[1, both]
        counts = np.bincount(flat, minlength=self._n_concepts * self.codes**2)
        return counts.reshape(self._n_concepts, self.codes, self.codes)


def _answered(table: pa.Table) -> npt.NDArray[np.bool_]:
    """Tell which rows have an answer: by their outcome, or in format 1 by having a finish reason."""
    if "outcome" not in table.column_names:
        return np.asarray(pc.is_valid(table["finish_reason"]).to_numpy(), np.bool_)
    return np.asarray(pc.not_equal(table["outcome"], "failed").to_numpy(), np.bool_)


def _primary_votes(table: pa.Table) -> tuple[IntArray, IntArray, dict[str, pa.Array]]:
    """Return the primaries' votes as (row, 0 or 1, fields). A third vote only breaks ties and is left out."""
    votes = table["votes"].combine_chunks()
    n = votes.value_lengths().to_numpy().astype(np.int64)
    row = np.repeat(np.arange(len(n)), n)
    place = np.arange(len(row)) - np.repeat(np.cumsum(n) - n, n)
    primary = np.flatnonzero(place < _PRIMARIES)
    flat = votes.flatten()
    fields = {name: pc.struct_field(flat, name).take(pa.array(primary)) for name in _VOTE_FIELDS}
    return row[primary], place[primary], fields
