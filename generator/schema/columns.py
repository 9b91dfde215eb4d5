"""The receipt columns and what every column of every table is: type, unit, meaning, null.

See contract: receipts, "Columns".
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """One column of a published table.

    `unit` is empty for text; `null` says what an empty cell means and is empty where none may be.
    `raw` marks ids and hashes, which the CSV never guards against spreadsheet formulas.
    """

    name: str
    type: pa.DataType
    description: str
    unit: str = ""
    null: str = ""
    raw: bool = False

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
        "key",
        pa.string(),
        "SHA-256 key of the judge's answer in the operator's cache.",
        null="no call was made",
        raw=True,
    ),
)
VOTES = pa.list_(pa.struct([pa.field(c.name, c.type) for c in VOTE_FIELDS]))
_CALL = "the call failed"

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
    Column("framing", pa.string(), "direct or professional.", raw=True),
    Column("group", pa.string(), "Group named in this prompt.", raw=True),
    Column("group_np", pa.string(), "The group's noun phrase as it stands in the prompt."),
    Column("prompt", pa.string(), "The prompt as sent."),
    Column("prompt_sha256", pa.string(), "SHA-256 of the prompt's UTF-8.", raw=True),
    Column("swap_start", pa.int32(), "Where the noun phrase starts in the prompt.", "code points"),
    Column("swap_end", pa.int32(), "Where it ends (exclusive).", "code points"),
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
        "mask_spans",
        MASK_SPANS,
        "Parts of the response that the judges saw as [PERSON].",
        "code points, start-end, end exclusive",
    ),
    Column("mask_leak", pa.bool_(), "A term of the attribute was still there after masking."),
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
    Column("completion_tokens", pa.int32(), "Completion tokens, as the endpoint says.", "tokens", "not reported"),
    Column("cost_usd", pa.float64(), "Subject and judge calls of this row.", "US dollars"),
)
RECEIPT_SCHEMA = arrow_schema(RECEIPT_COLUMNS)
ROW_KEY = ("attribute", "concept", "framing", "group", "repeat")
