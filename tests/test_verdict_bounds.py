"""A judge's reply that is made to cost time, or to break the parser, is an unusable verdict like any other."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.judging.verdict_text import NO_JSON, read_verdict

RUNS = """
from harness.judging.verdict_text import NO_JSON, read_verdict
for text in ("```" + " " * 200_000 + "x", "`" * 200_000, "`" * 200_000 + "x", "~" * 200_000, "```\\n" * 50_000 + "x",
             "<eos>" * 40_000, "<eos> " * 40_000, "```" + "a" * 200_000, "```" + "a " * 100_000 + "```"):
    assert read_verdict(text).data is NO_JSON
"""


def test_no_run_of_marks_takes_more_than_linear_work() -> None:
    # Anything quadratic or worse would take minutes to years here.
    subprocess.run([sys.executable, "-c", RUNS], check=True, timeout=60)


@pytest.mark.parametrize("number", ["1e9999999999999999999", "-1e-9999999999999999999", "1E+9999999999999999999"])
def test_a_number_beyond_all_bounds_is_no_verdict(number: str) -> None:
    assert read_verdict(f'{{"label": {number}, "evidence": "x"}}').data is NO_JSON
    assert read_verdict(f'```json\n{{"score": {number}}}\n```').data is NO_JSON


@pytest.mark.parametrize("fence", ["```", "~~~~", "`" * 5000])
def test_a_fence_of_any_length_comes_off(fence: str) -> None:
    read = read_verdict(f'{fence}json\n{{"score": 70}}\n{fence}')
    assert (read.data, read.unwrapped) == ({"score": 70}, {"fence"})


def test_a_fence_that_closes_otherwise_than_it_opened_stays() -> None:
    assert read_verdict('````json\n{"score": 70}\n```').data is NO_JSON
