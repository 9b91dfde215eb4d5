"""Calls over loopback HTTP, 64 at once: `eval` of one model, beside Inspect on the same prompts and the same server.

`eval` writes each answer and each reservation to the disk before it counts it; Inspect writes its log.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.bank.reader import read_bank_folder
from harness.eval.questions import bank_prompts
from tests.bench.measure import Measured, measure
from tests.plans import live_data, write_run_toml

ROOT = Path(__file__).resolve().parents[2]
BANK = ROOT / "content" / "bank"
INSPECT = ("inspect-ai==0.3.285", "openai==3.57.0")
AT_ONCE = 64
REPEATS = 3

Timer = Callable[[str, int, Callable[[], Measured], Callable[[], None]], float]


def inspect_python(folder: Path) -> Path:
    """A Python with Inspect, in a virtual environment of the bench alone."""
    python = folder / "bin" / "python"
    if not list(folder.glob("lib/python3*/site-packages/inspect_ai")):
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *INSPECT], check=True)
    return python


@contextmanager
def chat_server() -> Iterator[str]:
    """The base URL of a server in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.chat_server"]
    server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
    finally:
        server.stdin.close()
        server.wait()


def calls(time: Timer, folder: Path, inspect: Path | None) -> None:
    """Time both; without `inspect` only ours."""
    bank = read_bank_folder(BANK)
    prompts = [p.rendered.text for p in bank_prompts(bank)] * REPEATS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prompts.json").write_text(json.dumps(prompts))
    with chat_server() as url:
        data = live_data(bank, url, repeats=REPEATS)
        data["endpoints"]["local"]["concurrency"] = AT_ONCE
        run, cache = write_run_toml(folder / "calls", data), folder / "answers.sqlite"

        def cold() -> None:
            for left in (*folder.glob("answers.sqlite*"), *run.glob("ledger.sqlite*")):
                left.unlink()

        ours = [sys.executable, "-m", "generator", "eval", str(run), "--bank", str(BANK), "--cache", str(cache)]
        time("eval, 64 at once", len(prompts), lambda: measure(ours, cwd=ROOT), cold)
        if inspect is not None:
            peer = Path(__file__).with_name("peer_calls.py")
            theirs = [str(inspect), str(peer), url, str(folder / "prompts.json"), str(folder / "logs")]
            time("Inspect 0.3.285, 64 at once", len(prompts), lambda: measure(theirs, cwd=folder), lambda: None)
