"""The explorer in a browser: filters, address, paging, text search, hostile text, and what it says without a server."""

from __future__ import annotations

import re
import statistics
from urllib.parse import parse_qs, urlsplit

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect

from generator.edition import paths
from tests.browser.conftest import comes_to, context_of, opened
from tests.browser.site import SIMULATED

pytestmark = pytest.mark.browser
MODEL = "sim-alpha/one"


@pytest.fixture(scope="module")
def rows(site):
    """The published rows of every model of the simulated run."""
    files = sorted((site.root / f"runs/{SIMULATED}/data/receipts").glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]


@pytest.fixture(scope="module")
def wide(browser):
    """One browser context for all tests: the page keeps nothing between visits but what its address says."""
    with context_of(browser) as context:
        yield context


@pytest.fixture
def explorer(site, wide):
    """The explorer, open and filled."""
    with opened(wide, site.http) as watched:
        watched.page.goto(site.http + paths.explorer_page(SIMULATED))
        settled(watched.page)
        yield watched.page
        assert watched.faults == []
        assert watched.blocked() == []


def settled(page):
    """Wait until the rows found are drawn and counted, and unfold the filters."""
    page.wait_for_selector("#explorer[aria-busy=false]")
    page.evaluate("document.getElementById('explorer-filters').open = true")


def count(page):
    """The number of rows that the page says it found."""
    settled(page)
    return int(page.inner_text("#explorer-status").split()[0].replace(",", ""))


def comes_to_query(page, wanted):
    """Wait until the page's address asks for {key: value}."""
    comes_to(page, lambda url: {key: values[0] for key, values in parse_qs(urlsplit(url).query).items()} == wanted)


def differ(row):
    """Whether both primaries voted and do not agree."""
    a, b = row["votes"][:2] if len(row["votes"]) > 1 else ({"error": "none"}, {"error": "none"})
    if a["error"] or b["error"]:
        return False
    if a["score"] is not None and b["score"] is not None:
        return abs(a["score"] - b["score"]) > 10
    return a["label"] != b["label"]


FILTERS = [
    ({"model": MODEL}, lambda r: r["model"] == MODEL),
    ({"attribute": "age"}, lambda r: r["attribute"] == "age"),
    ({"category": "refusal"}, lambda r: r["category"] == "refusal"),
    ({"concept": "gender_stance_0"}, lambda r: r["concept"] == "gender_stance_0"),
    ({"attribute": "age", "group": "g1"}, lambda r: r["attribute"] == "age" and r["group"] == "g1"),
    ({"group": "religion.g2"}, lambda r: r["attribute"] == "religion" and r["group"] == "g2"),
    ({"framing": "direct"}, lambda r: r["framing"] == "direct"),
    ({"label": "REFUSAL"}, lambda r: r["final_label"] == "REFUSAL"),
    ({"status": "contested"}, lambda r: r["status"] == "contested"),
    ({"contested": "1"}, lambda r: r["status"] == "contested"),
    ({"disagree": "1"}, differ),
    ({"leak": "1"}, lambda r: r["mask_leak"]),
    ({"model": MODEL, "disagree": "1", "framing": "direct"},
     lambda r: r["model"] == MODEL and differ(r) and r["framing"] == "direct"),
]  # fmt: skip


class TestFilters:
    @pytest.mark.parametrize(("asked", "wanted"), FILTERS, ids=["+".join(f) for f, _ in FILTERS])
    def test_an_address_finds_what_the_files_hold(self, explorer, site, rows, asked, wanted):
        address = "&".join(f"{key}={value}" for key, value in asked.items())
        explorer.goto(f"{site.http}{paths.explorer_page(SIMULATED)}?{address}")
        assert count(explorer) == sum(bool(wanted(row)) for row in rows)

    def test_all_rows_come_first(self, explorer, rows):
        assert count(explorer) == len(rows)

    def test_choices_carry_how_many_rows_they_would_find(self, explorer, rows):
        explorer.select_option("#filter-attribute", "age")
        settled(explorer)
        text = explorer.locator("#filter-status option[value=refused]").text_content()
        refused = sum(r["status"] == "refused" and r["attribute"] == "age" for r in rows)
        assert text == f"refused ({refused})"

    def test_choosing_changes_the_address_and_back_undoes_it(self, explorer, rows):
        explorer.select_option("#filter-model", MODEL)
        explorer.check("input[name=disagree]")
        comes_to_query(explorer, {"model": MODEL, "disagree": "1"})
        found = count(explorer)
        explorer.go_back()
        comes_to_query(explorer, {"model": MODEL})
        wanted = sum(r["model"] == MODEL for r in rows)
        expect(explorer.locator("#explorer-status")).to_have_text(f"{wanted:,} rows")
        assert wanted > found

    def test_another_attribute_forgets_concept_and_group(self, explorer):
        explorer.select_option("#filter-concept", "age_stance_0")
        explorer.select_option("#filter-attribute", "gender")
        comes_to_query(explorer, {"attribute": "gender"})
        assert count(explorer) > 0

    @pytest.mark.parametrize("name", ["concept", "group"])
    def test_only_what_the_attribute_has_can_be_chosen(self, explorer, name):
        sets = explorer.locator(f"#filter-{name} optgroup")
        labels = sets.evaluate_all("all => all.map((set) => set.label)")
        explorer.select_option("#filter-attribute", "gender")
        expect(sets).to_have_count(1)
        assert sets.get_attribute("data-attribute") == "gender"
        explorer.select_option("#filter-attribute", "")
        expect(sets).to_have_count(len(labels))
        assert sets.evaluate_all("all => all.map((set) => set.label)") == labels

    def test_a_choice_that_does_not_fit_its_attribute_stays_to_be_seen(self, explorer, site):
        explorer.goto(f"{site.http}{paths.explorer_page(SIMULATED)}?attribute=age&concept=gender_stance_0")
        assert count(explorer) == 0
        assert explorer.input_value("#filter-concept") == "gender_stance_0"

    def test_clear_forgets_all(self, explorer, rows):
        explorer.select_option("#filter-model", MODEL)
        explorer.click("#explorer-reset")
        expect(explorer.locator("#explorer-status")).to_have_text(f"{len(rows):,} rows")
        comes_to_query(explorer, {})

    def test_an_unknown_value_in_the_address_is_ignored(self, explorer, site, rows):
        explorer.goto(f"{site.http}{paths.explorer_page(SIMULATED)}?model=<script>&status=nothing&page=x")
        assert count(explorer) == len(rows)


class TestNothingFound:
    def test_it_says_which_filter_hides_most_and_clears_all(self, explorer, site, rows):
        address = f"{site.http}{paths.explorer_page(SIMULATED)}?attribute=age&concept=age_stance_0&label=PARTIAL"
        explorer.goto(address)
        assert count(explorer) == 0
        left = sum(row["concept"] == "age_stance_0" for row in rows)
        words = f"No row matches all filters. With “Final label” set to any, {left} rows would."
        expect(explorer.locator("#explorer-advice")).to_have_text(words)
        explorer.click("#explorer-clear button")
        expect(explorer.locator("#explorer-status")).to_have_text(f"{len(rows):,} rows")
        assert explorer.is_hidden("#explorer-advice")
        assert explorer.is_hidden("#explorer-clear")
        assert explorer.evaluate("document.activeElement.id") == "filter-q"

    def test_boxes_are_named_where_they_are_in_the_way(self, explorer, site):
        asked = "leak=1&filtered=1&contested=1&truncated=1"
        explorer.goto(f"{site.http}{paths.explorer_page(SIMULATED)}?{asked}")
        assert count(explorer) == 0
        expect(explorer.locator("#explorer-advice")).to_contain_text("Untick a box of “Only rows”")

    def test_a_text_that_is_nowhere_is_said(self, explorer, site):
        explorer.goto(f"{site.http}{paths.explorer_page(SIMULATED)}?model={MODEL}&q=nowhere+to+be+found")
        expect(explorer.locator("#explorer-advice")).to_contain_text(
            "No answer of this model holds “nowhere to be found”."
        )
        assert count(explorer) == 0

    def test_where_rows_are_found_nothing_is_advised(self, explorer):
        assert explorer.is_hidden("#explorer-advice")
        assert explorer.is_hidden("#explorer-clear")


class TestRows:
    def test_paging_reaches_the_last_row(self, explorer, rows):
        pages = -(-len(rows) // 50)
        assert explorer.inner_text("#explorer-page") == f"Page 1 of {pages}"
        assert explorer.is_disabled("#explorer-back")
        explorer.click("#explorer-next")
        comes_to_query(explorer, {"page": "2"})
        explorer.goto(explorer.url.replace("page=2", f"page={pages}"))
        settled(explorer)
        assert explorer.locator("#explorer-table tbody tr:not(.preview)").count() == len(rows) - 50 * (pages - 1)
        assert explorer.is_disabled("#explorer-next")

    def test_turning_the_page_starts_at_its_top(self, explorer):
        explorer.click("#explorer-next")
        comes_to_query(explorer, {"page": "2"})
        expect(explorer.locator("#explorer-rows")).to_be_focused()
        assert explorer.get_attribute("#explorer-rows", "aria-label").startswith("Rows found, page 2 of ")
        assert explorer.evaluate(
            "(() => { const top = document.activeElement.getBoundingClientRect().top;"
            " return top >= 0 && top < innerHeight / 2; })()"
        )

    def test_a_row_shows_and_links_to_its_receipt(self, explorer, site, rows):
        explorer.goto(
            f"{site.http}{paths.explorer_page(SIMULATED)}?model={MODEL}&concept=age_capability_0&framing=professional"
        )
        settled(explorer)
        wanted = [
            r for r in rows if (r["model"], r["concept"], r["framing"]) == (MODEL, "age_capability_0", "professional")
        ]
        shown = explorer.locator("#explorer-table tbody tr:not(.preview)")
        assert shown.count() == len(wanted)
        for place, row in enumerate(wanted):
            cells = shown.nth(place).locator("th, td").all_inner_texts()
            value = "–" if row["value"] is None else f"{row['value']:g}"
            assert cells[4:9] == [row["framing"], str(row["repeat"]), row["final_label"] or "–", value, row["status"]]
            href = shown.nth(place).locator("a").evaluate("a => a.href")
            key = (MODEL, row["concept"], row["framing"], row["group"], row["repeat"])
            assert href == site.http + paths.permalink(SIMULATED, *key)

    def test_rows_are_drawn_before_everything_is_counted(self, site, wide):
        seen = """() => { window.seen = []; new MutationObserver(() => {
          const drawn = !!document.querySelector("#explorer-table tbody tr:not(.preview)");
          const counted = !!document.querySelector("#explorer-status")?.textContent;
          if (drawn || counted) window.seen.push([drawn, counted]);
        }).observe(document, { childList: true, subtree: true }); }"""
        with opened(wide, site.http) as watched:
            watched.page.add_init_script(f"({seen})()")
            watched.page.goto(site.http + paths.explorer_page(SIMULATED))
            settled(watched.page)
            assert watched.page.evaluate("window.seen[0]") == [True, False]

    def test_ids_wrap_on_a_phone_and_are_copied_as_they_are(self, site, browser):
        with context_of(browser, width=360) as context, opened(context, site.http) as watched:
            watched.page.goto(site.http + paths.explorer_page(SIMULATED))
            settled(watched.page)
            head = watched.page.locator("#explorer-table tbody th").first
            assert head.locator("a").text_content() == "Allocation 0"
            assert head.locator("code wbr").count() > 0
            assert head.locator("code").text_content() == "age_allocation_0"


class TestTextSearch:
    def search(self, page, text):
        """Choose the model, search, and wait for the answer."""
        page.select_option("#filter-model", MODEL)
        page.fill("#filter-q", text)
        page.press("#filter-q", "Enter")
        expect(page.locator("#explorer-table .excerpt").first).to_be_visible()
        return count(page)

    @pytest.mark.parametrize(
        "text", ["repeat 1", "CONSIDERED", "<script>", "العربية", "{{ 7*7 }}", "nowhere to be found"]
    )
    def test_it_finds_what_the_responses_hold(self, explorer, rows, text):
        wanted = sum(r["model"] == MODEL and text.lower() in r["response"].lower() for r in rows)
        explorer.select_option("#filter-model", MODEL)
        explorer.fill("#filter-q", text)
        explorer.press("#filter-q", "Enter")
        expect(explorer.locator("#explorer-status")).to_have_text(re.compile(rf"^{wanted:,} rows?$"))
        comes_to_query(explorer, {"model": MODEL, "q": text})

    def test_hits_are_marked_and_hostile_text_stays_text(self, explorer):
        assert self.search(explorer, "onerror") > 0
        assert explorer.locator("#explorer-table mark").first.inner_text() == "onerror"
        assert explorer.locator("#explorer-table img, #explorer-table script").count() == 0
        assert explorer.title() != "run"

    def test_hidden_characters_are_shown(self, explorer):
        self.search(explorer, "to left")
        assert "[U+202E]" in explorer.locator("#explorer-table .excerpt").first.inner_text()

    def test_without_a_model_the_answers_of_all_are_searched(self, explorer, site, rows):
        explorer.goto(f"{site.http}{paths.explorer_page(SIMULATED)}?q=repeat+1")
        wanted = [row for row in rows if row["response"] and "repeat 1" in row["response"]]
        expect(explorer.locator("#explorer-status")).to_have_text(f"{len(wanted):,} rows")
        assert len({row["model"] for row in wanted}) == 3
        settled(explorer)
        refused = sum(row["status"] == "refused" for row in wanted)
        assert explorer.locator("#filter-status option[value=refused]").text_content() == f"refused ({refused})"
        explorer.select_option("#filter-status", "refused")
        expect(explorer.locator("#explorer-status")).to_have_text(f"{refused:,} row{'s' if refused != 1 else ''}")

    def test_a_search_is_stopped_and_says_how_far_it_came(self, site, wide, rows):
        with opened(wide, site.http) as watched:
            page, held = watched.page, []

            def hold(route):
                held.append(route)

            # The files of all models but the first one never come.
            page.route(re.compile(r"receipts/sim-(beta|judge-a)__.*parquet"), hold)
            page.goto(site.http + paths.explorer_page(SIMULATED))
            settled(page)
            page.fill("#filter-q", "repeat 1")
            page.press("#filter-q", "Enter")
            expect(page.locator("#explorer-status")).to_contain_text("of sim-beta/two, model 2 of 3")
            expect(page.locator("#explorer-table mark").first).to_have_text("repeat 1")
            page.click("#explorer-stop")
            wanted = sum(r["model"] == MODEL and "repeat 1" in r["response"] for r in rows if r["response"])
            expect(page.locator("#explorer-status")).to_have_text(
                f"{wanted:,} rows; stopped, 1 of 3 models were searched"
            )
            assert page.is_hidden("#explorer-stop")


class TestAnswers:
    def test_each_row_shows_the_beginning_of_its_answer(self, explorer, site, rows):
        asked = f"?model={MODEL}&concept=age_capability_0&framing=professional"
        explorer.goto(site.http + paths.explorer_page(SIMULATED) + asked)
        key = (MODEL, "age_capability_0", "professional")
        wanted = [r["response"] for r in rows if (r["model"], r["concept"], r["framing"]) == key]
        lines = explorer.locator("#explorer-table .preview td")
        expect(lines).to_have_count(len(wanted))
        for place, answer in enumerate(wanted):
            beginning = (answer or "no answer")[:20] if "\u202e" not in (answer or "") else "[U+202E]"
            expect(lines.nth(place)).to_contain_text(beginning)
        assert explorer.locator("#explorer-table img, #explorer-table script").count() == 0

    def test_one_at_random_is_a_row_that_passes(self, explorer, rows):
        explorer.select_option("#filter-status", "contested")
        settled(explorer)
        explorer.click("#explorer-any")
        comes_to(explorer, lambda url: "#" in url)
        found = urlsplit(explorer.url)
        concept, anchor = found.path.split("/")[-2], found.fragment
        contested = {
            (r["concept"], paths.row_anchor(r["framing"], r["group"], r["repeat"]))
            for r in rows
            if r["status"] == "contested"
        }
        assert (concept, anchor) in contested
        assert explorer.locator(f"article[id='{anchor}']").is_visible()

    def test_where_models_part_most(self, explorer, rows):
        explorer.select_option("#filter-order", "apart")
        comes_to_query(explorer, {"order": "apart"})
        means: dict[tuple[str, ...], dict[str, list[float]]] = {}
        for row in rows:
            if row["value"] is not None:
                prompt = (row["concept"], row["framing"], row["group"])
                means.setdefault(prompt, {}).setdefault(row["model"], []).append(row["value"])
        spreads = {
            prompt: statistics.variance([statistics.fmean(values) for values in found.values()])
            for prompt, found in means.items()
            if len(found) > 1
        }
        parting = {prompt: spread for prompt, spread in spreads.items() if spread > 1e-12}
        assert count(explorer) == 2 * len(parting)
        links = explorer.locator("#explorer-table tbody th a").evaluate_all("all => all.map((a) => a.href)")
        shown = [(url.split("/")[-2], *url.split("#")[1].split(".")[:2]) for url in links]
        assert shown[::2] == shown[1::2]
        seen = [parting[prompt] for prompt in shown[::2]]
        assert seen == pytest.approx(sorted(parting.values(), reverse=True)[: len(seen)])
        models = ["/".join(url.split("/")[-4:-2]) for url in links[:2]]
        first = {model: statistics.fmean(values) for model, values in means[shown[0]].items()}
        assert [first[model] for model in models] == [min(first.values()), max(first.values())]


MOVED = """() => { window.shift = 0; new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true }); }"""


@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_moves_while_rows_and_answers_come(site, browser, width):
    with context_of(browser, width=width) as context, opened(context, site.http) as watched:
        page = watched.page
        page.add_init_script(f"({MOVED})()")
        # Rows, and then answers, come well after the first paint.
        for name in ("**/rows.bin*", "**/receipts/*.parquet"):
            page.route(name, lambda route: (page.wait_for_timeout(150), route.continue_()))
        page.goto(site.http + paths.explorer_page(SIMULATED))
        expect(page.locator("#explorer-table .preview td").first).not_to_be_empty()
        page.wait_for_selector("#explorer[aria-busy=false]")
        assert page.evaluate("window.shift") < 0.02


def test_the_first_row_is_ten_stops_away(site, wide):
    with opened(wide, site.http) as watched:
        page = watched.page
        page.goto(site.http + paths.explorer_page(SIMULATED))
        page.wait_for_selector("#explorer[aria-busy=false]")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # the skip link
        stops = 1
        while not page.evaluate("document.activeElement.matches('#explorer-table th a')"):
            page.keyboard.press("Tab")
            stops += 1
            assert stops <= 10


class TestWithoutServerOrScripts:
    def test_from_a_file_it_says_so_and_links_to_the_lists(self, site, browser):
        with context_of(browser) as context, opened(context, site.file) as watched:
            watched.page.goto(site.file + paths.explorer_page(SIMULATED))
            assert "need a web server" in watched.page.inner_text("#explorer-note")
            assert watched.page.is_hidden("#explorer")
            watched.page.click(f"text={MODEL}")
            comes_to(watched.page, lambda url: url.endswith(paths.receipts_list(SIMULATED, MODEL)))
            assert watched.faults == []

    def test_without_scripts_the_lists_are_there(self, site, browser):
        with context_of(browser, scripts=False) as context, opened(context, site.http) as watched:
            watched.page.goto(site.http + paths.explorer_page(SIMULATED))
            assert "need JavaScript" in watched.page.inner_text("main .explorer-note >> nth=0")
            assert watched.page.is_hidden("#explorer")
            links = watched.page.locator("main table a")
            assert [link.inner_text() for link in links.all()] == [MODEL, "sim-beta/two", "sim-judge-a/three"]

    def test_a_missing_index_is_said(self, site, browser):
        with context_of(browser) as context, opened(context, site.http) as watched:
            watched.page.route("**/rows.bin*", lambda route: route.abort())
            watched.page.goto(site.http + paths.explorer_page(SIMULATED))
            expect(watched.page.locator("#explorer-note")).to_contain_text("could not be loaded")
            assert watched.page.is_hidden("#explorer")
