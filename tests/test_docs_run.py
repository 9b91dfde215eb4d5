"""The tutorial and the how-tos, followed as they stand: each command runs, each block of a file goes where it says."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.programs import invoke

DOCS = Path(__file__).parents[1] / "docs"
# Waits until somebody stops it; its own tests start and stop it.
NOT_RUN = ("aibiasbench serve",)


@dataclass(frozen=True)
class Block:
    """A fenced block: `kind` is the language, `target` the file that it changes, with how."""

    kind: str
    how: str
    target: str
    text: str


def blocks(name: str) -> list[Block]:
    """The blocks of a document, in order."""
    found = []
    for token in MarkdownIt().parse((DOCS / name).read_text(encoding="utf-8")):
        if token.type == "fence":
            kind, _, rest = token.info.partition(" ")
            how, _, target = rest.partition("=")
            found.append(Block(kind, how, target, token.content))
    return found


def put(folder: Path, block: Block) -> None:
    """Change a file as a reader would who follows the words above the block."""
    path = folder / block.target
    match block.how:
        case "new":
            path.write_text(block.text, encoding="utf-8")
        case "append":
            path.write_text(path.read_text(encoding="utf-8") + block.text, encoding="utf-8")
        case "after":
            before, head, rest = path.read_text(encoding="utf-8").partition("[rules.attributes]\n")
            path.write_text(before + head + block.text + rest, encoding="utf-8")
        case "replace":
            text, n = re.subn(r"(?m)^version = .*\n", block.text, path.read_text(encoding="utf-8"))
            assert n == 1
            path.write_text(text, encoding="utf-8")


class Reader:
    """Follows a document in a folder; `said` is what the commands printed."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch, self.said = folder, patch, list[str]()
        patch.chdir(folder)

    def follow(self, name: str) -> None:
        """Run and write everything, from the first block to the last."""
        for block in blocks(name):
            if block.kind == "sh":
                for line in block.text.splitlines():
                    self.type(line)
            elif block.target:
                put(self.folder, block)

    def type(self, line: str) -> None:
        """Do what a line says."""
        program, *words = shlex.split(line, comments=True)
        match program:
            case "cd":
                self.folder = self.folder / words[0]
                self.patch.chdir(self.folder)
            case "mkdir":
                (self.folder / words[0]).mkdir()
            case "cp":
                shutil.copy(self.folder / words[0], self.folder / words[1])
            case _ if line.startswith(NOT_RUN):
                pass
            case _:
                assert program == "aibiasbench", line
                done = invoke(*words)
                assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
                self.said.append(done.stdout)
                if words == ["bank", "hash"]:
                    self.pin(done.stdout)

    def pin(self, said: str) -> None:
        """Put version and hash into the second run's plan, as the words below the command say."""
        version, sha256 = re.search(r"([\d.]+)\s+(?:sha256 )?([0-9a-f]{64})", said.replace(",", " ")).groups()
        path = self.folder / "content" / "runs" / "second" / "run.toml"
        text = re.sub(r'(?m)^version = ".*"$', f'version = "{version}"', path.read_text(encoding="utf-8"))
        path.write_text(re.sub(r'(?m)^sha256 = ".*"$', f'sha256 = "{sha256}"', text), encoding="utf-8")


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory, patch) -> Reader:
    """Somebody who has followed the tutorial to its end."""
    reader = Reader(tmp_path_factory.mktemp("tutorial"), patch)
    reader.follow("tutorial.md")
    return reader


def test_the_tutorial_ends_with_a_site_that_verifies(tutorial):
    assert "0 mismatches" in tutorial.said[-1]
    assert (tutorial.folder / "dist" / "index.html").is_file()
    scores = next(said for said in tutorial.said if "consistency [95 %]" in said)
    assert [line for line in scores.splitlines() if "schooling" in line], "one model is flagged, as the text says"


def test_an_attribute_is_added_by_the_how_to_alone(tutorial):
    tutorial.follow("how-to/add-an-attribute.md")
    assert "0 mismatches" in tutorial.said[-1]
    assert (tutorial.folder / "dist" / "runs" / "second" / "attributes" / "housing.html").is_file()
    assert not (tutorial.folder / "dist" / "runs" / "first" / "attributes" / "housing.html").exists()


def test_answers_are_reviewed_by_the_how_to(tutorial):
    name = "how-to/review-by-hand.md"
    shown = [line for block in blocks(name) if block.kind == "sh" for line in block.text.splitlines()]
    assert shown == ["aibiasbench audit sample demo", "aibiasbench audit import demo labels.csv"]
    for line in (shown[0] + " --replace", "aibiasbench audit review demo labels.csv", shown[1]):
        tutorial.type(line.replace("demo", "first"))
