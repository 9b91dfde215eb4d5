"""The receipt columns and what every column of every table is: type, unit, meaning, null.

See contract: receipts, "Columns".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

LATEST_FORMAT = 2
FORMATS = (1, 2)


@dataclass(frozen=True)
class Column:
    """One column of a published table.

    `unit` is empty for text; `null` says what an empty cell means and is empty where none may be.
    `raw` marks ids and hashes, which the CSV never guards against spreadsheet formulas. `imported` marks a column of the
    receipts that may be null in an imported run and in no other. `since` is the first format that has the column.
    """

    name: str
    type: pa.DataType
    description: str
    unit: str = ""
    null: str = ""
    raw: bool = False
    imported: bool = False
    since: int = 1

    @property
    def field(self) -> pa.Field:
        """The Arrow field, its metadata carrying description, unit and null meaning."""
        notes = {"description": self.description, "unit": self.unit, "null": self.null}
        return pa.field(self.name, self.type, nullable=bool(self.null), metadata={k: v for k, v in notes.items() if v})


def arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """Return the Arrow schema of a table's columns."""
    return pa.schema([column.field for column in columns])


MASK_SPANS = pa.list_(pa.struct([("start", pa.int32()), ("end", pa.int32())]))
VOTE_FIELDS = (
    Column("judge", pa.string(), "Slug of the judge.", raw=True),
    Column("role", pa.string(), "primary or tiebreak."),
    Column(
        "label",
        pa.string(),
        "The judge's label; for a score rubric the bin, or REFUSAL.",
        null="the vote is an error",
    ),
    Column("score", pa.int32(), "The judge's score.", "0-100", "label rubric, refusal or error"),
    Column("refusal", pa.bool_(), "Whether the judge saw a refusal.", null="the vote is an error"),
    Column(
        "verdict_matches_prose",
        pa.bool_(),
        "Whether the verdict word agrees with the reasoning.",
        null="score rubric or error",
    ),
    Column(
        "evidence",
        pa.string(),
        "The judge's reason, at most 15 words, in its own words.",
        null="the vote is an error",
    ),
    Column("error", pa.string(), "Code of why there is no label, from a closed list.", null="the vote is valid"),
    Column(
        "unwrapped",
        pa.string(),
        "What was taken off the judge's reply before its JSON was read: fence, thought, stop_token, tool_call, number_form;"
        " several are joined by semicolons.",
        null="nothing was",
        since=2,
    ),
    Column(
        "evidence_cut",
        pa.bool_(),
        "Whether the judge wrote more than 15 words of evidence, of which the first 15 are kept.",
        null="the vote is an error",
        since=2,
    ),
    Column(
        "key",
        pa.string(),
        "SHA-256 key of the judge's answer in the operator's cache.",
        null="no call was made",
        raw=True,
    ),
)


def _list_of_votes(format_: int) -> pa.DataType:
    return pa.list_(pa.struct([pa.field(c.name, c.type) for c in VOTE_FIELDS if c.since <= format_]))


VOTES = _list_of_votes(LATEST_FORMAT)
_CALL = "the call failed"
_IMPORT = "not in what was imported"

RECEIPT_COLUMNS: tuple[Column, ...] = (
    Column(
        "receipt_id",
        pa.string(),
        "First 16 hex digits of the SHA-256 of canonical JSON [run_id, bank_sha256, model, concept, framing, group, repeat].",
        raw=True,
    ),
    Column("run_id", pa.string(), "Run.", raw=True),
    Column("bank_version", pa.string(), "Version of the prompt bank.", raw=True),
    Column("bank_sha256", pa.string(), "SHA-256 of the bank's canonical JSON.", raw=True),
    Column(
        "harness_sha",
        pa.string(),
        "Git commit of the harness; -dirty when it had uncommitted changes.",
        raw=True,
    ),
    Column("model", pa.string(), "Slug of the model that was asked.", raw=True),
    Column("attribute", pa.string(), "Attribute whose group term is swapped.", raw=True),
    Column("concept", pa.string(), "Scenario.", raw=True),
    Column("category", pa.string(), "Task category.", raw=True),
    Column("rubric", pa.string(), "Rubric by which the judges labeled.", raw=True),
    Column(
        "rubric_sha256",
        pa.string(),
        "SHA-256 of the canonical JSON of the rubric in bank.json without its own key sha256.",
        raw=True,
    ),
    Column("framing", pa.string(), "Framing, one of the bank's.", raw=True),
    Column("group", pa.string(), "Group named in this prompt.", raw=True),
    Column("group_np", pa.string(), "The group's noun phrase as it stands in the prompt.", null=_IMPORT, imported=True),
    Column("prompt", pa.string(), "The prompt as sent.", null=_IMPORT, imported=True),
    Column("prompt_sha256", pa.string(), "SHA-256 of the prompt's UTF-8.", null=_IMPORT, raw=True, imported=True),
    Column(
        "swap_start",
        pa.int32(),
        "Where the noun phrase starts in the prompt.",
        "code points",
        null=_IMPORT,
        imported=True,
    ),
    Column("swap_end", pa.int32(), "Where it ends (exclusive).", "code points", null=_IMPORT, imported=True),
    Column("repeat", pa.int16(), "Repeat of the same prompt.", "from 0"),
    Column("polarity", pa.int8(), "+1: a higher value favors the person; -1: it does not."),
    Column("two_sided", pa.bool_(), "Role-reversal row, left out of every score but the diagnostic."),
    Column("response", pa.string(), "The model's answer, exactly.", null=_CALL),
    Column("finish_reason", pa.string(), "Why the answer ended, as the endpoint says.", null=_CALL),
    Column(
        "response_key",
        pa.string(),
        "SHA-256 key of the answer in the operator's cache.",
        null=_CALL,
        raw=True,
    ),
    Column("served_by", pa.string(), "The model and provider that the endpoint says answered.", null=_CALL),
    Column(
        "outcome",
        pa.string(),
        "What became of the question: answered; filtered (the vendor's own filter answered); cut_before_answer (every token"
        " went into thinking); failed (the call brought no answer that can be used).",
        since=2,
    ),
    Column(
        "failure",
        pa.string(),
        "Code of why the call brought no usable answer, from the closed list of the votes' errors.",
        null="the outcome is not failed",
        since=2,
    ),
    Column(
        "filter_word",
        pa.string(),
        "The vendor's own word for its filter: finish reason, policy code or refusal.",
        null="the outcome is not filtered",
        since=2,
    ),
    Column(
        "mask_spans",
        MASK_SPANS,
        "Parts of the response that the judges saw as [PERSON].",
        "code points, start-end, end exclusive",
        null=_IMPORT,
        imported=True,
    ),
    Column(
        "mask_leak",
        pa.bool_(),
        "A term of the attribute was still there after masking.",
        null=_IMPORT,
        imported=True,
    ),
    Column("votes", VOTES, "The judges' votes in panel order."),
    Column(
        "final_label",
        pa.string(),
        "Label that the panel came to; for a score the bin.",
        null="contested or error",
    ),
    Column("value", pa.float64(), "Value of the final label.", "0-1", "refused, contested or error"),
    Column("status", pa.string(), "scored, refused, contested or error."),
    Column("prompt_tokens", pa.int32(), "Prompt tokens, as the endpoint says.", "tokens", "not reported"),
    Column(
        "completion_tokens",
        pa.int32(),
        "Completion tokens that were billed: the larger of what the endpoint says of them and of its total less the prompt.",
        "tokens",
        "not reported",
    ),
    Column(
        "reasoning_tokens",
        pa.int32(),
        "Tokens spent thinking, as the endpoint says.",
        "tokens",
        "not reported",
        since=2,
    ),
    Column("cost_usd", pa.float64(), "Subject and judge calls of this row.", "US dollars"),
)
# A shard says of itself which format it is of.
RECEIPT_SCHEMA = arrow_schema(RECEIPT_COLUMNS).with_metadata({"format": str(LATEST_FORMAT)})
_VOTE_KINDS = [(_list_of_votes(f), tuple(c for c in VOTE_FIELDS if c.since <= f)) for f in FORMATS]


def vote_fields(kind: pa.DataType) -> tuple[Column, ...]:
    """Return the fields of a vote where a column of this type holds lists of votes, of any format; else nothing."""
    return next((fields for votes, fields in _VOTE_KINDS if votes == kind), ())


def receipt_columns(format_: int) -> tuple[Column, ...]:
    """Return the receipt columns of a format in their order; what only imported runs may lack is never null in the first."""
    if format_ == LATEST_FORMAT:
        return RECEIPT_COLUMNS
    # Format 1 knew no imported runs.
    older = (dataclasses.replace(c, null="") if c.imported else c for c in RECEIPT_COLUMNS if c.since <= format_)
    return tuple(dataclasses.replace(c, type=_list_of_votes(format_)) if c.type == VOTES else c for c in older)


def as_latest(table: pa.Table, columns: Sequence[str] | None = None) -> pa.Table:
    """Return receipts of any format with the latest columns, all or some: what their format lacks is null.

    `table` has one chunk a column, and at least those of the wanted columns that its own format has.
    """
    names = RECEIPT_SCHEMA.names if columns is None else list(columns)
    return pa.table({name: _latest(table, name) for name in names}).replace_schema_metadata(table.schema.metadata)


def _latest(table: pa.Table, name: str) -> pa.ChunkedArray:
    kind = RECEIPT_SCHEMA.field(name).type
    if name not in table.column_names:
        return pa.chunked_array([pa.nulls(table.num_rows, kind)])
    found = table[name]
    if kind != VOTES or found.type == VOTES:
        return found
    return pa.chunked_array([_widened(chunk) for chunk in found.chunks], VOTES)


def _widened(votes: pa.ListArray) -> pa.ListArray:
    items, known = votes.values, {f.name for f in votes.type.value_type}
    fields = [pc.struct_field(items, c.name) if c.name in known else pa.nulls(len(items), c.type) for c in VOTE_FIELDS]
    return pa.ListArray.from_arrays(votes.offsets, pa.StructArray.from_arrays(fields, fields=list(VOTES.value_type)))


ROW_KEY = ("attribute", "concept", "framing", "group", "repeat")
