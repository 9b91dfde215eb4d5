"""The theme that a reader chose is kept on the reader's machine; a note leads back to where its reader came from."""

from __future__ import annotations

import pytest

from tests.browser.conftest import context_of, opened

pytestmark = pytest.mark.browser
GROUND = "getComputedStyle(document.documentElement).backgroundColor"


@pytest.mark.parametrize("origin", ["http", "file"])
def test_the_chosen_theme_holds_on_the_next_page(site, browser, origin):
    base = getattr(site, origin)
    with context_of(browser, scheme="light") as context, opened(context, base) as watched:
        page = watched.page
        page.goto(base + site.kinds["leaderboard"])
        light = page.evaluate(GROUND)
        switch = page.get_by_role("button", name="Theme: auto")
        switch.click()
        dark = page.evaluate(GROUND)
        assert dark != light
        page.goto(base + site.kinds["model"])
        assert page.evaluate(GROUND) == dark
        page.get_by_role("button", name="Theme: dark").click()
        page.reload()
        assert page.evaluate(GROUND) == light
        page.get_by_role("button", name="Theme: light").click()
        assert page.evaluate("localStorage.length") == 0
        assert [fault for fault in watched.faults if "beyond" in fault] == []


def test_without_a_script_there_is_no_switch_and_the_system_decides(site, browser):
    with context_of(browser, scheme="dark", scripts=False) as context, opened(context, site.http) as watched:
        watched.page.goto(site.http + site.kinds["leaderboard"])
        assert not watched.page.locator("[data-theme-switch]").is_visible()


def test_a_note_leads_back_to_the_mark_that_was_followed(site, browser):
    with context_of(browser) as context, opened(context, site.http) as watched:
        page = watched.page
        page.goto(site.http + site.kinds["leaderboard"])
        name = page.locator(".fn a").first.get_attribute("href")
        marks = page.locator(f'.fn a[href="{name}"]')
        assert marks.count() > 1
        marks.last.click()
        page.locator(f"{name} a", has_text="Back").click()
        assert page.evaluate("document.getElementById(location.hash.slice(1)).matches('.fn a')")
        assert page.evaluate("location.hash") == f"#{marks.last.get_attribute('id')}"
