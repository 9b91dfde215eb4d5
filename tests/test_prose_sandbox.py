"""A page of prose reads its facts, and reaches neither files nor programs of the machine that publishes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.edition.settings import read_site
from generator.pages.prose import _read, filled
from generator.schema.errors import InputError
from tests.publications import make_content

ATTACKS = (
    "raw.__init__.__globals__",
    "link.__self__.__class__",
    "''.__class__.__mro__",
    "x|attr('__class__')",
    "'{0.__class__}'.format(x)",
    "site.pages.parent",
    "site.parse_file('site.toml')",
    "site.model_dump()",
    "cycler.__init__.__globals__",
    "self._TemplateReference__context",
    "range(10**9)|length",
    "'a' * 1000000000",
    "9 ** 9 ** 9",
    "range(100000)|length",
    "1 / 0",
    "1 + 'a'",
    "code()",
    "(" * 3000 + "1" + ")" * 3000,
)


@pytest.fixture
def content(tmp_path: Path) -> Path:
    made = make_content(tmp_path / "content", runs=())
    (made / "pages").mkdir()
    return made


class TestReach:
    @pytest.mark.parametrize("attack", ATTACKS, ids=lambda text: text[:30])
    def test_whatever_leads_out_is_refused_in_a_line(self, content: Path, attack: str) -> None:
        facts = {"site": read_site(content / "site.toml"), "x": "a text"}
        with pytest.raises(InputError) as error:
            filled(f"A page: << {attack} >>.", facts, "own.md")
        assert len(error.value.faults) == 1
        assert error.value.faults[0].startswith("own.md: ")
        assert "\n" not in error.value.faults[0]

    @pytest.mark.parametrize("block", ['<% include "/etc/passwd" %>', '<% import "os" as os %>', "<% if 1 %>" * 200])
    def test_no_other_file_comes_in(self, block: str) -> None:
        with pytest.raises(InputError, match=r"own\.md"):
            filled(block, {}, "own.md")

    def test_what_a_page_needs_is_there(self) -> None:
        source = (
            "<% set t = {'a': 2} %><< t.get('a') * 3 >> << 'A'.lower() >> <% for i in range(2) %><< i >><% endfor %>"
        )
        assert filled(source, {}, "own.md") == "6 a 01"
        assert filled("<% macro m(x) %><< x >>!<% endmacro %><< m('a')|safe >>", {}, "own.md") == r"a\!"


class TestFiles:
    def test_a_link_out_of_the_folder_is_refused(self, content: Path) -> None:
        (content.parent / "secret.md").write_text("# Secret\n")
        (content / "pages" / "own.md").symlink_to(content.parent / "secret.md")
        with pytest.raises(InputError, match=r"own\.md: a link that leads out of the folder"):
            _read("own.md", content / "pages")

    def test_a_page_of_a_folder_that_is_a_link_is_refused(self, content: Path) -> None:
        (content.parent / "other").mkdir()
        (content.parent / "other" / "index.md").write_text("# Secret\n")
        (content / "pages" / "methodology").symlink_to(content.parent / "other")
        with pytest.raises(InputError, match="a link that leads out"):
            _read("methodology/index.md", content / "pages")

    def test_a_link_within_the_folder_is_read(self, content: Path) -> None:
        (content / "pages" / "a.md").write_text("# A\n")
        (content / "pages" / "b.md").symlink_to("a.md")
        assert _read("b.md", content / "pages")[0] == "# A\n"

    def test_a_logo_that_is_a_link_out_of_the_folder_is_refused(self, content: Path) -> None:
        (content.parent / "secret.svg").write_text("<svg/>")
        (content / "logo.svg").symlink_to(content.parent / "secret.svg")
        settings = content / "site.toml"
        settings.write_text(f'logo = "logo.svg"\n{settings.read_text()}')
        with pytest.raises(InputError, match=r"logo\.svg is a link that leads out of the folder"):
            read_site(settings)

    @pytest.mark.parametrize(
        ("text", "fault"),
        [("# T\n" + "x" * (256 << 10), "at most 262,144 are read"), ("# T\n\u202e\n", r"control character U\+202E")],
    )
    def test_a_page_without_end_and_one_that_turns_its_text(self, content: Path, text: str, fault: str) -> None:
        (content / "pages" / "own.md").write_text(text)
        with pytest.raises(InputError, match=fault):
            _read("own.md", content / "pages")
