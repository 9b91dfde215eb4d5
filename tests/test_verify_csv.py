"""A Parquet file whose values have no CSV form is a mismatch of its CSV file, not an end of the comparison."""

from __future__ import annotations

import pyarrow as pa
import pytest

from generator.schema.columns import Column
from generator.verify.findings import Findings
from generator.verify.tables import check_csv

COLUMN = Column("value", pa.float64(), "A number.", null="missing")


@pytest.mark.parametrize(
    "values",
    [
        pa.array([0.5, float("nan")]),
        pa.array([float("inf")]),
        pa.array([b"\xff"], pa.binary()),
        pa.array([{"a": 1}]),
        pa.array([None], pa.null()),
    ],
)
def test_values_without_a_csv_form_are_a_finding(tmp_path, values):
    path = tmp_path / "scores.csv"
    path.write_text("value\n0.5\n")
    findings = Findings()
    check_csv(path, "scores.csv", pa.table({"value": values}), (COLUMN,), findings)
    (line,) = map(str, findings.mismatches)
    assert line.startswith("scores.csv")


def test_the_same_text_is_none(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_bytes(b"value\n0.5\n\n")
    findings = Findings()
    check_csv(path, "scores.csv", pa.table({"value": [0.5, None]}), (COLUMN,), findings)
    assert findings.mismatches == []
