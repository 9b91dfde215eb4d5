"""Foreign text in what a command prints: shown, never sent, on either stream, in errors and through Rich."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import unicodedata

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from generator import cli
from generator.machine.terminal import ShownStream, shown_streams
from generator.schema.errors import CheckError, InputError
from generator.schema.shown import shown
from generator.verify.findings import Mismatch
from harness.engine.outcome import StageCounts
from harness.terminal.progress import stage_progress

OBEYED = (
    "Cc",
    "Cf",
    "Cs",
    "Zl",
    "Zp",
)  # Unicode's own names: control, format (bidi, zero width), surrogate, separators


class TestShown:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("plain, übel, 質問 …", "plain, übel, 質問 …"),
            ("\x1b[2Jgone", "\\u001b[2Jgone"),
            ("a\r\nb\tc", "a\\u000d\\u000ab\\u0009c"),
            ("\x9b31m\x7f", "\\u009b31m\\u007f"),
            ("\u202eevil\u2066\u200b\ufeff", "\\u202eevil\\u2066\\u200b\\ufeff"),
            ("a\u2028b", "a\\u2028b"),
            ("no break\u00a0here", "no break\u00a0here"),
            ("\U000e0041", "\\udb40\\udc41"),
            ("\udcff", "\\udcff"),
        ],
    )
    def test_what_a_terminal_would_obey_is_spelled_out(self, text, expected):
        assert shown(text) == expected

    @given(st.text(alphabet=st.characters(codec=None)))
    def test_nothing_that_moves_turns_or_hides_is_left_and_letters_stay(self, text):
        found = shown(text)
        assert not any(unicodedata.category(c) in OBEYED for c in found)
        assert [c for c in text if c.isprintable()] == [c for c in text if c.isprintable() and c in found]
        found.encode()

    @given(st.text())
    def test_json_says_the_same_afterwards(self, text):
        assert json.loads(shown(json.dumps([text], ensure_ascii=False, indent=1), keep="\n")) == [text]


class TestErrors:
    @pytest.mark.parametrize("kind", [InputError, CheckError])
    def test_a_fault_is_one_line_whatever_it_quotes(self, kind):
        assert str(kind("a: \x1b]0;x\x07", "b: 1\n0 mismatches.")) == "a: \\u001b]0;x\\u0007\nb: 1\\u000a0 mismatches."

    def test_a_mismatch_is_one_line(self):
        assert str(Mismatch("a\nb", "k\u202e", "\x1b[1m", "x")) == (
            "a\\u000ab: k\\u202e: published \\u001b[1m, recomputed x"
        )


class TestStream:
    def test_both_streams_are_watched_while_the_block_runs(self, capsys):
        with shown_streams():
            print("out \x1b[1m")
            click.echo("said \u202e", err=True)
        print("after\x08")
        assert capsys.readouterr() == ("out \\u001b[1m\nafter\x08\n", "said \\u202e\n")

    def test_bytes_have_no_way_around_it(self):
        stream = ShownStream(io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
        assert not hasattr(stream, "buffer")
        with pytest.raises(AttributeError):
            stream.write(b"\x1b")
        stream.write("ü \x1b")  # what the terminal's encoding lacks is no traceback either
        stream.flush()
        assert stream.rich_proxied_file.buffer.getvalue() == b"\\xfc \\u001b"

    def test_rich_writes_its_own_sequences_behind_it(self):
        target = io.StringIO()
        stream = ShownStream(target)
        Console(file=stream, force_terminal=True, color_system="standard").print("[bold]x[/bold]")
        assert target.getvalue() == "\x1b[1mx\x1b[0m\n"

    @pytest.mark.parametrize("terminal", [True, False])
    def test_a_warning_of_a_stage_is_shown(self, terminal):
        target = io.StringIO()
        console = Console(file=target, force_terminal=terminal, width=200, color_system=None)
        with stage_progress("eval", cap=1, console=console) as watch:
            watch(StageCounts(planned=1, warnings=["key \x1b]0;owned\x07 \u202eend"]))
        assert "warning: key \\u001b]0;owned\\u0007 \\u202eend" in target.getvalue()
        assert "\x1b]0" not in target.getvalue()
        assert "\u202e" not in target.getvalue()


class TestProgram:
    def test_an_argument_that_an_error_quotes_is_shown(self):
        name = "no\x1b[31m\u202esuch"
        done = subprocess.run([sys.executable, "-m", "generator", "verify", name], capture_output=True, text=True)
        assert done.returncode == 2
        assert "no\\u001b[31m\\u202esuch" in done.stderr
        assert "\x1b" not in done.stderr

    def test_a_terminal_gets_no_sequence_of_a_bank(self, tmp_path):
        # A real terminal: click strips sequences from a pipe, and here must not be the reason that they are gone.
        leader, follower = pty.openpty()
        command = [sys.executable, "-m", "generator", "bank", "check", str(tmp_path / "bank\x1b]0;owned\x07")]
        with subprocess.Popen(command, stdout=follower, stderr=follower) as program:
            program.wait(timeout=60)
        os.close(follower)
        told = os.read(leader, 65536)
        os.close(leader)
        assert b"\\u001b]0;owned\\u0007" in told
        assert b"\x1b]0" not in told

    def test_a_name_in_an_error_of_the_system_is_shown(self, monkeypatch, capsys):
        @click.command()
        def command() -> None:
            raise FileNotFoundError(2, "No such file or directory", "a\nb\x1b")

        monkeypatch.setattr(cli, "aibiasbench", command)
        monkeypatch.setattr(sys, "argv", ["aibiasbench"])
        with pytest.raises(SystemExit):
            cli.main()
        assert capsys.readouterr().err == "error: a\\u000ab\\u001b: No such file or directory\n"
