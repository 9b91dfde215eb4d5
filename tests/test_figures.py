"""Figures that travel: the same numbers in five forms, each with title, source, run, date and license in it."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import altair
import pytest
import vl_convert

from generator.edition import paths
from generator.edition.edition import FEW_MODELS
from generator.edition.site_pages import figure_places, page_at
from generator.html import figure_svg
from generator.html.charts import light_colors
from generator.pages.all import render_figures, render_pages, run_figures
from generator.pages.figures import embed_snippet
from generator.pages.root import headers
from generator.pages.views import View
from generator.publishing.expected_size import run_sizes
from generator.scoring.gate import Standing
from tests.editions import SITE, make_edition, small_bank

ROOT = Path(__file__).parent.parent
RUN = "test-run"
ENDINGS = (".svg", ".png", ".csv", ".vl.json", ".html")
SVG = "{http://www.w3.org/2000/svg}"
MODEL = "sim-alpha/one"


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    return make_edition(tmp_path_factory.mktemp("runs") / RUN, bank=small_bank(groups=3))


@pytest.fixture(scope="module")
def view(edition):
    return View(edition)


@pytest.fixture(scope="module")
def files(edition):
    return dict(render_figures(edition))


@pytest.fixture(scope="module")
def figures(view):
    return list(run_figures(view))


def drawn(svg):
    """The text that a picture shows."""
    return " ".join("".join(e.itertext()) for e in ET.fromstring(svg).iter(f"{SVG}text"))


class TestForms:
    def test_every_figure_has_every_form_where_the_list_of_pages_says(self, edition, files, figures):
        places = [figure.place for figure in figures]
        assert places == list(figure_places(edition))
        assert set(files) == {f"{place}{ending}" for place in places for ending in ENDINGS}
        assert {page_at(name).kind for name in files if name.endswith(".html")} == {"embed"}

    def test_they_are_the_same_bytes_each_time(self, edition, files):
        assert dict(render_figures(edition)) == files

    def test_each_says_title_source_run_date_and_license(self, files, figures):
        for figure in figures:
            for ending in (".svg", ".vl.json", ".html"):
                text = files[f"{figure.place}{ending}"].decode()
                for words in (RUN, "2026-11-30", "CC BY 4.0", "Test Bench", "simulated"):
                    assert words in text, (figure.place, ending, words)
            shown = drawn(files[f"{figure.place}.svg"])
            assert figure.title in shown
            assert "simulated: no real model was asked" in shown
            assert "License: CC BY 4.0, https://creativecommons.org/licenses/by/4.0/" in shown

    def test_what_is_left_out_is_said_in_the_picture(self, edition):
        standing = Standing("withheld", (), frozenset({"stance"}))
        found = next(iter(run_figures(View(dataclasses.replace(edition, standing=standing)))))
        assert "Left out of every score and page: stance." in drawn(figure_svg.figure_svg(found))

    def test_a_run_of_many_models_has_no_pngs_and_says_so_where_they_would_be_linked(self, edition, monkeypatch):
        monkeypatch.setattr("generator.edition.edition.FEW_MODELS", len(edition.run.models) - 1)
        names = [name for name, _ in render_figures(edition)]
        assert not [name for name in names if name.endswith(".png")]
        assert len(names) == (len(ENDINGS) - 1) * len(list(figure_places(edition)))
        assert FEW_MODELS == 60


class TestSvg:
    def test_it_needs_no_page_around_it(self, files, figures):
        """No variable of a page, no style, no script, no address of anything that it would load."""
        for figure in figures:
            text = files[f"{figure.place}.svg"].decode()
            assert "var(" not in text
            assert not re.search(r"<style|<script|style=|href=|url\(|<image| on[a-z]+=", text)
            root = ET.fromstring(text)
            assert root.find(f"{SVG}title").text == figure.title
            assert figure.caption in root.find(f"{SVG}desc").text

    def test_each_line_has_a_title_with_its_numbers_and_takes_the_focus(self, files, figures):
        for figure in figures:
            marks = [g for g in ET.fromstring(files[f"{figure.place}.svg"]).iter(f"{SVG}g") if g.get("class") == "hit"]
            assert len(marks) == len(figure.lines)
            for mark, line in zip(marks, figure.lines, strict=True):
                assert mark.get("tabindex") == "0"
                assert mark.find(f"{SVG}title").text.startswith(f"{line.name}: {line.estimate:.1f}")

    def test_its_colors_are_those_of_the_site(self, edition):
        site = SITE.model_copy(update={"colors": SITE.colors.model_copy(update={"light": {"ink": "#123456"}})})
        figure = next(iter(run_figures(View(dataclasses.replace(edition, site=site)))))
        text = figure_svg.figure_svg(figure).decode()
        assert 'fill="#123456"' in text
        assert light_colors()["ink"] not in text
        assert f'fill="{light_colors()["paper"]}"' in text

    def test_hostile_words_are_text(self, figures):
        hostile = dataclasses.replace(figures[0], title='<script>"&', caption="</desc><script>", source=("<b>",))
        text = figure_svg.figure_svg(hostile).decode()
        assert "<script" not in text
        assert '<script>"&' in drawn(text)

    def test_nothing_sticks_out_of_the_picture(self, figures):
        """A long title is cut, long sentences are wrapped: each row fits at 0.6 em a character."""
        long = dataclasses.replace(
            figures[0], title="vendor/" + "w" * 200, caption="word " * 90, source=("word " * 70,)
        )
        root = ET.fromstring(figure_svg.figure_svg(long))
        rows = root.findall(f"{SVG}text")
        assert len(rows) > 5
        for row in rows:
            assert 14 + len(row.text) * float(row.get("font-size")) * 0.6 <= float(root.get("width")), row.text
            assert float(row.get("y")) < float(root.get("height"))


class TestPng:
    def test_it_is_the_svg_half_as_large_again(self, files, figures):
        for figure in figures:
            png, root = files[f"{figure.place}.png"], ET.fromstring(files[f"{figure.place}.svg"])
            assert png[:8] == b"\x89PNG\r\n\x1a\n"
            size = (int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big"))
            assert size == tuple(int(float(root.get(side)) * 1.5) for side in ("width", "height"))

    def test_it_is_kept_by_content_and_drawn_once(self, figures, tmp_path, monkeypatch):
        figure = dataclasses.replace(figures[0], cache=tmp_path / "charts")
        first = figure_svg.figure_png(figure, figure_svg.figure_svg(figure))
        monkeypatch.setattr("vl_convert.svg_to_png", lambda *_, **__: pytest.fail("drawn again"))
        assert figure_svg.figure_png(figure, figure_svg.figure_svg(figure)) == first
        for file in (tmp_path / "charts").glob("*.png"):
            file.write_bytes(file.read_bytes()[:-1])
        with pytest.raises(pytest.fail.Exception, match="drawn again"):
            figure_svg.figure_png(figure, figure_svg.figure_svg(figure))

    def test_another_process_draws_the_same_bytes(self, files, figures, tmp_path):
        place = figures[0].place
        (tmp_path / "a.svg").write_bytes(files[f"{place}.svg"])
        code = "import sys; from vl_convert import svg_to_png as draw; from pathlib import Path;"
        code += "sys.stdout.buffer.write(draw(Path(sys.argv[1]).read_text(), scale=1.5))"
        run = subprocess.run([sys.executable, "-c", code, tmp_path / "a.svg"], capture_output=True, check=True)
        assert run.stdout == files[f"{place}.png"]


class TestCsv:
    def test_its_numbers_are_those_of_the_table_of_scores(self, view, files):
        rows = list(csv.DictReader(io.StringIO(files[f"{paths.figure(RUN, f'models/{MODEL}')}.csv"].decode())))
        by_label = {a.label: a.id for a in view.bank.attributes}
        assert len(rows) == len(by_label)
        for row in rows:
            score = view.book.row(MODEL, "consistency", by_label[row["name"]])
            assert [row["consistency"], row["ci_low"], row["ci_high"]] == [
                "" if v is None else repr(v) for v in (score.estimate, score.ci_low, score.ci_high)
            ]
            assert (row["run_id"], row["run_date"], row["kind"]) == (RUN, "2026-11-30", "simulated")
            assert row["license"] == "CC-BY-4.0"
            assert row["read_as"] in ("flagged", "suggestive", "unresolved", "control", "no value", "too little", "")


class TestVegaLite:
    def test_it_fits_the_schema_and_draws(self, files, figures):
        for figure in figures:
            text = files[f"{figure.place}.vl.json"].decode()
            altair.Chart.from_json(text)  # raises where the schema is not kept
            shown = drawn(vl_convert.vegalite_to_svg(text))
            assert all(line.name in shown for line in figure.lines)
            assert figure.title in shown

    def test_its_lines_are_those_of_the_csv(self, files, figures):
        for figure in figures:
            rows = csv.DictReader(io.StringIO(files[f"{figure.place}.csv"].decode()))
            values = json.loads(files[f"{figure.place}.vl.json"])["data"]["values"]
            told = [(row["name"], row["consistency"], row["ci_low"], row["band_high"]) for row in rows]
            assert told == [
                tuple("" if v is None else str(v) for v in (r["name"], r["consistency"], r["ci_low"], r["band_high"]))
                for r in values
            ]


class TestEmbedding:
    def test_a_page_to_embed_carries_the_notice_that_verify_looks_for(self, files, figures):
        for figure in figures:
            assert b'class="small notice notice-simulated"' in files[f"{figure.place}.html"]

    def test_the_snippet_frames_the_page_to_embed(self, edition, figures):
        at = View(dataclasses.replace(edition, base_url="https://example.org/bias"))
        snippet = embed_snippet(at, dataclasses.replace(figures[0], title='a "b" <c>'))
        frame = ET.fromstring(snippet.replace("></iframe>", "/>"))
        assert frame.get("src") == f"https://example.org/bias/{figures[0].place}.html"
        assert frame.get("title") == 'a "b" <c>'

    def test_hosts_may_let_others_frame_figures_and_no_other_page(self):
        blocks = [block.splitlines() for block in headers().decode().strip().split("\n\n")]
        rules = [path for path, *lines in blocks if any("frame-ancestors" in line for line in lines)]

        def closed(page):
            return any(re.fullmatch(re.sub(r":[a-z]+", "[^/]+", rule).replace("*", ".*"), f"/{page}") for rule in rules)

        assert not closed(f"{paths.figure('r', 'models/v/n')}.html")
        pages = ["", "index.html", "about.html", paths.RUNS_PAGE, paths.run_index("r"), paths.run_page("r", "findings")]
        pages += [paths.model_page("r", "v/n"), paths.numbers_page("r", "v/n"), paths.attribute_page("r", "age")]
        pages += [paths.concept_page("r", "c"), paths.data_page("r"), paths.explorer_page("r"), "runs/r/", "runs/"]
        pages += [paths.set_page("r", "v/n", "c"), paths.methodology_page(), paths.part_page(paths.run_index("r"), 2)]
        assert [page for page in pages if not closed(page)] == []


def test_figures_count_in_every_mode(edition, files):
    """What is expected of a run holds the bytes of its figures, and not much more."""
    from generator.publishing import expected_size

    expected, real = expected_size._figure_sizes(edition), sum(map(len, files.values()))
    assert expected.files == len(files)
    assert 0.7 * real <= expected.bytes <= 1.6 * real
    assert all(size.files > expected.files for size in run_sizes(edition).values())


@pytest.fixture(scope="module")
def pages(edition):
    pinned = dataclasses.replace(edition, base_url="https://example.org/bias", manifest_sha256="ab" * 32)
    return {page: data.decode() for page, data in render_pages(pinned) if page.endswith(".html")}


class TestPages:
    def test_the_page_of_a_figure_links_every_form_and_is_shared_with_its_picture(self, pages, figures):
        assert {figure.page.split("/")[2] for figure in figures} == {"models", "attributes"}
        for figure in figures:
            for ending in ENDINGS:
                assert f'href="{paths.relative(figure.page, figure.place + ending)}"' in pages[figure.page]
            card = f"https://example.org/bias/{figure.place}.png"
            assert f'<meta property="og:image" content="{card}">' in pages[figure.page]

    def test_model_and_run_pages_say_how_to_cite_them(self, pages):
        for page in (paths.model_page(RUN, MODEL), paths.run_page(RUN, "run")):
            cited = pages[page].partition('id="cite"')[2].partition("</details>")[0]
            words = " ".join(re.sub(r"<[^>]+>", "", cited).split())
            assert f"Test Bench, run {RUN} (simulated), 2026-11-30" in words
            assert f"https://example.org/bias/{page}" in words
            assert "ab" * 32 in words
