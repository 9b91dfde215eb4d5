"""What GitHub and pre-commit read is valid and asks for nothing but what the README tells people to type."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner

ROOT = Path(__file__).parent.parent
FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
HOOKS = ROOT / ".pre-commit-config.yaml"


def valid(schema: str, path: Path) -> bool:
    """Tell whether a file follows a schema that ships with check-jsonschema."""
    return CliRunner().invoke(check_jsonschema, ["--builtin-schema", schema, str(path)]).exit_code == 0


class TestSchemas:
    @pytest.mark.parametrize(
        ("schema", "path"),
        [
            ("vendor.github-workflows", WORKFLOW),
            ("vendor.github-issue-forms", FORMS / "bug.yml"),
            ("vendor.github-issue-forms", FORMS / "mismatch.yml"),
            ("vendor.github-issue-config", FORMS / "config.yml"),
            ("vendor.dependabot", ROOT / ".github" / "dependabot.yml"),
            ("vendor.citation-file-format", ROOT / "CITATION.cff"),
        ],
    )
    def test_each_file_follows_its_schema(self, schema, path):
        assert valid(schema, path)

    def test_a_workflow_with_a_misspelled_key_does_not(self, tmp_path):
        wrong = tmp_path / "ci.yml"
        wrong.write_text(WORKFLOW.read_text(encoding="utf-8").replace("runs-on:", "run-on:"))
        assert not valid("vendor.github-workflows", wrong)

    def test_every_form_is_checked(self):
        assert {path.name for path in FORMS.iterdir()} == {"bug.yml", "mismatch.yml", "config.yml"}


class TestZenodo:
    """`.zenodo.json` against the closed lists of Zenodo's deposit metadata, and against CITATION.cff."""

    FOUND = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    CFF = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))

    def test_it_has_what_a_deposit_needs(self):
        schema = {
            "required": ["title", "upload_type", "description", "creators", "access_right", "license"],
            "properties": {
                "title": {"type": "string", "minLength": 3},
                "upload_type": {"const": "software"},
                "description": {"type": "string", "minLength": 3},
                "creators": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "required": ["name"],
                        "properties": {key: {"type": "string"} for key in ("name", "affiliation", "orcid", "gnd")},
                        "additionalProperties": False,
                    },
                },
                "access_right": {"enum": ["open", "embargoed", "restricted", "closed"]},
                "license": {"type": "string"},
                "version": {"type": "string"},
                "language": {"type": "string", "pattern": "^[a-z]{3}$"},
                "keywords": {"type": "array", "items": {"type": "string"}},
            },
            "additionalProperties": False,
        }
        jsonschema.Draft7Validator(schema).validate(self.FOUND)

    def test_it_says_what_the_citation_file_says(self):
        for key in ("title", "version", "license", "keywords"):
            assert self.FOUND[key] == self.CFF[key], key
        assert [c["name"] for c in self.FOUND["creators"]] == [a["name"] for a in self.CFF["authors"]]

    def test_the_version_is_that_of_the_package(self):
        assert self.FOUND["version"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


class TestWorkflow:
    def test_it_types_the_two_commands_of_the_readme_on_four_versions(self):
        job = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["test"]
        lines = [step["run"] for step in job["steps"] if "run" in step]
        assert [line for line in lines if line.startswith("make")] == ["make site", "make test"]
        assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]

    def test_it_may_only_read(self):
        assert yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}


class TestHooks:
    def test_they_are_local_and_run_programs_of_the_environment(self):
        (repository,) = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))["repos"]
        assert repository["repo"] == "local"
        programs = [shlex.split(hook["entry"])[0] for hook in repository["hooks"]]
        assert [name for name in programs if not (ROOT / name).is_file()] == []

    def test_they_check_what_make_lint_checks(self):
        (repository,) = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))["repos"]
        lint = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nlint:")[2].partition("\n\n")[0]
        run = {" ".join(shlex.split(hook["entry"])[:2]).split("/")[-1].split()[0] for hook in repository["hooks"]}
        assert {line.split("/bin/")[1].split()[0] for line in lint.splitlines() if "/bin/" in line} == run
