"""Every page kind in every view: file:// and a sub-path, narrow and wide, light and dark, with and without JS."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.browser.checks import axe_faults, contrast, dead_links, html_faults, page_weight, vnu_ready, zipped
from tests.browser.conftest import ARTEFACTS, context_of, opened, served

pytestmark = pytest.mark.browser
WIDTHS, SCHEMES, SCRIPTS, ORIGINS = (360, 1280), ("light", "dark"), (True, False), ("http", "file")
# Half of the sixteen combinations, chosen so that every three of the four choices meet in all their ways.
VIEWS = [
    (origin, width, scheme, scripts)
    for origin, width, scheme, scripts in itertools.product(ORIGINS, WIDTHS, SCHEMES, SCRIPTS)
    if (ORIGINS.index(origin) + WIDTHS.index(width) + SCHEMES.index(scheme) + SCRIPTS.index(scripts)) % 2 == 0
]
# A page's own width, what sticks out of it, and what every page must have.
MEASURE = """() => {
  const width = document.documentElement.clientWidth;
  const out = [];
  for (const e of document.querySelectorAll("main *")) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > width + 1 && !e.closest(".scroll, .formula, pre, .vh")) {
      out.push(`${e.tagName} ${e.className} ends at ${Math.round(box.right)}`);
    }
  }
  const mute = [];
  for (const e of document.querySelectorAll("main *")) {
    const style = getComputedStyle(e);
    if (e.scrollWidth <= e.clientWidth + 1 || !["auto", "scroll"].includes(style.overflowX)) continue;
    const name = `${e.tagName} ${e.className}`;
    const named = e.hasAttribute("aria-label") || e.hasAttribute("aria-labelledby");
    if (e.tabIndex !== 0 || !e.hasAttribute("role") || !named) mute.push(`${name} without a name or focus`);
    // Two covers that move with the content, two shades that stay: they say where more lies.
    if (e.tagName !== "PRE" && !style.backgroundAttachment.includes("local")) mute.push(`${name} gives no hint`);
  }
  return {
    width, mute, scroll: document.documentElement.scrollWidth, out: out.slice(0, 3),
    lang: document.documentElement.lang, title: document.title,
    h1: document.querySelectorAll("h1").length, main: document.querySelectorAll("main").length,
  };
}"""


def fault_lines(kind: str, found: dict[str, Any]) -> list[str]:
    """What a measured page does wrong."""
    faults = []
    if found["scroll"] > found["width"]:
        faults.append(f"{kind}: scrolls sideways: {found['scroll']} in {found['width']}: {found['out']}")
    faults += [f"{kind}: scrolls sideways: {fault}" for fault in found["mute"]]
    for name, wanted in (("lang", "en"), ("h1", 1), ("main", 1)):
        if found[name] != wanted:
            faults.append(f"{kind}: {name} is {found[name]!r}, not {wanted!r}")
    if not found["title"]:
        faults.append(f"{kind}: no title")
    return faults


def bad_page(folder, body, head=""):
    """A page that fails on purpose."""
    start = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Bad</title>'
    (folder / "bad.html").write_text(f"{start}{head}</head><body>{body}</body></html>")
    return folder / "bad.html"


@pytest.mark.parametrize(
    ("origin", "width", "scheme", "scripts"), VIEWS, ids=["-".join(map(str, view)) for view in VIEWS]
)
def test_every_kind_in_every_view(site, browser, origin, width, scheme, scripts):
    base, faults = getattr(site, origin), []
    kinds = {k: p for k, p in site.kinds.items() if k != "404"}
    with context_of(browser, width=width, scheme=scheme, scripts=scripts) as context, opened(context, base) as watched:
        for kind, path in kinds.items():
            watched.page.goto(base + path)
            # Scripts of the page are off in some views; the measuring one still runs through the debugger.
            faults += fault_lines(kind, watched.page.evaluate(MEASURE))
            faults += [f"{kind}: {fault}" for fault in [*watched.faults, *watched.blocked()]]
            watched.faults.clear()
            if origin == "http":
                ARTEFACTS.mkdir(parents=True, exist_ok=True)
                watched.page.screenshot(path=ARTEFACTS / f"{kind}-{width}-{scheme}.png", full_page=True)
    assert not faults, "\n".join(faults)


# The dark view shares its elements with the light one: a few kinds show all of its colours.
DARK = ("leaderboard", "findings", "model", "judging", "explorer", "set", "row", "data", "404", "methodology-scoring")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_nothing(site, browser, width, scheme):
    faults = []
    kinds = site.kinds if scheme == "light" else {kind: site.kinds[kind] for kind in DARK}
    with context_of(browser, width=width, scheme=scheme) as context, opened(context, site.http) as watched:
        for kind, path in kinds.items():
            watched.page.goto(site.http + path, wait_until="load")
            faults += [f"{kind}: {fault}" for fault in axe_faults(watched.page)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(("width", "media"), [(320, "screen"), (640, "screen"), (794, "print")])
def test_nothing_sticks_out_of_a_small_window_or_a_sheet_of_paper(site, browser, width, media):
    """320 px is what 1280 px become at 400 %, 640 px at 200 %; 794 px is a sheet of A4."""
    wide = {}
    with context_of(browser, width=width) as context, opened(context, site.http) as watched:
        watched.page.emulate_media(media=media)
        for kind, path in site.kinds.items():
            watched.page.goto(site.http + path)
            found = watched.page.evaluate("(e => [e.scrollWidth, e.clientWidth])(document.documentElement)")
            if found[0] > found[1]:
                wide[kind] = found
    assert wide == {}


def test_every_internal_link_is_alive(site):
    faults = dead_links(site.root)
    assert not faults, "\n".join(faults[:20])


@pytest.fixture(scope="module")
def html_errors(site, tmp_path_factory):
    reason = vnu_ready()
    if reason:
        pytest.skip(reason)
    seeded = bad_page(tmp_path_factory.mktemp("seeded"), "<p><div></p></span>")
    return html_faults([seeded, *(site.root / path for path in site.kinds.values())])


class TestValidHtml:
    """One run of the validator over every page kind and one page that must fail."""

    def test_every_page_kind_is_valid(self, html_errors):
        found = [fault for fault in html_errors if "/bad.html:" not in fault]
        assert not found, "\n".join(found[:40])

    def test_the_seeded_page_is_not(self, html_errors):
        assert len([fault for fault in html_errors if "/bad.html:" in fault]) >= 2


class TestWeight:
    def test_leaderboard_with_everything_stays_below_150_kb(self, site):
        assert page_weight(site.root, site.kinds["leaderboard"]) < 150_000

    def test_no_receipt_page_passes_8_kb(self, site):
        rows = site.root.glob("runs/*/receipts/*/*/*/*.html")
        heavy = {p.name: zipped(p) for p in rows if p.name != "index.html" and zipped(p) >= 8_000}
        assert heavy == {}


TEXT = ("ink", "soft", "link", "accent", "flagged", "suggestive", "unresolved", "good")
COLOURS = """names => {
  const probe = document.body.appendChild(document.createElement("i"));
  return Object.fromEntries(names.map((name) => {
    probe.style.color = `var(--${name})`;
    return [name, getComputedStyle(probe).color.match(/[\\d.]+/g).map(Number)];
  }));
}"""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_text_colour_stands_out_from_every_ground(site, browser, scheme):
    with context_of(browser, scheme=scheme) as context, opened(context, site.http) as watched:
        watched.page.goto(site.http + "index.html")
        colours = watched.page.evaluate(COLOURS, [*TEXT, "paper", "raised", "mark", "mark-ink", "line-strong"])
    pairs = [(text, ground, 4.5) for text in TEXT for ground in ("paper", "raised")]
    pairs += [("mark-ink", "mark", 4.5), ("line-strong", "paper", 3.0)]
    weak = {(a, b): round(contrast(colours[a], colours[b]), 2) for a, b, _ in pairs}
    assert {pair: ratio for (pair, ratio), (*_, least) in zip(weak.items(), pairs, strict=True) if ratio < least} == {}


class TestHostileText:
    def test_set_pages_show_it_and_run_none_of_it(self, site, browser):
        with context_of(browser) as context, opened(context, site.http) as watched:
            for concept in ("age_stance_0", "gender_allocation_0"):
                folder = f"runs/sim-small/receipts/sim-alpha/one/{concept}/"
                for page in sorted((site.root / folder).glob("*.html")):
                    watched.page.goto(site.http + folder + page.name)
                    assert watched.page.title() != "run"
                    assert watched.page.locator("main script, main img, main b[onmouseover]").count() == 0
            assert watched.faults == []

    def test_every_code_point_of_a_response_is_on_its_page(self, site):
        text = "".join(p.read_text() for p in (site.root / "runs/sim-small/receipts").rglob("index.html"))
        for wanted in ("U+202E", "U+200B", "U+0000", "&lt;script&gt;", "اللغة العربية"):
            assert wanted in text, wanted


class TestTheCheckersCanFail:
    """Each checker meets a page with the fault that it is there to find."""

    @pytest.mark.parametrize(
        ("body", "fault"),
        [
            ('<a href="gone.html">x</a>', "bad.html: no such file: gone.html"),
            ('<a href="#gone">x</a>', "bad.html: no such anchor: #gone"),
            ('<a href="bad.html#gone">x</a>', "bad.html: no such anchor: bad.html#gone"),
            ('<a href="/x.html">x</a>', "bad.html: link from the domain's root: /x.html"),
            (
                '<img src="https://example.org/x.png">',
                "bad.html: <img> loads from elsewhere: https://example.org/x.png",
            ),
            ('<a href="javascript:alert(1)">x</a>', "bad.html: <a> loads from elsewhere: javascript:alert(1)"),
        ],
    )
    def test_link_check(self, tmp_path, body, fault):
        bad_page(tmp_path, body)
        assert dead_links(tmp_path) == [fault]

    def test_axe(self, tmp_path, browser):
        page = bad_page(tmp_path, '<main><h1>x</h1><p><img src="data:,"></p><p style="color:#bbb">pale</p></main>')
        with context_of(browser) as context, opened(context, "file:") as watched:
            watched.page.goto(page.as_uri())
            rules = {fault.split(":")[0] for fault in axe_faults(watched.page)}
        assert {"image-alt", "color-contrast"} <= rules

    def test_policy_and_foreign_requests(self, tmp_path, browser):
        policy = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
        bad_page(tmp_path, '<script>1</script><p style="color:red">x</p>', policy)
        with served(tmp_path) as base, context_of(browser) as context, opened(context, base) as watched:
            watched.page.goto(base + "bad.html")
            blocked = " ".join(watched.blocked())
            assert "script-src" in blocked
            assert "style-src" in blocked
        bad_page(tmp_path, '<img alt="" src="http://127.0.0.1:9/x.png">')
        with served(tmp_path) as base, context_of(browser) as context, opened(context, base) as watched:
            watched.page.goto(base + "bad.html")
            assert any(fault.startswith("beyond: http://127.0.0.1:9/") for fault in watched.faults)

    def test_width(self, tmp_path, browser):
        page = bad_page(tmp_path, '<main><h1>x</h1><p style="width:900px">wide</p></main>')
        with context_of(browser, width=360) as context, opened(context, "file:") as watched:
            watched.page.goto(page.as_uri())
            found = fault_lines("bad", watched.page.evaluate(MEASURE))
        assert len(found) == 1
        assert "scrolls sideways" in found[0]

    def test_a_box_that_scrolls_without_a_hint(self, tmp_path, browser):
        box = '<main><h1>x</h1><div style="overflow-x:auto"><p style="width:900px">wide</p></div></main>'
        page = bad_page(tmp_path, box)
        with context_of(browser, width=360) as context, opened(context, "file:") as watched:
            watched.page.goto(page.as_uri())
            found = fault_lines("bad", watched.page.evaluate(MEASURE))
        assert [f.rpartition(" ")[2] for f in found] == ["focus", "hint"]

    def test_weight(self, tmp_path):
        (tmp_path / "a.css").write_text("".join(f".c{i}{{color:#{i * 7919 % 4096:03x}}}" for i in range(5000)))
        bad_page(tmp_path, "", '<link rel="stylesheet" href="a.css">')
        assert page_weight(tmp_path, "bad.html") > zipped(tmp_path / "a.css")

    def test_contrast(self):
        assert round(contrast((0, 0, 0), (255, 255, 255)), 1) == 21.0
        assert contrast((187, 187, 187), (255, 255, 255)) < 3
