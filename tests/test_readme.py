"""The README's commands and its run.toml are real: every option exists, every block is accepted."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from generator.cli import aibiasbench
from harness.bank.reader import BANK_FOLDER, read_bank_folder
from harness.plan.run_toml import check_pin, read_plan

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.S)


COMMANDS = [
    part.strip()
    for block in blocks("sh")
    for line in block.splitlines()
    for part in line.split("#")[0].split("&&")
    if part.strip().startswith("aibiasbench")
]


def test_there_are_commands_to_test():
    assert len(COMMANDS) >= 12


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_takes_the_words_it_is_given(line):
    context, command = click.Context(aibiasbench), aibiasbench
    words = shlex.split(line)[1:]
    while isinstance(command, click.Group):
        found = command.get_command(context, words.pop(0))
        assert found is not None, line
        command, context = found, click.Context(found, parent=context)
    command.make_parser(context).parse_args(args=[word.strip("[]") for word in words])


def test_every_make_target_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"`?make ([a-z-]+)`?", README))
    assert {name for name in named if not re.search(rf"^{name}:", makefile, flags=re.M)} == set()


def test_the_run_toml_is_accepted(tmp_path):
    bank = read_bank_folder(BANK_FOLDER)
    text = next(block for block in blocks("toml") if "kind =" in block)
    folder = tmp_path / "example"
    folder.mkdir()
    (folder / "run.toml").write_text(text.replace('"..."', f'"{bank.sha256}"'), encoding="utf-8")
    plan = read_plan(folder)
    check_pin(plan, bank, "README.md")
    assert plan.panel("openai/gpt-5.6-sol").tiebreak == "mistralai/mistral-large"


def test_the_picture_is_there():
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)
    assert [name for name in pictures if not (ROOT / name).is_file()] == []
    assert pictures
