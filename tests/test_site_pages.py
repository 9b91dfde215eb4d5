"""The one list of pages: what publish makes is what the list says, and each address has one kind."""

from __future__ import annotations

import dataclasses

import pytest

from generator.edition.site_pages import SitePage, page_at, root_pages, row_pages, run_pages, site_pages, typical_pages
from generator.receipts.pages import receipt_task, set_batches
from tests.editions import make_edition
from tests.publications import _quick, make_content, run_publish  # noqa: F401


@pytest.mark.parametrize(
    ("path", "kind", "names"),
    [
        ("index.html", "front", ()),
        ("about.html", "prose", ()),
        ("praise.html", "other", ()),
        ("runs/index.html", "runs", ()),
        ("methodology/tiers.html", "methodology", ("tiers",)),
        ("changes/index.html", "changes", ()),
        ("changes/models.html", "history", ()),
        ("changes/b--a.html", "change", ("b--a",)),
        ("runs/r/index.html", "leaderboard", ("r",)),
        ("runs/r/judging.html", "judging", ("r",)),
        ("runs/r/more.html", "other", ("r",)),
        ("runs/r/models/v/m.html", "model", ("r", "v", "m")),
        ("runs/r/concepts/c.html", "concept", ("r", "c")),
        ("runs/r/data/index.html", "data", ("r",)),
        ("runs/r/receipts/index.html", "explorer", ("r",)),
        ("runs/r/receipts/v/m/index.html", "list", ("r", "v", "m")),
        ("runs/r/receipts/v/m/c/index.html", "set", ("r", "v", "m", "c")),
        ("runs/r/receipts/v/m/c/direct.g.1.html", "row", ("r", "v", "m", "c", "direct.g.1")),
        ("runs/r/receipts/v/m/c/d/e.html", "other", ("r",)),
    ],
)
def test_an_address_has_its_kind_and_names(path, kind, names):
    assert page_at(path) == SitePage(path, kind, names)


@pytest.mark.parametrize(
    ("path", "run", "name"),
    [
        ("runs/r/models/v/m.html", "r", "v/m"),
        ("runs/r/receipts/v/m/index.html", "r", "v/m"),
        ("runs/r/attributes/age.html", "r", "age"),
        ("methodology/tiers.html", None, "tiers"),
        ("runs/r/x/y.html", "r", "r"),
    ],
)
def test_a_page_knows_its_run_and_what_it_is_about(path, run, name):
    assert (page_at(path).run, page_at(path).name) == (run, name)


@pytest.mark.parametrize("mode", ["row", "folded", "files"])
def test_publish_makes_exactly_the_pages_of_the_list(tmp_path, mode):
    content, out = make_content(tmp_path / "content", runs=("first", "second", "third")), tmp_path / "dist"
    run_publish(content, out, mode=mode)
    run_publish(content, out, mode=mode, remove=("third",))
    found = list(site_pages(out))
    assert [page for page in found if page.kind == "other"] == []
    expected = {page.path for page in root_pages(["third"], [("first", "second")])}
    for run in ("first", "second"):
        edition = edition_of(content, run, mode)
        expected |= {page.path for page in run_pages(edition)}
        for model in edition.run.models if mode == "row" else ():
            task = receipt_task(edition, model, out)
            tables = [table for table, _ in set_batches(task.shard, frozenset(), 64)]
            rows = [row for table in tables for row in table.to_pylist()]
            places = [(r["concept"], f"{r['framing']}.{r['group']}.{r['repeat']}") for r in rows]
            expected |= {page.path for page in row_pages(run, model, places)}
    assert {page.path for page in found} == expected


def edition_of(content, run, mode):
    """An edition of a run folder as it stands, without its scores, which decide no page."""
    from generator.runs.reader import load_run

    loaded = load_run(content / "runs" / run)
    blank = make_edition(content.parent / "blank")
    return dataclasses.replace(blank, run=loaded, mode=mode)


def test_pages_of_a_withheld_category_are_on_no_list(tmp_path):
    edition = make_edition(tmp_path / "run", withheld=frozenset({"capability"}))
    gone = {c.id for c in edition.run.bank.concepts if c.category == "capability"}
    assert gone
    assert not gone & {name for page in run_pages(edition) for name in page.names}


def test_of_pages_made_in_bulk_one_of_each_template_and_run_is_typical():
    row = "runs/{}/receipts/v/m/{}/{}.html"
    pages = [row.format(run, c, n) for run in "ab" for c in "xy" for n in ("direct.g.1", "direct.g.2", "index")]
    found = [page.path for page in typical_pages(map(page_at, [*pages, "index.html"]))]
    assert found == [
        *(row.format(run, "x", name) for run in "ab" for name in ("direct.g.1", "index")),
        "index.html",
    ]
