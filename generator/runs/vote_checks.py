"""Holds votes against the panel and the final-label rule: a row's votes must lead to its label, value and status.

See contract: verdicts, "Final label"; contract: receipts, "Votes".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from generator.schema.bank import REFUSAL, Bank, Rubric
from generator.schema.columns import LATEST_FORMAT
from generator.schema.manifest import Manifest
from generator.schema.panel import Panel
from generator.schema.verdict import UNWRAPPED, VOTE_ERRORS, Verdict, Vote, final_verdict, primaries_agree, score_bin

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
PLACES = 3
HASH = "^[0-9a-f]{64}$"  # RE2: $ is the end of the text
NONE, REFUSED, UNKNOWN = -1, -2, -3
# A mean of scores may differ in its last bits from that of another program.
_VALUE_SLACK = 1e-12


class Planned(Protocol):
    """What a run says about the votes of every row."""

    @property
    def manifest(self) -> Manifest:
        """The run's manifest."""

    @property
    def bank(self) -> Bank:
        """The run's bank."""


class RowReport(Protocol):
    """Where faults of rows are recorded."""

    def rows(self, bad: BoolArray, column: str, say: Callable[[int], str]) -> None:
        """Record the rows where `bad`, a bool array (rows,), is true."""

    def __bool__(self) -> bool:
        """Whether anything was found."""


@dataclass(frozen=True)
class VoteColumns:
    """The votes of a shard as int arrays.

    `n` counts the votes of a row, (rows,). The other arrays are (rows, 3) in panel order, with NONE where there is no
    vote or no value.

    Attributes:
        n: votes of a row.
        label: index on the rubric's scale from low to high, or REFUSED, NONE, UNKNOWN.
        score: 0 to 100.
        refusal: 0 or 1.
        matches: whether verdict and prose agree, 0 or 1.
        failed: whether the vote is an error, 0 or 1.
    """

    n: IntArray
    label: IntArray
    score: IntArray
    refusal: IntArray
    matches: IntArray
    failed: IntArray


def _lengths(votes: pa.ListArray) -> IntArray:
    return np.asarray(pc.list_value_length(votes).to_numpy(), dtype=np.int64)


def _flat_index(votes: pa.ListArray) -> tuple[IntArray, IntArray]:
    """Return (row, place in the panel) of each vote of a list column, flattened."""
    n = _lengths(votes)
    row = np.repeat(np.arange(len(n)), n)
    # The place in the flat list, less the place at which the row's votes begin.
    return row, np.arange(len(row)) - np.repeat(np.cumsum(n) - n, n)


def _padded(values: npt.NDArray[Any], where: tuple[IntArray, IntArray], rows: int) -> IntArray:
    full = np.full((rows, PLACES), NONE, np.int64)
    full[where] = values
    return full


def label_codes(labels: pa.Array, rubric: IntArray, rubrics: tuple[Rubric, ...]) -> IntArray:
    """Return each label's index on the scale of its row's rubric.

    Args:
        labels: the labels, an Arrow array of strings.
        rubric: index of the rubric of each label, int array (labels,).
        rubrics: the bank's rubrics.

    Returns:
        Int array (labels,): an index from 0, REFUSED for REFUSAL, NONE for null, UNKNOWN for any other text.
    """
    coded = labels.dictionary_encode()
    known = [*coded.dictionary.to_pylist(), None]
    scales: list[dict[str | None, int]] = [{REFUSAL: REFUSED, None: NONE} for _ in rubrics]
    for scale, r in zip(scales, rubrics, strict=True):
        scale.update({name: i for i, name in enumerate(r.names)})
    table = np.array([[scale.get(name, UNKNOWN) for name in known] for scale in scales], np.int64)
    index = pc.fill_null(coded.indices, len(known) - 1).to_numpy()
    return np.asarray(table[rubric, index])


def rubric_codes(table: pa.Table, bank: Bank) -> IntArray:
    """Return the index of each row's rubric among the bank's rubrics: int array (rows,).

    Raises:
        ValueError: a row names a rubric that the bank lacks.
    """
    coded = table["rubric"].combine_chunks().dictionary_encode()
    ids = [r.id for r in bank.rubrics]
    place = np.array([ids.index(name) for name in coded.dictionary.to_pylist()], np.int64)
    return np.asarray(place[coded.indices.to_numpy()])


def vote_columns(table: pa.Table, bank: Bank) -> VoteColumns:
    """Return a shard's votes as arrays.

    Args:
        table: the columns rubric and votes, at most three votes a row.
        bank: the run's bank, for the scales of its rubrics.
    """
    votes = table["votes"].combine_chunks()
    where = _flat_index(votes)
    flat = votes.flatten()
    rubric = rubric_codes(table, bank)

    def numbers(name: str) -> IntArray:
        values = pc.fill_null(pc.struct_field(flat, name).cast(pa.int64()), NONE).to_numpy()
        return _padded(values, where, len(votes))

    labels = label_codes(pc.struct_field(flat, "label"), rubric[where[0]], bank.rubrics)
    failed = pc.is_valid(pc.struct_field(flat, "error")).to_numpy(zero_copy_only=False)
    return VoteColumns(
        n=_lengths(votes),
        label=_padded(labels, where, len(votes)),
        score=numbers("score"),
        refusal=numbers("refusal"),
        matches=numbers("verdict_matches_prose"),
        failed=_padded(failed, where, len(votes)),
    )


def check_votes(table: pa.Table, plan: Planned, panel: Panel, found: RowReport) -> None:
    """Find votes that break the panel, the rules of a single vote, or the final-label rule.

    Args:
        table: a shard with the columns of the latest format.
        plan: the run's manifest and bank.
        panel: the judges of this model, in order.
        found: where faults are recorded.
    """
    bank, imported = plan.bank, plan.manifest.imported is not None
    votes = table["votes"].combine_chunks()
    n = _lengths(votes)
    found.rows(n > PLACES, "votes", lambda row: f"{n[row]:,} votes; a panel has at most {PLACES}")
    if found:
        return
    _check_seats(votes, panel, found)
    columns = vote_columns(table, bank)
    rubric = rubric_codes(table, bank)
    is_score = np.array([r.scale == "score" for r in bank.rubrics])[rubric]
    _check_fields(votes, columns, is_score, found, imported=imported)
    if plan.manifest.format >= LATEST_FORMAT:
        _check_reading(votes, found, imported=imported)
    if not found:
        # A row without votes is an error, or a refusal by the vendor's own filter; format 1 says no more of it.
        filtered = "outcome" if plan.manifest.format >= LATEST_FORMAT else "status"
        silenced = pc.fill_null(pc.is_in(table[filtered], pa.array(["filtered", "refused"])), False).to_numpy()
        _check_verdicts(table, columns, rubric, bank, panel, silenced & (columns.n == 0), found)
    silent = pc.is_null(table["response"]).to_numpy() & (n > 0) & ~np.bool_(imported)
    found.rows(silent, "votes", lambda _: "votes on a row without a response")


def _check_seats(votes: pa.ListArray, panel: Panel, found: RowReport) -> None:
    """Find votes whose judge or role is not that of their place in the panel."""
    row, place = _flat_index(votes)
    flat = votes.flatten()
    # No judge and no role fits a seat that the panel does not have.
    empty = [""] * (PLACES - panel.size)
    seats, roles = pa.array([*panel.all, *empty]), pa.array([*panel.roles, *empty])
    bad = np.zeros(len(votes), np.bool_)
    for column, expected in (("judge", seats), ("role", roles)):
        same = pc.fill_null(pc.equal(pc.struct_field(flat, column), expected.take(pa.array(place))), False)
        bad[row[~same.to_numpy(zero_copy_only=False)]] = True
    names = ", ".join(f"{j} ({r})" for j, r in zip(panel.all, panel.roles, strict=True))

    def say(r: int) -> str:
        seen = ", ".join(f"{v['judge']} ({v['role']})" for v in votes[r].as_py())
        return f"votes by {seen}; the panel in order is {names}"

    found.rows(bad, "votes", say)


def _check_reading(votes: pa.ListArray, found: RowReport, *, imported: bool) -> None:
    """Check what was taken off replies against the closed list, and that valid votes say if evidence was cut."""
    flat, (row, _) = votes.flatten(), _flat_index(votes)
    told = pc.struct_field(flat, "unwrapped")
    strange = [text for text in pc.unique(told).to_pylist() if text is not None and not _is_unwrapped(text)]
    bad = np.zeros(len(votes), np.bool_)
    bad[row[pc.is_in(told, pa.array(strange, pa.string())).to_numpy(zero_copy_only=False)]] = True
    rule = f"items of {', '.join(UNWRAPPED)} in this order, joined by semicolons, or null"
    found.rows(
        bad, "votes", lambda r: f"unwrapped {[str(v['unwrapped'])[:64] for v in votes[r].as_py()]}; it is {rule}"
    )
    cut, failed = (pc.struct_field(flat, name) for name in ("evidence_cut", "error"))
    silent = pc.is_null(cut).to_numpy(zero_copy_only=False)
    failed = pc.is_valid(failed).to_numpy(zero_copy_only=False)
    wrong = (failed & ~silent) | (~failed & silent & ~np.bool_(imported))
    bad = np.zeros(len(votes), np.bool_)
    bad[row[wrong]] = True
    found.rows(
        bad, "votes", lambda r: f"evidence_cut {[v['evidence_cut'] for v in votes[r].as_py()]}; null is for errors"
    )


def _is_unwrapped(text: str) -> bool:
    items = text.split(";")
    return items == [name for name in UNWRAPPED if name in items]


def _check_fields(
    votes: pa.ListArray, columns: VoteColumns, is_score: BoolArray, found: RowReport, *, imported: bool
) -> None:
    """Find valid votes that lack or contradict a field of their scale, and votes in error that have one."""
    errors, keys = (pc.struct_field(votes.flatten(), name) for name in ("error", "key"))
    row, _ = _flat_index(votes)
    odd = np.zeros(len(votes), np.bool_)
    odd[row[pc.fill_null(pc.invert(pc.match_substring_regex(keys, HASH)), False).to_numpy(zero_copy_only=False)]] = True
    found.rows(odd, "votes", lambda r: f"key {[v['key'] for v in votes[r].as_py()]}; a key is 64 hex digits or null")
    closed = pc.fill_null(pc.is_in(errors, pa.array(VOTE_ERRORS)), True).to_numpy(zero_copy_only=False)
    closed = closed | pc.is_null(errors).to_numpy(zero_copy_only=False)
    unknown = np.zeros(len(votes), np.bool_)
    unknown[row[~closed]] = True

    def say(r: int) -> str:
        kept = ("label", "score", "refusal", "verdict_matches_prose", "error")
        return "; ".join(str({k: v[k] for k in kept}) for v in votes[r].as_py())

    found.rows(unknown, "votes", lambda r: f"error code not in {', '.join(VOTE_ERRORS)}: {say(r)}")
    cast = np.arange(PLACES) < columns.n[:, None]
    failed = columns.failed == 1
    valid = cast & ~failed
    on_scale = columns.label >= 0
    scored = is_score[:, None]
    # A bin is 20 points wide, and the last one takes 100 in (contract: verdicts, "Bins of a score").
    bins = np.minimum(columns.score // 20, 4)
    right_score = (columns.score >= 0) & (columns.score <= 100) & (bins == columns.label)
    good = (on_scale | (columns.label == REFUSED)) & (columns.refusal == (columns.label == REFUSED))
    good &= np.where(scored & on_scale, right_score, columns.score == NONE)
    # A score rubric has no verdict to compare with prose, and imported votes may lack it.
    good &= np.where(scored, columns.matches == NONE, (columns.matches != NONE) | imported)
    empty = (columns.label == NONE) & (columns.score == NONE) & (columns.refusal == NONE) & (columns.matches == NONE)
    bad = ((valid & ~good) | (cast & failed & ~empty)).any(axis=1)
    found.rows(bad, "votes", lambda r: f"label, score and refusal do not fit the rubric or each other: {say(r)}")


def _check_verdicts(
    table: pa.Table,
    columns: VoteColumns,
    rubric: IntArray,
    bank: Bank,
    panel: Panel,
    filtered: BoolArray,
    found: RowReport,
) -> None:
    """Work out each distinct pattern of votes once by the final-label rule, and compare all rows with the result."""
    # Tens of thousands of rows hold a few hundred distinct patterns of votes.
    patterns, inverse = np.unique(
        np.column_stack([rubric, columns.n, columns.label, columns.score, columns.refusal, columns.failed]),
        axis=0,
        return_inverse=True,
    )
    ruled = [_ruling(pattern, bank, panel) for pattern in patterns.tolist()]
    inverse = inverse.ravel()
    short = np.array([needs is not None for _, needs in ruled], np.bool_)[inverse]
    found.rows(short, "votes", lambda row: str(ruled[inverse[row]][1]))
    label, value, status = (table[c].combine_chunks() for c in ("final_label", "value", "status"))
    verdicts = [verdict for verdict, _ in ruled]
    labels = pa.array([v.label for v in verdicts], pa.string()).take(pa.array(inverse))
    statuses = pa.array([v.status for v in verdicts], pa.string()).take(pa.array(inverse))
    values = np.array([np.nan if v.value is None else v.value for v in verdicts], np.float64)[inverse]
    same = pc.fill_null(pc.equal(label, labels), False).to_numpy(zero_copy_only=False)
    same |= _both_null(label, labels)
    # A filter's refusal has no votes that a label could come from.
    same = np.where(filtered, pc.fill_null(pc.equal(label, REFUSAL), False).to_numpy(zero_copy_only=False), same)
    same_status = filtered | pc.equal(status, statuses).to_numpy(zero_copy_only=False)
    seen = value.to_numpy(zero_copy_only=False)
    same_value = np.where(np.isnan(values), np.isnan(seen), np.abs(seen - values) <= _VALUE_SLACK)
    found.rows(~same, "final_label", lambda r: f"saw {label[r].as_py()}; the votes give {labels[r].as_py()}")
    found.rows(~same_status, "status", lambda r: f"saw {status[r].as_py()}; the votes give {statuses[r].as_py()}")
    found.rows(
        ~same_value, "value", lambda r: f"saw {value[r].as_py()}; the final label gives {verdicts[inverse[r]].value}"
    )


def _both_null(a: pa.Array, b: pa.Array) -> BoolArray:
    return np.asarray(pc.and_(pc.is_null(a), pc.is_null(b)).to_numpy(zero_copy_only=False))


def _ruling(pattern: list[int], bank: Bank, panel: Panel) -> tuple[Verdict, str | None]:
    """Return the verdict of a pattern of votes, and what is wrong with the number of votes, if anything."""
    rubric, n = bank.rubrics[pattern[0]], pattern[1]
    if n == 0:
        return Verdict(None, None, "error"), None
    primaries = len(panel.primary)
    if n < primaries:
        return Verdict(None, None, "error"), "one vote; both primaries vote on a row that is judged"
    fields = [pattern[2 + PLACES * k : 2 + PLACES * (k + 1)] for k in range(4)]
    votes = [_vote(rubric, *(f[place] for f in fields)) for place in range(n)]
    if primaries == 1:
        return final_verdict(votes, rubric, primaries=1), None
    # Only two valid votes that differ call in the tiebreak.
    split = not any(v.error for v in votes[:2]) and not primaries_agree(votes, rubric)
    fault = None
    if n == PLACES and not split:
        fault = "a tiebreak vote where the primaries agree or one is in error"
    elif n < PLACES and split and panel.tiebreak is not None:
        fault = f"the primaries differ and the tiebreak {panel.tiebreak} has not voted"
    return final_verdict(votes, rubric), fault


def _vote(rubric: Rubric, label: int, score: int, refusal: int, failed: int) -> Vote:
    text = REFUSAL if label == REFUSED else rubric.names[label] if label >= 0 else None
    if rubric.scale == "score" and score >= 0:
        # That label and score fit each other was checked before.
        text = score_bin(score)
    return Vote(
        judge="",
        role="",
        label=text,
        score=score if score >= 0 else None,
        refusal=bool(refusal) if refusal >= 0 else None,
        verdict_matches_prose=None,
        evidence=None,
        error="shape" if failed == 1 else None,
        key=None,
    )
