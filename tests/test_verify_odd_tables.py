"""Published tables that cannot be what they should: mismatches by name, not an end of the comparison."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from generator.schema.columns import Column
from generator.verify.findings import Findings
from generator.verify.hashes import check_records
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


class TestRecords:
    """Scores of other columns do not end the comparison of the records that quote them."""

    @pytest.mark.parametrize("lacking", ["model", "metric", "attribute", "estimate", "ci_low"])
    def test_a_column_that_is_missing_or_of_another_type(self, tmp_path, lacking):
        right = {
            "model": ["a/b"], "metric": ["m"], "attribute": ["x"], "estimate": [1.0], "ci_low": [1.0], "ci_high": [1.0],
        }  # fmt: skip
        pq.write_table(pa.table({k: v for k, v in right.items() if k != lacking}), tmp_path / "scores__1.parquet")
        pq.write_table(pa.table({**right, lacking: [[1]]}), tmp_path / "scores__2.parquet")
        findings = Findings()
        check_records(tmp_path, findings)
        assert findings.mismatches == []
