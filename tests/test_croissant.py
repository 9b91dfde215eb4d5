"""Metadata for machines: mlcroissant loads every record, and no changed byte; Frictionless validates every CSV."""

from __future__ import annotations

import dataclasses
import json
import logging
import re
import shutil
from pathlib import Path
from urllib.request import urlopen

import mlcroissant
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from etils import epath
from frictionless import Package, system
from mlcroissant._src.core.issues import GenerationError

from generator.data.croissant import descriptor
from generator.data.csv_text import csv_bytes
from generator.data.datapackage import field_type
from generator.schema.canonical import sha256_hex
from generator.schema.columns import RECEIPT_COLUMNS, VOTE_FIELDS, Column
from generator.schema.manifest import Imported
from generator.schema.tables import TABLES
from tests.editions import make_edition, small_bank, write_data
from tests.serving import served_folder

# mlcroissant, rdflib and Frictionless use what their own dependencies will drop; none of it is ours.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
MODEL_SET = "receipts/sim-alpha__one"


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("croissant")
    edition = make_edition(folder / "run-a", bank=small_bank(("gender", "control_tag")))
    write_data(edition, folder / "data")
    return folder / "data"


@pytest.fixture(scope="module")
def dataset(data):
    return mlcroissant.Dataset(jsonld=str(data / "croissant.json"))


def plain(record: dict, prefix: str) -> dict:
    """A record with the record set's name off its keys, texts as texts."""
    return {key.removeprefix(f"{prefix}/"): v.decode() if isinstance(v, bytes) else v for key, v in record.items()}


class TestCroissant:
    def test_the_metadata_has_neither_errors_nor_warnings(self, data, caplog):
        with caplog.at_level(logging.WARNING):
            found = mlcroissant.Dataset(jsonld=str(data / "croissant.json"))
        assert found.metadata.ctx.issues.report() == ""
        assert [r.message for r in caplog.records if "croissant" in r.name.lower() or "@context" in r.message] == []

    def test_it_conforms_to_croissant_1_1_and_the_rai_vocabulary(self, data):
        described = json.loads((data / "croissant.json").read_text())
        assert described["conformsTo"] == [
            "http://mlcommons.org/croissant/1.1",
            "http://mlcommons.org/croissant/RAI/1.0",
        ]
        assert described["license"] == [
            "https://spdx.org/licenses/CC-BY-4.0.html",
            "https://creativecommons.org/licenses/by/4.0/",
        ]

    def test_the_rai_fields_are_read_as_such(self, dataset):
        metadata = dataset.metadata
        assert metadata.data_collection_type == ["Simulated answers"]
        assert metadata.machine_annotation_tools == ["sim-judge-a/one", "sim-judge-b/two", "sim-judge-c/three"]
        for name in (
            "data_annotation_protocol",
            "data_limitations",
            "data_biases",
            "data_use_cases",
            "data_social_impact",
        ):
            assert getattr(metadata, name), name

    def test_a_simulated_run_says_so(self, dataset):
        assert "simulated" in dataset.metadata.keywords
        description = str(dataset.metadata.description)
        assert description.startswith("96 answers of 2 simulated models to prompts")
        assert "Simulated: no real model was asked" in description

    @pytest.mark.parametrize("name", [*TABLES, "bootstrap_weights/gender", "bootstrap_weights/control_tag"])
    def test_every_row_of_every_table_is_a_record(self, dataset, data, name):
        expected = pq.read_table(data / f"{name}.parquet").to_pylist()
        records = [plain(r, name) for r in dataset.records(name)]
        assert len(records) == len(expected)
        assert records == expected

    def test_every_parquet_file_has_its_record_set(self, data):
        described = json.loads((data / "croissant.json").read_text())
        names = {p.relative_to(data).with_suffix("").as_posix() for p in data.rglob("*.parquet")}
        assert {r["@id"] for r in described["recordSet"]} == {*names, "receipts"}

    def test_the_receipts_of_all_models_are_one_record_set_too(self, dataset, data):
        files = sorted((data / "receipts").glob("*.parquet"))
        expected = [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]
        records = [plain(r, "receipts") for r in dataset.records("receipts")]
        assert [(r["model"], r["receipt_id"]) for r in records] == [(r["model"], r["receipt_id"]) for r in expected]

    def test_every_receipt_is_a_record_with_its_votes_and_spans(self, dataset, data):
        expected = pq.read_table(data / f"{MODEL_SET}.parquet").to_pylist()
        records = [plain(r, MODEL_SET) for r in dataset.records(MODEL_SET)]
        assert len(records) == len(expected)
        for record, row in zip(records, expected, strict=True):
            assert record["response"] == row["response"]
            assert record["value"] == row["value"]
            votes = [{k.rpartition("/")[2]: v for k, v in vote.items()} for vote in record["votes"]]
            labels = [v["label"] if v["label"] is None else v["label"].decode() for v in votes]
            assert labels == [v["label"] for v in row["votes"]]
            assert set(votes[0]) == {c.name for c in VOTE_FIELDS}
            spans = [{k.rpartition("/")[2]: v for k, v in span.items()} for span in record["mask_spans"]]
            assert spans == row["mask_spans"]

    def test_every_column_is_a_field(self, data):
        described = json.loads((data / "croissant.json").read_text())
        sets = {r["@id"]: [f["name"] for f in r["field"]] for r in described["recordSet"]}
        assert sets["scores"] == [c.name for c in TABLES["scores"]]
        assert sets[MODEL_SET] == [c.name for c in RECEIPT_COLUMNS]

    @pytest.mark.parametrize(("name", "records"), [("scores.parquet", "scores"), (f"{MODEL_SET}.parquet", MODEL_SET)])
    def test_a_flipped_byte_is_named(self, data, tmp_path, name, records):
        copy = shutil.copytree(data, tmp_path / "copy")
        body = bytearray((copy / name).read_bytes())
        body[len(body) // 3] ^= 1
        (copy / name).write_bytes(body)
        with pytest.raises(GenerationError, match=re.escape(name)) as error:
            list(mlcroissant.Dataset(jsonld=str(copy / "croissant.json")).records(records))
        assert "Hash of downloaded file" in str(error.value.__cause__)

    def test_an_unusual_bank_version_still_gives_a_valid_one(self, tmp_path):
        from generator.data.croissant import descriptor
        from tests.factories import make_bank

        bank = make_bank(("gender",), groups=2, quota={"stance": 1}, version="draft 2")
        edition = make_edition(tmp_path / "run-a", bank=bank)
        assert json.loads(descriptor(edition, ()))["version"] == "0.0.0+draft-2"


class TestOverHttp:
    @pytest.fixture(scope="class")
    def address(self, tmp_path_factory):
        """The metadata at the address that the site says it has."""
        folder = tmp_path_factory.mktemp("served")
        with served_folder(folder) as base:
            edition = make_edition(folder / "run-a", bank=small_bank(("gender", "control_tag")), base_url=base)
            write_data(edition, folder / "runs" / "run-a" / "data")
            yield f"{base}/runs/run-a/data"

    @pytest.fixture
    def _own_downloads(self, tmp_path, monkeypatch):
        """Nothing that was fetched from another port before."""
        monkeypatch.setattr("mlcroissant._src.core.constants.DOWNLOAD_PATH", epath.Path(tmp_path))

    @pytest.mark.usefixtures("_own_downloads")
    @pytest.mark.parametrize("name", ["scores", "tiers", MODEL_SET, "bootstrap_weights/gender"])
    def test_its_records_load_from_its_address_alone(self, address, name):
        found = mlcroissant.Dataset(jsonld=f"{address}/croissant.json")
        records = list(found.records(name))
        served = urlopen(f"{address}/{name}.parquet").read()
        assert len(records) == pq.read_metadata(pa.BufferReader(served)).num_rows > 0

    def test_every_address_in_it_answers_with_the_bytes_of_its_hash(self, address):
        described = json.loads(urlopen(f"{address}/croissant.json").read())
        assert described["url"] == f"{address}/index.html"
        assert len(described["distribution"]) > 30
        for file in (entry for entry in described["distribution"] if entry["@type"] == "cr:FileObject"):
            assert file["contentUrl"] == f"{address}/{file['name']}"
            assert sha256_hex(urlopen(file["contentUrl"]).read()) == file["sha256"]

    def test_verify_takes_addresses_of_the_site_and_no_other(self, address, tmp_path):
        from generator.reading import load
        from generator.verify.data import verify_data

        folder = load(address, cache=tmp_path / "cache").save(tmp_path / "data")
        assert verify_data(folder)[0].mismatches == []
        path = folder / "croissant.json"
        path.write_text(path.read_text().replace("/data/tiers.parquet", "/data/scores.parquet"))
        found = [m.key for m in verify_data(folder)[0].mismatches if m.file == "croissant.json"]
        assert "contentUrl of tiers.parquet" in found


class TestDataPackage:
    @pytest.fixture(scope="class")
    def package(self, data):
        return Package(str(data / "datapackage.json"))

    def test_every_csv_is_valid_with_its_hash_size_and_types(self, package):
        report = package.validate()
        assert report.flatten(["path", "type", "message"]) == []
        assert report.stats["tasks"] == 10 + 2 + 2

    def test_a_flipped_digit_fails(self, data, tmp_path):
        copy = shutil.copytree(data, tmp_path / "copy")
        path = copy / "csv" / "cells.csv"
        path.write_text(path.read_text().replace("0.5", "0.6", 1))
        with system.use_context(trusted=True):
            report = Package(str(copy / "datapackage.json")).validate()
        assert {e[1] for e in report.flatten(["path", "type"])} == {"hash-count"}

    def test_keys_tell_rows_apart_and_lead_to_rows(self, data, tmp_path):
        copy = shutil.copytree(data, tmp_path / "copy")
        first = (copy / "csv" / "judges.csv").read_text().splitlines(keepends=True)[1]
        with (copy / "csv" / "judges.csv").open("a") as file:
            file.write(first)
        tiers = copy / "csv" / "tiers.csv"
        tiers.write_text(tiers.read_text().replace("sim-beta/two", "sim-beta/other"))
        with system.use_context(trusted=True):
            report = Package(str(copy / "datapackage.json")).validate()
        found = {(task.name, error.type) for task in report.tasks for error in task.errors}
        assert {name for name, kind in found if kind == "primary-key"} == {"judges"}
        assert {name for name, kind in found if kind == "foreign-key"} == {
            "cells", "disparities", "refusal_tests", "comparisons", "receipts/sim-beta__two",
        }  # fmt: skip

    def test_every_table_but_the_weights_has_a_key(self, data):
        resources = json.loads((data / "datapackage.json").read_text())["resources"]
        assert [r["name"] for r in resources if "primaryKey" not in r["schema"]] == [
            "bootstrap_weights/control_tag",
            "bootstrap_weights/gender",
        ]

    def test_it_says_which_fields_are_guarded_and_how(self, data):
        described = json.loads((data / "datapackage.json").read_text())
        receipts = next(r for r in described["resources"] if r["name"] == MODEL_SET)
        guarded = {f["name"] for f in receipts["schema"]["fields"] if f.get("guarded")}
        assert {"response", "prompt", "judge_1_evidence"} <= guarded
        assert guarded & {"receipt_id", "repeat", "value", "judge_1_judge"} == set()
        for mark in described["formulaGuard"]["before"]:
            text = csv_bytes(pa.table({"t": [f"{mark}x"]}), (Column("t", pa.string(), "A text."),)).decode()
            assert text.replace('"', "") == f"t\n'{mark}x\n"
        assert set(described["formulaGuard"]["before"]) == {
            mark for mark in map(chr, range(0x250))
            if "'" in csv_bytes(pa.table({"t": [f"{mark}x"]}), (Column("t", pa.string(), "A text."),)).decode()
        }  # fmt: skip

    def test_rows_read_back_as_the_parquet_has_them(self, package, data):
        rows = package.get_resource("scores").read_rows()
        expected = pq.read_table(data / "scores.parquet").to_pylist()
        assert [float(r["estimate"]) if r["estimate"] is not None else None for r in rows] == [
            r["estimate"] for r in expected
        ]
        assert [r["flag"] for r in rows] == [r["flag"] for r in expected]

    def test_the_license_has_its_id(self, package):
        assert package.licenses == [
            {"name": "CC-BY-4.0", "title": "CC BY 4.0", "path": "https://creativecommons.org/licenses/by/4.0/"}
        ]

    def test_units_and_null_meanings_are_said(self, data):
        resources = json.loads((data / "datapackage.json").read_text())["resources"]
        fields = {f["name"]: f for f in next(r for r in resources if r["name"] == "scores")["schema"]["fields"]}
        assert fields["estimate"]["unit"] == "points, or % for rates"
        assert fields["p"]["null"] == "neither such row, or no p"

    def test_types_of_the_table_schema(self):
        columns = {c.name: field_type(c.type) for c in TABLES["cells"]}
        assert (columns["mean_value"], columns["n_scored"], columns["unanimous"], columns["group"]) == (
            "number",
            "integer",
            "boolean",
            "string",
        )


class TestWordsOfTheRun:
    @pytest.fixture(scope="class")
    def edition(self, tmp_path_factory):
        return make_edition(tmp_path_factory.mktemp("words") / "run-a", bank=small_bank(("gender", "control_tag")))

    def imported(self, edition, *not_done):
        source = Imported(collected_by="A lab", source="a log", matched_by="word", not_done=not_done)
        manifest = edition.run.manifest.model_copy(update={"imported": source})
        return dataclasses.replace(edition, run=dataclasses.replace(edition.run, manifest=manifest))

    def test_an_own_run_says_how_it_was_masked_and_labeled(self, edition):
        found = json.loads(descriptor(edition, ()))
        assert "[PERSON]" in found["rai:dataPreprocessingProtocol"][0]
        assert found["rai:dataAnnotationProtocol"][1].endswith("No judge labels a model of its own vendor.")
        assert found["rai:annotationsPerItem"] == "2 or 3"

    def test_an_imported_run_claims_nothing_that_was_not_done(self, edition):
        found = json.loads(descriptor(self.imported(edition, "masking", "second_judge"), ()))
        assert found["rai:dataCollection"].startswith("Another program collected the answers")
        assert found["rai:dataPreprocessingProtocol"] == ["None: nothing was masked."]
        assert found["rai:dataAnnotationProtocol"] == ["One judge labels each response."]
        assert found["rai:annotationsPerItem"] == "1"
        both = json.loads(descriptor(self.imported(edition), ()))
        assert both["rai:dataAnnotationProtocol"][1] == "Without two equal votes the row is contested."
        assert "[PERSON]" in both["rai:dataPreprocessingProtocol"][0]

    def test_the_language_is_that_of_the_site(self, edition):
        site = edition.site.model_copy(update={"language": "de"})
        found = json.loads(descriptor(dataclasses.replace(edition, site=site), ()))
        assert found["@context"]["@language"] == "de"
        assert found["inLanguage"] == edition.run.bank.rules.language
