"""Passing failures of every kind, and each failure that closes a model, with three books held side by side.

`make test-soak` makes 50,160 calls at 1 % of each kind; here it is a few hundred at 2 %.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.bank.reader import read_bank_folder
from harness.engine.lanes import IN_A_ROW
from tests.plans import callee, live_data, write_run_toml
from tests.programs import ROOT, invoke
from tests.scripted_server import Reply, ScriptedServer, chat, finished
from tests.soak_program import BANK, PER_COMPLETION, PER_PROMPT, booked, few_concepts
from tests.soak_server import KINDS

CONCEPT = few_concepts()[0]


def soak(folder: Path, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.soak_program", str(folder), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class TestPassingFailures:
    def test_server_ledger_and_manifest_say_the_same(self, tmp_path: Path) -> None:
        found = soak(tmp_path, "--models", "3", "--repeats", "12", "--share", "0.02", "--concept", CONCEPT)
        assert (found["asked"]["differ"], found["judged"]["differ"]) == ([], [])
        assert len(KINDS) >= 20
        assert found["asked"]["kinds"].keys() >= KINDS.keys() - {"slow"}
        assert found["asked"]["requests"] > found["asked"]["calls"] > 240


BUSY = Reply(503, b"busy")
# What closes a model, how often it is asked, how many of those were billed, the exit code, and the words.
CLOSING: dict[str, tuple[Reply, int, int, int, str]] = {
    "401": (Reply(401, b"bad key"), 1, 0, 2, "a call without a key (key_env in run.toml) was refused"),
    "402": (Reply(402, b"pay"), 1, 0, 2, "the account there has no credit left"),
    "403": (Reply(403, b"not yours"), 1, 0, 2, "check that the key of endpoint local may use one"),
    "404": (Reply(404, b"no such model"), 1, 0, 2, "check api_model (one) in run.toml"),
    "twenty 400s": (Reply(400, b"what?"), IN_A_ROW, 0, 2, "20 calls in a row failed, the last with: HTTP status 400"),
    "twenty unusable": (
        Reply(body=chat(" ")), 3 * IN_A_ROW, 3 * IN_A_ROW, 2, "20 answers in a row hold nothing"
    ),
    "twenty thoughts": (
        Reply(body=finished("length", "", reasoning_content="Hm.")), IN_A_ROW, IN_A_ROW, 2, "went into thinking"
    ),
    "twenty other models": (
        Reply(body=chat(model="other-9b")), IN_A_ROW, IN_A_ROW, 2, "list it in served_as of alpha/one"
    ),
    "a wait beyond total_wait": (
        Reply(429, b"", {"Retry-After": "86400"}), 1, 0, 2, "asks for a wait of 86,400 s, until "
    ),
}  # fmt: skip


class TestClosing:
    """Each among passing failures, beside a healthy model at the same endpoint."""

    def run(self, folder: Path, closing: Callable[[int], Reply], **caps: float) -> tuple[Any, Counter[str], Path]:
        """`eval` of two models: the first meets `closing`, by number, and the other a busy endpoint now and then."""
        asked = Counter[str]()

        def script(request: dict[str, Any], _: int) -> Reply:
            asked[request["model"]] += 1
            if request["model"] == "one":
                return closing(asked["one"])
            return BUSY if asked["two"] % 7 == 3 else Reply(body=chat())

        with ScriptedServer(script) as server:
            models = [callee("alpha/one"), callee("beta/two")]
            data = live_data(read_bank_folder(BANK), server.url, models=models, repeats=4)
            data["endpoints"]["local"] |= {"max_attempts": 8, "concurrency": 8}
            data["caps"] = {"run": 100.0, "models": caps}
            run = write_run_toml(folder / "run", data)
            done = invoke("eval", run, "--bank", BANK, "--cache", folder / "c.sqlite", "--concept", CONCEPT, "--json")
        return done, Counter(request["model"] for request in server.requests), run

    @pytest.mark.parametrize("kind", CLOSING)
    def test_it_closes_one_model_and_books_what_was_billed(self, tmp_path: Path, kind: str) -> None:
        reply, number, billed, code, words = CLOSING[kind]
        done, seen, run = self.run(tmp_path, lambda _: reply)
        summary, books = json.loads(done.stdout), booked(run)
        ends = {end["model"]: end for end in summary["models"]}
        assert (done.returncode, seen["one"], books["alpha/one"].requests) == (code, number, number)
        assert books["alpha/one"].total == billed * (20 * PER_PROMPT + 5 * PER_COMPLETION)
        assert words in done.stderr
        assert (ends["alpha/one"]["ended"], ends["beta/two"]["ended"]) == ("stopped", "done")
        assert (ends["beta/two"]["answers"], books["beta/two"].requests) == (40, seen["two"])
        assert summary["left_by_model"]["alpha/one"] == ends["alpha/one"]["left"] > 0

    def test_a_cap_lets_no_request_pass_it(self, tmp_path: Path) -> None:
        """Each of 40 requests costs 70 millionths; a cap of 30 of them holds fewer: a worst case has to fit in."""
        cap = 30 * 70e-6
        done, seen, run = self.run(tmp_path, lambda _: Reply(body=chat()), **{"alpha/one": cap})
        summary, book = json.loads(done.stdout), booked(run)["alpha/one"]
        assert (done.returncode, summary["capped"]) == (3, ["subject:alpha/one"])
        assert (book.requests, book.total) == (seen["one"], seen["one"] * 70 * 10**6)
        assert 0 < book.total <= cap * 1e12
        assert "raise caps.models in run.toml" in "\n".join(end["remedy"] or "" for end in summary["models"])
