"""Scores kept between publishes: the same to the bit, and made anew whenever anything that they rest on differs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from generator.publishing.kept_scores import kept_scored
from generator.scoring.run import score_run
from tests.editions import make_edition, small_bank

CODE = "this code"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept") / "run-a"
    return make_edition(folder, bank=small_bank(("gender", "control_tag")), audit=True, resamples=20).run


@pytest.fixture
def made():
    """How often scores were made, by what was withheld."""
    return []


@pytest.fixture
def kept(tmp_path, made):
    """Ask for the scores of a run, of some code, with some categories withheld."""

    def ask(run, code=CODE, withheld=frozenset()):
        def make():
            made.append(sorted(withheld))
            return score_run(run, withheld=withheld, resamples=20)

        return kept_scored(run, withheld, code, tmp_path / "scores", make)

    return ask


class TestKept:
    @pytest.mark.parametrize("withheld", [frozenset(), frozenset({"stance"})])
    def test_they_are_made_once_and_are_what_was_made(self, run, kept, made, withheld):
        expected = score_run(run, withheld=withheld, resamples=20)
        for found in (kept(run, withheld=withheld), kept(run, withheld=withheld)):
            assert found.tables.keys() == expected.tables.keys()
            for name, table in expected.tables.items():
                assert found.tables[name].equals(table, check_metadata=True), name
            assert found.weights.keys() == expected.weights.keys()
            for name, counts in expected.weights.items():
                assert found.weights[name].dtype == counts.dtype
                assert np.array_equal(found.weights[name], counts)
            plain = dataclasses.replace(found, tables=expected.tables, weights=expected.weights)
            assert plain == expected
        assert made == [sorted(withheld)]

    def test_whole_and_in_part_do_not_displace_each_other(self, run, kept, made):
        for _ in range(2):
            kept(run)
            kept(run, withheld=frozenset({"stance"}))
        assert made == [[], ["stance"]]


class TestMadeAnew:
    def test_by_other_code(self, run, kept, made):
        kept(run)
        kept(run, code="other code")
        assert len(made) == 2

    def test_of_another_shard_or_audit_or_without_one(self, run, kept, made):
        manifest = run.manifest
        shards = tuple(shard.model_copy(update={"sha256": "0" * 64}) for shard in manifest.shards)
        other = dataclasses.replace(run, manifest=manifest.model_copy(update={"shards": shards}))
        for number, each in enumerate((run, other, dataclasses.replace(run, audit=None)), 1):
            kept(each)
            assert len(made) == number

    def test_with_other_categories_withheld(self, run, kept, made):
        kept(run, withheld=frozenset({"stance"}))
        kept(run, withheld=frozenset({"allocation"}))
        assert made == [["stance"], ["allocation"]]

    @pytest.mark.parametrize(
        "damage", [lambda data: data[:-7], lambda data: data[:200] + b"x" + data[201:], lambda _: b""]
    )
    def test_where_the_file_is_damaged(self, run, kept, made, tmp_path, damage):
        kept(run)
        (file,) = (tmp_path / "scores").iterdir()
        file.write_bytes(damage(file.read_bytes()))
        kept(run)
        kept(run)
        assert len(made) == 2
