"""The human audit's two ends: the sheet that a reviewer fills in, and the labels that come back.

The sheet shows what the judges saw, with the terms of the whole bank scrubbed on top: no model, no vote, no label, in
an order that says nothing. The draw is `generator.schema.audit_draw`; what was drawn is kept beside the sheet.

See contract: stages, "The review sheet".
"""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from generator.schema.audit_draw import auditable, draw, stratum_name
from generator.schema.bank import PERSON, REFUSAL, Bank, Frozen, Rubric, read_bank, validation_faults
from generator.schema.bounded_files import JSON, REVIEW_SHEET, read_bytes, read_text
from generator.schema.canonical import sha256_hex
from generator.schema.columns import RECEIPT_SCHEMA
from generator.schema.errors import InputError, raise_faults
from generator.schema.manifest import Manifest, read_manifest
from generator.schema.parquet_files import SHARD, read_parquet
from harness.masking.mask import Masker, apply_mask, bank_masker

AUDIT, SHEET_HTML, SHEET_CSV, DRAW = "audit", "sheet.html", "sheet.csv", "draw.json"
LABELS_CSV = "audit.csv"
LABELS_HEADER = ("receipt_id", "label")
_ON_SHEET = "r"  # before an id: a spreadsheet would round 5816270921604169 and read 12345678901234e5 as a number
_STRATA = ("receipt_id", "rubric", "final_label", "status")
_SHOWN = ("receipt_id", "rubric", "prompt", "swap_start", "swap_end", "response", "mask_spans")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")


@dataclass(frozen=True)
class Item:
    """One row as the reviewer sees it."""

    receipt_id: str
    rubric: str
    prompt: str
    response: str


class DrawRecord(Frozen):
    """What was drawn and how, so that import can hold the labels against it."""

    run_id: str
    seed: int
    asked: int
    drawn_on: str
    reviewer: Literal["human", "simulated"]
    rubrics: dict[str, str]  # receipt id to rubric


@dataclass(frozen=True)
class Judged:
    """A run folder after stage judge, opened for the audit."""

    folder: Path
    manifest: Manifest
    bank: Bank

    def models_until(self, day: str) -> list[str]:
        """Return the models that were in the run on a day."""
        return [m.model for m in self.manifest.models if m.added <= day]

    def table(self, model: str, columns: Sequence[str]) -> pa.Table:
        """Read columns of one model's shard, its hash checked."""
        entry = next((s for s in self.manifest.shards if s.model == model), None)
        if entry is None:
            raise InputError(f"{self.folder / 'manifest.json'}: no shard of {model}; run judge again")
        path = self.folder / entry.file
        try:
            data = read_bytes(path, SHARD.file)
        except FileNotFoundError:
            data = b""
        if sha256_hex(data) != entry.sha256:
            raise InputError(f"{path}: not the shard that manifest.json names (SHA-256 differs); run judge again")
        table = read_parquet(data, str(path), columns)
        raise_faults([f"{path}: {fault}; run judge again" for fault in self._faults(table, columns)])
        return table

    def _faults(self, table: pa.Table, columns: Sequence[str]) -> Iterator[str]:
        """Say which columns are not those of receipts: type, nulls, rubrics of another bank."""
        for name in columns:
            field, seen = RECEIPT_SCHEMA.field(name), table[name]
            if seen.type != field.type:
                yield f"column {name} is {seen.type}; it is {field.type}"
            elif seen.null_count and not field.nullable:
                yield f"column {name} holds {seen.null_count:,} nulls; none may be there"
            elif name == "mask_spans":
                spans = seen.combine_chunks().flatten()
                if any(pc.struct_field(spans, end).null_count for end in ("start", "end")):
                    yield "column mask_spans holds a span without start or end"
            elif name == "rubric":
                yield from (
                    f"rubric {r!r} is not in the bank" for r in pc.unique(seen).to_pylist() if r not in self.bank.rubric
                )


def open_judged(folder: Path) -> Judged:
    """Open a judged run; raises InputError when it was not judged to its end."""
    manifest = read_manifest(folder / "manifest.json")
    bank = read_bank(folder / "bank.json")
    if bank.sha256 != manifest.bank_sha256:
        raise InputError(f"{folder / 'bank.json'}: hashes to {bank.sha256}, manifest.json says {manifest.bank_sha256}")
    return Judged(folder, manifest, bank)


def drawn_rubrics(run: Judged, *, asked: int, day: str) -> dict[str, str]:
    """Draw the sample from the models that were in the run on a day; returns the rubric by receipt id."""
    strata: dict[str, list[str]] = defaultdict(list)
    rubric_of: dict[str, str] = {}
    for model in run.models_until(day):
        table = run.table(model, (*_STRATA, "votes"))
        n_votes = [len(votes) for votes in table["votes"].to_pylist()]
        columns = (table[name].to_pylist() for name in _STRATA)
        for receipt_id, rubric, label, status, votes in zip(*columns, n_votes, strict=True):
            if auditable(status, votes):
                strata[stratum_name(rubric, label)].append(receipt_id)
                rubric_of[receipt_id] = rubric
    ids = draw(strata, asked=asked, seed=run.manifest.seeds.audit).ids
    if not ids:
        raise InputError(f"{run.folder}: no row has a final label; there is nothing to audit")
    return {i: rubric_of[i] for i in sorted(ids)}


def draw_record(run: Judged, *, asked: int) -> DrawRecord:
    """Draw a fresh sample over all models of the run."""
    day = max(m.added for m in run.manifest.models)
    return DrawRecord(
        run_id=run.manifest.run_id,
        seed=run.manifest.seeds.audit,
        asked=asked,
        drawn_on=day,
        reviewer="simulated" if run.manifest.simulated else "human",
        rubrics=drawn_rubrics(run, asked=asked, day=day),
    )


def items_of(run: Judged, record: DrawRecord) -> list[Item]:
    """Return the drawn rows, masked and scrubbed, in the order of the sheet."""
    scrub = bank_masker(run.bank)
    wanted = pa.array(sorted(record.rubrics))
    items = []
    for model in run.models_until(record.drawn_on):
        table = run.table(model, _SHOWN)
        table = table.filter(pa.compute.is_in(table["receipt_id"], value_set=wanted))
        items += [item_of(row, scrub, run.bank.rubric[row["rubric"]]) for row in table.to_pylist()]
    return sorted(items, key=lambda item: sha256_hex(f"{record.seed}|sheet|{item.receipt_id}"))


def item_of(row: Mapping[str, Any], scrub: Masker, rubric: Rubric) -> Item:
    """Return what is shown of one receipt; raises InputError where an imported one has no text to be labeled by."""
    if row["prompt"] is None or row["response"] is None:
        raise InputError(f"row {row['receipt_id']}: its text is not in what was imported; nobody can label it by hand")
    prompt, response = str(row["prompt"]), str(row["response"])
    if rubric.mask_groups:
        if row["swap_start"] is not None:
            prompt = prompt[: row["swap_start"]] + PERSON + prompt[row["swap_end"] :]
        response = apply_mask(response, [(span["start"], span["end"]) for span in row["mask_spans"] or ()])
    return Item(row["receipt_id"], rubric.id, scrubbed(scrub, prompt), scrubbed(scrub, response))


def scrubbed(scrub: Masker, text: str) -> str:
    """Return a text with every term of the bank masked."""
    return apply_mask(text, scrub.spans(text))


def choices(rubric: Rubric) -> tuple[str, ...]:
    """Return the labels that a reviewer may give; a score rubric takes a number 0-100 besides REFUSAL."""
    return (*(item.label for item in rubric.labels), REFUSAL)


def sheet_csv(items: Iterable[Item], bank: Bank) -> str:
    """Return the sheet as CSV: ids, what to choose from, the two texts, an empty label."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("receipt_id", "rubric", "allowed", "prompt", "response", "label"))
    for item in items:
        rubric = bank.rubric[item.rubric]
        allowed = " | ".join((["0 to 100"] if rubric.scale == "score" else []) + list(choices(rubric)))
        writer.writerow(
            (_ON_SHEET + item.receipt_id, item.rubric, allowed, _guard(item.prompt), _guard(item.response), "")
        )
    return out.getvalue()


def _guard(text: str) -> str:
    """Keep a spreadsheet from running a cell (contract: tables, "CSV")."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def labels_csv(labels: Mapping[str, str]) -> str:
    """Return `audit.csv`: receipt_id,label, sorted by id."""
    lines = [",".join(LABELS_HEADER), *(f"{i},{labels[i]}" for i in sorted(labels))]
    return "\n".join(lines) + "\n"


def read_draw(folder: Path) -> DrawRecord:
    """Read what `audit sample` drew."""
    path = folder / AUDIT / DRAW
    try:
        return DrawRecord.model_validate(json.loads(read_bytes(path, JSON)))
    except FileNotFoundError:
        raise InputError(f"{path}: not found; draw the sample first: aibiasbench audit sample {folder.name}") from None
    except ValidationError as error:
        raise InputError(*validation_faults(error, str(path))) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None


def read_labels(path: Path) -> list[tuple[int, str, str]]:
    """Read a filled-in sheet: (line, receipt id, label) of every row.

    An id may stand as on the sheet, after a letter, or bare. Other columns are ignored, and so are rows without an id
    and a label, which spreadsheets leave at the end. Raises InputError when the file is no such sheet.
    """
    try:
        text = read_text(path, REVIEW_SHEET, "utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: cannot be read: No such file or directory") from None
    first = text.partition("\n")[0]
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=";" if ";" in first and "," not in first else ",")
    names = reader.fieldnames or []
    if missing := [name for name in LABELS_HEADER if name not in names]:
        raise InputError(f"{path}: line 1: no column {missing[0]!r}; the header must name receipt_id and label")
    try:
        rows = [(reader.line_num, (row["receipt_id"] or "").strip(), (row["label"] or "").strip()) for row in reader]
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}: not CSV: {error}") from None
    return [
        (line, receipt_id.removeprefix(_ON_SHEET), label) for line, receipt_id, label in rows if receipt_id or label
    ]


def checked_labels(path: Path, record: DrawRecord, bank: Bank) -> dict[str, str]:
    """Return the labels by receipt id.

    Raises InputError with every fault: an id that was not drawn, a label outside the rubric, an id twice, a drawn row
    without a label.
    """
    drawn = sorted({rubric for rubric in record.rubrics.values() if rubric not in bank.rubric})
    raise_faults([f"{AUDIT}/{DRAW}: rubric {rubric!r} is not in the bank; draw the sample again" for rubric in drawn])
    faults: list[str] = []
    labels: dict[str, str] = {}
    lines: dict[str, int] = {}
    for line, receipt_id, text in read_labels(path):
        where = f"{path}: line {line}"
        if receipt_id not in record.rubrics:
            faults.append(f"{where}: receipt id {receipt_id!r} was not drawn{_hint(receipt_id)}")
        elif receipt_id in lines:
            faults.append(f"{where}: {receipt_id} is labeled twice, first in line {lines[receipt_id]}; keep one")
        else:
            lines[receipt_id] = line
            label, fault = _label(text, bank.rubric[record.rubrics[receipt_id]])
            labels[receipt_id] = label
            faults += [f"{where}: {receipt_id}: {fault}"] if fault else []
    absent = sorted(record.rubrics.keys() - lines.keys())
    faults += [f"{path}: no row for {i} ({record.rubrics[i]}), which was drawn; label all rows" for i in absent]
    raise_faults(faults)
    return labels


def _hint(receipt_id: str) -> str:
    if any(c in receipt_id for c in "+., ") or len(receipt_id) != 16:
        return "; did a spreadsheet turn it into a number? Keep the column as text"
    return "; it belongs to another run or draw"


def _label(text: str, rubric: Rubric) -> tuple[str, str | None]:
    """Return a reviewer's label in its canonical form, and what is wrong with it."""
    label = text.upper()
    if label in choices(rubric):
        return label, None
    if rubric.scale == "score":
        if label.isascii() and label.isdigit() and int(label) <= 100:
            return str(int(label)), None
        allowed = "a whole number 0 to 100, or REFUSAL"
    else:
        allowed = ", ".join(choices(rubric))
    return text, f"label {text!r} of rubric {rubric.id}: use {allowed}" if text else f"no label; use {allowed}"
