"""What a process of the program does without: pandas, and a memory pool that keeps what it was given."""

from __future__ import annotations

import subprocess
import sys

from tests.programs import ROOT

OWN = """
from generator.machine.memory import spare_memory
spare_memory()
spare_memory()
import sys
import pyarrow as pa
pa.scalar(1), pa.array([1, None])
assert len([f for f in sys.meta_path if type(f).__name__ == "_NoPandas"]) == 1
print("pandas" in sys.modules, pa.default_memory_pool().backend_name)
"""
LATER = """
import pandas, pyarrow as pa
from generator.machine.memory import spare_memory
spare_memory()
print(pa.table({"a": [1]}).to_pandas().shape, pa.default_memory_pool().backend_name)
"""
GIVEN = """
from generator.machine.memory import give_back, spare_memory
spare_memory()
texts = [bytes(2_000) for i in range(50_000)]
keep = texts[::1000]
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS"))
full = resident()
import gc
del texts
gc.collect()
give_back()
print(resident() < full - 20_000)
"""


def out(code: str) -> str:
    """What a fresh Python prints."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout


class TestSpareMemory:
    def test_arrow_finds_no_pandas_and_takes_the_system_s_memory(self):
        assert out(OWN) == "False system\n"

    def test_where_pandas_is_in_use_it_stays_so(self):
        assert out(LATER) == "(1, 1) system\n"

    def test_what_is_free_goes_back(self):
        assert out(GIVEN) == "True\n"
