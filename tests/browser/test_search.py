"""The search page: finds prose and model pages, never receipts; says what it needs where it cannot work."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import comes_to, context_of, opened
from tests.browser.site import LIVE, SIMULATED

pytestmark = pytest.mark.browser


@pytest.fixture
def search(site, browser):
    """The search page, ready."""
    with context_of(browser) as context, opened(context, site.http) as watched:
        watched.page.goto(site.http + "search.html")
        watched.page.wait_for_selector("#search-form:not([hidden])")
        yield watched.page
        assert watched.faults == []
        assert watched.blocked() == []


def ask(page, text):
    """Search and return (status, addresses found)."""
    page.fill("#search-text", text)
    page.press("#search-text", "Enter")
    expect(page.locator("#search-status")).to_contain_text(f"“{text}”")
    return page.inner_text("#search-status"), [a.get_attribute("href") for a in page.locator("#search-results a").all()]


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("kappa", "methodology/agreement.html"),
        ("excess", "methodology/evidence.html"),
        ("sim-beta", "models/sim-beta/two.html"),
    ],
)
def test_it_finds_the_page_that_is_about_it(search, site, text, page):
    _, found = ask(search, text)
    assert any(address.endswith(page) for address in found[:6]), found
    assert all(address.startswith(site.http) for address in found)


def test_each_hit_of_a_run_names_it_and_its_kind(search):
    ask(search, "sim-beta")
    hit = search.locator("#search-results a", has_text="sim-beta/two")
    expect(hit).to_have_text(f"sim-beta/two · run {SIMULATED} (simulated)")
    ask(search, "kappa")
    expect(search.locator("#search-results a").first).not_to_contain_text("run ")


def test_pages_of_attributes_come_before_those_of_single_concepts(search):
    _, found = ask(search, "age")
    attributes = [place for place, address in enumerate(found) if "/attributes/age" in address]
    concepts = [place for place, address in enumerate(found) if "/concepts/" in address]
    assert attributes
    assert attributes[0] < min(concepts, default=len(found))


@pytest.mark.parametrize("text", ["age", "stance", "the"])
def test_the_run_that_fronts_the_site_comes_before_the_same_page_of_another(search, text):
    ask(search, text)
    while search.is_visible("#search-more"):
        count = search.locator("#search-results a").count()
        search.click("#search-more")
        expect(search.locator("#search-results a")).not_to_have_count(count)
    found = [a.get_attribute("href") for a in search.locator("#search-results a").all()]
    places = {address.partition("/runs/")[2]: place for place, address in enumerate(found)}
    both = [name for name in places if name.startswith(f"{SIMULATED}/") and name.replace(SIMULATED, LIVE) in places]
    assert both
    assert [name for name in both if places[name] > places[name.replace(SIMULATED, LIVE)]] == []


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("Stance 0", "concepts/age_stance_0.html"),
        ("allocation 0", "concepts/age_allocation_0.html"),
        ("sim-alpha/one", "models/sim-alpha/one.html"),
    ],
)
def test_the_page_that_bears_the_words_as_its_title_is_first(search, text, page):
    _, found = ask(search, text)
    title = search.locator("#search-results a").first.inner_text().partition(" · ")[0]
    assert title.lower() == text.lower()
    assert f"/runs/{SIMULATED}/" in found[0]
    assert any(address.endswith(page) for address in found[:8]), found


def test_while_it_loads_nothing_says_that_it_cannot(site, browser):
    with context_of(browser) as context, opened(context, site.http) as watched:
        watched.page.route("**/pagefind/pagefind.js*", lambda _: None)  # never answered
        watched.page.goto(site.http + "search.html")
        expect(watched.page.locator("#search-status")).to_have_text("Loading the search index …")


def test_an_index_that_does_not_load_is_said(site, browser):
    with context_of(browser) as context, opened(context, site.http) as watched:
        watched.page.route("**/pagefind/pagefind.js*", lambda route: route.abort())
        watched.page.goto(site.http + "search.html")
        expect(watched.page.locator("#search-status")).to_contain_text("could not be loaded")


def test_what_does_not_fit_on_one_list_is_a_button_away(search):
    status, found = ask(search, "the")
    total = int(status.split()[0])
    assert (len(found), "the first 20 shown" in status) == (20, True)
    search.click("#search-more")
    expect(search.locator("#search-results a")).to_have_count(min(40, total))
    assert search.evaluate(
        "document.activeElement.closest('li') === document.querySelectorAll('#search-results li')[20]"
    )
    ask(search, "kappa")
    assert search.locator("#search-more").is_visible() == (search.locator("#search-results a").count() >= 20)


def test_a_found_page_opens(search):
    ask(search, "cross-fit")
    search.locator("#search-results a").first.click()
    comes_to(search, lambda url: "/methodology/" in url)


def test_the_address_keeps_the_words(search):
    ask(search, "tiers")
    comes_to(search, lambda url: url.endswith("?q=tiers"))
    search.reload()
    search.wait_for_selector("#search-results li")
    assert search.input_value("#search-text") == "tiers"


def test_nothing_found_is_said_and_pages_are_offered(search):
    status, found = ask(search, "xyzzyplugh")
    assert status.startswith("0 pages")
    assert found == []
    assert search.is_visible("#search-pages")


def test_receipts_are_never_indexed(site):
    pages = len(list((site.root / "pagefind/fragment").iterdir()))
    receipts = sum(1 for _ in site.root.glob("runs/*/receipts/**/*.html"))
    assert 0 < pages < 200 < receipts


@pytest.mark.parametrize(("scripts", "words"), [(True, "needs a web server"), (False, "needs JavaScript")])
def test_where_it_cannot_work_it_says_so(site, browser, scripts, words):
    with context_of(browser, scripts=scripts) as context, opened(context, site.file) as watched:
        watched.page.goto(site.file + "search.html")
        assert words in watched.page.inner_text("#search-status")
        assert watched.page.is_hidden("#search-form")
        assert watched.page.locator("#search-pages a").count() > 15
