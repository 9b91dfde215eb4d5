"""The JSON Schemas: current, well formed, named by the files; a published file keeps to its own, a wrong one fails."""

from __future__ import annotations

import copy
import json
import posixpath
import tomllib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

from generator.publishing.json_schemas import made_schemas
from generator.publishing.provenance import render_publication
from generator.schema.canonical import hash_json
from generator.schema.columns import FORMATS
from generator.schema.json_schemas import schema_files
from harness.importing.map_schema import NAME, map_schema
from tests.editions import make_edition, small_bank, write_data

ROOT = Path(__file__).parent.parent
SCHEMAS = ROOT / "docs" / "schemas"
BANK = small_bank(("gender", "control_profession", "control_tag"))
FILES = ("runs/run-a/data/manifest.json", "runs/run-a/data/run_manifest.json", "runs/run-a/data/bank.json")
NAMED = (*FILES, "publication.json")


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((SCHEMAS / name).read_bytes()))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("schemas")
    edition = make_edition(folder / "run-a", bank=BANK, audit=True, base_url="https://example.org/bias")
    edition, _ = write_data(edition, folder / "site" / "runs" / "run-a" / "data")
    for name, data in [render_publication(edition, [edition], {}, "0" * 64), *schema_files()]:
        (folder / "site" / name).parent.mkdir(exist_ok=True)
        (folder / "site" / name).write_bytes(data)
    return folder / "site"


def own_schema(site: Path, name: str) -> Draft202012Validator:
    """The schema that a file names, found from where it lies on the site."""
    named = json.loads((site / name).read_bytes())["$schema"]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(name), named))
    return Draft202012Validator(json.loads((site / path).read_bytes()))


class TestFiles:
    def test_they_are_current(self):
        found = {p.name: p.read_bytes() for p in SCHEMAS.glob("*") if p.name != "run.toml.schema.json"}
        assert found == {**made_schemas(), NAME: map_schema()}, "type: make reference"

    @pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*")), ids=lambda p: p.name)
    def test_each_is_a_schema_with_a_name_of_its_own(self, path):
        schema = json.loads(path.read_bytes())
        Draft202012Validator.check_schema(schema)
        assert schema["$id"] == f"urn:aibiasbench:{path.name.removesuffix('.schema.json')}"

    def test_an_example_names_it_from_the_folder_that_it_is_copied_to(self):
        for example in (ROOT / "docs" / "examples").glob("*.toml"):
            words = example.read_text().splitlines()[0].split()
            place = posixpath.normpath(posixpath.join("content/runs/RUN", words[1]))
            assert words[0] == "#:schema"
            assert (ROOT / place).is_file()
            validator("run.toml.schema.json").validate(
                json.loads(json.dumps(tomllib.loads(example.read_text()), default=str))
            )


class TestImportMap:
    def test_the_map_of_the_guide_keeps_to_it_and_a_wrong_one_fails(self):
        guide = (ROOT / "docs" / "how-to" / "import.md").read_text()
        data = tomllib.loads(guide.split("```toml map.toml\n")[1].split("```")[0])
        data = json.loads(json.dumps(data, default=str))
        schema = validator(NAME)
        schema.validate(data)
        for wrong in ({"judges": []}, {"rubrics": {}}, {"columns": {**data["columns"], "response": 3}}, {"more": 1}):
            assert not schema.is_valid({**data, **wrong}), wrong
        assert not schema.is_valid({key: value for key, value in data.items() if key != "run"})


class TestPublished:
    @pytest.mark.parametrize("name", NAMED)
    def test_a_file_keeps_to_the_schema_that_it_names(self, site, name):
        own_schema(site, name).validate(json.loads((site / name).read_bytes()))

    @pytest.mark.parametrize("name", NAMED)
    def test_it_fails_without_a_key_with_one_too_many_and_with_another_type(self, site, name):
        data, schema = json.loads((site / name).read_bytes()), own_schema(site, name)
        optional = {"$schema", "rules", "roles"}
        for key in data.keys() - optional:
            assert not schema.is_valid({k: v for k, v in data.items() if k != key}), key
            assert not schema.is_valid({**data, key: 1.25}), key
        assert not schema.is_valid({**data, "of_no_contract": 1})

    def test_it_fails_on_a_fault_deep_inside(self, site):
        for name, path, wrong in (
            (FILES[0], ("files", 0, "sha256"), "none"),
            (FILES[0], ("run", "models", 0, "panel"), []),
            (FILES[0], ("audit", 0, "n"), "many"),
            (FILES[0], ("receipts", 0, "files"), []),
            (FILES[1], ("models", 0, "from_cache"), 1.5),
            (FILES[1], ("shards", 0, "rows"), "12"),
            (FILES[2], ("concepts", 0, "polarity"), 0),
            (FILES[2], ("rubrics", 0, "labels", 0, "value"), 2),
            ("publication.json", ("root", "mode"), "both"),
        ):
            data = json.loads((site / name).read_bytes())
            schema, place = own_schema(site, name), data
            for part in path[:-1]:
                place = place[part]
            place[path[-1]] = wrong
            assert not schema.is_valid(data), path

    def test_the_bank_hash_leaves_the_name_of_the_schema_out(self, site):
        data = json.loads((site / FILES[2]).read_bytes())
        bare = {key: value for key, value in data.items() if key not in ("$schema", "rules")}
        assert hash_json(bare) == json.loads((site / FILES[1]).read_bytes())["bank_sha256"] == BANK.sha256


def rows_of(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


class TestRows:
    def test_every_receipt_and_its_votes(self, site):
        receipt, votes = validator("receipt.2.schema.json"), validator("votes.2.schema.json")
        for path in (site / "runs/run-a/data/receipts").glob("*.parquet"):
            for row in rows_of(path):
                receipt.validate(row)
                votes.validate(row["votes"])

    def test_a_wrong_row_fails(self, site):
        receipt, votes = validator("receipt.2.schema.json"), validator("votes.2.schema.json")
        row = rows_of(site / "runs/run-a/data/receipts/sim-alpha__one.parquet")[0]
        wrong = [
            {**row, "repeat": "0"},
            {**row, "status": None},
            {**row, "more": 1},
            {**row, "votes": row["votes"] * 4},
        ]
        for name in ("judge", "key", "error"):
            vote = copy.deepcopy(row["votes"][0])
            del vote[name]
            wrong.append({**row, "votes": [vote]})
            assert not votes.is_valid([vote])
        assert [receipt.is_valid(item) for item in wrong] == [False] * len(wrong)


class TestOlderAndOtherRuns:
    def test_a_run_of_format_1_keeps_to_the_schemas_of_that_format(self):
        run = ROOT / "content" / "runs" / "local-models"
        manifest = json.loads((run / "manifest.json").read_bytes())
        assert "format" not in manifest
        validator("run-manifest.1.schema.json").validate(manifest)
        assert not validator("run-manifest.2.schema.json").is_valid(manifest)
        assert not validator("run-manifest.1.schema.json").is_valid({**manifest, "planted": None})
        validator("bank.2.schema.json").validate(json.loads((run / "bank.json").read_bytes()))
        rows = rows_of(sorted((run / "receipts").glob("*.parquet"))[0])[:200]
        for row in rows:
            validator("receipt.1.schema.json").validate(row)
        assert not validator("receipt.2.schema.json").is_valid(rows[0])
        assert FORMATS == (1, 2)
