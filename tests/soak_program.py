"""Tens of thousands of calls against a server that fails in every passing way, and three books held side by side.

    python -m tests.soak_program FOLDER [--models N] [--repeats N] [--share SHARE] [--concept ID ...]

Runs `eval` of N models, one of which has a cap below its cost, then, as a run of its own, `eval` and `judge` of a few
concepts. Prints what the server saw, and where the ledger or the manifest says otherwise (nowhere, it is hoped), as one
JSON object; exits with 1 where they differ. With 11 models and 3 repeats `eval` plans 50,160 calls.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.bank.reader import read_bank_folder
from harness.eval.questions import bank_prompts
from harness.money.budget import picodollars
from tests.plans import PARAMS, PRICES, callee, live_data, write_run_toml
from tests.soak_server import COMPLETION_TOKENS, PROMPT_TOKENS

ROOT = Path(__file__).parents[1]
BANK = ROOT / "content" / "bank"
PER_PROMPT, PER_COMPLETION = (round(PRICES[f"{kind}_per_million"] * 10**6) for kind in ("prompt", "completion"))
PAID = PROMPT_TOKENS * PER_PROMPT + COMPLETION_TOKENS * PER_COMPLETION  # picodollars of a request with usage
CAPPED = "capped/model"
SLACK = 64  # tokens of prompt that a worst case adds to the bytes


@contextmanager
def serving(share: float) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve in a process of its own; yields the base URL and a list that holds what was seen once the block ends."""
    command = [sys.executable, "-m", "tests.soak_server", str(share)]
    server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None
    assert server.stdout is not None
    seen: list[dict[str, Any]] = []
    try:
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1", seen
    finally:
        server.stdin.close()
        seen.append(json.loads(server.stdout.read()))
        server.wait()


def plan_data(url: str, models: Sequence[str], *, repeats: int, cap: float | None = None) -> dict[str, Any]:
    """A run whose calls the server can tell apart, patient enough for every failure that passes."""
    data = live_data(read_bank_folder(BANK), url, models=[callee(model) for model in models], repeats=repeats)
    data["params"] = {**PARAMS, "max_tokens": 30, "seed": 1}
    first, second, third = (callee(f"judge-{number}/{number}") for number in ("one", "two", "three"))
    data["judges"] |= {"primary": [first, second], "tiebreak": third}
    data["judges"]["params"]["seed"] = 1
    data["endpoints"]["local"] |= {
        "concurrency": 64, "max_attempts": 5, "total_wait": 600.0, "read_timeout": 120.0, "connect_timeout": 120.0,
        "params": ["temperature", "max_tokens", "seed"],
    }  # fmt: skip
    data["caps"] = {"run": 1e4, "models": {} if cap is None else {CAPPED: cap}}
    return data


@dataclass(frozen=True)
class Booked:
    """What a ledger says of one model: entries, those at the price of the usage, those at their worst case, the sum."""

    requests: int
    paid: int
    unknown: int
    total: int


def booked(folder: Path) -> dict[str, Booked]:
    """Read a ledger without the harness: by the model's name at the endpoint."""
    query = (
        "SELECT model, count(*), sum(cost IS ?), sum(cost IS NULL OR (cost = reserved AND cost > 0)),"
        " sum(coalesce(cost, reserved)) FROM entries WHERE state IN ('settled', 'lost') GROUP BY model"
    )
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as ledger:
        assert ledger.execute("SELECT count(*) FROM entries WHERE state = 'open'").fetchone() == (0,)
        return {model: Booked(*numbers) for model, *numbers in ledger.execute(query, (PAID,))}


def differences(seen: dict[str, Any], books: dict[str, Booked], judges: frozenset[str]) -> list[str]:
    """Say where the server's book and a ledger differ; the bytes of a judge's worst case hold its schema as well."""
    found = [f"{name}: asked, and not in the ledger" for name in seen.keys() - {m.partition("/")[2] for m in books}]
    for model, book in books.items():
        server = seen[model.partition("/")[2]]
        worst = (server["bytes"] + SLACK * server["unknown"]) * PER_PROMPT + server["limit"] * PER_COMPLETION
        expected = Booked(server["requests"], server["paid"], server["unknown"], server["paid"] * PAID + worst)
        if model in judges:
            expected = Booked(*list(vars(expected).values())[:3], book.total)
        if expected != book:
            found.append(f"{model}: the server saw {expected}, the ledger says {book}")
        if server["twice"]:
            found.append(f"{model}: {server['twice']} requests for calls that were answered")
    return found


def asked_at_length(
    folder: Path, *, models: int, repeats: int, share: float, concepts: Sequence[str]
) -> dict[str, Any]:
    """`eval` of many models; the last one's cap is half of what it costs."""
    names = [*(f"lab-{i}/model-{i}" for i in range(models - 1)), CAPPED]
    planned = repeats * _prompts(concepts)
    cap = planned * PAID / 2e12
    with serving(share) as (url, ended):
        run = write_run_toml(folder / "long", plan_data(url, names, repeats=repeats, cap=cap))
        done = _aibiasbench("eval", run, folder, "--json", *_chosen(concepts))
    assert done.stdout, done.stderr
    (seen,), books, summary = ended, booked(run), json.loads(done.stdout)
    found = differences(seen["models"], books, frozenset())
    if done.returncode != 3 or summary["capped"] != [f"subject:{CAPPED}"]:
        found.append(f"exit {done.returncode}, capped {summary['capped']}: {done.stderr}")
    if not 0 < books[CAPPED].total <= picodollars(cap):
        found.append(f"the cap is {picodollars(cap)}, spent {books[CAPPED].total}")
    calls = sum(model["calls"] for model in seen["models"].values())
    found += _unequal("answers", calls, summary["asked"], _answers(folder), planned * models - summary["left"])
    found += _unequal("attempts", sum(b.requests for b in books.values()), summary["attempts"])
    found += _unequal("spent", sum(b.total for b in books.values()), picodollars(summary["spent_usd"]))
    found += _unequal("left", list(summary["left_by_model"]), [CAPPED])
    found += _unequal("failed", summary["failed"], {})
    return {"calls": calls, "requests": summary["attempts"], "kinds": seen["kinds"], "differ": found}


def asked_and_judged(folder: Path, *, share: float, concepts: Sequence[str]) -> dict[str, Any]:
    """`eval` and `judge` of a few concepts; the manifest is held against both books."""
    with serving(share) as (url, ended):
        run = write_run_toml(folder / "judged", plan_data(url, ["lab-0/model-0", "lab-1/model-1"], repeats=1))
        data = plan_data(url, [], repeats=1)["judges"]
        done = [
            _aibiasbench("eval", run, folder, *_chosen(concepts)), _aibiasbench("judge", run, folder, "--partial"),
        ]  # fmt: skip
    judges = frozenset(judge["model"] for judge in (*data["primary"], data["tiebreak"]))
    found = [f"exit {d.returncode}: {d.stderr}" for d in done if d.returncode]
    if found:
        return {"differ": found}
    (seen,), books = ended, booked(run)
    manifest = json.loads((run / "manifest.json").read_text())
    found += differences(seen["models"], books, judges)
    total = sum(book.total for book in books.values())
    found += _unequal("spend", picodollars(manifest["spend"]["total_usd"]), total)
    rows = 2 * _prompts(concepts)
    counts = manifest["counts"]
    found += _unequal("rows", rows, sum(counts.values()), sum(s["rows"] for s in manifest["shards"]))
    found += _unequal("errors", counts["error"], 0)
    return {"rows": rows, "requests": sum(b.requests for b in books.values()), "differ": found}


def _aibiasbench(command: str, run: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = [command, run, "--bank", BANK, "--cache", folder / f"{run.name}.sqlite", *options]
    command_line = [sys.executable, "-m", "generator", *map(str, words)]
    return subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True)


def _chosen(concepts: Sequence[str]) -> list[str]:
    return [word for concept in concepts for word in ("--concept", concept)]


def _prompts(concepts: Sequence[str]) -> int:
    """How many prompts the bank has of some concepts; of all where none is named."""
    return sum(not concepts or p.concept.id in concepts for p in bank_prompts(read_bank_folder(BANK)))


def _answers(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "long.sqlite")) as cache:
        return int(cache.execute("SELECT count(*) FROM answers WHERE outcome = 'answered'").fetchone()[0])


def _unequal(what: str, first: Any, *others: Any) -> list[str]:
    return [f"{what}: {first} and {other}" for other in others if other != first]


def few_concepts() -> list[str]:
    """A concept of each rubric, those with the fewest prompts."""
    bank = read_bank_folder(BANK)
    sizes = Counter(p.concept.id for p in bank_prompts(bank))
    by_rubric = {c.rubric: c.id for c in sorted(bank.concepts, key=lambda c: (-sizes[c.id], c.id))}
    return sorted(by_rubric.values())


def main() -> int:
    """Run both parts; returns 1 where the books differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=11)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.01, help="of attempts that meet each kind of failure")
    parser.add_argument("--concept", dest="concepts", action="append", default=[])
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    judged = asked_and_judged(given.folder, share=given.share, concepts=given.concepts or few_concepts())
    asked = asked_at_length(
        given.folder, models=given.models, repeats=given.repeats, share=given.share, concepts=given.concepts
    )
    print(json.dumps({"asked": asked, "judged": judged}, indent=2))
    return 1 if asked["differ"] or judged["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
