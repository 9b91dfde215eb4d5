"""Settings of a site beside its words: contrast, logo, menu, own pages, language; each shows on the published pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from generator.edition.colors import (
    GRAPHIC,
    OWN,
    PAIRS,
    SCHEMES,
    TEXT,
    Colors,
    color_faults,
    contrast,
    load_palettes,
    render_colors,
)
from generator.edition.settings import LOGO_BYTES, own_pages, read_site
from generator.publishing.publish import Options, publish
from generator.schema.errors import InputError
from generator.verify.publication import verify_path
from tests.publications import make_small_run
from tests.second_bank import SITE

CSS = Path("site_templates/static/site.css").read_text(encoding="utf-8")
DEFAULTS = load_palettes(CSS)
HEX = st.integers(0, 0xFFFFFF).map(lambda n: f"#{n:06x}")
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8v8z"/></svg>'
# What stands in a table comes last in TOML, so that words come first.
WORDS, _, TABLES = SITE.partition("[data_licence]")
OWN_SITE = f"""{WORDS}
short_name = "level"
language = "ar"
direction = "rtl"
logo = "logo.svg"

[[menu]]
page = "leaderboard"

[[menu]]
page = "about"
label = "Who we are"

[[menu]]
page = "people/team.html"
label = "Team"

[colors.light]
link = "#5A189A"

[data_licence]
{TABLES}
[publish]
base_url = "https://level.example/desk"
"""


def site_with(folder: Path, text: str, **files: str) -> Path:
    """A content folder with a site.toml; returns its path."""
    for name, content in {"site.toml": text, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder / "site.toml"


def faults_of(path: Path) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        read_site(path)
    return caught.value.faults


class TestContrast:
    @pytest.mark.parametrize(
        ("one", "other", "ratio"),
        # Black on white is 21 by definition; the others are worked by hand from WCAG's formula.
        [
            ("#000000", "#ffffff", 21.0),
            ("#ffffff", "#ffffff", 1.0),
            ("#777777", "#ffffff", 4.478),
            ("#767676", "#ffffff", 4.542),
            ("#ff0000", "#ffffff", 3.998),
            ("#0000ff", "#ffffff", 8.592),
        ],
    )
    def test_known_ratios(self, one: str, other: str, ratio: float) -> None:
        assert contrast(one, other) == pytest.approx(ratio, abs=0.001)

    @given(HEX, HEX)
    def test_it_is_the_same_both_ways_and_from_1_to_21(self, one: str, other: str) -> None:
        assert contrast(one, other) == contrast(other, one)
        assert 1 <= contrast(one, other) <= 21

    def test_the_programs_own_colors_keep_the_rule(self) -> None:
        assert {scheme: set(OWN) - set(DEFAULTS[scheme]) for scheme in SCHEMES} == {"light": set(), "dark": set()}
        found = [
            (s, f, g) for s in SCHEMES for f, g, least in PAIRS if contrast(DEFAULTS[s][f], DEFAULTS[s][g]) < least
        ]
        assert found == []

    @given(st.sampled_from(OWN), HEX, st.sampled_from(SCHEMES))
    def test_a_color_is_refused_exactly_where_a_pair_of_it_has_too_little(self, name: str, color: str, scheme) -> None:
        palette = {**DEFAULTS[scheme], name: color}
        weak = [f for f, g, least in PAIRS if name in (f, g) and contrast(palette[f], palette[g]) < least]
        found = list(color_faults(Colors.model_validate({scheme: {name: color}}), DEFAULTS))
        assert [fault.split(":")[0] for fault in found] == [f"colors.{scheme}.{front}" for front in weak]

    def test_the_ratio_is_told(self, tmp_path: Path) -> None:
        text = SITE + '\n[colors.light]\nlink = "#999999"\n'
        (on_paper, on_raised) = faults_of(site_with(tmp_path, text))
        paper = DEFAULTS["light"]["paper"]
        ratio = contrast("#999999", paper)
        assert on_paper == (
            f"{tmp_path / 'site.toml'}: colors.light.link: #999999 on paper {paper} has a contrast of {ratio:.2f}:1,"
            f" {TEXT:g}:1 is needed"
        )
        assert "on raised" in on_raised
        graphic = SITE + '\n[colors.dark]\npoint = "#222222"\n'
        (fault,) = faults_of(site_with(tmp_path, graphic))
        assert fault.endswith(f"{GRAPHIC:g}:1 is needed")

    @pytest.mark.parametrize("line", ['link = "red"', 'link = "#12345"', 'links = "#123456"', "link = 1"])
    def test_another_form_is_refused(self, tmp_path: Path, line: str) -> None:
        assert any(
            "colors.light" in fault for fault in faults_of(site_with(tmp_path, f"{SITE}\n[colors.light]\n{line}\n"))
        )

    def test_the_style_sheet_says_no_more_than_it_was_given(self) -> None:
        # With the selectors of the style sheet, so that none of its rules wins over a color of the site's own.
        assert ':root:not([data-theme="light"]) {' in CSS
        assert ':root[data-theme="dark"] {' in CSS
        assert render_colors(Colors(light={"link": "#5A189A"}, dark={"band-edge": "#FFFFFF"})) == (
            "@media screen{:root{--link:#5a189a;}}\n"
            '@media screen and (prefers-color-scheme:dark){:root:not([data-theme="light"]){--band-edge:#ffffff;}}\n'
            '@media screen{:root[data-theme="dark"]{--band-edge:#ffffff;}}\n'
        )


class TestSettings:
    @pytest.mark.parametrize(
        ("title", "name"),
        [
            ("AIBiasBench", "aibiasbench"),
            ("Level Ground!", "level-ground"),
            ("مقياس", "benchmark"),
            ("x" * 50, "x" * 40),
        ],
    )
    def test_a_name_for_files_is_made_of_the_title(self, tmp_path: Path, title: str, name: str) -> None:
        assert read_site(site_with(tmp_path, SITE.replace("Level Ground", title))).file_name == name

    @pytest.mark.parametrize(
        ("line", "fault"),
        [
            ('short_name = "Level Ground"', "short_name"),
            ('language = "english language"', "language"),
            ('direction = "up"', "direction"),
            ('logo = "../logo.svg"', "logo"),
            ('logo = "logo.gif"', "logo"),
            ('logo = "logo.svg"', "logo.svg is not there"),
            ('menu = [{ page = "nowhere" }]', "menu.0.page: 'nowhere' is no page; there are: leaderboard, receipts"),
            ('menu = [{ page = "team.html" }]', "menu.0.label: missing"),
        ],
    )
    def test_a_bad_one_is_named(self, tmp_path: Path, line: str, fault: str) -> None:
        text = SITE.replace("[data_licence]", f"{line}\n\n[data_licence]")
        found = faults_of(site_with(tmp_path, text, **{"pages/team.md": "# Team\n"}))
        assert any(fault in each for each in found), found

    def test_a_logo_that_every_reader_would_wait_for_is_refused(self, tmp_path: Path) -> None:
        text = SITE.replace("[data_licence]", 'logo = "logo.png"\n\n[data_licence]')
        path = site_with(tmp_path, text)
        (tmp_path / "logo.png").write_bytes(b"x" * (LOGO_BYTES + 1))
        assert "200,001 bytes, at most 200,000 may be" in faults_of(path)[0]


class TestOwnPages:
    def test_every_page_that_is_not_the_programs_own(self, tmp_path: Path) -> None:
        for name in (
            "team.md",
            "about.md",
            "methodology/index.md",
            "methodology/extra.md",
            "news/2026/may.md",
            "x.txt",
        ):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        assert own_pages(tmp_path) == {
            "methodology/extra.html": "methodology/extra.md",
            "news/2026/may.html": "news/2026/may.md",
            "team.html": "team.md",
        }
        assert own_pages(None) == own_pages(tmp_path / "none") == {}

    @pytest.mark.parametrize(
        "name", ["Team.md", "our team.md", "runs/x.md", "assets/x.md", "404.md", "search.md", "-.md"]
    )
    def test_a_name_that_cannot_be_an_address_is_refused(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
        with pytest.raises(InputError, match=name.replace(".", r"\.")):
            own_pages(tmp_path)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own") / "content"
    make_small_run(folder, "desk")
    site_with(folder, OWN_SITE, **{
        "logo.svg": SVG,
        "pages/people/team.md": "# Team\n\nWe are << site.publisher >>. See [the method](../methodology/index.html).\n",
    })  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def dist(content: Path) -> Path:
    out = content.parent / "dist"
    publish(Options(out=out, content=content, base_url="https://level.example/desk"))
    return out


def page(dist: Path, name: str) -> LexborHTMLParser:
    return LexborHTMLParser((dist / name).read_bytes())


class TestPublished:
    def test_language_and_direction_stand_on_every_page(self, dist: Path) -> None:
        roots = [page(dist, p.relative_to(dist).as_posix()).css_first("html") for p in dist.rglob("*.html")]
        assert {(root.attributes["lang"], root.attributes["dir"]) for root in roots} == {("ar", "rtl")}

    def test_the_menu_is_the_sites_own_and_marks_where_one_is(self, dist: Path) -> None:
        items = page(dist, "people/team.html").css('nav[aria-label="Main"] a')
        assert [(a.text(), a.attributes["href"], a.attributes.get("aria-current")) for a in items] == [
            ("Leaderboard", "../runs/desk/index.html", None),
            ("Who we are", "../about.html", None),
            ("Team", "team.html", "page"),
        ]

    def test_the_logo_and_the_colors_are_files_of_the_site(self, dist: Path) -> None:
        front = page(dist, "index.html")
        logo, sheet = front.css_first("img.logo"), front.css('link[rel="stylesheet"]')[1]
        assert (dist / (logo.attributes["src"] or "")).read_text() == SVG
        assert "--link:#5a189a;" in (dist / (sheet.attributes["href"] or "")).read_text()

    def test_an_own_page_has_its_facts_and_is_listed(self, dist: Path) -> None:
        assert "We are The Service Desk Lab." in page(dist, "people/team.html").css_first("main").text()

    def test_file_names_are_the_sites_own(self, dist: Path) -> None:
        assert "@misc{level-desk," in (dist / "runs/desk/data/citation.bib").read_text()
        assert '"name": "level-desk"' in (dist / "runs/desk/data/datapackage.json").read_text()

    def test_verify_makes_all_of_it_anew(self, dist: Path, content: Path) -> None:
        assert verify_path(dist, content).mismatches == []

    def test_verify_finds_another_menu_and_another_page(self, dist: Path, content: Path) -> None:
        (dist / "people/team.html").write_bytes((dist / "people/team.html").read_bytes().replace(b"We are", b"We were"))
        try:
            found = verify_path(dist, content).mismatches
        finally:
            (dist / "people/team.html").write_bytes(
                (dist / "people/team.html").read_bytes().replace(b"We were", b"We are")
            )
        assert any("people/team.html" in str(mismatch) for mismatch in found)

    @pytest.mark.parametrize(
        ("text", "faults"),
        [
            ("<% bloc %>", ["people/team.md: Encountered unknown tag 'bloc'"]),
            (
                "[x](#nowhere), [y](missing.html), [z](../about.html#nobody)",
                [
                    "a link leads nowhere: people/team.html: #nowhere",
                    "a link leads nowhere: people/team.html: missing.html",
                    "a link leads nowhere: people/team.html: ../about.html#nobody",
                ],
            ),
        ],
    )
    def test_what_leads_nowhere_or_is_unknown_stops_the_build(
        self, dist: Path, content: Path, text: str, faults: list[str]
    ) -> None:
        path, before = content / "pages/people/team.md", (content / "pages/people/team.md").read_text()
        stands = (dist / "people/team.html").read_bytes()
        path.write_text(f"# Team\n\n{text}\n")
        try:
            with pytest.raises(InputError) as caught:
                publish(Options(out=dist, content=content, base_url="https://level.example/desk"))
        finally:
            path.write_text(before)
        told = caught.value.faults
        assert [fault for fault in faults if not any(fault in line for line in told)] == [], told
        assert (dist / "people/team.html").read_bytes() == stands
