"""The program `aibiasbench` as an operator runs it: a process with an exit code, stdout and stderr."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from generator.cli import aibiasbench
from generator.schema.errors import ToolError

ROOT = Path(__file__).parents[1]
PROGRAM = [sys.executable, "-c", "from generator.cli import program; program()"]


def start(*args: object, **environment: str) -> subprocess.Popen[str]:
    """Start the program in the project's root; stdout and stderr are pipes."""
    return subprocess.Popen(
        [*PROGRAM, *map(str, args)],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*args: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own, to its end."""
    process = start(*args, **environment)
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def invoke(*args: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program inside this process, which spares a start; exit codes and messages as `generator.cli.main`."""
    words = [str(arg) for arg in args]
    result = CliRunner(env=environment).invoke(aibiasbench, words, standalone_mode=False)
    if isinstance(result.exception, ToolError):
        error = f"{result.stderr}error: {result.exception}\n"
        return subprocess.CompletedProcess(words, result.exception.exit_code, result.stdout, error)
    if result.exception is not None:
        raise result.exception
    code = result.return_value if isinstance(result.return_value, int) else 0
    return subprocess.CompletedProcess(words, code, result.stdout, result.stderr)
