"""Words, environment, frame and assets: what every page is put together from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from generator.html.assets import STATIC, assets
from generator.html.frame import (
    breakable,
    bytesize,
    concept_title,
    content_security_policy,
    environment,
    frame,
    plural,
    render_page,
)
from harness.bank.reader import read_bank_folder
from tests.editions import SITE

BANK_FOLDER = Path(__file__).parent.parent / "content" / "bank"


class TestWords:
    @pytest.mark.parametrize(
        ("count", "text"), [(0, "0 models"), (1, "1 model"), (2, "2 models"), (60000, "60,000 models")]
    )
    def test_plural(self, count, text):
        assert plural(count, "model") == text

    @pytest.mark.parametrize(
        ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_400_000, "1.4 MB"), (5 * 10**9, "5.0 GB")]
    )
    def test_bytesize(self, count, text):
        assert bytesize(count) == text

    def test_an_id_may_break_between_its_parts_but_not_at_its_end(self):
        assert breakable("sim-a/b_c_") == "sim-<wbr>a/<wbr>b_<wbr>c_"
        assert breakable("a<b") == "a&lt;b"

    @pytest.mark.parametrize(
        ("concept", "title"),
        [
            ("age_food_truck_loan", "Food truck loan"),
            ("politics_data_analyst", "Data analyst"),
            ("age", "Age"),
            ("age_2_rooms", "2 rooms"),
            ("_", "_"),
        ],
    )  # fmt: skip
    def test_a_concept_is_headed_by_its_matter_without_the_attribute_s_name(self, concept, title):
        assert concept_title(concept) == title

    def test_no_two_concepts_of_an_attribute_share_a_title(self):
        bank = read_bank_folder(BANK_FOLDER)
        for attribute in bank.attributes:
            titles = [concept_title(c.id) for c in bank.concepts_of(attribute.id, two_sided=None)]
            assert len(set(titles)) == len(titles)


class TestEnvironment:
    def test_an_undefined_name_is_an_error(self):
        with pytest.raises(UndefinedError, match="'nothing' is undefined"):
            environment().from_string("{{ nothing }}").render()

    def test_values_are_escaped(self):
        assert environment().from_string("{{ x }}").render(x="<b>") == "&lt;b&gt;"

    def test_every_template_compiles(self):
        env = environment()
        names = env.list_templates(extensions=["html"])
        assert "leaderboard.html" in names
        for name in names:
            env.get_template(name)


class TestFrame:
    def test_links_are_relative_and_name_the_file(self):
        context = frame(None, "runs/index.html", "All runs", site=SITE)
        assert context["link"]("methodology/index.html") == "../methodology/index.html"
        assert [item.href for item in context["nav"]] == [
            "../methodology/index.html", "index.html", "../search.html"
        ]  # fmt: skip

    def test_a_page_without_edition_needs_a_site(self):
        with pytest.raises(ValueError, match="a page without an edition needs its site"):
            frame(None, "x.html", "x")

    def test_the_current_section_is_marked(self):
        page = render_page("base.html", frame(None, "runs/index.html", "All runs", site=SITE, section="runs"))
        assert '<a href="index.html" aria-current="page">All runs</a>' in page.decode()

    def test_title_and_description_are_escaped(self):
        page = render_page("base.html", frame(None, "x.html", 'a "<b>"', site=SITE, description='"><script>'))
        assert "<b>" not in page.decode()
        assert "<script>" not in page.decode()

    def test_without_a_base_address_there_is_no_canonical_address(self):
        text = render_page("base.html", frame(None, "x.html", "x", site=SITE)).decode()
        assert "canonical" not in text
        assert "og:image" not in text

    def test_with_one_there_is(self):
        text = render_page("base.html", frame(None, "a/x.html", "x", site=SITE, base_url="https://e.org/b")).decode()
        assert '<link rel="canonical" href="https://e.org/b/a/x.html">' in text

    def test_scripts_are_files_and_modules_wait_for_a_server(self):
        context = frame(None, "a/x.html", "x", site=SITE, scripts=("site.js",), modules=("check/start.js",))
        text = render_page("base.html", context).decode()
        assert f'<script defer src="../{assets()["site.js"].path}"></script>' in text
        assert f'data-modules="../{assets()["check/start.js"].path}"' in text

    def test_the_policy_allows_own_files_only(self):
        policy = content_security_policy()
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe-inline" not in policy
        assert "'wasm-unsafe-eval'" in content_security_policy(wasm=True)


def rules(scheme: str) -> dict[str, str]:
    """The colours of site.css by variable, light or dark."""
    text = (STATIC / "site.css").read_text()
    light, dark = (m.group(1) for m in list(re.finditer(r":root \{(.*?)\}", text, re.DOTALL))[:2])
    found = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", light))
    return found | (dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", dark)) if scheme == "dark" else {})


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


class TestColours:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("ink", ["ink", "soft", "link", "flagged", "suggestive", "unresolved", "good"])
    @pytest.mark.parametrize("paper", ["paper", "raised"])
    def test_words_are_readable_on_every_ground(self, scheme, ink, paper):
        colours = rules(scheme)
        assert contrast(colours[ink], colours[paper]) >= 4.5

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize(
        "shape", ["point", "flagged", "suggestive", "unresolved", "line-strong", "band", "band-edge"]
    )
    def test_shapes_stand_out_from_paper(self, scheme, shape):
        colours = rules(scheme)
        assert contrast(colours[shape], colours["paper"]) >= 3

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("paper", ["mark", "notice", "alert"])
    def test_banners_and_marks_are_readable(self, scheme, paper):
        colours = rules(scheme)
        assert contrast(colours["mark-ink" if paper == "mark" else "ink"], colours[paper]) >= 4.5

    def test_no_words_lie_on_the_band(self):
        # It is as dark as a graphic has to be, so that nothing could be read on it.
        grounds = re.findall(r"([^{}]+) \{[^}]*background(?:-color)?: var\(--band\)", (STATIC / "site.css").read_text())
        assert [name.strip() for name in grounds] == [".swatch-band"]

    def test_the_measure_itself_can_fail(self):
        assert contrast("#bbbbbb", "#ffffff") < 3
        assert round(contrast("#000000", "#ffffff"), 1) == 21.0
