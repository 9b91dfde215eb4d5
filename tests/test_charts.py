"""Charts: a scale, one drawing a width, names that fit, and the small bars of tables."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from generator.html import chart_shapes, charts, kept_drawings
from generator.html.chart_scale import GUTTER, NARROW, NOTE, STEP, WIDE, Domain, domain_of
from generator.html.charts import FEW_LINES, MARKS, Line, bar, interval_chart, light_colors, line_words, short_name

ROOT = Path(__file__).parent.parent
DOMAIN = Domain(80.0, 100.0, 5.0)
BAND = {"band_low": 92.0, "band_high": 96.0}
SVG = "{http://www.w3.org/2000/svg}"


def line(name="age", estimate=88.0, ci_low=85.0, ci_high=91.0, kind="flagged", **changes):
    return Line(name, estimate, ci_low, ci_high, **(BAND | {"kind": kind, "note": f"◆ {kind}"} | changes))


def drawn(*lines, title="T", description="D"):
    return interval_chart(lines, DOMAIN, name="chart", title=title, description=description)


def texts(markup):
    return ["".join(e.itertext()) for e in ET.fromstring(markup).iter(f"{SVG}text")]


class TestDomainOf:
    @pytest.mark.parametrize(
        ("values", "low", "step"),
        [([93.2, None], 90, 5), ([90.2], 85, 5), ([66.0], 65, 5), ([64.9], 60, 10), ([41.0], 40, 10), ([], 75, 5)],
    )
    def test_it_starts_below_the_smallest_value_at_a_tick(self, values, low, step):
        found = domain_of(values)
        assert (found.low, found.high, found.step) == (low, 100, step)

    def test_ticks_run_to_100(self):
        assert DOMAIN.ticks == (80, 85, 90, 95, 100)

    @pytest.mark.parametrize(("value", "share"), [(80, 0), (90, 50), (100, 100), (70, 0), (101, 100)])
    def test_a_share_is_clipped_to_the_scale(self, value, share):
        assert DOMAIN.share(value) == share


class TestShortName:
    def test_a_short_name_is_left_alone(self):
        assert short_name("vendor/name", 11) == "vendor/name"

    def test_a_long_one_loses_its_middle_and_fits(self):
        found = short_name("vendor/" + "x" * 60 + "-2026", 21)
        assert len(found) == 21
        assert found.startswith("vendor/")
        assert found.endswith("-2026")


class TestIntervalChart:
    def test_both_drawings_are_named_images(self):
        chart = drawn(line(), title="Age & <more>", description="How far")
        for markup, css in ((chart.wide, "wide"), (chart.narrow, "narrow")):
            root = ET.fromstring(markup)
            assert root.get("role") == "group"
            assert root.get("aria-labelledby") == f"chart-{css}-t"
            assert root.get("aria-describedby") == f"chart-{css}-d"
            assert root.find(f"{SVG}title").text == "Age & <more>"
            assert root.find(f"{SVG}desc").text == "How far"

    def test_of_what_is_inside_only_the_lines_are_read_out_and_nothing_is_styled_inline(self):
        for markup in (drawn(line(), line("sex")).wide, drawn(line(), line("sex")).narrow):
            assert "aria-label=" not in markup
            assert "style=" not in markup
            drawing, *marks = ET.fromstring(markup).findall(f"{SVG}g")
            assert drawing.get("aria-hidden") == "true"
            assert [mark.get("role") for mark in marks] == ["img", "img"]
            assert markup.count("role=") == 3

    def test_a_line_says_its_numbers_by_title_and_takes_the_focus(self):
        for markup in (drawn(line()).wide, drawn(line(kind="plain", band_low=None, band_high=None)).narrow):
            (mark,) = [g for g in ET.fromstring(markup).iter(f"{SVG}g") if g.get("class") == "hit"]
            assert mark.get("tabindex") == "0"
            assert mark.find(f"{SVG}title").text.startswith("age: 88.0, 95 % interval 85.0 to 91.0")
            hidden = mark.find(f"{SVG}g")
            assert hidden.get("visibility") == "hidden"
            assert hidden.find(f"{SVG}text").text == "88.0 (85.0 to 91.0)"

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({}, "age: 88.0, 95 % interval 85.0 to 91.0; control band 92.0 to 96.0; flagged"),
            ({"kind": "plain", "band_low": None}, "age: 88.0, 95 % interval 85.0 to 91.0"),
            ({"kind": "control", "ci_low": None, "ci_high": None}, "age: 88.0; control band 92.0 to 96.0; control"),
            (
                {"estimate": None, "ci_low": None, "ci_high": None, "kind": "plain"},
                "age: no value; control band 92.0 to 96.0",
            ),
        ],
    )
    def test_the_words_of_a_line(self, changes, words):
        assert line_words(line(**changes)) == words

    def test_a_chart_of_many_lines_is_no_stop_of_the_tab_key(self):
        few, many = ([line(str(i)) for i in range(n)] for n in (FEW_LINES, FEW_LINES + 1))
        assert drawn(*few).wide.count("tabindex") == FEW_LINES
        assert "tabindex" not in drawn(*many).wide
        assert drawn(*many).wide.count("<title>") == FEW_LINES + 1

    def test_every_color_has_one_to_fall_back_to(self):
        for markup in (drawn(line()).wide, drawn(line()).narrow):
            found = re.findall(r"var\(--([a-z-]+)(?:,(#[0-9a-f]{6}))?\)", markup)
            assert dict(found) == {name: light_colors()[name] for name, _ in found}
            assert {"paper", "ink", "soft", "band", "flagged"} <= {name for name, _ in found}

    def test_the_axis_says_what_it_is(self):
        for markup in (drawn(line()).wide, drawn(line()).narrow):
            assert chart_shapes.AXIS in texts(markup)

    def test_one_band_is_one_shape_without_seams(self):
        together = drawn(line(), line("sex"), line("religion"))
        assert len(_bands(together.wide)) == 1
        assert f"v{3 * STEP[WIDE]}h" in _bands(together.wide)[0]
        assert len(_bands(drawn(line(), line("sex", band_low=90.0)).wide)) == 2

    def test_names_notes_and_ticks_are_written(self):
        for markup in (drawn(line()).wide, drawn(line()).narrow):
            assert {"age", "◆ flagged", "80", "100"} <= set(texts(markup))

    def test_a_hostile_name_is_text(self):
        chart = drawn(line(name="<script>x"))
        assert "<script" not in chart.wide
        assert "<script>x" in texts(chart.wide)

    @pytest.mark.parametrize("kind", sorted(MARKS))
    def test_an_evidence_tier_has_its_own_ink(self, kind):
        assert f"var(--{kind}," in drawn(line(kind=kind)).wide

    def test_tiers_differ_in_shape_too(self):
        shapes = {MARKS[kind][0] for kind in MARKS}
        assert len(shapes) == len(MARKS)
        outlines = [_symbol(drawn(line(kind=kind)).wide) for kind in MARKS]
        assert len(set(outlines)) == len(MARKS)

    def test_a_line_without_a_value_keeps_its_name_and_band_and_draws_no_point(self):
        empty = drawn(line(estimate=None, ci_low=None, ci_high=None, note="no value"))
        assert _symbol(empty.wide) is None
        assert "no value" in texts(empty.wide)
        assert "var(--band," in empty.wide

    def test_a_model_without_a_band_has_no_shade(self):
        assert "var(--band," not in drawn(line(band_low=None, band_high=None)).wide

    def test_places_follow_the_scale(self):
        # 88 on a scale of 80 to 100 stands at two fifths of the plot.
        plot = WIDE - GUTTER[WIDE] - NOTE[WIDE] - 28
        place = float(re.search(r'translate\(([\d.]+),17\)" d="', drawn(line()).wide)[1])
        assert place == pytest.approx(plot * 0.4, abs=1)

    def test_no_label_leaves_the_drawing(self):
        """Names are cut by characters so that even wide glyphs (0.62 em) end before the plot."""
        name = "vendor/" + "w" * 90
        wide = next(t for t in texts(drawn(line(name=name)).wide) if t.startswith("vendor"))
        assert len(wide) * 13 * 0.62 <= GUTTER[WIDE] + 28
        narrow = next(t for t in texts(drawn(line(name=name)).narrow) if t.startswith("vendor"))
        assert (len(narrow) + len("◆ flagged")) * 13 * 0.62 <= NARROW - 28

    def test_the_same_lines_give_the_same_drawing(self):
        assert drawn(line(), line("sex")) == drawn(line(), line("sex"))

    def test_a_finished_drawing_is_read_from_the_cache(self, tmp_path, monkeypatch):
        asked = {"name": "c", "title": "T", "description": "D", "cache": tmp_path / "charts"}
        first = interval_chart([line()], DOMAIN, **asked)
        assert sorted(p.suffix for p in (tmp_path / "charts").iterdir()) == [".svg", ".svg"]
        monkeypatch.setattr("vl_convert.vega_to_svg", lambda *_: pytest.fail("drawn again"))
        assert interval_chart([line()], DOMAIN, **asked) == first

    @pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"<svg>half of it"])
    def test_a_damaged_drawing_is_made_again(self, tmp_path, damage):
        asked = {"name": "c", "title": "T", "description": "D", "cache": tmp_path / "charts"}
        first = interval_chart([line()], DOMAIN, **asked)
        for file in (tmp_path / "charts").iterdir():
            file.write_bytes(damage)
        assert interval_chart([line()], DOMAIN, **asked) == first

    def test_another_way_to_specify_charts_draws_them_anew(self, tmp_path, monkeypatch):
        asked = {"name": "c", "title": "T", "description": "D", "cache": tmp_path / "charts"}
        interval_chart([line()], DOMAIN, **asked)
        monkeypatch.setattr(kept_drawings, "_version", lambda: "another")
        interval_chart([line()], DOMAIN, **asked)
        assert len(list((tmp_path / "charts").iterdir())) == 4

    def test_the_compiler_is_not_loaded_for_a_chart_that_is_new(self):
        code = (
            "import sys; from generator.html.charts import *;"
            "interval_chart([Line('a', 90.0, 85.0, 95.0, 88.0, 93.0, 'plain')], Domain(50, 100, 10), name='c',"
            " title='t', description='d'); sys.exit('altair' in sys.modules)"
        )
        assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0

    def test_the_drawing_libraries_are_not_loaded_for_pages_alone(self):
        drawing = "any(m in sys.modules for m in ('altair', 'vl_convert'))"
        code = f"import sys, generator.publishing.build; sys.exit({drawing})"
        assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def _symbol(markup):
    """The path of the chart's one point, or None."""
    found = re.search(r'<g class="mark-symbol[^"]*">(.*?)</g>', markup)
    paths = re.findall(r' d="(M[^"]+)"', found[1]) if found else []
    return paths[0] if paths else None


def _bands(markup):
    """The outlines of the shaded bands."""
    return re.findall(r'<path[^>]* d="([^"]+)"[^>]*fill="var\(--band,', markup)


class TestBar:
    def test_places_are_percentages_of_the_scale(self):
        markup = bar(line(), DOMAIN)
        assert '<rect class="b" x="60.00%" width="20.00%"' in markup
        assert '<line class="i" x1="25.00%" x2="55.00%"' in markup
        assert '<svg x="40.00%" y="50%" class="p">' in markup

    def test_it_is_hidden_from_screen_readers_because_the_numbers_stand_beside_it(self):
        assert ET.fromstring(bar(line(), DOMAIN)).get("aria-hidden") == "true"

    def test_each_kind_has_its_shape(self):
        kinds = ("flagged", "suggestive", "unresolved", "control")
        points = {re.search(r'class="p">(.*?)</svg>', bar(line(kind=kind), DOMAIN))[1] for kind in kinds}
        assert len(points) == 4

    def test_what_is_null_is_not_drawn(self):
        markup = bar(Line("x", None, None, None, None, None, "plain"), DOMAIN)
        assert 'class="p"' not in markup
        assert 'class="i"' not in markup
        assert 'class="b"' not in markup
        assert markup.count('class="t"') == len(DOMAIN.ticks)


class TestShapes:
    def test_the_kept_shapes_are_those_of_the_code(self):
        assert chart_shapes.KEPT.read_text() == chart_shapes.shapes(), "to write them anew: make charts"

    @pytest.mark.parametrize("width", [WIDE, NARROW])
    @pytest.mark.parametrize(("low", "high", "step", "rows"), [(40, 100, 10, 7), (85, 100, 5, 1), (0, 100, 10, 61)])
    def test_a_shape_with_numbers_is_what_the_compiler_makes_of_them(self, width, low, high, step, rows):
        domain, records = Domain(low, high, step), [{"name": "a"}]
        made = charts.with_numbers(charts._shape(width), domain, rows * STEP[width], records)
        expected = chart_shapes.compiled(domain, width, rows)
        assert made == {**expected, "data": [{"name": "rows", "values": records}, *expected["data"][1:]]}
