"""Local workers: what becomes of a publish when one of them is killed."""

from __future__ import annotations

import os

import pytest

from generator.machine.workers import local_workers
from generator.schema.errors import InputError


def test_a_worker_that_is_killed_is_one_line_with_what_to_do():
    told = pytest.raises(InputError, match=r"a worker process was killed, most often for lack of memory; .* --jobs")
    with told, local_workers(2) as workers:
        workers.submit(os._exit, 9).result()
