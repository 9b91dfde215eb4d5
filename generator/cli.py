"""The program `aibiasbench`: a click group that imports a subcommand's module only when it is called.

See contract: stages, "Commands".
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from contextlib import nullcontext
from pathlib import Path

import click

from generator.machine.memory import spare_memory
from generator.machine.terminal import shown_streams
from generator.schema.errors import InputError, ToolError, raise_faults
from generator.schema.names import path_fault
from generator.schema.shown import shown

# Subcommand: (module whose `command` it is, its one-line help). Strings, so that --help imports nothing.
COMMANDS = {
    "init": ("harness.commands.init", "Write a small benchmark to begin with."),
    "doctor": ("harness.commands.doctor", "Say what is missing here, and what to type."),
    "demo": ("harness.commands.demo", "Make and publish a full simulated run."),
    "bank": ("harness.commands.bank", "Check, hash, show and measure the prompt bank."),
    "eval": ("harness.commands.eval", "Ask every model of a run every prompt."),
    "judge": ("harness.commands.judge", "Have the panel label every response, and write the receipts."),
    "import": ("harness.commands.import_", "Take in answers and labels that another harness collected."),
    "audit": ("harness.commands.audit", "Draw a human audit sample, or import its labels."),
    "cache": ("harness.commands.cache", "List or prune the cache of paid answers."),
    "score": ("generator.commands.score", "Compute every score of a run and print the leaderboard."),
    "publish": ("generator.commands.publish", "Build the static site."),
    "verify": (
        "generator.commands.verify",
        "Recompute a publication from its receipts and report each mismatch.",
    ),
    "withdraw": ("generator.commands.withdraw", "Note that a run is published no more, and why."),
    "supersede": ("generator.commands.supersede", "Note that one run replaces another."),
    "export": ("generator.commands.export", "Write a published run as one archive, or as a folder to push."),
    "serve": ("generator.commands.serve", "Serve a built site on this machine."),
}

COMPLETE = "_AIBIASBENCH_COMPLETE"  # set by a shell that completes a line

# What a person can do about an error of the system.
ADVICE: dict[int | None, str] = {
    errno.ENOSPC: "make room on that disk, then run it again",
    errno.EDQUOT: "make room within the quota, then run it again",
    errno.EROFS: "name a place that may be written",
    errno.EACCES: "change who may read or write it, or name another place",
}


class LazyGroup(click.Group):
    """A group that knows its subcommands by name and imports them on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of a run's life."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return one subcommand, or None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), "command")  # noqa: B009
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command list from the table above, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "AIBIASBENCH"},
)
@click.version_option(package_name="aibiasbench")
def aibiasbench() -> None:
    """Run, score and publish a paired-prompt bias benchmark for language models."""


def program() -> None:
    """Run the program in a process of its own."""
    spare_memory()
    main()


def main() -> None:
    """Run the program; a `ToolError` becomes its message on stderr and its exit code."""
    # What a shell is told to complete is bytes for the shell, and no text for a person.
    with nullcontext() if COMPLETE in os.environ else shown_streams():
        sys.exit(_exit_code())


def _exit_code() -> int:
    try:
        raise_faults([fault for fault in map(path_fault, (*sys.argv[1:], str(Path.cwd()))) if fault])
        code = aibiasbench.main(standalone_mode=False, complete_var=COMPLETE)
    except ToolError as error:
        click.echo(f"error: {error}", err=True)
        return error.exit_code
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except OSError as error:
        # A disk that is full, a folder that may not be written: the person's to mend, and no fault of the program.
        place = f"{shown(str(error.filename))}: " if error.filename is not None else ""
        advice = f"; {ADVICE[error.errno]}" if error.errno in ADVICE else ""
        click.echo(f"error: {place}{error.strerror or error}{advice}", err=True)
        return InputError.exit_code
    return code if isinstance(code, int) else 0
