"""The program itself: instant help, exit codes, messages instead of tracebacks."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from generator import cli
from generator.publishing.plan import run_folders
from generator.schema.errors import CapError, CheckError, InputError


def run(*args: str) -> subprocess.CompletedProcess[str]:
    """Run the program as a user would."""
    return subprocess.run([sys.executable, "-m", "generator", *args], capture_output=True, text=True)


class TestHelp:
    def test_help_lists_every_command(self):
        out = run("--help").stdout
        assert [name for name in cli.COMMANDS if f"  {name} " not in out] == []

    @pytest.mark.parametrize("name", list(cli.COMMANDS))
    def test_every_command_loads_and_has_help(self, name):
        command = cli.LazyGroup("x").get_command(click.Context(click.Command("x")), name)
        assert command is not None
        assert command.help

    @pytest.mark.parametrize("name", ["audit", "bank", "cache"])
    def test_no_line_of_a_list_of_commands_is_cut_short(self, name):
        command = cli.LazyGroup("x").get_command(click.Context(click.Command("x")), name)
        said = CliRunner().invoke(command, ["--help"]).output
        assert command.commands
        assert "..." not in said.partition("Commands:")[2]

    def test_a_default_in_words_stands_in_one_pair_of_brackets(self):
        said = CliRunner().invoke(cli.LazyGroup("x").get_command(click.Context(click.Command("x")), "eval"), ["--help"])
        assert "[default: (" not in said.output
        assert "[default: content/bank, or the project's own where there is none]" in " ".join(said.output.split())

    def test_help_imports_no_command(self):
        heavy = ("altair", "httpx2", "numpy", "pandas", "pyarrow")
        code = (
            "import sys, generator.cli as c\n"
            "try: c.main()\nexcept SystemExit: pass\n"
            f"print([m for m in {heavy} if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True)
        assert done.stdout.splitlines()[-1] == "[]"


class TestNames:
    """A name that is not UTF-8 can stand in no file, page or table: it is refused wherever it comes from."""

    @pytest.mark.parametrize("verb", [["score"], ["verify"], ["publish"], ["audit", "sample"], ["eval"], ["judge"]])
    def test_an_argument(self, verb):
        call = [sys.executable, "-m", "generator", *verb, b"content/runs/\xff"]
        done = subprocess.run(call, capture_output=True, timeout=60)
        assert done.returncode == 2
        assert done.stderr == b"error: path 'content/runs/\\udcff': its name is not UTF-8; rename it\n"

    def test_a_run_folder_that_publish_finds(self, tmp_path):
        folder = tmp_path / "content" / "runs" / os.fsdecode(b"\xff")
        folder.mkdir(parents=True)
        (folder / "manifest.json").touch()
        with pytest.raises(InputError, match=r"runs/.*: its name is not UTF-8; rename it"):
            run_folders(tmp_path / "content")


class TestExitCodes:
    def test_wrong_usage_is_2(self):
        done = run("publish", "--no-such-option")
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)

    def test_an_unknown_command_is_2(self):
        assert run("frobnicate").returncode == 2

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (InputError("run.toml: no"), 2),
            (CheckError("gate"), 1),
            (CapError("cap"), 3),
            (KeyboardInterrupt(), 130),
            (OSError(errno.ENOSPC, "No space left on device", "dist/index.html"), 2),
            (PermissionError(errno.EACCES, "Permission denied"), 2),
        ],
    )
    def test_each_error_has_its_code(self, monkeypatch, capsys, error, code):
        @click.command()
        def command() -> None:
            raise error

        monkeypatch.setattr(cli, "aibiasbench", command)
        monkeypatch.setattr(sys, "argv", ["aibiasbench"])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        assert caught.value.code == code
        assert "Traceback" not in capsys.readouterr().err

    def test_a_full_disk_is_one_line_that_names_the_file(self, monkeypatch, capsys):
        @click.command()
        def command() -> None:
            raise OSError(errno.ENOSPC, "No space left on device", "dist/index.html")

        monkeypatch.setattr(cli, "aibiasbench", command)
        monkeypatch.setattr(sys, "argv", ["aibiasbench"])
        with pytest.raises(SystemExit):
            cli.main()
        assert capsys.readouterr().err == (
            "error: dist/index.html: No space left on device; make room on that disk, then run it again\n"
        )

    def test_twenty_faults_are_shown_and_the_rest_counted(self):
        text = str(InputError(*[f"fault {i}" for i in range(25)]))
        assert text.splitlines()[-1] == "... and 5 more faults"
