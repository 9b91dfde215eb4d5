"""The documents: reference pages equal the code, links and anchors lead somewhere, commands exist and run."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import click
import pytest
from markdown_it import MarkdownIt

from generator.cli import aibiasbench
from tests.reference_docs import PAGES, REFERENCE

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted(
    {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "content" / "bank").glob("*.md")}
    - {ROOT / "CHANGELOG.md"}
)
MARKDOWN = MarkdownIt("commonmark").enable("table")
names = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings."""
    pairs = itertools.pairwise(MARKDOWN.parse(path.read_text(encoding="utf-8")))
    return {slug(text.content.replace("`", "")) for opening, text in pairs if opening.type == "heading_open"}


def links(path: Path) -> list[str]:
    """Addresses of the links and pictures of a document."""
    tokens = MARKDOWN.parse(path.read_text(encoding="utf-8"))
    inline = [child for token in tokens for child in token.children or ()]
    return [str(t.attrs.get("href", t.attrs.get("src"))) for t in inline if t.type in ("link_open", "image")]


def dead(path: Path) -> list[str]:
    """The links of a document that lead to no file or heading of the repository; other sites are not asked."""
    found = []
    for link in links(path):
        name, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (path.parent / name) if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


def commands(path: Path) -> list[str]:
    """The commands of the program in a document's shell blocks."""
    blocks = [
        t.content for t in MARKDOWN.parse(path.read_text(encoding="utf-8")) if t.type == "fence" and t.info == "sh"
    ]
    lines = (line.split(" #")[0] for block in blocks for line in block.splitlines())
    return [part.strip() for line in lines for part in line.split("&&") if part.strip().startswith("aibiasbench")]


def takes(line: str) -> None:
    """Parse a command as the program would; raises what click raises."""
    context, command = click.Context(aibiasbench), aibiasbench
    words = shlex.split(line)[1:]
    while isinstance(command, click.Group):
        found = command.get_command(context, words.pop(0))
        assert found is not None, line
        command, context = found, click.Context(found, parent=context)
    command.make_parser(context).parse_args(args=[word.strip("[]") for word in words])


class TestReference:
    @pytest.mark.parametrize("name", PAGES)
    def test_a_page_says_what_the_code_says(self, name):
        assert (REFERENCE / name).read_text(encoding="utf-8") == PAGES[name](), "run `make reference`"


class TestLinks:
    @names
    def test_every_link_leads_to_a_file_and_heading(self, path):
        assert dead(path) == []

    def test_a_dead_one_is_found(self, tmp_path):
        (tmp_path / "b.md").write_text("# Two `words` here\n")
        (tmp_path / "a.md").write_text(
            "[x](b.md#two-words-here) [y](b.md#three) [z](c.md) ![p](p.png) [w](https://a.b)\n"
        )
        assert dead(tmp_path / "a.md") == ["b.md#three", "c.md", "p.png"]


class TestCommands:
    @names
    def test_every_command_takes_the_words_it_is_given(self, path):
        for line in commands(path):
            takes(line)

    def test_a_wrong_option_is_found(self):
        with pytest.raises(click.NoSuchOption):
            takes("aibiasbench score demo --wrong")

    def test_every_make_target_exists(self):
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        named = {
            name for path in DOCUMENTS for name in re.findall(r"`make ([a-z-]+)", path.read_text(encoding="utf-8"))
        }
        assert {name for name in named if not re.search(rf"^{name}:", makefile, flags=re.M)} == set()
