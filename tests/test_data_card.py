"""The data card: its head as YAML readers take it, every Parquet file in one configuration, columns, hostile words."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from generator.data.data_card import card
from generator.data.folder import write_downloads
from generator.schema.tables import TABLES
from tests.editions import SITE, make_edition, small_bank, write_data

BANK = small_bank(("gender", "control_profession", "control_tag"))


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("card")
    write_data(make_edition(folder / "run-a", bank=BANK), folder / "data")
    return folder / "data"


def head_of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return found


@pytest.fixture(scope="module")
def text(data) -> str:
    return (data / "README.md").read_text()


@pytest.fixture(scope="module")
def head(text) -> dict[str, Any]:
    return head_of(text)


class TestHead:
    def test_license_language_and_mark(self, head):
        assert head["license"] == "cc-by-4.0"
        assert head["license_link"] == "https://creativecommons.org/licenses/by/4.0/"
        assert head["language"] == ["en"]
        assert "simulated" in head["tags"]
        assert head["pretty_name"].endswith("run run-a (simulated)")

    def test_every_parquet_file_with_rows_is_in_one_configuration(self, head, data):
        named = [path for c in head["configs"] for split in c["data_files"] for path in split["path"]]
        there = {p.relative_to(data).as_posix() for p in data.rglob("*.parquet") if pq.read_metadata(p).num_rows}
        assert len(named) == len(set(named))
        assert set(named) == there
        assert "human_audit.parquet" not in there  # a run without an audit: a table without rows loads nowhere

    def test_the_files_of_a_configuration_read_as_one_table(self, head, data):
        for config in head["configs"]:
            (split,) = config["data_files"]
            schemas = {tuple(pq.read_schema(data / path).names) for path in split["path"]}
            assert (split["split"], len(schemas)) == ("test", 1)

    def test_scores_are_the_default_and_receipts_of_all_models_one(self, head):
        by_name = {c["config_name"]: c for c in head["configs"]}
        assert [name for name, c in by_name.items() if c.get("default")] == ["scores"]
        assert by_name["receipts"]["data_files"][0]["path"] == [
            "receipts/sim-alpha__one.parquet",
            "receipts/sim-beta__two.parquet",
        ]

    def test_a_license_without_an_id_is_named(self, tmp_path):
        licence = SITE.data_licence.model_copy(update={"spdx": "", "name": 'Our "own": terms\n---\nx: 1'})
        site = SITE.model_copy(update={"data_licence": licence})
        edition = dataclasses.replace(make_edition(tmp_path / "run-a", bank=BANK), site=site)
        found = head_of(card(edition, write_downloads(edition, tmp_path / "data")).decode())
        assert (found["license"], found["license_name"]) == ("other", licence.name)
        assert "x" not in found


class TestBody:
    def test_a_simulated_run_says_so_first(self, text):
        body = text.split("---\n")[2]
        assert body.index("**Simulated: these answers come from programs") < body.index("## Load")

    @pytest.mark.parametrize("table", [name for name in TABLES if "audit" not in name])
    def test_every_column_has_its_row(self, text, table):
        part = text.split(f"## Columns of {table}\n")[1].split("\n## ")[0]
        assert [line.split("`")[1] for line in part.splitlines() if line.startswith("| `")] == [
            column.name for column in TABLES[table]
        ]
        assert {line.replace("\\|", "").count("|") for line in part.splitlines() if line.startswith("|")} == {6}

    def test_words_of_the_site_are_no_markdown(self, tmp_path):
        edition = make_edition(tmp_path / "run-a", bank=BANK)
        hostile = edition.site.model_copy(
            update={"data_licence": edition.site.data_licence.model_copy(update={"name": "<script> [x](y) `z`"})}
        )
        found = card(dataclasses.replace(edition, site=hostile), ()).decode()
        assert "\\<script\\> \\[x\\](y) \\`z\\`" in found

    def test_the_card_is_in_the_manifest(self, data):
        assert "README.md" in {f["name"] for f in json.loads((data / "manifest.json").read_text())["files"]}
