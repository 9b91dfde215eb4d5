"""A walk through pages by keyboard alone: skip link first, focus always visible, no trap, the footer at the end."""

from __future__ import annotations

import pytest

from tests.browser.conftest import comes_to, context_of, opened

pytestmark = pytest.mark.browser
KINDS = ("start", "model", "judging", "explorer", "set", "row", "data", "search", "methodology-scoring")
FOCUS = """() => {
  const e = document.activeElement;
  if (!e || e === document.body) return null;
  const box = e.getBoundingClientRect(), style = getComputedStyle(e);
  const outlined = parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== "none";
  // A line of a figure has a frame of its own, since an outline around its parts would be cut by the drawing.
  const frame = e.matches("g.hit") && getComputedStyle(e.querySelector("rect"));
  const drawn = outlined || (frame && frame.stroke !== "none" && parseFloat(frame.strokeWidth) >= 2);
  return {
    text: `${e.tagName} ${(e.textContent || e.value || e.name || "").trim().slice(0, 30)}`,
    place: [...document.querySelectorAll("*")].indexOf(e),
    footer: !!e.closest("footer"),
    seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0,
    drawn,
  };
}"""
MOST = 400


def walk(page):
    """Press Tab until focus leaves the page; returns what was focused, at most MOST places."""
    found = []
    for _ in range(MOST):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUS)
        if focused is None or (found and focused["place"] == found[0]["place"]):
            return found
        found.append(focused)
    return found


def walk_faults(found):
    """What is wrong with a walk."""
    places = [step["place"] for step in found]
    faults = [f"not drawn: {step['text']}" for step in found if not step["drawn"]]
    faults += [f"not in view: {step['text']}" for step in found if not step["seen"]]
    if len(set(places)) != len(places):
        faults.append("focus comes back to where it was")
    if places != sorted(places):
        faults.append("focus jumps against the order of the page")
    return faults


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_can_be_walked(site, browser, kind):
    with context_of(browser) as context, opened(context, site.http) as watched:
        watched.page.goto(site.http + site.kinds[kind])
        if kind == "explorer":
            watched.page.wait_for_selector("#explorer-table tbody tr")
        found = walk(watched.page)
    assert found[0]["text"].startswith("A Skip to the content")
    if len(found) < MOST:
        assert found[-1]["footer"]
    assert walk_faults(found) == []


def test_the_skip_link_leads_to_the_content(site, browser):
    with context_of(browser) as context, opened(context, site.http) as watched:
        watched.page.goto(site.http + "index.html")
        watched.page.keyboard.press("Tab")
        watched.page.keyboard.press("Enter")
        assert watched.page.evaluate("document.activeElement.id") == "main"


def test_filters_work_by_keyboard(site, browser):
    with context_of(browser) as context, opened(context, site.http) as watched:
        page = watched.page
        page.goto(site.http + site.kinds["explorer"])
        page.wait_for_selector("#explorer-table tbody tr")
        page.focus("#explorer-filters summary")
        page.keyboard.press("Enter")
        page.focus("#filter-model")
        page.keyboard.press("ArrowDown")
        comes_to(page, lambda url: "model=sim-alpha" in url)
        page.focus("input[name=contested]")
        page.keyboard.press("Space")
        comes_to(page, lambda url: "contested=1" in url)
        assert watched.faults == []


def test_a_wide_formula_scrolls_by_keyboard(site, browser):
    with context_of(browser, width=360) as context, opened(context, site.http) as watched:
        page = watched.page
        page.goto(site.http + site.kinds["methodology-scoring"])
        wide = page.locator(".formula").evaluate_all("all => all.findIndex(e => e.scrollWidth > e.clientWidth)")
        assert wide >= 0
        page.locator(".formula").nth(wide).focus()
        page.keyboard.press("ArrowRight")
        page.locator(".formula").nth(wide).evaluate("e => new Promise(done => setTimeout(done, 300))")
        assert page.locator(".formula").nth(wide).evaluate("e => e.scrollLeft") > 0


class TestTheWalkCanFail:
    def test_hidden_focus_and_disorder(self, tmp_path, browser):
        (tmp_path / "bad.html").write_text(
            '<!doctype html><html lang="en"><title>x</title><body>'
            '<a href="#a" style="outline:0">bare</a><a href="#b" tabindex="2">second</a>'
            '<a href="#c" tabindex="1">first</a>'
            '<a href="#d" style="position:absolute;left:-9999px">gone</a></body></html>'
        )
        with context_of(browser) as context, opened(context, "file:") as watched:
            watched.page.goto((tmp_path / "bad.html").as_uri())
            faults = walk_faults(walk(watched.page))
        assert "not drawn: A bare" in faults
        assert "not in view: A gone" in faults
        assert "focus jumps against the order of the page" in faults
