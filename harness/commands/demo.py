"""`aibiasbench demo`: a whole simulated run, from the bank to the site, by the commands that an operator would type."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import click

from generator.schema.errors import InputError
from generator.schema.places import own_folder
from harness.audit.sheet import AUDIT
from harness.bank.reader import read_bank_folder
from harness.plan.run_toml import RUN_TOML, RUNS
from harness.simulated.demo import FULL, MARK, SMALL, run_toml
from harness.stages.receipts import replace_file
from harness.terminal.options import bank_option, json_option, runs_option, tell
from harness.terminal.report import INTERRUPTED

CACHE = Path(".cache")
SITE_TOML = "site.toml"
GRACE = 10.0  # seconds that an interrupted stage gets


@click.command("demo")
@click.option("--small", is_flag=True, help="Three models and two repeats: a glance in a minute.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("dist"), show_default=True, help="Folder of the site."
)
@runs_option
@bank_option
@click.option("--publish/--no-publish", default=True, help="Build the site at the end.")
@json_option
def command(small: bool, out: Path, runs_dir: Path, bank_path: Path, publish: bool, as_json: bool) -> None:
    """Make a full simulated run and publish it: eval, judge, audit with the simulated reviewer, score, publish.

    Nothing leaves this machine, and no key is needed. The run's folder is written anew each time; twice gives the same
    bytes. The site is made from the content folder whose runs/ is --runs-dir.
    """
    if publish and runs_dir.name != RUNS.name:
        raise InputError(f"--runs-dir {runs_dir}: to publish from it, name it {RUNS.name}, or add --no-publish")
    shape = SMALL if small else FULL
    folder, cache = runs_dir / shape.run_id, CACHE / f"{shape.run_id}.sqlite"
    start_afresh(folder, cache)
    replace_file(folder / RUN_TOML, run_toml(shape, read_bank_folder(bank_path)).encode())
    run, labels = (shape.run_id, "--runs-dir", str(runs_dir)), str(folder / AUDIT / "labels.csv")
    with_bank = ("--bank", str(bank_path), "--cache", str(cache))
    stages = [("eval", *run, *with_bank), ("judge", *run, *with_bank), ("audit", "sample", *run)]
    stages += [("audit", verb, shape.run_id, labels, *run[1:]) for verb in ("review", "import")]
    stages.append(("score", str(folder)))
    if publish:
        lend_words(runs_dir.parent)
        stages.append(("publish", shape.run_id, "--out", str(out), "--content", str(runs_dir.parent)))
    for words in stages:
        stage(*words, quiet=as_json)
    if as_json:
        tell({"run_id": shape.run_id, "run": str(folder), "site": str(out) if publish else None}, as_json=True)


def start_afresh(folder: Path, cache: Path) -> None:
    """Remove an earlier demonstration; raises InputError when the folder holds anything else."""
    if folder.exists():
        plan = folder / RUN_TOML
        if not plan.is_file() or not plan.read_text(encoding="utf-8").startswith(MARK):
            raise InputError(
                f"{folder}: exists and was not written by `aibiasbench demo`; rename it, or use --runs-dir"
            )
        shutil.rmtree(folder)
    for path in (cache, *cache.parent.glob(f"{cache.name}-*")):
        path.unlink(missing_ok=True)


def lend_words(content: Path) -> None:
    """Give a content folder the project's own words about the site where it has none, so that it can be published."""
    if not (content / SITE_TOML).exists():
        replace_file(content / SITE_TOML, (own_folder("content") / SITE_TOML).read_bytes())


def stage(*words: str, quiet: bool = False) -> None:
    """Run one command of this program and show it; its failure ends the demonstration with its exit code.

    `quiet`: what it prints goes to standard error.
    """
    click.echo(f"$ aibiasbench {' '.join(words)}", err=True)
    command = [sys.executable, "-m", "generator", *words]
    with subprocess.Popen(command, stdout=sys.stderr if quiet else None) as child:  # noqa: S603 - our own commands
        try:
            code = child.wait()
        except KeyboardInterrupt:
            code = ended(child)
    if code:
        raise click.exceptions.Exit(code)


def ended(child: subprocess.Popen[bytes]) -> int:
    """Return the exit code of an interrupted stage; Ctrl-C in a terminal reached it, too: it ends in its own words."""
    try:
        return child.wait(timeout=GRACE) or INTERRUPTED
    except subprocess.TimeoutExpired:
        child.terminate()
        child.wait()
        return INTERRUPTED
