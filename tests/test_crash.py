"""A run killed at random points and resumed comes to the same bytes as one that never was (contract: stages, "Cache").

AIBIASBENCH_SOAK=50 makes as many rounds of 20 kills each: what the project asks before a release.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.programs import ROOT
from tests.scripted_server import Reply, ScriptedServer, chat

SOAK = int(os.environ.get("AIBIASBENCH_SOAK", "0"))
KILLS = 20 if SOAK else 4
ROUNDS = range(SOAK or 1)


def killed_round(folder: Path, seed: int, url: str | None = None) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.crash_program", str(folder), str(KILLS), str(seed), *([url] if url else [])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class TestSimulated:
    @pytest.mark.parametrize("seed", ROUNDS)
    def test_the_same_bytes_and_the_same_money(self, tmp_path: Path, seed: int) -> None:
        found = killed_round(tmp_path, seed)
        assert found["differs"] == []
        assert found["killed"] >= KILLS / 2
        assert found["after"]["total"] == found["manifest_total"]
        assert (found["after"]["open"], found["after"]["lost"]) == (0, 0)


class Vendor:
    """A server whose answer depends on the request alone, and that knows what it would bill."""

    def __init__(self) -> None:
        self.billed = 0
        self._lock = threading.Lock()

    def __call__(self, request: dict[str, Any], _: int) -> Reply:
        text = json.dumps(request, sort_keys=True)
        number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
        judge = request["messages"][0]["role"] == "system"
        content = self._vote(request, number) if judge else f"Thinking of it, {number % 97}. SUPPORT"
        usage = {"prompt_tokens": 10 + number % 7, "completion_tokens": 5 + number % 3}
        with self._lock:
            self.billed += usage["prompt_tokens"] * 10**6 + usage["completion_tokens"] * 10**7
        time.sleep(0.002)
        return Reply(body=chat(content, usage=usage))

    @staticmethod
    def _vote(request: dict[str, Any], number: int) -> str:
        fields = request["response_format"]["json_schema"]["schema"]["properties"]
        if "score" in fields:
            return json.dumps({"score": number % 101, "refusal": False, "evidence": "says so"})
        label = fields["label"]["enum"][number % len(fields["label"]["enum"])]
        return json.dumps({"label": label, "verdict_matches_prose": True, "evidence": "says so"})


class TestOverHttp:
    @pytest.mark.parametrize("seed", ROUNDS)
    def test_the_same_bytes_once_lost_calls_are_settled(self, tmp_path: Path, seed: int) -> None:
        """Until they are settled, the ledger holds at least what the vendor would bill: no call is forgotten."""
        vendor = Vendor()
        with ScriptedServer(vendor) as server:
            found = killed_round(tmp_path, seed, server.url)
            asked = len(server.requests)
        assert found["differs"] == []
        assert found["killed"] >= KILLS / 2
        assert found["after"]["total"] == found["manifest_total"]
        assert (found["after"]["open"], found["after"]["lost"]) == (0, 0)
        billed = vendor.billed - found["whole"]["total"]  # for the run that was killed
        assert found["after"]["total"] <= billed <= found["after"]["total"] + found["before"]["unknown"]
        assert asked <= 2 * found["whole"]["entries"] + KILLS * 8  # a kill costs at most the calls in flight
