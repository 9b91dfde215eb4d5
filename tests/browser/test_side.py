"""Two models side by side, laid out by a script from the pages of both; without it, their pages are linked."""

from __future__ import annotations

import pytest

from tests.browser.conftest import context_of, opened

pytestmark = pytest.mark.browser
QUERY = "?a=sim-alpha/one&b=sim-beta/two"


def test_attributes_groups_levels_and_both_answers_stand_side_by_side(site, browser):
    with context_of(browser) as context, opened(context, site.http) as watched:
        page = watched.page
        page.goto(site.http + site.kinds["side"] + QUERY)
        page.locator("#side h2").nth(3).wait_for()
        heads = page.locator("#side h2").all_inner_texts()
        wanted = ["Attributes", "Groups", "Level", "Concepts on which they part most"]
        assert [head.split(":")[0] for head in heads] == wanted
        columns = page.locator("#side table").first.locator("thead th").all_inner_texts()
        assert columns == ["Attribute", "sim-alpha/one", "sim-beta/two"]
        for place, model in enumerate(("sim-alpha/one", "sim-beta/two")):
            own = watched.page.request.get(f"{site.http}runs/sim-small/models/{model}.html").text()
            shown = page.locator("#side .lede [data-score]").nth(place).get_attribute("data-score")
            assert shown == f"{model}|consistency|overall||estimate"
            assert shown in own
        page.locator("#side section").last.locator("summary").first.click()
        answers = page.locator("#side section").last.locator("tbody tr").first.locator("td")
        answers.first.locator(".raw").wait_for()
        assert answers.count() == 2
        links = [link.get_attribute("href") for link in answers.get_by_role("link", name="The receipt").all()]
        assert "sim-alpha/one" in links[0]
        assert "sim-beta/two" in links[1]
        assert watched.faults == []


def test_the_form_comes_to_the_same_address(site, browser):
    with context_of(browser) as context, opened(context, site.http) as watched:
        page = watched.page
        page.goto(site.http + site.kinds["side"])
        page.get_by_label("another").select_option("sim-beta/two")
        page.get_by_role("button", name="Compare").click()
        page.wait_for_url(lambda url: "b=sim-beta" in url)
        page.locator("#side h2").first.wait_for()


def test_without_a_server_it_says_so_and_the_pages_are_linked(site, browser):
    with context_of(browser) as context, opened(context, site.file) as watched:
        page = watched.page
        page.goto(site.file + site.kinds["side"] + QUERY)
        page.get_by_text("This needs a server").wait_for()
        page.get_by_role("link", name="groups").first.click()
        page.locator("h2#lean").wait_for()
