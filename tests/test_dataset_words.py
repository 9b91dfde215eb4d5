"""What a data set is said to be: first what it is, then simulated, preview or in part, and what speaks against it."""

from __future__ import annotations

import dataclasses
import json

import pytest

from generator.data import croissant, datapackage
from generator.data.citation import title
from generator.data.description import description, keywords, times
from generator.pages.data import schema_org
from generator.scoring.gate import Standing
from generator.scoring.reasons import AuditMissing, AuditTooSmall, RowsAbsent
from tests.editions import make_edition, small_bank

PREVIEW = Standing("preview", (RowsAbsent(missing={"a/b": 1372}), AuditMissing()))


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words") / "run-a"
    edition = make_edition(folder, bank=small_bank(("gender", "control_tag")))
    return dataclasses.replace(edition, standing=Standing("published", ()))


@pytest.fixture
def live(simulated):
    """The same run as if real models had answered and nothing spoke against it."""
    manifest = simulated.run.manifest.model_copy(update={"kind": "live"})
    return dataclasses.replace(simulated, run=dataclasses.replace(simulated.run, manifest=manifest))


def whole(edition):
    """The description's part on what the data set is, which opens it whatever its mark."""
    models = "simulated models" if edition.simulated else "language models"
    return (
        f"96 answers of 2 {models} to prompts that come in matched sets, alike but for one group term, each asked 2 "
        "times; the votes of a panel of judges that did not see the group; and the scores computed from them. Run "
        f"run-a of 2026-11-30, prompt bank 0.0.1 (SHA-256 {edition.run.manifest.bank_sha256})."
    )


class TestDescription:
    def test_a_publication_says_what_it_is_and_no_more(self, live):
        assert description(live) == whole(live)

    def test_a_simulated_run_says_what_it_is_and_then_that_it_is_simulated(self, simulated):
        assert description(simulated) == (
            f"{whole(simulated)} Simulated: no real model was asked; answers and votes come from programs with planted "
            "biases and say nothing about any real model."
        )

    def test_a_preview_gives_its_reasons_as_a_sentence(self, live):
        preview = dataclasses.replace(live, standing=PREVIEW)
        assert description(preview) == (
            f"{whole(live)} Preview, not a result: these scores may not be published yet. What speaks against it: "
            "1,372 planned rows are absent (a/b 1,372); the human audit is missing (audit.csv)."
        )

    def test_a_publication_in_part_names_what_it_lacks(self, live):
        part = dataclasses.replace(
            live, standing=Standing("withheld", (AuditTooSmall(rows=7),), frozenset({"stance", "regard"}))
        )
        assert description(part).endswith(
            "Left out of every score: regard, stance. What speaks against it: "
            "the human audit has 7 rows; at least 100 are needed."
        )

    def test_every_catalog_says_the_same(self, live):
        for standing in (live.standing, PREVIEW):
            edition = dataclasses.replace(live, standing=standing)
            package = json.loads(datapackage.descriptor(edition, []))
            assert json.loads(croissant.descriptor(edition, []))["description"] == description(edition)
            assert package["description"].startswith(description(edition))
            assert package["keywords"] == keywords(edition)
            assert schema_org(edition, [])["description"] == description(edition)


class TestMark:
    @pytest.mark.parametrize(("standing", "mark"), [(Standing("published", ()), ""), (PREVIEW, "preview")])
    def test_a_live_run_is_marked_where_it_is_no_result(self, live, standing, mark):
        edition = dataclasses.replace(live, standing=standing)
        assert title(edition) == f"Test Bench: run run-a{f' ({mark})' if mark else ''}"
        assert ("preview" in keywords(edition)) == bool(mark)

    def test_a_simulated_run_is_marked_so_in_any_standing(self, simulated):
        for standing in (simulated.standing, PREVIEW):
            edition = dataclasses.replace(simulated, standing=standing)
            assert (title(edition), keywords(edition)[-1]) == ("Test Bench: run run-a (simulated)", "simulated")


class TestTimes:
    @pytest.mark.parametrize(
        ("repeats", "absent", "words"), [(1, 5, "once"), (3, 0, "3 times"), (3, 5, "up to 3 times")]
    )
    def test_absent_rows_make_it_a_most(self, live, repeats, absent, words):
        manifest = live.run.manifest.model_copy(update={"repeats": repeats})
        run = dataclasses.replace(live.run, manifest=manifest, absent={"sim-alpha/one": absent})
        assert times(dataclasses.replace(live, run=run)) == words
