"""`init`: a new benchmark is whole, named, and refused where anything stands."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from generator.edition.settings import read_site
from generator.schema.errors import InputError
from harness.bank.reader import read_bank_folder
from harness.commands.init import check_empty, requirement_of, write_files
from harness.plan.run_toml import check_pin, load_plan, read_plan
from harness.starter.files import TEMPLATES, Starter, name_fault, name_from, starter_files
from tests.programs import invoke

NAMES = ["Level ground", 'A "quoted" \\ name', "Größe & Maß", "@DATE@"]


def written(folder: Path, name: str = "Level ground") -> Path:
    write_files(folder, starter_files(Starter(name, "2026-12-01", "aibiasbench==1.0.0")))
    return folder


class TestFiles:
    @pytest.mark.parametrize("name", NAMES)
    def test_bank_plan_and_settings_are_accepted_whatever_the_name(self, tmp_path: Path, name: str) -> None:
        content = written(tmp_path, name) / "content"
        bank = read_bank_folder(content / "bank")
        plan = read_plan(content / "runs" / "first")
        check_pin(plan, bank, "run.toml")
        site = read_site(content / "site.toml")
        assert (site.title, site.publisher) == (name, f"The maintainers of {name}")
        assert (tmp_path / "README.md").read_text().startswith(f"# {name}\n")

    def test_no_mark_is_left(self) -> None:
        files = starter_files(Starter("Name", "2026-12-01", "aibiasbench"))
        assert [name for name, text in files.items() if re.search(rb"@[A-Z0-9_]+@", text)] == []

    def test_every_file_of_the_package_is_written(self) -> None:
        held = [path for path in TEMPLATES.rglob("*") if path.is_file()]
        files = starter_files(Starter("Name", "2026-12-01", "aibiasbench"))
        assert len(files) == len(held)
        assert {".gitignore", ".github/workflows/publish.yml", "README.md", "requirements.txt"} <= files.keys()

    def test_the_bank_has_attributes_of_its_own_and_a_control_for_each_edge(self) -> None:
        own, shipped = read_bank_folder(TEMPLATES / "content/bank"), read_bank_folder()
        assert not own.attribute.keys() & shipped.attribute.keys()
        assert not own.rubric.keys() & shipped.rubric.keys()
        assert None not in (own.roles.band_lower, own.roles.band_upper)

    def test_the_plan_in_comments_is_one_that_the_stages_accept(self) -> None:
        text = starter_files(Starter("Name", "2026-12-01", "aibiasbench"))["content/runs/first/run.toml"].decode()
        lines = text[text.index("# kind = ") :].splitlines()
        assert all(line.startswith("#") for line in lines)
        plan = load_plan(tomllib.loads("\n".join(line[2:] for line in lines)), run_id="live", where="run.toml")
        assert (plan.kind, [e.key_env for e in plan.endpoints.values()]) == ("live", ["OPENROUTER_API_KEY"])

    def test_the_workflow_publishes_verifies_and_deploys_without_a_secret(self) -> None:
        text = starter_files(Starter("N", "2026-12-01", "aibiasbench"))[".github/workflows/publish.yml"].decode()
        steps = re.findall(r"- (?:run|uses): (.*)|- id: deployment\n +uses: (.*)", text)
        order = [step or other for step, other in steps]
        assert [order.index(step) for step in ("aibiasbench publish", "aibiasbench verify dist")] == sorted(
            order.index(step) for step in ("aibiasbench publish", "aibiasbench verify dist")
        )
        assert order[-1].startswith("actions/deploy-pages@")
        assert "secrets." not in text
        assert "restore-keys: publication-" in text


class TestName:
    @pytest.mark.parametrize(
        ("folder", "name"),
        [("bias-bench", "Bias bench"), ("my_bench", "My bench"), ("", "Benchmark"), ("-", "Benchmark")],
    )
    def test_of_a_folder(self, folder: str, name: str) -> None:
        assert name_from(folder) == name

    @pytest.mark.parametrize("name", ["", "  ", "x" * 81, "a\nb", "a\u202eb"])
    def test_one_that_is_refused(self, name: str) -> None:
        assert name_fault(name) is not None


class TestFolder:
    def test_one_that_holds_anything_is_refused_and_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("mine")
        done = invoke("init", tmp_path)
        assert (done.returncode, [p.name for p in tmp_path.iterdir()]) == (2, ["notes.txt"])
        assert f"{tmp_path}: holds notes.txt; name a folder that is new or empty" in done.stderr

    def test_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(InputError, match="is a file"):
            check_empty(tmp_path / "file")

    def test_an_empty_repository_is_no_hindrance(self, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()
        done = invoke("init", tmp_path, "--name", "Level ground")
        assert (done.returncode, (tmp_path / "content/site.toml").exists()) == (0, True)
        assert "next: cd " in done.stdout

    def test_what_could_not_be_finished_is_taken_away(self, tmp_path: Path) -> None:
        (tmp_path / "b").touch()
        with pytest.raises(OSError, match="exists"):
            write_files(tmp_path, {"a": b"1", "b": b"2"})
        assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("b", b"")]

    def test_a_bad_name_writes_nothing(self, tmp_path: Path) -> None:
        done = invoke("init", tmp_path / "new", "--name", " ")
        assert (done.returncode, (tmp_path / "new").exists()) == (2, False)


class TestRequirement:
    class Distribution:
        version = "1.2.3"

        def __init__(self, url: str | None) -> None:
            self.url = url

        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return self.url

    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            (None, "aibiasbench==1.2.3"),
            ('{"url": "file:///home/me/aibiasbench", "dir_info": {"editable": true}}', "aibiasbench==1.2.3"),
            ('{"url": "https://x.example/a.whl", "archive_info": {}}', "aibiasbench @ https://x.example/a.whl"),
            (
                '{"url": "https://x.example/r", "vcs_info": {"vcs": "git", "commit_id": "abc"}}',
                "aibiasbench @ git+https://x.example/r@abc",
            ),
        ],
    )
    def test_it_says_where_the_program_is_from_and_no_place_on_this_machine(
        self, monkeypatch: pytest.MonkeyPatch, url: str | None, expected: str
    ) -> None:
        monkeypatch.setattr("harness.commands.init.metadata.distribution", lambda _: self.Distribution(url))
        assert requirement_of("aibiasbench") == expected
