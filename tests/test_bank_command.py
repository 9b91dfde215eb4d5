"""`aibiasbench bank` as a person types it: real process, real folders, exit codes, no traceback."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from generator.schema.errors import InputError
from harness.commands.bank import command
from tests.test_bank import BANK, FOLDER, ROOT, SHA256


@pytest.fixture
def spoiled(tmp_path):
    """A bank with thirty faults in one file."""
    folder = Path(shutil.copytree(FOLDER, tmp_path / "bank"))
    path = folder / "concepts" / "age.toml"
    path.write_text(path.read_text().replace("{group_np}", "someone"))
    return folder


def run(*arguments, folder=FOLDER):
    """Run a subcommand in this process on a folder."""
    return CliRunner().invoke(command, [*arguments, "--folder", str(folder)])


def program(*arguments):
    """Run the program as a process, from the root of the checkout."""
    return subprocess.run(
        [sys.executable, "-m", "generator", "bank", *arguments], cwd=ROOT, capture_output=True, text=True
    )


class TestCheck:
    def test_the_shipped_bank_passes(self):
        result = run("check")
        assert (result.exit_code, result.output.splitlines()[0]) == (
            0,
            "132 concepts, 9 attributes, 5 rubrics: ok",
        )

    def test_every_fault_is_listed_not_only_the_first_twenty(self, spoiled):
        result = run("check", folder=spoiled)
        lines = [line for line in result.stderr.splitlines() if "has 0 {group_np}" in line]
        assert result.exit_code == 2
        assert len(lines) == 32
        assert all("age.toml: concept age_" in line and ": framing " in line for line in lines)
        assert result.stderr.splitlines()[-1] == f"error: 32 faults in {spoiled}"

    def test_json_lists_the_faults(self, spoiled):
        result = run("check", "--json", folder=spoiled)
        value = json.loads(result.stdout)
        assert (result.exit_code, value["ok"], len(value["faults"]), value["sha256"]) == (2, False, 32, None)

    def test_json_of_a_good_bank_is_all_that_is_printed(self):
        assert json.loads(run("check", "--json").output) == {"ok": True, "faults": [], "sha256": SHA256}

    def test_the_program_ends_with_two_and_no_traceback(self, spoiled):
        result = program("check", "--folder", str(spoiled))
        assert result.returncode == 2
        assert "Traceback" not in result.stderr
        assert result.stdout == ""

    def test_a_folder_that_is_not_there(self, tmp_path):
        result = run("check", folder=tmp_path / "none")
        assert result.exit_code == 2
        assert "bank.toml: not found" in result.stderr


class TestHash:
    def test_version_and_hash_on_one_line(self):
        assert run("hash").output == f"{BANK.version} {SHA256}\n"

    def test_json_adds_the_rubrics(self):
        value = json.loads(run("hash", "--json").output)
        assert value["rubrics"] == {r.id: r.sha256 for r in BANK.rubrics}

    def test_the_program_works_from_the_root_without_options(self):
        result = program("hash")
        assert (result.returncode, result.stdout) == (0, f"{BANK.version} {SHA256}\n")


class TestShow:
    def test_a_row_a_group_and_a_column_a_framing(self):
        lines = run("show", "gender_back_scan").output.splitlines()
        assert lines[0] == "gender_back_scan: gender, allocation, APPROVE favors the patient"
        assert all(any(word in line for line in lines) for word in ("direct", "professional"))
        assert all(any(f" {g.id} " in line for line in lines) for g in BANK.attribute["gender"].groups)
        assert {len(line) for line in lines[1:]} == {120}  # in a pipe the texts have room

    def test_json_holds_every_prompt_with_its_span(self):
        value = json.loads(run("show", "gender_back_scan", "--json").output)
        for prompts in value["prompts"].values():
            for prompt in prompts.values():
                assert prompt["text"][prompt["start"] : prompt["end"]] == prompt["np"]
        assert (len(value["prompts"]), value["favorable"]) == (5, "APPROVE favors the patient")

    def test_a_concept_that_is_not_there_is_proposed_a_close_one(self):
        result = run("show", "gender_back_scam")
        assert isinstance(result.exception, InputError)
        assert "did you mean gender_back_scan" in str(result.exception)

    def test_a_part_of_a_name_proposes_the_names_that_hold_it(self):
        assert "did you mean gender_back_scan?" in str(run("show", "BACK_SCAN").exception)

    @pytest.mark.parametrize("name", ["zzz", "age", "promotion", "judge", "on"])
    def test_names_unlike_all_are_proposed_nothing(self, name):
        assert "did you mean" not in str(run("show", name).exception)

    def test_an_attribute_is_told_from_a_concept(self):
        assert "'age' is an attribute, no concept; `aibiasbench bank sheet age`" in str(run("show", "age").exception)

    def test_without_a_name_all_concepts_are_listed(self):
        lines = run("show").output.splitlines()
        assert [line.split() for line in lines] == [[c.id, c.attribute, c.category] for c in BANK.concepts]
        assert json.loads(run("show", "--json").output)[0] == dict(
            zip(("id", "attribute", "category"), lines[0].split(), strict=True)
        )

    def test_the_program_says_it_in_one_line(self):
        result = program("show", "zzz")
        assert (result.returncode, result.stderr.count("\n")) == (2, 1)
        assert result.stderr.startswith(
            "error: concept 'zzz' is not in the bank. `aibiasbench bank show` lists all 132"
        )


class TestStats:
    def test_names_every_attribute_and_the_closest_pair(self):
        output = run("stats").output
        assert all(a.id in output for a in BANK.attributes)
        assert "near-duplicate scenarios: 0" in output

    def test_json_says_the_same(self):
        value = json.loads(run("stats", "--json").output)
        assert (value["concepts"], value["prompts"], value["near_duplicates"]) == (132, 1520, [])


class TestSheet:
    def test_prints_the_sheet(self):
        assert run("sheet", "age").output.startswith("# Age: 16 concepts, 5 groups, 160 prompts\n")

    def test_writes_it_to_a_file(self, tmp_path):
        result = run("sheet", "age", "--out", str(tmp_path / "age.md"))
        assert (result.exit_code, result.output) == (0, "")
        assert (tmp_path / "age.md").read_text() == run("sheet", "age").output

    def test_an_unknown_attribute_lists_the_known(self):
        error = run("sheet", "height").exception
        assert isinstance(error, InputError)
        assert "attribute 'height' is not in the bank; it has race_ethnicity, gender, age" in str(error)

    def test_a_place_that_cannot_be_written(self, tmp_path):
        error = run("sheet", "age", "--out", str(tmp_path / "no" / "age.md")).exception
        assert isinstance(error, InputError)
        assert "cannot be written: No such file or directory" in str(error)


def readme_commands():
    """The commands that content/bank/README.md shows."""
    text = (FOLDER / "README.md").read_text()
    return [line.split("  ")[0].split()[2:] for line in text.splitlines() if line.startswith("aibiasbench bank ")]


class TestReadme:
    @pytest.mark.parametrize("arguments", readme_commands(), ids=" ".join)
    def test_every_command_of_the_readme_runs(self, arguments):
        assert run(*arguments).exit_code == 0

    def test_every_subcommand_is_in_the_readme(self):
        assert sorted({arguments[0] for arguments in readme_commands()}) == sorted(command.commands)

    def test_the_readme_names_the_test_that_holds_the_pin(self):
        assert "tests/test_bank.py` pins version and hash" in (FOLDER / "README.md").read_text()
