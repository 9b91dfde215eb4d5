"""A whole run through a proxy that others wrote: litellm, with mock answers, in an environment of its own.

`make test-live` makes that environment (`.venv-litellm`), for litellm pins an older rich than this project needs.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.bank.reader import read_bank_folder
from tests.plans import callee, live_data, write_run_toml
from tests.programs import ROOT, run

BANK = ROOT / "content" / "bank"
PROXY = Path(os.environ.get("AIBIASBENCH_LITELLM", ROOT / ".venv-litellm")) / "bin" / "litellm"
KEY = "sk-loopback-1234"
STARTS = 240  # seconds that the proxy may take on a slow machine
ANSWER = "There are good reasons on both sides. SUPPORT"
VOTE = {"label": "SUPPORT", "verdict_matches_prose": True, "evidence": "ends with SUPPORT"}
POLICY = "mock_testing_content_policy_fallbacks"  # a request that asks for it meets a policy violation
# What stands in the proxy's configuration: the name that it serves, and what it says.
SAYS = {
    "plain": ANSWER, "refused": ANSWER, "limited": "litellm.RateLimitError",
    "narrow": "litellm.ContextWindowExceededError", "broken": "litellm.InternalServerError",
    "first": json.dumps(VOTE), "second": f"```json\n{json.dumps(VOTE)}\n```", "third": json.dumps(VOTE),
}  # fmt: skip
pytestmark = [
    pytest.mark.live, pytest.mark.skipif(not PROXY.exists(), reason="not installed; `make test-live` installs it"),
]  # fmt: skip


def configuration() -> str:
    """The proxy's config.yaml, which JSON is."""
    models = [
        {
            "model_name": name,
            "litellm_params": {"model": f"openai/{name}", "api_key": "none", "mock_response": says, "num_retries": 0},
        }
        for name, says in SAYS.items()
    ]
    general = {"dangerously_allow_mock_testing_request_params": True}
    return json.dumps({"model_list": models, "general_settings": general, "litellm_settings": {"num_retries": 0}})


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a proxy on loopback."""
    folder = tmp_path_factory.mktemp("litellm")
    (folder / "config.yaml").write_text(configuration())
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [PROXY, "--config", "config.yaml", "--host", "127.0.0.1", "--port", port, "--telemetry", "False"]
    environment = {**os.environ, "LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health/liveliness", server, folder / "log")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait()


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + STARTS
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"the proxy does not answer: {log.read_text()[-2_000:]}")


@pytest.fixture(scope="module")
def concept() -> str:
    return min(c.id for c in read_bank_folder(BANK).concepts if c.rubric == "stance" and c.attribute == "age")


def plan(url: str, *models: dict[str, Any]) -> dict[str, Any]:
    data = live_data(read_bank_folder(BANK), url, models=list(models))
    endpoint = {
        "key_env": "PROXY_KEY", "read_timeout": 60.0, "connect_timeout": 60.0, "max_attempts": 2, "total_wait": 3.0,
        "backoff": 0.05, "params": ["temperature", "max_tokens", POLICY],
    }  # fmt: skip
    data["endpoints"]["local"] |= endpoint
    first, second, third = (callee(f"judge-{name}/{name}") for name in ("first", "second", "third"))
    data["judges"] |= {"primary": [first, second], "tiebreak": third}
    return data


def aibiasbench(command: str, folder: Path, *options: object, key: str = KEY) -> subprocess.CompletedProcess[str]:
    words = (command, folder, "--bank", BANK, "--cache", folder.parent / "c.sqlite", *options)
    return run(*words, PROXY_KEY=key)


class TestThroughLitellm:
    def test_the_probe_says_what_answers(self, proxy: str, tmp_path: Path) -> None:
        folder = write_run_toml(tmp_path / "probed", plan(proxy, callee("alpha/plain"), callee("beta/narrow")))
        done = aibiasbench("eval", folder, "--probe", "--json")
        found = {(each["model"], each["rubric"]): each for each in json.loads(done.stdout)}
        assert done.returncode == 2, done.stderr
        assert found["alpha/plain", None]["works"]
        assert found["alpha/plain", None]["completion_tokens"] > 0
        assert "context window" in found["beta/narrow", None]["failure"]
        # The mock says the same under every rubric: a stance.
        working = {rubric for (model, rubric), each in found.items() if model == "judge-first/first" and each["works"]}
        assert working == {"stance"}

    def test_from_prompts_to_judged_rows(self, proxy: str, tmp_path: Path, concept: str) -> None:
        refused = callee("beta/refused", params={POLICY: True})
        folder = write_run_toml(tmp_path / "whole", plan(proxy, callee("alpha/plain"), refused))
        asked = aibiasbench("eval", folder, "--concept", concept, "--json")
        assert asked.returncode == 0, asked.stderr
        judged = aibiasbench("judge", folder, "--partial")
        assert judged.returncode == 0, judged.stderr
        rows = [row for path in (folder / "receipts").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
        half = len(rows) // 2
        kinds = Counter((row["model"], row["outcome"], row["status"], row["final_label"]) for row in rows)
        assert kinds == {
            ("alpha/plain", "answered", "scored", "SUPPORT"): half,
            ("beta/refused", "filtered", "refused", "REFUSAL"): half,
        }
        votes = [vote for row in rows for vote in row["votes"] or []]
        assert Counter(vote["unwrapped"] for vote in votes) == {None: half, "fence": half}
        assert _books_add_up(folder)

    @pytest.mark.parametrize(
        ("name", "status"), [("limited", "429"), ("broken", "500"), ("narrow", "400")], ids=lambda value: value
    )
    def test_an_error_of_the_proxy_is_a_failed_row_and_costs_nothing(
        self, proxy: str, tmp_path: Path, concept: str, name: str, status: str
    ) -> None:
        folder = write_run_toml(tmp_path / name, plan(proxy, callee("alpha/plain"), callee(f"beta/{name}")))
        done = aibiasbench("eval", folder, "--concept", concept, "--json")
        ends = {end["model"]: end for end in json.loads(done.stdout)["models"]}
        assert ends["alpha/plain"]["ended"] == "done"
        assert ends["beta/" + name]["answers"] == 0
        assert ends["beta/" + name]["failed"] + ends["beta/" + name]["left"] == ends["alpha/plain"]["answers"]
        assert f"HTTP status {status}" in done.stdout
        assert _books_add_up(folder)
        assert _spent(folder, f"beta/{name}") == 0

    def test_the_key_never_comes_back(self, proxy: str, tmp_path: Path, concept: str) -> None:
        folder = write_run_toml(tmp_path / "key", plan(proxy, callee("alpha/plain")))
        done = aibiasbench("eval", folder, "--concept", concept, "--json", key="sk-of-nobody-98765")
        assert done.returncode == 2
        assert "sk-of-nobody-98765" not in done.stdout + done.stderr


def _books_add_up(folder: Path) -> bool:
    """Whether each account holds what its entries come to."""
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as ledger:
        query = "SELECT sum(coalesce(cost, reserved)) FROM entries WHERE state <> 'reused'"
        booked = ledger.execute("SELECT committed FROM accounts WHERE name = 'run'").fetchone()
        return bool(ledger.execute(query).fetchone() == booked)


def _spent(folder: Path, model: str) -> int:
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as ledger:
        query = "SELECT sum(coalesce(cost, reserved)) FROM entries WHERE model = ?"
        return int(ledger.execute(query, (model,)).fetchone()[0])
