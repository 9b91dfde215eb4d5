"""`ro-crate-metadata.json`: the rules of RO-Crate 1.2 on its structure, and every file with its true size and hash."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from generator.data.ro_crate import metadata
from tests.editions import SITE, make_edition, small_bank, write_data

BANK = small_bank(("gender", "control_profession", "control_tag"))
NAME = "ro-crate-metadata.json"


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("crate")
    site = SITE.model_copy(update={"code_url": "https://example.org/code", "contact_url": "mailto:a@example.org"})
    edition = make_edition(folder / "run-a", bank=BANK, base_url="https://example.org/b", site=site)
    write_data(edition, folder / "data")
    return folder / "data"


@pytest.fixture
def crate(data) -> dict[str, Any]:
    return json.loads((data / NAME).read_bytes())


def references(value: Any) -> Iterator[str]:
    """Yield the ids that a value refers to."""
    if isinstance(value, dict):
        if set(value) == {"@id"}:
            yield value["@id"]
        else:
            for inner in value.values():
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def faults(crate: dict[str, Any]) -> list[str]:
    """What RO-Crate 1.2 says a crate MUST be, as far as it concerns a folder of files."""
    found = []
    graph = crate["@graph"]
    by_id = {entity["@id"]: entity for entity in graph}
    if "https://w3id.org/ro/crate/1.2/context" not in crate["@context"]:
        found.append("context")
    if len(by_id) != len(graph):
        found.append("an id twice")
    if any("@type" not in entity for entity in graph):
        found.append("an entity without a type")
    if any(isinstance(inner, dict) and "@type" in inner for e in graph for inner in e.values()):
        found.append("not flattened")
    descriptor, root = by_id.get(NAME, {}), by_id.get("./", {})
    if descriptor.get("about") != {"@id": "./"} or descriptor.get("@type") != "CreativeWork":
        found.append("no descriptor")
    if descriptor.get("conformsTo") != {"@id": "https://w3id.org/ro/crate/1.2"}:
        found.append("profile")
    found += [f"root: {key}" for key in ("name", "description", "datePublished", "license") if not root.get(key)]
    named = set(references([value for entity in graph for value in entity.values()]))
    found += [f"{name}: not in the graph" for name in sorted(named - set(by_id) - {"https://w3id.org/ro/crate/1.2"})]
    parts = {part["@id"] for part in root.get("hasPart", [])}
    files = {entity["@id"] for entity in graph if entity.get("@type") == "File"}
    return found + [f"{name}: no part of the root" for name in sorted(files - parts)]


class TestStructure:
    def test_it_follows_the_rules(self, crate):
        assert faults(crate) == []

    @pytest.mark.parametrize(
        ("spoil", "fault"),
        [
            (lambda g: g[0].update(about={"@id": "elsewhere"}), "no descriptor"),
            (lambda g: g[1].pop("license"), "root: license"),
            (lambda g: g[1]["hasPart"].pop(), "SHA256SUMS: no part of the root"),
            (lambda g: g.pop(2), "https://creativecommons.org/licenses/by/4.0/: not in the graph"),
            (lambda g: g.append(dict(g[-1])), "an id twice"),
            (lambda g: g[1].update(author={"@type": "Person", "name": "A"}), "not flattened"),
        ],
    )
    def test_the_rules_can_fail(self, crate, spoil, fault):
        changed = copy.deepcopy(crate)
        spoil(changed["@graph"])
        assert fault in faults(changed)


class TestFacts:
    def test_every_file_of_the_folder_is_in_it_with_its_size_and_hash(self, crate, data):
        files = {unquote(e["@id"]): e for e in crate["@graph"] if e["@type"] == "File"}
        own = {p.relative_to(data).as_posix() for p in data.rglob("*") if p.is_file()}
        assert set(files) == own - {NAME, "index.html"}
        for name, entity in files.items():
            if name in ("manifest.json", "SHA256SUMS"):
                assert "sha256" not in entity, name
                continue
            content = (data / name).read_bytes()
            assert (entity["contentSize"], entity["sha256"]) == (
                str(len(content)),
                hashlib.sha256(content).hexdigest(),
            ), name

    def test_the_manifest_has_the_hash_of_the_crate(self, data):
        listed = {f["name"]: f["sha256"] for f in json.loads((data / "manifest.json").read_bytes())["files"]}
        assert listed[NAME] == hashlib.sha256((data / NAME).read_bytes()).hexdigest()

    def test_the_root_is_the_run(self, crate):
        root = crate["@graph"][1]
        assert root["name"] == "Test Bench: run run-a (simulated)"
        assert root["license"] == {"@id": SITE.data_licence.url}
        assert root["url"] == "https://example.org/b/runs/run-a/data/index.html"
        assert root["inLanguage"] == "en"

    def test_whom_to_ask_and_the_program_are_named_where_the_site_names_them(self, crate, tmp_path):
        by_id = {entity["@id"]: entity for entity in crate["@graph"]}
        assert by_id["#publisher"]["contactPoint"] == {"@id": "mailto:a@example.org"}
        assert by_id["#aibiasbench"]["url"] == "https://example.org/code"
        bare = json.loads(metadata(make_edition(tmp_path / "run-a", bank=BANK), ()))
        assert {e["@type"] for e in bare["@graph"]} == {"CreativeWork", "Dataset", "Organization", "File"}
        assert faults(bare) == []
