"""What every command has: --json, an environment variable for each option, no color where NO_COLOR asks for none."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from generator.cli import aibiasbench
from harness.commands import bank, cache
from harness.commands.demo import stage
from tests.editions import make_edition, small_bank
from tests.reference_docs import commands

EVERY = list(commands(aibiasbench))


def options(command: click.Command) -> dict[str, click.Option]:
    return {p.opts[-1]: p for p in command.params if isinstance(p, click.Option)}


@pytest.mark.parametrize("place", range(len(EVERY)), ids=[" ".join(words) for words, _, _ in EVERY])
def test_every_command_prints_json_where_asked(place):
    assert options(EVERY[place][1])["--json"].name == "as_json"


class TestEnvironment:
    def test_each_option_has_a_variable_of_its_own(self):
        names = [
            f"{context.auto_envvar_prefix}_{option.name}".upper()
            for words, command, _ in EVERY
            for context in [context_of(words, command)]
            for option in options(command).values()
        ]
        assert len(names) == len(set(names))
        assert {"AIBIASBENCH_PUBLISH_OUT", "AIBIASBENCH_BANK_CHECK_FOLDER", "AIBIASBENCH_VERIFY_STRICT"} <= set(names)

    def test_it_stands_for_the_option_and_the_option_wins(self):
        found = CliRunner().invoke(aibiasbench, ["bank", "hash"], env={"AIBIASBENCH_BANK_HASH_AS_JSON": "1"})
        assert len(json.loads(found.output)["sha256"]) == 64
        given = {"AIBIASBENCH_BANK_HASH_FOLDER": "no/such"}
        assert CliRunner().invoke(aibiasbench, ["bank", "hash"], env=given).exit_code != 0
        words = ["bank", "hash", "--folder", str(bank.bank_folder())]
        assert CliRunner().invoke(aibiasbench, words, env=given).exit_code == 0

    def test_a_wrong_value_is_a_wrong_option(self):
        found = CliRunner().invoke(aibiasbench, ["serve"], env={"AIBIASBENCH_SERVE_PORT": "many"})
        assert found.exit_code == 2
        assert "'many' is not a valid integer" in found.output


def context_of(words: tuple[str, ...], command: click.Command) -> click.Context:
    context = click.Context(aibiasbench, info_name="aibiasbench", auto_envvar_prefix="AIBIASBENCH")
    group: click.Command = aibiasbench
    for word in words:
        assert isinstance(group, click.Group)
        found = group.get_command(context, word)
        assert found is not None
        context, group = click.Context(found, info_name=word, parent=context), found
    return context


class TestJson:
    def test_bank_sheet(self, tmp_path):
        plain = CliRunner().invoke(bank.command, ["sheet", "age"]).output
        found = json.loads(CliRunner().invoke(bank.command, ["sheet", "age", "--json"]).output)
        assert (found["attribute"], found["out"], found["sheet"]) == ("age", None, plain)
        words = ["sheet", "age", "--json", "--out", str(tmp_path / "s.md")]
        assert json.loads(CliRunner().invoke(bank.command, words).output)["out"] == str(tmp_path / "s.md")
        assert (tmp_path / "s.md").read_text() == plain

    def test_cache_prune(self, tmp_path):
        cache.Cache(tmp_path / "c.sqlite", now=1).close()
        words = ["prune", "--cache", str(tmp_path / "c.sqlite"), "--all", "--dry-run", "--json"]
        found = CliRunner().invoke(cache.command, words)
        assert json.loads(found.stdout) == {"cache": str(tmp_path / "c.sqlite"), "answers": 0, "deleted": False}

    def test_init(self, tmp_path):
        found = CliRunner().invoke(aibiasbench, ["init", str(tmp_path / "new"), "--json"])
        told = json.loads(found.output)
        there = sorted(p.relative_to(tmp_path / "new").as_posix() for p in (tmp_path / "new").rglob("*") if p.is_file())
        assert told["files"] == there

    def test_a_stage_of_the_demonstration_leaves_standard_output_to_the_json(self, capfd):
        stage("bank", "hash", quiet=True)
        out, err = capfd.readouterr()
        assert out == ""
        assert "$ aibiasbench bank hash\n" in err
        assert "sha256" in err or len(err) > 64


class TestTerminal:
    def test_no_color_is_kept(self, tmp_path):
        make_edition(tmp_path / "run-a", bank=small_bank(("gender", "control_profession", "control_tag")))
        asked = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": "1"}
        said = program("score", str(tmp_path / "run-a"), **asked)
        assert "\x1b[1m" in said  # bold: the terminal is taken for one
        assert re.search(r"\x1b\[[0-9;]*\b(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])m", said) is None

    def test_a_shell_completes_commands_and_options(self):
        def completed(line: str) -> list[str]:
            asked = {"_AIBIASBENCH_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
            return [found.partition(",")[2] for found in program(**asked).split()]

        assert "complete -o nosort -F" in program(_AIBIASBENCH_COMPLETE="bash_source")
        assert completed("aibiasbench expo") == ["export"]
        assert completed("aibiasbench export archive --p") == ["--pin"]


def program(*words: str, **environment: str) -> str:
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), **environment}
    command = [sys.executable, "-m", "generator", *words]
    return subprocess.run(command, env=here, capture_output=True, text=True, check=True).stdout
