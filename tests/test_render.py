"""Numbers, untrusted text, frame and assets: what every page is put together from."""

from __future__ import annotations

import hashlib
import html
import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from generator.render import (
    STATIC,
    asset_files,
    assets,
    breakable,
    bytesize,
    cell,
    content_security_policy,
    environment,
    frame,
    interval,
    marked,
    number,
    plural,
    render_page,
    score,
    visible,
)
from generator.scorebook import ScoreRow
from tests.editions import SITE

ROW = ScoreRow("v/m", "lean", "age", "old", estimate=-0.04, ci_low=-1.25, ci_high=2.0, p_adjusted=0.0444, n_concepts=3)
SHOWN = re.compile(r'<span class="cp" title="[^"]*">U\+([0-9A-F]{4,6})</span>')


def original(shown: str) -> str:
    """Undo `visible`: what a reader could restore from the page."""
    return html.unescape(SHOWN.sub(lambda found: chr(int(found[1], 16)), shown))


class TestNumber:
    @pytest.mark.parametrize(
        ("value", "digits", "text"),
        [
            (95.25, 1, "95.2"),  # ties to even of the stored binary value, as Python's format does
            (0.15, 1, "0.1"),
            (-0.04, 1, "0.0"),
            (-0.0, 2, "0.00"),
            (-0.05, 1, "-0.1"),
            (3, 0, "3"),
            (None, 1, "–"),
        ],
    )
    def test_it_rounds_as_python_formats_and_has_no_minus_zero(self, value, digits, text):
        assert number(value, digits) == text

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
    def test_nothing_that_is_not_a_number_is_published(self, value):
        with pytest.raises(ValueError, match="write null where there is no value"):
            number(value)


class TestElements:
    def test_a_score_names_its_row_and_column(self):
        assert score(ROW) == '<span data-score="v/m|lean|age|old|estimate">0.0</span>'
        assert score(ROW, "ci_low", 2) == '<span data-score="v/m|lean|age|old|ci_low">-1.25</span>'

    def test_other_columns_of_scores_are_cells_of_that_table(self):
        assert score(ROW, "p_adjusted", 3) == '<span data-cell="scores|v/m,lean,age,old|p_adjusted">0.044</span>'
        assert score(ROW, "n_concepts") == '<span data-cell="scores|v/m,lean,age,old|n_concepts">3</span>'

    def test_an_interval_is_two_scores_or_a_dash(self):
        assert interval(ROW).count("data-score") == 2
        assert interval(ScoreRow("v/m", "lean", "age", "old")) == '<span class="none" title="no interval">–</span>'

    def test_a_scaled_cell_says_so(self):
        assert cell("disparities", "v/m,c,direct", "disparity", 0.1234, 1, scale=100) == (
            '<span data-cell="disparities|v/m,c,direct|disparity" data-scale="100">12.3</span>'
        )

    def test_a_word_and_a_null_are_shown_as_they_are(self):
        assert cell("scores", "k", "evidence", "flagged") == '<span data-cell="scores|k|evidence">flagged</span>'
        assert cell("scores", "k", "p", None) == '<span data-cell="scores|k|p">–</span>'

    def test_what_a_name_holds_cannot_leave_the_attribute(self):
        assert '"' not in cell("t", 'a"b', "c", 1.0)[len('<span data-cell="') :].split(">")[0][:-1].replace("&#34;", "")


class TestVisible:
    @given(st.text())
    def test_nothing_is_lost_and_nothing_is_markup(self, text):
        shown = str(visible(text))
        assert original(shown) == text
        assert "<" not in SHOWN.sub("", shown)
        assert '"' not in SHOWN.sub("", shown)

    @given(st.text())
    def test_no_control_bidi_or_invisible_character_is_left(self, text):
        left = [c for c in str(visible(text)) if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")]
        assert set(left) <= {"\n"}

    def test_no_format_or_space_character_of_all_unicode_is_missed(self):
        missed = [
            f"U+{p:04X}"
            for p in range(sys.maxunicode + 1)
            if unicodedata.category(chr(p)) in ("Cc", "Cf", "Zl", "Zp", "Zs")
            and chr(p) not in "\n "
            and str(visible(chr(p))) == chr(p)
        ]
        assert missed == []

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("a\u202eb", 'a<span class="cp" title="RIGHT-TO-LEFT OVERRIDE">U+202E</span>b'),
            ("\x00", '<span class="cp" title="CONTROL CHARACTER">U+0000</span>'),
            ("a\u00a0b", 'a<span class="cp" title="NO-BREAK SPACE">U+00A0</span>b'),
            ("\U000e0041", '<span class="cp" title="TAG LATIN CAPITAL LETTER A">U+E0041</span>'),
            ("hi\U000e0101", 'hi<span class="cp" title="VARIATION SELECTOR-18">U+E0101</span>'),
            ("\u3164", '<span class="cp" title="HANGUL FILLER">U+3164</span>'),
            ("❤\ufe0f", "❤\ufe0f"),
            ("<b>&", "&lt;b&gt;&amp;"),
            ("two\nlines", "two\nlines"),
            ("naïve “quotes” 漢字 עברית", "naïve “quotes” 漢字 עברית"),
        ],
    )
    def test_examples(self, text, shown):
        assert visible(text) == shown


class TestMarked:
    def test_spans_are_code_points_also_after_an_astral_character(self):
        assert marked("😀 an old <man>", [(2, 8)]) == '😀 <mark class="swap">an old</mark> &lt;man&gt;'

    def test_a_replacement_stands_for_every_span(self):
        assert marked("a b c", [(0, 1), (4, 5)], css="mask", replacement="[PERSON]") == (
            '<mark class="mask">[PERSON]</mark> b <mark class="mask">[PERSON]</mark>'
        )

    def test_text_without_spans_stays_whole(self):
        assert marked("a<b", []) == "a&lt;b"


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
        context = frame(None, "a/x.html", "x", site=SITE, scripts=("site.js",), modules=("check.js",))
        text = render_page("base.html", context).decode()
        assert f'<script defer src="../{assets()["site.js"].path}"></script>' in text
        assert f'data-modules="../{assets()["check.js"].path}"' in text

    def test_the_policy_allows_own_files_only(self):
        policy = content_security_policy()
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe-inline" not in policy
        assert "'wasm-unsafe-eval'" in content_security_policy(wasm=True)


class TestAssets:
    def test_each_has_a_name_that_its_content_decides(self):
        for asset in assets().values():
            assert hashlib.sha256(asset.data).hexdigest()[:10] in asset.path
            assert asset.path.startswith("assets/")

    def test_every_static_file_is_one(self):
        files = {p.relative_to(STATIC).as_posix() for p in STATIC.rglob("*") if p.is_file()}
        assert set(assets()) == files
        assert len(list(asset_files())) == len(files)

    def test_no_style_sheet_loads_from_elsewhere(self):
        for name, asset in assets().items():
            if name.endswith(".css"):
                text = asset.data.decode()
                assert not re.search(r"@import|https?://|url\(", text), name


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
    @pytest.mark.parametrize("paper", ["paper", "raised", "band"])
    def test_words_are_readable_on_paper_and_on_the_band(self, scheme, ink, paper):
        colours = rules(scheme)
        assert contrast(colours[ink], colours[paper]) >= 4.5

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("shape", ["point", "flagged", "suggestive", "unresolved", "line-strong", "band-edge"])
    def test_shapes_stand_out_from_paper(self, scheme, shape):
        colours = rules(scheme)
        assert contrast(colours[shape], colours["paper"]) >= 3

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("paper", ["mark", "notice", "alert"])
    def test_banners_and_marks_are_readable(self, scheme, paper):
        colours = rules(scheme)
        assert contrast(colours["mark-ink" if paper == "mark" else "ink"], colours[paper]) >= 4.5

    def test_the_measure_itself_can_fail(self):
        assert contrast("#bbbbbb", "#ffffff") < 3
        assert round(contrast("#000000", "#ffffff"), 1) == 21.0
