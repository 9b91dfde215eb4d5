"""The benchmarks keep running: each of their programs can still be loaded against today's code; their history."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from tests.bench.history import Record, append, ratios, read_history, slower
from tests.bench.measure import measure

BENCH = Path(__file__).parent / "bench"
# Programs that run in a peer's own environment.
ELSEWHERE = {"peer_calls"}


@pytest.mark.parametrize("name", sorted(p.stem for p in BENCH.glob("*.py") if p.stem not in {"__init__", *ELSEWHERE}))
def test_each_program_loads(name):
    assert importlib.import_module(f"tests.bench.{name}").__doc__


ROWS = [
    {"what": "Hugo 0.168, files, file a page", "rows": 60_000, "cpu": 12.0},
    {"what": "Hugo 0.168, files, file a page", "rows": 2_000, "cpu": 1.0},
    {"what": "ours, 2 processes", "rows": 60_000, "cpu": 1.5},
    {"what": "publish, everything", "rows": 55_440, "cpu": 6.0},
    {"what": "verify --strict", "rows": 55_440, "cpu": 9.0},
]


class TestHistory:
    def test_ratios_are_of_the_largest_size_and_of_figures_that_are_there(self):
        assert ratios(ROWS) == {"receipt pages / Hugo": 0.125, "publish / Hugo": 0.5, "verify / publish": 1.5}
        assert ratios(ROWS[:2]) == {}

    def test_what_is_kept_is_read_back(self, tmp_path):
        records = [
            Record("2026-12-01", "a machine", "abc", {"publish / Hugo": 0.5}),
            Record("2026-12-02", "b", "d+", {}),
        ]
        assert read_history(tmp_path / "history.jsonl") == []
        for record in records:
            append(record, tmp_path / "history.jsonl")
        assert read_history(tmp_path / "history.jsonl") == records

    def test_only_the_last_run_of_the_same_machine_counts(self):
        before = [
            Record("2026-12-01", "a", "one", {"publish / Hugo": 0.4, "verify / publish": 1.0}),
            Record("2026-12-02", "a", "two", {"publish / Hugo": 0.5}),
            Record("2026-12-03", "b", "three", {"publish / Hugo": 0.1, "verify / publish": 0.1}),
        ]
        now = Record("2026-12-04", "a", "four", {"publish / Hugo": 0.54, "verify / publish": 1.2, "new": 9.0})
        assert slower(now, before) == ["slower: verify / publish 1.20, was 1.00 at one"]


class TestMeasure:
    def test_memory_that_two_processes_share_counts_once(self):
        # A child that only reads what its parent wrote has no memory of its own to speak of.
        code = (
            "import os, time\ndata = bytearray(100_000_000)\nfor i in range(0, len(data), 4096): data[i] = 1\n"
            "child = os.fork()\ntime.sleep(0.4)\nif child: os.wait()\nprint('SECONDS 1.5')"
        )
        found = measure([sys.executable, "-c", code], env={"PYTHONUNBUFFERED": "1"})
        assert 95 < found.peak_mb < 160
        assert found.own == 1.5
