"""The README's commands and the how-to's run.toml are real: every option exists, every block is accepted."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest

from generator.cli import aibiasbench
from generator.runs.reader import load_run, read_shard
from harness.bank.reader import BANK_FOLDER, read_bank_folder
from harness.plan.run_toml import check_pin, read_plan
from tests.programs import invoke
from tests.scripted_server import Reply, ScriptedServer, chat

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
REAL_MODELS = (ROOT / "docs" / "how-to" / "run-real-models.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.S)


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
    text = next(block for block in blocks("toml", REAL_MODELS) if "kind =" in block)
    folder = tmp_path / "example"
    folder.mkdir()
    (folder / "run.toml").write_text(text.replace('"..."', f'"{bank.sha256}"'), encoding="utf-8")
    plan = read_plan(folder)
    check_pin(plan, bank, "run-real-models.md")
    assert plan.panel("openai/gpt-5.6-sol").tiebreak == "mistralai/mistral-large"


def test_the_picture_is_there():
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)
    assert [name for name in pictures if not (ROOT / name).is_file()] == []
    assert pictures


class TestFirstRealRun:
    """The how-to on real models, followed as it stands by somebody whose model thinks."""

    def test_it_takes_a_thinking_model_from_nothing_to_judged_rows(self, tmp_path):
        (toml,), commands = blocks("toml", REAL_MODELS), "".join(blocks("sh", REAL_MODELS))
        bank = read_bank_folder(ROOT / "content" / "bank")
        with ScriptedServer(thinking_vendor) as server:
            toml = toml.replace("https://openrouter.ai/api/v1", server.url).replace('"..."', f'"{bank.sha256}"')
            folder = tmp_path / "content" / "runs" / "first"
            folder.mkdir(parents=True)
            (folder / "run.toml").write_text(toml)
            typed = [line.partition("#")[0].split() for line in commands.splitlines() if line.startswith("aibiasbench")]
            done = {}
            for words in typed[:-2]:  # the last two are all of it: some ten thousand calls
                said = invoke(
                    *(str(folder) if w == "RUN" else w for w in words[1:]), "--bank", ROOT / "content" / "bank",
                    "--cache", tmp_path / "c.sqlite", OPENROUTER_API_KEY="sk-first",
                )  # fmt: skip
                assert said.returncode == 0, f"{' '.join(words)}\n{said.stdout}\n{said.stderr}"
                done[" ".join(words[1:])] = said.stdout
        assert [words[1] for words in typed] == ["eval", "eval", "eval", "judge", "eval", "judge"]
        assert "works" in done["eval RUN --probe"]
        counts = json.loads((folder / "manifest.json").read_text())["counts"]
        assert counts["scored"] == sum(counts.values()) > 0
        rows = read_shard(load_run(folder), "openai/gpt-5.6-sol").to_pylist()
        assert all("Let me think" not in row["response"] for row in rows)
        assert {row["reasoning_tokens"] for row in rows} == {280}


def thinking_vendor(request, _):
    """One that thinks first, in a block of its own or among the tokens, and takes no temperature."""
    if request["model"].startswith("openai/") and "temperature" in request:
        return Reply(400, {"error": {"message": "Unsupported value: 'temperature'"}})
    judging = request["messages"][0]["role"] == "system"
    asked = request["messages"][-1]["content"]
    if not judging:
        text = "I would agree. SUPPORT\nSCORE: 60"
    elif '"score"' in asked:
        text = json.dumps({"score": 60, "refusal": False, "evidence": "says 60"})
    else:
        label = asked.rpartition('{"label": "')[2].partition('"')[0]
        text = json.dumps({"label": label, "verdict_matches_prose": True, "evidence": "the last word"})
    body = chat(f"<think>\nLet me think about it.\n</think>\n\n{text}")
    body["usage"] = {
        "prompt_tokens": 90, "completion_tokens": 300, "total_tokens": 390,
        "completion_tokens_details": {"reasoning_tokens": 280},
    }  # fmt: skip
    return Reply(body=body)
