"""The pages of docs/reference that the code decides: every command with its options, every column of every table.

    python -m tests.reference_docs     # writes them again, after a command, option or column changed

`tests/test_docs.py` fails where the pages say anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from generator.cli import aibiasbench
from generator.schema.columns import RECEIPT_COLUMNS, VOTE_FIELDS, Column
from generator.schema.tables import TABLES

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
PROGRAM = "aibiasbench"


def commands(
    group: click.Group, words: tuple[str, ...] = (), parent: click.Context | None = None
) -> Iterator[tuple[tuple[str, ...], click.Command, click.Context]]:
    """Yield every command that does something, with the words that call it."""
    context = click.Context(group, info_name=words[-1] if words else PROGRAM, parent=parent)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name), context)
        else:
            yield (*words, name), command, click.Context(command, info_name=name, parent=context)


def cell(text: str) -> str:
    """Text in one cell of a Markdown table."""
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|").replace("<", "&lt;")


def table(*rows: tuple[str, ...]) -> str:
    """A Markdown table of a head and rows."""
    head, *others = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *others))


def paragraphs(help_: str | None) -> str:
    """A command's help as Markdown paragraphs."""
    return "\n\n".join(re.sub(r"\s+", " ", part).strip() for part in (help_ or "").replace("\b", "").split("\n\n"))


def command_page() -> str:
    """Every command: how it is called, what it does, its options."""
    found = [
        "# Commands",
        (
            "Every command and option, written from the code by `make reference`. `--help` prints the same for one"
            " command. Exit codes: 0 done, 1 the data or a check failed, 2 wrong usage or bad input, 3 stopped at a"
            " spend cap, 130 interrupted."
        ),
        (
            "Every command takes `--json`. Every option has an environment variable, `AIBIASBENCH_` with command and"
            " option: `AIBIASBENCH_PUBLISH_OUT` is `publish --out`, `AIBIASBENCH_AUDIT_SAMPLE_SIZE` is"
            " `audit sample --size`; a flag takes `1` or `0`, an option that may be given again takes words with spaces"
            " between them, and `--json` is `AS_JSON`. What stands on the command line wins. `NO_COLOR` is kept."
        ),
        (
            'Completion: `eval "$(_AIBIASBENCH_COMPLETE=bash_source aibiasbench)"` in `~/.bashrc`, `zsh_source` in'
            " `~/.zshrc`; for fish, `_AIBIASBENCH_COMPLETE=fish_source aibiasbench | source`. There is no man page:"
            " this page holds what one would."
        ),
    ]
    for words, command, context in commands(aibiasbench):
        call = " ".join([PROGRAM, *words, *command.collect_usage_pieces(context)])
        found += [f"## {' '.join(words)}", f"```text\n{call}\n```", paragraphs(command.help)]
        records = [p.get_help_record(context) for p in command.params if isinstance(p, click.Option)]
        rows = [(f"`{cell(name)}`", cell(words_)) for name, words_ in filter(None, records)]
        if rows:
            found.append(table(("Option", "Meaning"), *rows))
    return "\n\n".join(found) + "\n"


def column_table(columns: tuple[Column, ...]) -> str:
    """The columns of one table."""
    rows = [(f"`{c.name}`", f"`{c.type}`", cell(c.unit), cell(c.description), cell(c.null)) for c in columns]
    rows = [(name, "list of votes" if "struct" in kind else kind, *rest) for name, kind, *rest in rows]
    return table(("Column", "Type", "Unit", "Meaning", "Empty where"), *rows)


def column_page() -> str:
    """Every column of the receipts, of a vote and of each published table."""
    found = [
        "# Columns",
        (
            "Every column of the receipts and of the published tables, written from the code by `make reference`."
            " [The contract](../contract/tables.md) says which rows each table has."
        ),
        "## Receipts",
        column_table(RECEIPT_COLUMNS),
        "## A vote",
        "The fields of each item in the receipts' column `votes`.",
        column_table(VOTE_FIELDS),
    ]
    for name, columns in TABLES.items():
        found += [f"## {name}", column_table(tuple(columns))]
    return "\n\n".join(found) + "\n"


PAGES = {"commands.md": command_page, "columns.md": column_page}


def main() -> None:
    """Write the pages."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
