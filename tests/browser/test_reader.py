"""A matched set read from the published files, in a run that has no pages of sets."""

from __future__ import annotations

import itertools
import shutil
from urllib.parse import urlencode

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect

from generator.edition import paths
from generator.publishing import build
from generator.publishing.publish import Options, publish
from generator.scoring.run import score_run
from tests.browser.checks import ROOT
from tests.browser.conftest import comes_to, context_of, opened, served
from tests.browser.site import SIMULATED, write_runs

pytestmark = pytest.mark.browser
MODEL = "sim-alpha/one"
READER = paths.set_reader(SIMULATED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A site of the simulated run alone in files mode."""
    folder = tmp_path_factory.mktemp("files-site")
    content = folder / "content"
    content.mkdir()
    shutil.copy(ROOT / "content" / "site.toml", content)
    write_runs(content / "runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "score_run", lambda run, **options: score_run(run, resamples=40, **options))
        patch.setattr(build, "write_search", lambda _: None)
        publish(Options(out=folder / "dist", content=content, runs=(SIMULATED,), mode="files"))
    return folder / "dist"


@pytest.fixture(scope="module")
def http(folder):
    with served(folder) as address:
        yield address


@pytest.fixture
def watched(browser, http):
    with context_of(browser) as context, opened(context, http) as found:
        yield found
        assert found.faults == []
        assert found.blocked() == []


def rows_of(folder, concept):
    """The published rows of a set."""
    file = folder / f"runs/{SIMULATED}/data/receipts/sim-alpha__one.parquet"
    return [row for row in pq.read_table(file, partitioning=None).to_pylist() if row["concept"] == concept]


def test_it_shows_every_answer_and_vote_of_the_set(watched, http, folder):
    concept = "age_stance_0"
    rows = rows_of(folder, concept)
    watched.page.goto(f"{http}{READER}?{urlencode({'model': MODEL, 'concept': concept})}")
    articles = watched.page.locator("#reader article")
    expect(articles).to_have_count(len(rows))
    for row in rows:
        article = watched.page.locator(f"article[id='{paths.row_anchor(row['framing'], row['group'], row['repeat'])}']")
        assert row["receipt_id"] in article.text_content()
        assert (row["final_label"] or "no label") in article.locator("h4").text_content()
        assert article.locator("li").count() == len(row["votes"])
    prompts = watched.page.locator("#reader .side > .raw").all_text_contents()
    assert set(prompts) == {row["prompt"] for row in rows}
    marks = watched.page.locator("#reader mark").all_text_contents()
    assert set(marks) == {row["group_np"] for row in rows}
    # Nothing stands on anything else: heading, prompt and answers share the rows of the sides beside them.
    boxes = [box.bounding_box() for box in watched.page.locator("#reader .side").first.locator("> *").all()]
    assert all(above["y"] + above["height"] <= below["y"] for above, below in itertools.pairwise(boxes))
    # Hostile answers stay text.
    assert watched.page.locator("#reader img, #reader script, #reader style").count() == 0
    assert watched.page.title() != "run"


def test_the_explorer_leads_to_a_row_in_its_set(watched, http):
    watched.page.goto(f"{http}{paths.explorer_page(SIMULATED)}?model={MODEL}&concept=age_capability_0")
    watched.page.locator("#explorer-table tbody th a").nth(3).click()
    comes_to(watched.page, lambda url: "set.html" in url and "#" in url)
    anchor = watched.page.url.partition("#")[2]
    expect(watched.page.locator(f"article[id='{anchor}']")).to_be_in_viewport()
    assert watched.page.inner_text("h1") == "Capability 0"


def test_it_leads_on_to_the_next_set(watched, http):
    watched.page.goto(f"{http}{READER}?{urlencode({'model': MODEL, 'concept': 'age_stance_0'})}")
    watched.page.click("#reader .pager a >> nth=1")
    expect(watched.page.locator("h1")).not_to_have_text("Stance 0")
    expect(watched.page.locator("#reader article").first).to_be_visible()


@pytest.mark.parametrize("query", ["", "model=x&concept=y", "model=sim-alpha/one&concept=<script>"])
def test_an_address_of_no_set_is_said(watched, http, query):
    watched.page.goto(f"{http}{READER}?{query}")
    expect(watched.page.locator("#reader-note")).to_contain_text("the address names no set of this run")


def test_without_scripts_the_files_are_named(browser, http):
    with context_of(browser, scripts=False) as context, opened(context, http) as watched:
        watched.page.goto(http + READER)
        assert "the files of each model" in watched.page.inner_text("main")


def test_the_list_of_many_models_is_filtered_by_vendor_and_text(browser, tmp_path):
    """The real script on a list as the leaderboard of many models has it."""
    items = {"sim-a": ("sim-a/large", "sim-a/small"), "sim-b": ("sim-b/large",)}
    parts = "".join(
        f"<details><summary>{vendor}, {len(names)} models</summary><ul>"
        f"{''.join(f'<li>{name}</li>' for name in names)}</ul></details>"
        for vendor, names in items.items()
    )
    script = (ROOT / "site_templates" / "static" / "site.js").read_text()
    (tmp_path / "page.html").write_text(
        '<p data-list-filter="all" hidden><select><option value="">any</option></select><input>'
        '<span role="status"></span></p>'
        f'<details><summary>All</summary><div id="all">{parts}</div></details><script>{script}</script>'
    )
    with context_of(browser) as context, opened(context, "file://") as watched:
        page = watched.page
        page.goto((tmp_path / "page.html").as_uri())

        def shown():
            return [item.inner_text() for item in page.locator("li").all() if item.is_visible()]

        assert shown() == []
        page.fill("input", "LARGE")
        assert shown() == ["sim-a/large", "sim-b/large"]
        page.select_option("select", "sim-a")
        assert shown() == ["sim-a/large"]
        assert page.inner_text("[role=status]") == "1 model"
        page.fill("input", "")
        page.select_option("select", "")
        assert shown() == []
        assert watched.faults == []
