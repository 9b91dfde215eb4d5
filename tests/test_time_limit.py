"""No test waits without end: each has a limit, and programs that tests start can be interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENDLESS = """
import signal, threading
def test_endless():
    print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN, flush=True)
    threading.Event().wait()
"""


class TestLimit:
    def test_every_test_has_one(self, request):
        assert 0 < float(request.config.getini("timeout")) <= 600

    def test_a_test_that_waits_is_ended_also_in_the_background(self, tmp_path):
        (tmp_path / "test_endless.py").write_text(ENDLESS)
        (tmp_path / "conftest.py").write_bytes((ROOT / "tests" / "conftest.py").read_bytes())
        call = [sys.executable, "-m", "pytest", "-s", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            process = subprocess.Popen(
                [*call, "--timeout", "1", str(tmp_path)], cwd=tmp_path, stdout=subprocess.PIPE, text=True
            )
        finally:
            signal.signal(signal.SIGINT, before)
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "False" in said.splitlines()[0]
        assert "Timeout" in said
