"""How to cite a run: CITATION.cff and BibTeX, from the manifest, with nothing that breaks either format."""

from __future__ import annotations

import dataclasses

import pytest
import yaml

from generator.data.citation import bibtex, cff, cite
from tests.editions import SITE, make_edition, small_bank


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    folder = tmp_path_factory.mktemp("citation") / "run-a"
    hostile = SITE.model_copy(update={"publisher": 'A & B: "100 %" {x}_y \\ z'})
    return make_edition(folder, bank=small_bank(("gender",)), site=hostile, base_url="https://example.org/b")


class TestCff:
    def test_it_is_yaml_with_the_runs_own_facts(self, edition):
        found = yaml.safe_load(cff(edition))
        assert found["cff-version"] == "1.2.0"
        assert found["title"] == "Test Bench: run run-a (simulated)"
        assert str(found["date-released"]) == "2026-11-30"
        assert found["authors"] == [{"name": 'A & B: "100 %" {x}_y \\ z'}]
        assert found["url"] == "https://example.org/b/runs/run-a/data/index.html"
        assert found["identifiers"][0]["value"] == f"sha256:{edition.run.manifest.bank_sha256}"

    @pytest.mark.parametrize(("spdx", "named"), [("CC-BY-4.0", {"license": "CC-BY-4.0"}), ("", {})])
    def test_the_license_has_its_spdx_id_where_it_has_one(self, edition, spdx, named):
        licence = edition.site.data_licence.model_copy(update={"spdx": spdx})
        changed = dataclasses.replace(edition, site=edition.site.model_copy(update={"data_licence": licence}))
        found = yaml.safe_load(cff(changed))
        assert {key: found[key] for key in found if key.startswith("license")} == {**named, "license-url": licence.url}

    @pytest.mark.parametrize("url", ["", "https://example.org/code"])
    def test_the_code_is_named_where_the_site_names_it(self, edition, url):
        changed = dataclasses.replace(edition, site=edition.site.model_copy(update={"code_url": url}))
        assert yaml.safe_load(cff(changed)).get("repository-code", "") == url


class TestBibtex:
    def test_special_characters_are_escaped_and_braces_balance(self, edition):
        text = bibtex(edition).decode()
        assert 'author = {{A \\& B: "100 \\%" \\{x\\}\\_y \\textbackslash  z}}' in text
        plain = text.replace("\\{", "").replace("\\}", "")
        assert plain.count("{") == plain.count("}")

    def test_the_key_and_date_are_those_of_the_run(self, edition):
        text = bibtex(edition).decode()
        assert text.startswith("@misc{test-bench-run-a,\n")
        assert "  year = {2026},\n  month = {11},\n" in text


class TestCite:
    PAGE = "runs/run-a/models/sim-alpha/one.html"

    def test_the_run_in_the_style_of_apa(self, edition):
        found = cite(edition, "runs/run-a/data/index.html")
        assert found.apa == (
            'A & B: "100 %" {x}_y \\ z. (2026, November 30). Test Bench: run run-a (simulated) (Bank version '
            f"{edition.run.manifest.bank_version}) [Data set]. https://example.org/b/runs/run-a/data/index.html"
        )
        assert found.bibtex == bibtex(edition).decode()
        assert found.url == "https://example.org/b/runs/run-a/data/index.html"

    def test_a_page_of_a_part_has_its_own_name_address_and_key(self, edition):
        found = cite(edition, self.PAGE, "sim-alpha/one")
        assert found.url == f"https://example.org/b/{self.PAGE}"
        assert "sim-alpha/one in Test Bench: run run-a (simulated) (Bank version" in found.apa
        assert found.apa.endswith(f"[Data set]. https://example.org/b/{self.PAGE}")
        assert found.bibtex.startswith("@misc{test-bench-run-a-sim-alpha-one,\n")
        assert "title = {{sim-alpha/one in Test Bench: run run-a (simulated)}}" in found.bibtex
        assert f"howpublished = {{\\url{{https://example.org/b/{self.PAGE}}}}}" in found.bibtex

    def test_without_an_address_nothing_is_made_up(self, edition):
        found = cite(dataclasses.replace(edition, base_url=None), self.PAGE)
        assert found.url is None
        assert found.apa.endswith("[Data set].")
        assert "howpublished" not in found.bibtex

    def test_a_name_that_ends_in_a_full_stop_has_one(self, edition):
        site = edition.site.model_copy(update={"publisher": "Testers Inc."})
        assert cite(dataclasses.replace(edition, site=site), "x").apa.startswith("Testers Inc. (2026")
