"""Which rows every published table holds and how they are sorted (contract: tables, "Order of rows"), a table a line.

The data dictionary shows this; `tests/test_table_rows.py` holds it against a scored run, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RowSet:
    """The rows of a table in words, and the columns that they are sorted by, first to last (none: as the words say)."""

    rows: str
    order: tuple[str, ...]


_ROW_KEY = ("attribute", "concept", "framing", "group")

TABLE_ROWS = {
    "scores": RowSet(
        "For every model, and for * where it is run-wide, each row of the list below, whether it has a value or not.",
        ("model", "metric", "attribute", "group"),
    ),
    "cells": RowSet(
        "A row for every model and every cell of the bank: (concept, framing, group), controls too. One that was never "
        "asked is there, with counts of 0. Two-sided concepts are in, those of a withheld category are not.",
        ("model", *_ROW_KEY),
    ),
    "disparities": RowSet(
        "A row for every model and every (concept, framing) of the bank, controls too. One that was never asked is "
        "there, with 0 groups. Two-sided concepts and those of a withheld category are not.",
        ("model", "attribute", "concept", "framing"),
    ),
    "agreement": RowSet(
        "For every rubric a row of all subjects and one for each of their vendors, even without a pair. A withheld "
        "category keeps its rows; a rubric that only two-sided concepts have is left out.",
        ("rubric", "vendor"),
    ),
    "judges": RowSet("A row for every judge that the run declares, even without a vote.", ("judge",)),
    "tiers": RowSet("A row for every model, ranked or not; those without a rank come last.", ("rank", "model")),
    "comparisons": RowSet(
        "For overall and each demographic attribute a row for every two models that both have a value there, the one "
        "that comes first by its slug as model_a. Of more than 200 models only overall: the pairs by attribute would "
        "be more rows than anybody reads.",
        ("model_a", "model_b", "attribute"),
    ),
    "refusal_tests": RowSet(
        "A row for every model and every demographic attribute of the bank. Two-sided concepts and those of a withheld "
        "category are left out.",
        ("model", "attribute"),
    ),
    "human_audit": RowSet(
        "A row for every receipt that was audited, of a withheld category or a two-sided concept too. No row in a run "
        "without an audit.",
        ("receipt_id",),
    ),
    "audit_summary": RowSet(
        "A row over all rubrics and one for each rubric of the bank, even without an audited receipt. No row in a run "
        "without an audit.",
        ("rubric",),
    ),
    "receipts": RowSet(
        "A row for every planned answer, (concept, framing, group, repeat), that the harness handed over, so none "
        "for one that is absent. Two-sided concepts and withheld categories are in.",
        (*_ROW_KEY, "repeat"),
    ),
    "bootstrap_weights": RowSet(
        "A row for every resample, number 0 first, without a column for the number. A column for every concept of the "
        "attribute but two-sided ones, sorted by id; those of a withheld category are in.",
        (),
    ),
}
