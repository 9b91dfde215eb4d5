"""A run of more models than a page shows well: what lists all of them is cut or written short, and nothing is lost."""

from __future__ import annotations

import json
from collections import Counter

import mlcroissant
import pyarrow.parquet as pq
import pytest

from generator.edition import paths
from generator.edition.edition import FEW_MODELS
from generator.html.links import page_links
from tests.editions import make_edition, small_bank, write_data

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
MODELS = tuple(sorted(f"sim-v{i % 7}/m{i:02d}" for i in range(FEW_MODELS + 1)))


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The edition, its data folder and the files of it."""
    folder = tmp_path_factory.mktemp("many")
    bank = small_bank(("gender", "control_tag"))
    edition = make_edition(folder / "run-a", bank=bank, models=MODELS, resamples=40)
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
        counts = Counter(record["receipts/model"].decode() for record in found.records("receipts"))
        files = [pq.read_table(path, columns=["model"]) for path in (data / "receipts").glob("*.parquet")]
        assert counts == {table["model"][0].as_py(): table.num_rows for table in files}
        assert len(counts) == len(MODELS)

    def test_every_file_has_its_hash(self, published):
        _, data, files = published
        described = json.loads((data / "croissant.json").read_text())
        told = {entry["name"]: entry.get("sha256") for entry in described["distribution"]}
        described_later = {"DATA_DICTIONARY.html", "datapackage.json", "croissant.json", "manifest.json", "SHA256SUMS"}
        assert {f.name: f.sha256 for f in files if f.name not in described_later} == {
            name: sha for name, sha in told.items() if sha
        }
