"""A run of more models than a page shows well: what lists all of them is cut or written short, and nothing is lost."""

from __future__ import annotations

import fnmatch
import itertools
import json

import mlcroissant
import pytest
from selectolax.lexbor import LexborHTMLParser

from generator.edition import paths
from generator.edition.edition import FEW_MODELS
from generator.edition.site_pages import run_pages
from generator.html.assets import asset_files
from generator.html.links import dead_links, page_links
from generator.pages.attribute import render_attribute
from generator.pages.leaderboard import render_leaderboard
from generator.pages.views import View
from tests.editions import make_edition, write_data
from tests.factories import answers_from, make_bank, noise

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
MODELS = tuple(sorted(f"sim-v{i % 7}/m{i:02d}" for i in range(FEW_MODELS + 1)))


def _attribute(view, page):
    return render_attribute(view, view.bank.attribute[page.names[1]], page.path)


def _board(view, page):
    return render_leaderboard(view, page.path)


LISTS = {"leaderboard": _board, "board": _board, "attribute": _attribute, "attribute_part": _attribute}


def answers(*key):
    """Answers without group effects, all of them scored."""
    return answers_from(noise(*key))


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The edition, its data folder and the files of it."""
    folder = tmp_path_factory.mktemp("many")
    bank = make_bank(groups=2, quota={"stance": 1}, control_quota={"stance": 1})
    edition = make_edition(folder / "run-a", bank=bank, models=MODELS, answers=answers, resamples=40)
    edition, files = write_data(edition, folder / "data")
    return edition, folder / "data", files


class TestDataPage:
    def test_every_file_is_linked(self, published):
        edition, data, files = published
        page = paths.data_page(edition.run_id)
        targets = page_links((data / "index.html").read_bytes()).targets
        assert {paths.relative(page, paths.data_file(edition.run_id, file.name)) for file in files} <= set(targets)

    def test_a_model_more_adds_no_hash_and_no_command(self, published):
        _, data, files = published
        text = (data / "index.html").read_text()
        shards = [file for file in files if file.table == "receipts"]
        assert len(shards) == 2 * len(MODELS)
        assert {f.name for f in shards if f.sha256 in text} == {shards[0].name, shards[1].name}
        assert text.count("read_parquet(&#34;receipts/") == 1

    def test_the_record_for_search_engines_names_the_tables_and_no_model(self, published):
        _, data, _ = published
        text = (data / "index.html").read_text()
        record = json.loads(text.partition('<script type="application/ld+json">')[2].partition("</script>")[0])
        names = {item["name"] for item in record["distribution"]}
        assert {"scores.parquet", "croissant.json", "manifest.json"} <= names
        assert not [name for name in names if name.startswith(("receipts/", "every_eval_ever/"))]


class TestCroissant:
    def test_one_record_set_holds_the_receipts_of_all_models(self, published):
        _, data, _ = published
        described = json.loads((data / "croissant.json").read_text())
        assert [r["@id"] for r in described["recordSet"] if r["@id"].startswith("receipts")] == ["receipts"]
        found = mlcroissant.Dataset(jsonld=str(data / "croissant.json"))
        assert found.metadata.ctx.issues.report() == ""
        # The first files of the set; reading all takes a third of a minute (see test_croissant.py).
        seen = [record["receipts/model"].decode() for record in itertools.islice(found.records("receipts"), 200)]
        assert dict.fromkeys(seen) == dict.fromkeys(MODELS[:3])
        (files,) = (entry for entry in described["distribution"] if entry["@type"] == "cr:FileSet")
        names = [path.relative_to(data).as_posix() for path in (data / "receipts").iterdir()]
        assert len(fnmatch.filter(names, files["includes"])) == len(MODELS)

    def test_every_file_has_its_hash(self, published):
        _, data, files = published
        described = json.loads((data / "croissant.json").read_text())
        told = {entry["name"]: entry.get("sha256") for entry in described["distribution"]}
        assert {f.name: f.sha256 for f in files if f.table} == {f.name: told[f.name] for f in files if f.table}


class TestParts:
    @pytest.fixture(scope="class")
    def pages(self, published):
        """The parts of the leaderboard and of every attribute, by path."""
        view = View(published[0])
        pages = [page for page in run_pages(published[0]) if page.kind in LISTS]
        return {page.path: LISTS[page.kind](view, page) for page in pages}

    def test_each_ranked_model_stands_in_one_part_in_rank_order(self, published, pages):
        edition = published[0]
        first = paths.run_index(edition.run_id)
        parts = [first, paths.part_page(first, 2)]
        assert [page for page in pages if page in parts or "/board/" in page] == parts
        rows = [node.text() for page in parts for node in LexborHTMLParser(pages[page]).css(".board tbody th > a")]
        tiers = edition.scored.tables["tiers"].to_pylist()
        ranked = sorted((row for row in tiers if row["rank"] is not None), key=lambda row: row["rank"])
        assert rows == [row["model"] for row in ranked]
        assert len(rows) > FEW_MODELS

    def test_the_first_part_lists_every_model_by_vendor(self, published, pages):
        edition = published[0]
        tree = LexborHTMLParser(pages[paths.run_index(edition.run_id)])
        assert [node.text() for node in tree.css("#find-list li a")] == sorted(MODELS)
        assert next(node.text() for node in tree.css("#find-list summary")) == "sim-v0, 9 models"

    @pytest.mark.parametrize("attribute", ["gender", "control_tag"])
    def test_an_attribute_s_models_stand_in_its_parts(self, published, pages, attribute):
        first = paths.attribute_page(published[0].run_id, attribute)
        trees = [LexborHTMLParser(pages[page]) for page in (first, paths.part_page(first, 2))]
        rows = [node.text() for tree in trees for node in tree.css("table.cards tbody th")]
        assert sorted(rows) == sorted(MODELS)
        assert len(trees[1].css("table.cards tbody tr")) == 1
        assert [bool(tree.css_first("#concepts")) for tree in trees] == [True, False]

    def test_no_link_among_them_leads_nowhere(self, pages, tmp_path):
        for page, data in (*pages.items(), *asset_files()):
            (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / page).write_bytes(data)
        parts = [page for page in pages if "part-" in page]
        assert len(parts) == 1 + 9
        # Only these are made here.
        made = ("runs/run-a/index", "runs/run-a/board", "runs/run-a/attributes", "assets")
        assert [link for link in dead_links(tmp_path, parts) if link.file.startswith(made)] == []
