"""`DATA_DICTIONARY.html`: every file, column, type, unit and null meaning, made from the schema in code.

See contract: publication, "Data files".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from generator.data.csv_text import csv_columns
from generator.data.table_files import DataFile
from generator.edition import paths
from generator.edition.edition import Edition
from generator.html.frame import frame, render_page
from generator.runs.operator_notes import reviewer
from generator.schema.columns import MASK_SPANS, Column, receipt_columns, vote_fields
from generator.schema.score_rows import ROW_KINDS
from generator.schema.table_rows import TABLE_ROWS, RowSet
from generator.schema.tables import TABLES

TABLE_NOTES = {
    "scores": "Every published number with its interval, one a row.",
    "cells": "Mean value and row counts of each model, concept, framing and group.",
    "disparities": "Disparity and largest gap of each model, concept and framing.",
    "agreement": "Agreement of the primary judges by rubric and by vendor of the subjects, and the gate.",
    "judges": "Votes of each judge: errors, and what was taken off its replies before they were read.",
    "tiers": "Rank and tier of each model by overall consistency.",
    "comparisons": "Difference in consistency of every two models, overall and by attribute, with the range test.",
    "refusal_tests": "Whether a model's refusals depend on the group, by attribute.",
    "human_audit": "Rows that a reviewer labeled blind, beside the panel's label.",
    "audit_summary": "Agreement of the panel with that reviewer, by rubric and over all.",
}
# Tables that `TABLES` does not hold: their columns come from elsewhere.
OTHER_TABLES = {
    "receipts": "One row a response: prompt, answer, votes, final label. One file a model.",
    "bootstrap_weights": "How often each concept was drawn in each of the resamples. One file an attribute.",
}
FILE_NOTES = {
    "run_manifest.json": "The harness's manifest, unchanged: models, parameters, panels, spend, hashes of the shards.",
    "bank.json": (
        "The prompt bank of this run as canonical JSON; bank_sha256 is the SHA-256 of it without $schema and rules."
    ),
    "recompute.py": "Recomputes the main scores with pandas and pyarrow.",
    "recompute.sql": "Recomputes the main scores with DuckDB.",
    "recompute.R": "Recomputes the main scores with base R, from the CSV files.",
    "recompute.mjs": "Recomputes the main scores with Node alone, from the CSV files.",
    "CITATION.cff": "How to cite this run, for machines.",
    "citation.bib": "How to cite this run, as BibTeX.",
    "DATA_DICTIONARY.html": "Every file, column, type, unit and null meaning.",
    "datapackage.json": "Frictionless Data Package of the CSV files.",
    "croissant.json": "Croissant 1.1 metadata with responsible-AI fields, for the receipts and the scores.",
    "ro-crate-metadata.json": "RO-Crate 1.2 metadata: every file with its size and hash, for research archives.",
    "README.md": "Data card, as the Hugging Face Hub and its library datasets read it.",
    "manifest.json": "This publication: the run's manifest, standing and what speaks against it, categories withheld, "
    "gate, audit, mean band, and the SHA-256 of every file.",
    "SHA256SUMS": "The same hashes, for sha256sum -c.",
}
# What a run with an audit says of who labeled its sample.
REVIEWERS = {
    "human": "In this run the reviewer was a person.",
    "simulated": "In this run the reviewer was a program.",
    "": "The files of this run do not say whether the reviewer was a person or a program.",
}


@dataclass(frozen=True)
class ColumnNote:
    """One column as the dictionary shows it; `guarded` marks text that the CSV guards against formulas."""

    name: str
    type: str
    unit: str
    description: str
    null: str
    guarded: bool


@dataclass(frozen=True)
class TableNote:
    """One table as the dictionary shows it: files, rows, columns, and the CSV's own columns where they differ."""

    name: str
    description: str
    row_set: RowSet
    files: tuple[DataFile, ...]
    columns: tuple[ColumnNote, ...]
    csv_only: tuple[ColumnNote, ...]


def type_name(kind: pa.DataType) -> str:
    """Return a type in plain words."""
    if vote_fields(kind):
        return "list of votes"
    if kind == MASK_SPANS:
        return "list of spans"
    names = {"double": "float (64 bit)", "bool": "true or false", "string": "text"}
    text = str(kind)
    return names.get(text) or (f"integer ({text})" if "int" in text else text)


def column_notes(columns: Sequence[Column]) -> tuple[ColumnNote, ...]:
    """Return what the dictionary says of a table's columns."""
    return tuple(
        ColumnNote(
            c.name,
            type_name(c.type),
            c.unit,
            c.description,
            c.null,
            guarded=c.type == pa.string() and not c.raw,
        )
        for c in columns
    )


def table_notes(files: Sequence[DataFile], receipts: tuple[Column, ...]) -> tuple[TableNote, ...]:
    """Return every table with its files and columns, in the order of the Data page.

    `receipts` are the receipt columns of the run's format.
    """
    notes = []
    weights = (Column("<concept>", pa.uint8(), "Times that this concept was drawn in this resample.", "draws"),)
    described: dict[str, tuple[Column, ...]] = {**TABLES, "receipts": receipts, "bootstrap_weights": weights}
    for name, columns in described.items():
        text = TABLE_NOTES.get(name) or OTHER_TABLES[name]
        own = tuple(f for f in files if f.table == name)
        plain = {c.name for c in columns}
        flat = tuple(c for c in csv_columns(columns) if c.name not in plain)
        notes.append(TableNote(name, text, TABLE_ROWS[name], own, column_notes(columns), column_notes(flat)))
    return tuple(notes)


def render_dictionary(edition: Edition, files: Sequence[DataFile]) -> bytes:
    """Return the dictionary page; `files` are those written before it."""
    page = paths.data_file(edition.run_id, "DATA_DICTIONARY.html")
    data = paths.data_page(edition.run_id)
    context = frame(
        edition,
        page,
        "Data dictionary",
        description=f"Every file and column published for run {edition.run_id}: type, unit, meaning and null.",
        section="data",
        crumbs=((edition.run_name, paths.run_index(edition.run_id)), ("Data", data), ("Dictionary", None)),
    )
    receipts = receipt_columns(edition.run.manifest.format)
    return render_page(
        "dictionary.html",
        context,
        tables=table_notes(files, receipts),
        votes=column_notes([field for column in receipts for field in vote_fields(column.type)]),
        row_kinds=ROW_KINDS,
        reviewer=REVIEWERS[reviewer(edition.run.folder)] if edition.scored.coverage else "",
        others=tuple(FILE_NOTES.items()),
        split=tuple(f for f in files if f.part),
    )
