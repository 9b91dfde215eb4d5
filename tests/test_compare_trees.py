"""The comparison of two trees, by which a change that only moves code is told from one that does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.compare_trees import differences, main


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("old", "new"):
        (tmp_path / name / "runs").mkdir(parents=True)
        (tmp_path / name / "runs/page.html").write_text("one")
        record = {"root": {"sources": name, "mode": "row"}}
        (tmp_path / name / "publication.json").write_text(json.dumps(record))
    return tmp_path / "old", tmp_path / "new"


def test_equal_trees_differ_in_nothing_but_the_hash_of_the_source(trees):
    assert differences(*trees) == []
    assert main(*map(str, trees)) == 0


def test_a_changed_byte_a_lost_file_and_a_new_one_are_named(trees):
    old, new = trees
    (new / "runs/page.html").write_text("two")
    (old / "gone.html").write_text("")
    (new / "come.html").write_text("")
    expected = {f"only in {new}: come.html", f"only in {old}: gone.html", "differs: runs/page.html"}
    assert set(differences(old, new)) == expected
    assert main(str(old), str(new)) == 1


def test_another_change_of_publication_json_counts(trees):
    (trees[1] / "publication.json").write_text(json.dumps({"root": {"sources": "new", "mode": "folded"}}))
    assert differences(*trees) == ["differs: publication.json"]
