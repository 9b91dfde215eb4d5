"""The review sheet in Chromium, from file://: labels are kept, exported, imported; hostile text stays text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from harness.audit.page import sheet_html
from harness.audit.sheet import AUDIT, SHEET_HTML, DrawRecord, checked_labels, draw_record, items_of, open_judged
from tests.browser.checks import axe_faults
from tests.browser.conftest import Watched, context_of, opened
from tests.factories import make_bank, make_rows, write_run

pytestmark = pytest.mark.browser
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202ererutnoc\u0007 kind1"
PHONE = 360


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, DrawRecord]:
    """A sheet of a small run whose responses are hostile; its HTML is alone in its folder."""
    folder = tmp_path_factory.mktemp("audit") / "sheet-run"
    bank = make_bank(["age"], groups=3)
    rows = make_rows(bank, "sim-alpha/one", repeats=2, run_id=folder.name)
    for row in rows:
        row["response"] += HOSTILE
    judged = open_judged(write_run(folder, bank, {"sim-alpha/one": rows}))
    record = draw_record(judged, asked=100)
    path = folder / AUDIT / SHEET_HTML
    path.parent.mkdir()
    path.write_text(sheet_html(items_of(judged, record), judged, record))
    return path, record


@pytest.fixture
def phone(browser: Browser) -> Iterator[BrowserContext]:
    with context_of(browser, width=PHONE) as context:
        yield context


@pytest.fixture
def watched(phone: BrowserContext, sheet: tuple[Path, DrawRecord]) -> Iterator[Watched]:
    with opened(phone, "file://") as seen:
        seen.page.goto(sheet[0].as_uri())
        yield seen


def rubric_of(page: Page) -> str:
    return page.locator("#place").inner_text().rsplit(" ", 1)[-1]


def go_to(page: Page, score: bool) -> None:
    """Go on until a row of a score rubric (or of another) is shown."""
    while (rubric_of(page) == "capability") != score:
        page.get_by_role("button", name="Next", exact=True).click()


class TestSheet:
    def test_it_opens_without_a_fault_and_shows_hostile_text_as_text(self, watched: Watched) -> None:
        page = watched.page
        expect(page.locator("#response")).to_contain_text(
            "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
        )
        expect(page.locator("#response")).to_contain_text("U+202ErerutnocU+0007 [PERSON]")
        expect(page.locator("#response img, #response script")).to_have_count(0)
        expect(page.locator("#state")).to_have_text("0 of 100 rows labeled. Kept in this browser.")
        assert (watched.faults, watched.blocked()) == ([], [])

    def test_it_says_that_the_run_is_simulated(self, watched: Watched) -> None:
        expect(watched.page.locator("#notice")).to_contain_text("Simulated run")
        expect(watched.page).to_have_title("Review of sheet-run")
        expect(watched.page.locator("h1")).to_have_text("Review of sheet-run")
        expect(watched.page.locator("#plain")).to_have_count(0)

    def test_nothing_is_wider_than_a_phone(self, watched: Watched) -> None:
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= PHONE

    def test_every_control_can_be_hit_by_a_thumb(self, watched: Watched) -> None:
        go_to(watched.page, score=True)
        boxes = [box.bounding_box() for box in watched.page.locator("button:visible, input:visible, summary").all()]
        assert [b for b in boxes if b is None or b["height"] < 44] == []

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_axe_finds_nothing(self, browser: Browser, sheet: tuple[Path, DrawRecord], scheme: str) -> None:
        with context_of(browser, width=PHONE, scheme=scheme) as context, opened(context, "file://") as seen:
            seen.page.goto(sheet[0].as_uri())
            assert axe_faults(seen.page) == []


class TestLabels:
    def test_a_label_is_kept_over_a_reload_and_can_be_changed(self, watched: Watched) -> None:
        page = watched.page
        go_to(page, score=False)
        place = page.locator("#place").inner_text()
        label = page.locator("#choices button").first
        label.click()
        expect(label).to_have_attribute("aria-pressed", "true")
        page.reload()
        expect(page.locator("#place")).to_have_text(place)
        expect(page.locator("#choices button").first).to_have_attribute("aria-pressed", "true")
        expect(page.locator("#state")).to_contain_text("1 of 100")
        page.get_by_role("button", name="REFUSAL").click()
        expect(page.locator("#choices button").first).to_have_attribute("aria-pressed", "false")
        expect(page.locator("#state")).to_contain_text("1 of 100")

    def test_a_score_outside_the_scale_is_no_label(self, watched: Watched) -> None:
        page = watched.page
        go_to(page, score=True)
        page.get_by_label("Score from 0 to 100").fill("101")
        page.get_by_label("Score from 0 to 100").blur()
        expect(page.locator("#problem")).to_have_text("Use a whole number from 0 to 100.")
        expect(page.locator("#state")).to_contain_text("0 of 100")
        page.get_by_label("Score from 0 to 100").fill("100")
        page.get_by_label("Score from 0 to 100").blur()
        expect(page.locator("#state")).to_contain_text("1 of 100")

    def test_the_keyboard_alone_is_enough(self, watched: Watched) -> None:
        page = watched.page
        go_to(page, score=False)
        page.locator("#row").focus()
        page.keyboard.press("2")
        expect(page.locator("#choices button").nth(1)).to_have_attribute("aria-pressed", "true")
        before = page.locator("#place").inner_text()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#place")).not_to_have_text(before)

    def test_the_saved_csv_is_what_import_reads(
        self, watched: Watched, sheet: tuple[Path, DrawRecord], tmp_path: Path
    ) -> None:
        page, record = watched.page, sheet[1]
        for _ in record.rubrics:
            if rubric_of(page) == "capability":
                page.get_by_label("Score from 0 to 100").fill("70")
                page.get_by_label("Score from 0 to 100").blur()
            else:
                page.locator("#choices button").nth(1).click()
            page.get_by_role("button", name="Next unlabeled").click()
        expect(page.locator("#state")).to_have_text("All 100 rows are labeled. Save the CSV.")
        with page.expect_download() as download:
            page.get_by_role("button", name="Save labels as CSV").click()
        assert download.value.suggested_filename == "sheet-run-labels.csv"
        download.value.save_as(tmp_path / "labels.csv")
        labels = checked_labels(tmp_path / "labels.csv", record, make_bank(["age"], groups=3))
        assert len(labels) == 100
        assert {labels[i] for i, rubric in record.rubrics.items() if rubric == "capability"} == {"70"}
        page.get_by_role("button", name="Show the CSV to copy").click()
        assert page.locator("#csv").input_value() == (tmp_path / "labels.csv").read_text()
        assert watched.faults == []


class TestStorage:
    def test_a_browser_that_keeps_nothing_says_so(self, browser: Browser, sheet: tuple[Path, DrawRecord]) -> None:
        with context_of(browser, width=PHONE) as context:
            context.add_init_script("Storage.prototype.getItem = () => { throw new Error('no storage'); };")
            with opened(context, "file://") as seen:
                seen.page.goto(sheet[0].as_uri())
                expect(seen.page.locator("#state")).to_contain_text("This browser keeps nothing")

    def test_without_scripts_it_names_the_csv(self, browser: Browser, sheet: tuple[Path, DrawRecord]) -> None:
        with context_of(browser, width=PHONE, scripts=False) as context:
            page = context.new_page()
            page.goto(sheet[0].as_uri())
            expect(page.get_by_text("The CSV file beside it holds the same rows.")).to_be_visible()
