"""Puts small faults into the code, one at a time, and says which of them no test notices.

`python -m tests.mutants [--sample 60] [--jobs 2] [--only PART ...] [--fresh | --known]`. Each module gives a random
sample that is always the same; a larger sample holds the smaller one. What is known already is not tried again: a
noticed fault until its module changes, an unnoticed one until its module or its tests change. Exits 1 where fewer than
95 % are noticed or one that is not has no reason in `equivalent.toml`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "build" / "mutants.jsonl"
LEAST_SHARE = 0.95
NOTICED = ("killed", "hung")
# Before anything starts threads: a forked child has only the thread that forked.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(_name, "1")

from tests.mutants.operators import Mutant, mutants  # noqa: E402
from tests.mutants.trial import ROOT, Baseline, Trial, source_path, take_baseline, try_mutant, warm_up  # noqa: E402


@dataclass(frozen=True)
class Result:
    """What became of a mutant; `source` and `tests` are hashes of the files that it was tried with."""

    module: str
    name: str
    outcome: str
    seconds: float
    source: str
    tests: str

    @property
    def noticed(self) -> bool:
        """Whether a test failed or never ended."""
        return self.outcome in NOTICED


def load_modules() -> dict[str, list[str]]:
    """Return the test files of each module."""
    found: dict[str, list[str]] = tomllib.loads((HERE / "modules.toml").read_text())["modules"]
    return found


def load_reasons() -> dict[str, str]:
    """Return why each mutant that no test can notice, or need notice, is left."""
    entries = tomllib.loads((HERE / "equivalent.toml").read_text()).get("mutant", [])
    return {entry["name"]: entry["reason"] for entry in entries}


def read_results() -> dict[str, Result]:
    """Return the last result of each mutant, by name."""
    if not RESULTS.exists():
        return {}
    rows = (Result(**json.loads(line)) for line in RESULTS.read_text().splitlines() if line.endswith("}"))
    return {row.name: row for row in rows}


def digest(paths: Iterable[Path]) -> str:
    """Return a hash of some files' bytes."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def known(result: Result | None, source: str, tests: str) -> bool:
    """Whether a result still holds."""
    return result is not None and result.source == source and (result.noticed or result.tests == tests)


def run_module(module: str, files: Sequence[str], args: argparse.Namespace, old: dict[str, Result]) -> Iterator[Result]:
    """Yield the results of a module's sample, those known from before first."""
    source, tests = digest([source_path(module)]), digest(ROOT / "tests" / f"{file}.py" for file in files)
    chosen = mutants(module, source_path(module).read_text())[: args.sample]
    waiting = []
    for mutant in chosen:
        result = old.get(mutant.name)
        if not args.fresh and result and known(result, source, tests):
            yield result
        else:
            waiting.append(mutant)
    if args.known or not waiting:
        return
    baseline = take_baseline(module, files)
    warm_up(baseline.imports)
    for mutant, outcome, seconds in _tried(module, waiting, baseline, args.jobs):
        yield Result(module, mutant.name, outcome, seconds, source, tests)


def _tried(
    module: str, waiting: Sequence[Mutant], baseline: Baseline, jobs: int
) -> Iterator[tuple[Mutant, str, float]]:
    """Try mutants, `jobs` at a time."""
    left, running = list(reversed(waiting)), list[tuple[Mutant, Trial]]()
    while left or running:
        while left and len(running) < jobs:
            mutant = left.pop()
            if baseline.tests(mutant):
                running.append((mutant, try_mutant(module, mutant, baseline)))
            else:
                yield mutant, "no test runs this line", 0.0
        time.sleep(0.01)
        for pair in list(running):
            if (outcome := pair[1].result()) is not None:
                running.remove(pair)
                yield pair[0], outcome, round(time.monotonic() - pair[1].began, 2)


def render_report(results: Sequence[Result], reasons: dict[str, str], day: date) -> str:
    """Return the table of modules and the list of what nobody noticed."""
    modules = list(dict.fromkeys(result.module for result in results))
    lines = [f"{'module':36} noticed  tried  explained"]
    for module in modules:
        own = [result for result in results if result.module == module]
        unnoticed = [result for result in own if not result.noticed]
        explained = sum(result.name in reasons for result in unnoticed)
        lines.append(f"{module:36} {len(own) - len(unnoticed):7} {len(own):6} {explained:10}")
    noticed = sum(result.noticed for result in results)
    share = noticed / len(results) if results else 0.0
    lines.append(f"{day}: {noticed} of {len(results)} noticed, {100 * share:.1f} %")
    lines += [
        f"UNNOTICED ({result.outcome}) {result.name}"
        for result in results
        if not result.noticed and result.name not in reasons
    ]
    return "\n".join(lines)


def passed(results: Sequence[Result], reasons: dict[str, str]) -> bool:
    """Whether enough is noticed and the rest explained."""
    unnoticed = [result for result in results if not result.noticed]
    return len(unnoticed) <= (1 - LEAST_SHARE) * len(results) and all(r.name in reasons for r in unnoticed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the mutants and print the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sample", type=int, default=60, help="mutants of each module at most")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=[], help="parts of module names")
    parser.add_argument("--fresh", action="store_true", help="try again what is known already")
    parser.add_argument("--known", action="store_true", help="report what is known, try nothing")
    args = parser.parse_args(arguments)
    old, found, reasons = read_results(), [], load_reasons()
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as out:
        for module, files in load_modules().items():
            if args.only and not any(part in module for part in args.only):
                continue
            for result in run_module(module, files, args, old):
                found.append(result)
                if result is not old.get(result.name):
                    out.write(json.dumps(vars(result)) + "\n")
                    out.flush()
                    if not result.noticed:
                        print(f"{result.outcome}: {result.name}", flush=True)
    print(render_report(found, reasons, date.today()))
    return 0 if passed(found, reasons) else 1


if __name__ == "__main__":
    sys.exit(main())
