"""Local workers: what becomes of a publish when one of them is killed, and of the program that started them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from generator.machine.workers import local_workers
from generator.schema.errors import InputError
from tests.programs import ROOT

UNGUARDED = """
import os
import sys
from generator.machine.workers import local_workers
print("the script runs")
with local_workers(2) as workers:
    found = {workers.submit(os.getpid).result() for _ in range(4)}
print(os.getpid() in found, sys.modules["__main__"].__file__ == __file__)
"""


def test_a_worker_that_is_killed_is_one_line_with_what_to_do():
    told = pytest.raises(InputError, match=r"a worker process was killed, most often for lack of memory; .* --jobs")
    with told, local_workers(2) as workers:
        workers.submit(os._exit, 9).result()


def test_a_script_without_a_main_guard_runs_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    run = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "the script runs\nFalse True\n"
    assert run.stderr == ""
