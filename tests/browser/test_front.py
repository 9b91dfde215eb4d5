"""The leaderboard as a newcomer meets it: findings, then models, on the first screen; all of it without a script."""

from __future__ import annotations

import pytest

from tests.browser.conftest import comes_to, context_of, opened

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("kind", ["start", "leaderboard", "preview-leaderboard"])
@pytest.mark.parametrize(("width", "screens"), [(1280, 1.0), (360, 1.5)])
def test_the_first_model_stands_below_the_findings_and_near_the_top(site, browser, kind, width, screens):
    with context_of(browser, width=width) as context, opened(context, site.http) as watched:
        page = watched.page
        page.goto(site.http + site.kinds[kind])
        findings = page.locator(".findings").bounding_box()
        row = page.locator(".board tbody tr").first
        bar, name = row.locator(".ibar").bounding_box(), row.locator("th a").bounding_box()
        assert findings["y"] + findings["height"] <= name["y"]
        assert bar["y"] + bar["height"] <= screens * page.viewport_size["height"]
        assert name["x"] + name["width"] <= width


def test_the_legend_is_folded_and_its_link_opens_it_without_a_script(site, browser):
    with context_of(browser, scripts=False) as context, opened(context, site.file) as watched:
        page = watched.page
        page.goto(site.file + site.kinds["leaderboard"])
        legend = page.locator("details.reading dl.reading-key")
        assert not legend.is_visible()
        page.get_by_role("link", name="How to read this").click()
        assert legend.is_visible()
        first = page.locator(".board tbody tr").first
        caption = page.locator(".reading figcaption").inner_text()
        assert first.locator("th a").inner_text() in caption
        assert first.locator(".col-score strong").inner_text() in caption


def test_the_words_of_the_legend_s_figure_stay_inside_it(site, browser):
    with context_of(browser, width=360) as context, opened(context, site.http) as watched:
        page = watched.page
        page.goto(site.http + site.kinds["leaderboard"] + "#reading")
        figure = page.locator(".reading-figure").bounding_box()
        words = page.locator(".sample-words text")
        assert words.all_text_contents() == ["score", "own band"]
        for box in (word.bounding_box() for word in words.all()):
            assert figure["x"] <= box["x"]
            assert box["x"] + box["width"] <= figure["x"] + figure["width"]


def test_the_order_by_finding_is_one_link_away_without_a_script(site, browser):
    with context_of(browser, scripts=False) as context, opened(context, site.file) as watched:
        page = watched.page
        page.goto(site.file + site.kinds["leaderboard"])
        names = sorted(page.locator(".board tbody th a").all_inner_texts())
        page.get_by_role("link", name="Order by finding").click()
        comes_to(page, lambda url: url.endswith("/findings.html"))
        listed = page.locator(".found")
        by_section = [section.locator("dt a").all_inner_texts() for section in listed.all()]
        assert sorted(name for section in by_section for name in section) == names
        assert all(section == sorted(section) for section in by_section)
        assert "rank" not in page.locator(".found-models").first.inner_text()


def test_each_attribute_that_is_named_leads_to_its_place_on_the_model_s_page(site, browser):
    with context_of(browser) as context, opened(context, site.http) as watched:
        page = watched.page
        page.goto(site.http + site.kinds["findings"])
        link = page.locator(".found-models dd a").first
        target = link.get_attribute("href").split("#")[1]
        link.click()
        comes_to(page, lambda url: url.endswith(f"#{target}"))
        assert page.locator(f"#{target}").is_visible()
