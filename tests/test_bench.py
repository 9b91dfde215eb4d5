"""The benchmarks keep running: each of their programs can still be loaded against today's code."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCH = Path(__file__).parent / "bench"
# Programs that run in a peer's own environment.
ELSEWHERE = {"peer_calls"}


@pytest.mark.parametrize("name", sorted(p.stem for p in BENCH.glob("*.py") if p.stem not in {"__init__", *ELSEWHERE}))
def test_each_program_loads(name):
    assert importlib.import_module(f"tests.bench.{name}").__doc__
