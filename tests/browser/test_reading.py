"""What a reader does on the pages of a run: sorts by keyboard, follows a number to its rows, copies, prints."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import comes_to, context_of, opened

pytestmark = pytest.mark.browser


@pytest.fixture
def page(site, browser):
    with context_of(browser) as context, opened(context, site.http) as watched:
        yield watched.page
        assert watched.faults == []


def column(page, number):
    """The numbers of a column of the leaderboard's matrix, top to bottom, as they stand."""
    return page.locator(f"table.matrix tbody tr td:nth-child({number}) [data-score]").all_inner_texts()


def order(page):
    return page.locator("table.matrix tbody th").all_inner_texts()


class TestSorting:
    def test_a_column_is_sorted_by_keyboard_both_ways(self, site, page):
        page.goto(site.http + site.kinds["leaderboard"])
        head = page.locator("table.matrix thead th", has_text="age").first
        head.locator("button").focus()
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == "descending"
        down = [float(text) for text in column(page, 5)]
        assert down == sorted(down, reverse=True)
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == "ascending"
        assert [float(text) for text in column(page, 5)] == down[::-1]

    def test_only_the_sorted_column_says_so(self, site, page):
        page.goto(site.http + site.kinds["leaderboard"])
        for button in page.locator("table.matrix thead button").all()[:3]:
            button.click()
        assert page.locator("table.matrix [aria-sort]").count() == 1

    def test_names_sort_from_a_to_z_first(self, site, page):
        page.goto(site.http + site.kinds["leaderboard"])
        page.locator("table.matrix thead button").first.click()
        assert order(page) == sorted(order(page))

    def test_models_without_a_number_stay_last_both_ways(self, site, page):
        page.goto(site.http + site.kinds["leaderboard"])
        cell = page.locator("table.matrix tbody tr").first.locator("td").nth(0)
        cell.evaluate("cell => { cell.dataset.value = ''; }")
        name = order(page)[0]
        button = page.locator("table.matrix thead button").nth(1)
        for _ in range(2):
            button.click()
            assert order(page)[-1] == name

    def test_without_scripts_a_column_head_leads_to_the_attribute_s_own_page(self, site, browser):
        with context_of(browser, scripts=False) as context, opened(context, site.http) as watched:
            watched.page.goto(site.http + site.kinds["leaderboard"])
            watched.page.locator("table.matrix thead a", has_text="age").first.click()
            comes_to(watched.page, lambda url: url.endswith("/attributes/age.html"))
            found = watched.page.locator("table[data-sort] td:nth-child(2) > [data-score]").all_inner_texts()
            values = [float(text) for text in found]
            assert values == sorted(values, reverse=True)


class TestNumberToEvidence:
    @pytest.mark.parametrize("scripts", [True, False])
    def test_a_score_opens_the_concepts_behind_it_and_those_lead_to_answers(self, site, browser, scripts):
        with context_of(browser, scripts=scripts) as context, opened(context, site.http) as watched:
            page = watched.page
            page.goto(site.http + site.kinds["leaderboard"])
            page.locator("table.matrix tbody tr").first.locator("td").nth(3).locator("a").first.click()
            page.wait_for_url("**#age")
            inside = page.locator("#age")
            expect(inside).to_be_visible()
            assert "scored answers" in inside.inner_text()
            inside.locator("a", has_text="Concept by concept").click()
            page.wait_for_url("**/numbers.html#age")
            expect(inside).to_be_visible()
            assert "rests on" in inside.inner_text()
            inside.locator("a", has_text="set").first.click()
            comes_to(page, lambda url: "/receipts/" in url)
            assert page.locator("h1").count() == 1

    def test_answers_without_a_value_are_one_click_away(self, site, page):
        page.goto(site.http + site.kinds["numbers"] + "#age")
        page.locator("#age a", has_text="refused").first.click()
        comes_to(page, lambda url: "model=sim-alpha/one&attribute=age&status=refused" in url)
        expect(page.locator("#filter-status")).to_have_value("refused")


class TestCharts:
    @pytest.mark.parametrize(("width", "shown"), [(360, "narrow"), (767, "narrow"), (768, "wide"), (1280, "wide")])
    def test_one_drawing_is_shown_and_has_a_name(self, site, browser, width, shown):
        with context_of(browser, width=width) as context, opened(context, site.http) as watched:
            watched.page.goto(site.http + site.kinds["model"])
            visible = watched.page.locator("figure.plot svg:visible")
            assert visible.count() == 1
            assert f"chart-{shown}" in visible.get_attribute("class")
            assert watched.page.get_by_role("group", name="Consistency of sim-alpha/one by attribute").count() == 1

    @pytest.mark.parametrize("width", [320, 360, 1280])
    @pytest.mark.parametrize("kind", ["model", "attribute"])
    def test_no_label_is_cut_or_runs_into_another(self, site, browser, width, kind):
        with context_of(browser, width=width) as context, opened(context, site.http) as watched:
            watched.page.goto(site.http + site.kinds[kind])
            boxes = watched.page.evaluate(
                """() => [...document.querySelectorAll("figure.plot svg")].filter((s) => s.checkVisibility())
                  .flatMap((s) => [...s.querySelectorAll("text")]
                    .filter((t) => t.textContent.trim() && t.checkVisibility({ visibilityProperty: true })))
                  .map((t) => { const b = t.getBoundingClientRect();
                    return [t.textContent, b.left, b.right, b.top, b.bottom]; })"""
            )
            assert len(boxes) > 10
            assert [b for b in boxes if b[1] < 0 or b[2] > width] == []
            assert overlaps(boxes) == []

    @pytest.mark.parametrize("width", [320, 360, 1280])
    @pytest.mark.parametrize("kind", ["model", "attribute"])
    def test_no_label_lies_over_a_band(self, site, browser, width, kind):
        with context_of(browser, width=width) as context, opened(context, site.http) as watched:
            watched.page.goto(site.http + site.kinds[kind])
            words, bands = watched.page.evaluate(
                """() => {
                  const drawings = [...document.querySelectorAll("figure.plot svg")];
                  const shown = drawings.find((s) => s.checkVisibility());
                  const box = (e) => { const b = e.getBoundingClientRect();
                    return [e.textContent, b.left, b.right, b.top, b.bottom]; };
                  const drawn = (t) => t.textContent.trim() && t.checkVisibility({ visibilityProperty: true });
                  return [[...shown.querySelectorAll("text")].filter(drawn).map(box),
                    [...shown.querySelectorAll('[fill^="var(--band,"]')].map(box)]; }"""
            )
            assert bands
            assert [a[0] for a in words for b in bands if overlaps([a, b])] == []

    def test_the_overlap_check_can_fail(self):
        assert overlaps([["a", 0, 10, 0, 10], ["b", 5, 15, 5, 15], ["c", 20, 30, 0, 10]]) == [("a", "b")]


def overlaps(boxes):
    """Pairs of labels that share more than a pixel."""
    return [
        (a[0], b[0])
        for i, a in enumerate(boxes)
        for b in boxes[i + 1 :]
        if min(a[2], b[2]) - max(a[1], b[1]) > 1 and min(a[4], b[4]) - max(a[3], b[3]) > 1
    ]


class TestIds:
    """Concepts are headed by a title; their ids wrap after an underscore, and are copied without a trace of it."""

    @pytest.mark.parametrize("kind", ["row", "set", "concept"])
    def test_an_id_stands_by_the_title_and_breaks_at_its_underscores_only(self, site, browser, kind):
        with context_of(browser, width=360) as context, opened(context, site.http) as watched:
            watched.page.goto(site.http + site.kinds[kind])
            lines = watched.page.evaluate(
                """() => {
                  const id = [...document.querySelectorAll("main code")].find((c) => c.textContent === "age_stance_0");
                  const rule = "main code { display: block; width: 4.6em; font-size: 4.5rem !important; }";
                  document.styleSheets[0].insertRule(rule);
                  const lines = [];
                  const walker = document.createTreeWalker(id, NodeFilter.SHOW_TEXT);
                  for (let node; (node = walker.nextNode());) {
                    for (let i = 0; i < node.length; i++) {
                      const range = document.createRange();
                      range.setStart(node, i); range.setEnd(node, i + 1);
                      const top = Math.round(range.getBoundingClientRect().top);
                      if (!lines.length || lines.at(-1).top !== top) lines.push({ top, text: "" });
                      lines.at(-1).text += node.data[i];
                    }
                  }
                  return lines.map((line) => line.text);
                }"""
            )
            assert lines == ["age_", "stance_", "0"]
            assert watched.page.locator("h1").inner_text().startswith("Stance 0")
            assert "Stance 0" in watched.page.title()

    def test_the_way_to_a_row_leads_over_its_set(self, site, page):
        page.goto(site.http + site.kinds["row"])
        step = page.locator(".crumbs a").last
        assert step.text_content() == "Stance 0"
        step.click()
        comes_to(page, lambda url: url == site.http + site.kinds["set"])


class TestAtAGlance:
    def test_a_set_begins_with_every_label_and_each_leads_to_its_answer(self, site, page):
        page.goto(site.http + site.kinds["set"])
        lines = page.locator("#direct .glance tbody tr")
        assert lines.count() == 3
        for line in lines.all():
            first = line.locator(".labels a").first
            answer = page.locator(f'[id="{first.get_attribute("href")[1:]}"]')
            assert first.inner_text() in answer.locator("h4").inner_text()
            group = page.locator(f'[id="{line.locator("th a").get_attribute("href")[1:]}"]')
            assert group.locator("h3").inner_text() == line.locator("th").inner_text()


class TestOnAPhone:
    """What a reader came for stands within the window: no table has to be scrolled for it."""

    @pytest.fixture
    def phone(self, site, browser):
        with context_of(browser, width=360) as context, opened(context, site.http) as watched:
            yield watched.page
            assert watched.faults == []

    @staticmethod
    def inside(cell):
        box = cell.bounding_box()
        return box["x"] >= 0 and box["x"] + box["width"] <= 360

    @pytest.mark.parametrize("kind", ["judging", "preview-judging"])
    def test_rubric_gate_and_kappa_with_its_interval(self, site, phone, kind):
        phone.goto(site.http + site.kinds[kind])
        rows = phone.get_by_label("Agreement by rubric", exact=True).locator("tbody tr")
        assert rows.count() > 3
        for row in rows.all():
            kappa = row.locator("td.lead")
            assert kappa.locator("[data-cell$='|kappa']").count() == 1
            for cell in (row.locator("th"), row.locator(".gate"), kappa):
                assert self.inside(cell)
            assert kappa.bounding_box()["y"] - row.bounding_box()["y"] < 20

    @pytest.mark.parametrize("kind", ["judging", "numbers", "attribute", "control", "run"])
    def test_a_table_of_cards_needs_no_sideways_scroll_and_names_every_number(self, site, phone, kind):
        phone.goto(site.http + site.kinds[kind])
        phone.evaluate("() => { for (const d of document.querySelectorAll('details')) d.open = true; }")
        found = phone.evaluate(
            """() => [...document.querySelectorAll("table.cards")].map((table) => [
              table.parentElement.scrollWidth - table.parentElement.clientWidth,
              [...table.querySelectorAll("tbody td.n:not(.none)")].filter((td) => !td.dataset.label).length,
            ])"""
        )
        assert found
        assert found == [[0, 0]] * len(found)

    def test_the_disparity_of_every_model_on_a_concept(self, site, phone):
        phone.goto(site.http + site.kinds["concept"])
        numbers = phone.locator(".means [data-cell$='|disparity']")
        assert numbers.count() == 2 * phone.locator("table.means").first.locator("tbody tr").count()
        assert all(self.inside(number) for number in numbers.all())


class TestTwoGroups:
    """Ticked groups stand alone, side by side: without a script, by keyboard, and no link of the page breaks."""

    @pytest.fixture
    def plain(self, site, browser):
        with context_of(browser, scripts=False) as context, opened(context, site.file) as watched:
            watched.page.goto(site.file + site.kinds["set"])
            yield watched.page
            assert watched.faults == []

    @staticmethod
    def shown(page, framing):
        return [h3.inner_text() for h3 in page.locator(f"#{framing} .side h3").all() if h3.is_visible()]

    def test_all_groups_show_until_some_are_ticked(self, plain):
        every = plain.locator("#direct .glance tbody th").all_inner_texts()
        assert self.shown(plain, "direct") == every
        boxes = plain.locator("#direct .glance input")
        for place in (0, 2):
            boxes.nth(place).focus()
            plain.keyboard.press("Space")
        assert self.shown(plain, "direct") == [every[0], every[2]]
        assert self.shown(plain, "professional") == every
        boxes.nth(0).uncheck()
        boxes.nth(2).uncheck()
        assert self.shown(plain, "direct") == every

    def test_the_ticked_groups_are_in_the_address_and_come_back_from_it(self, site, browser):
        with context_of(browser) as context, opened(context, site.http) as watched:
            page, address = watched.page, site.http + site.kinds["set"]
            page.goto(address + "#direct.g2.0")
            every = page.locator("#direct .glance tbody th").all_inner_texts()
            boxes = page.locator("#direct .glance input")
            boxes.nth(0).check()
            boxes.nth(2).check()
            comes_to(page, lambda url: url == f"{address}?only=direct.g0&only=direct.g2#direct.g2.0")
            page.goto(f"{address}?only=direct.g1&only=direct.g2&only=<img>")
            assert self.shown(page, "direct") == every[1:3]
            boxes.nth(1).uncheck()
            boxes.nth(2).uncheck()
            assert self.shown(page, "direct") == every
            comes_to(page, lambda url: url == address)
            assert watched.faults == []

    def test_two_of_them_share_the_width_and_stand_one_below_the_other_on_a_phone(self, plain):
        boxes = plain.locator("#direct .glance input")
        boxes.nth(1).check()
        boxes.nth(2).check()
        first, second = (plain.locator("#direct .side").nth(place) for place in (1, 2))
        left, right = first.bounding_box(), second.bounding_box()
        assert left["y"] == right["y"]
        assert left["width"] + right["width"] > 0.9 * plain.locator("#direct .sides").bounding_box()["width"]
        plain.set_viewport_size({"width": 360, "height": 740})
        above, below = first.bounding_box(), second.bounding_box()
        assert above["x"] == below["x"]
        assert above["y"] + above["height"] <= below["y"]

    def test_each_box_says_which_group_it_keeps(self, plain):
        for line in plain.locator(".glance tbody tr").all():
            assert line.get_by_role("checkbox").get_attribute("aria-label") == f"Only {line.locator('th').inner_text()}"

    def test_a_link_to_an_answer_that_is_not_ticked_still_arrives(self, plain):
        plain.locator("#direct .glance input").nth(0).check()
        link = plain.locator("#direct .glance tbody tr").nth(2).locator(".labels a").first
        answer = plain.locator(f'[id="{link.get_attribute("href")[1:]}"]')
        assert not answer.is_visible()
        link.click()
        assert answer.is_visible()


class TestKeyboard:
    def test_the_first_tab_reaches_the_skip_link_and_it_works(self, site, page):
        page.goto(site.http + site.kinds["model"])
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        box = page.locator(".skip").bounding_box()
        assert box["x"] >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"

    def test_focus_is_visible(self, site, page):
        page.goto(site.http + site.kinds["leaderboard"])
        for _ in range(3):
            page.keyboard.press("Tab")
        style = page.evaluate(
            "(s => [s.outlineStyle, parseFloat(s.outlineWidth)])(getComputedStyle(document.activeElement))"
        )
        assert style[0] == "solid"
        assert style[1] >= 2


class TestPaper:
    def test_print_is_black_on_white_without_navigation(self, site, browser):
        with context_of(browser, scheme="dark") as context, opened(context, site.http) as watched:
            watched.page.goto(site.http + site.kinds["leaderboard"])
            watched.page.emulate_media(media="print")
            assert not watched.page.locator("nav[aria-label=Main]").is_visible()
            colours = watched.page.evaluate(
                "(s => [s.color, s.backgroundColor])(getComputedStyle(document.documentElement))"
            )
            assert colours == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
            # Shapes, too, take the light theme's inks: pale ones would vanish on paper.
            ink = watched.page.locator(".board .ibar .i").first.evaluate("line => getComputedStyle(line).stroke")
            assert ink == "rgb(20, 55, 94)"

    @pytest.mark.parametrize("kind", ["model", "concept", "preview-judging", "methodology-scoring"])
    def test_everything_is_open_while_it_prints_and_as_before_afterwards(self, page, site, kind):
        """But for groups without a finding and explanations, so that a model prints in a few pages."""
        page.goto(site.http + site.kinds[kind])
        part = "details:not(.lean, .how)"
        count = (
            f"() => [document.querySelectorAll('{part}').length, document.querySelectorAll('{part}[open]').length, "
            "document.querySelectorAll('details[open]').length]"
        )
        before = page.evaluate(count)
        page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
        total, opened, everywhere = page.evaluate(count)
        assert total == opened > 0
        assert everywhere - opened == before[2] - before[1]
        assert page.inner_text(".print-address") == f"Printed from {page.url}"
        page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
        assert page.evaluate(count) == before
        assert page.locator(".print-address").count() == 0
