"""Drive a whole run through the real models of this machine.

    python -m tests.live.local_run RUN [--concept CONCEPT ...]

RUN is a run folder whose run.toml names the three loopback endpoints below. It is asked, judged, and its receipts
are written; rows of concepts that were not chosen stay absent, so that it can be published as a preview only.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from tests.live.model_servers import GEMMA, SMOLLM2, gemma_file, missing, serve_model, smollm2_file
from tests.live.verdict_reader import serve_reader

PORTS = {SMOLLM2: 18081, GEMMA: 18082, "verdict-reader": 18083}
MODELS_FOLDER = Path(__file__).parents[2] / ".cache" / "models"


@contextmanager
def local_endpoints() -> Iterator[dict[str, str]]:
    """Serve both models and the reader; yields their base URLs by name."""
    with ExitStack() as stack:
        yield {
            SMOLLM2: stack.enter_context(serve_model(smollm2_file(), SMOLLM2, PORTS[SMOLLM2])),
            GEMMA: stack.enter_context(serve_model(gemma_file(MODELS_FOLDER), GEMMA, PORTS[GEMMA])),
            "verdict-reader": stack.enter_context(serve_reader(PORTS["verdict-reader"])),
        }


def aibiasbench(*args: str | Path) -> None:
    """Run one command of the program; a failure ends this one with its exit code."""
    done = subprocess.run([sys.executable, "-m", "generator", *map(str, args)], check=False)
    if done.returncode:
        sys.exit(done.returncode)


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--concept", "concepts", multiple=True, help="Only this concept; may be given several times.")
@click.option("--cache", type=click.Path(path_type=Path), default=Path(".cache/answers.sqlite"), show_default=True)
def main(run: Path, concepts: tuple[str, ...], cache: Path) -> None:
    """Ask and judge RUN with the real models of this machine."""
    if reason := missing():
        sys.exit(reason)
    with local_endpoints():
        chosen = [word for concept in concepts for word in ("--concept", concept)]
        aibiasbench("eval", run, "--cache", cache, *chosen)
        aibiasbench("judge", run, "--cache", cache, "--partial")


if __name__ == "__main__":
    main()
