"""The search index: only prose, models, attributes and concepts, the same bytes each time, failures in plain words."""

from __future__ import annotations

import gzip
import json

import pytest

from generator.pages import search as search_index
from generator.pages.search import search_files, write_search
from generator.schema.errors import ToolError


def write_tree(folder, *, backwards=False):
    pages = {
        "methodology/index.html": "kappaword",
        "runs/r/models/v/n.html": "modelword",
        "runs/r/attributes/age.html": "attributeword",
        "runs/r/concepts/c.html": "conceptword",
        "runs/r/receipts/v/n/index.html": "receiptword",
        "runs/r/receipts/v/n/c/direct.g.0.html": "rowword",
        "runs/r/data/index.html": "dataword",
    }
    for name, word in sorted(pages.items(), reverse=backwards):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'<!doctype html><html lang="en"><head><title>{word}</title></head><body><nav>menuword</nav>'
            f"<main data-pagefind-body><h1>{word}</h1><p>{word} text</p><details>folded</details></main></body></html>"
        )
    return folder


def words(folder):
    """Everything that the fragments hold."""
    return b" ".join(gzip.decompress(p.read_bytes()) for p in sorted((folder / "pagefind/fragment").iterdir())).decode()


def tree_bytes(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in (folder / "pagefind").rglob("*") if p.is_file()}


def test_prose_models_attributes_and_concepts_are_indexed(tmp_path):
    write_search(write_tree(tmp_path))
    found = words(tmp_path)
    assert all(word in found for word in ("kappaword", "modelword", "attributeword", "conceptword"))


def test_pages_of_a_run_are_known_by_run_and_title_before_they_are_read(tmp_path):
    write_search(write_tree(tmp_path))
    known = json.loads((tmp_path / "pagefind/known.json").read_bytes())
    titles = {}
    for hit, (run, title) in known.items():
        page = json.loads(gzip.decompress((tmp_path / f"pagefind/fragment/{hit}.pf_fragment").read_bytes())[12:])
        titles[page["url"]] = (run, title)
    assert titles == {
        "/runs/r/models/v/n.html": ("r", "modelword"),
        "/runs/r/attributes/age.html": ("r", "attributeword"),
        "/runs/r/concepts/c.html": ("r", "conceptword"),
    }


def test_receipts_data_and_navigation_are_not(tmp_path):
    write_search(write_tree(tmp_path))
    found = words(tmp_path)
    assert [w for w in ("receiptword", "rowword", "dataword", "menuword", "folded") if w in found] == []
    assert len(list((tmp_path / "pagefind/fragment").iterdir())) == 4


def test_same_pages_same_bytes(tmp_path):
    write_search(write_tree(tmp_path / "a"))
    # Listed the other way round by a file system that lists what is new first, and by none in the order of names.
    write_search(write_tree(tmp_path / "b", backwards=True))
    assert tree_bytes(tmp_path / "a") == tree_bytes(tmp_path / "b")


def test_ready_made_interfaces_are_left_out(tmp_path):
    write_search(write_tree(tmp_path))
    assert not [name for name in tree_bytes(tmp_path) if "ui" in name or "highlight" in name]
    assert (tmp_path / "pagefind/pagefind.js").is_file()


def test_what_is_made_is_what_is_written(tmp_path):
    tree = write_tree(tmp_path)
    made = dict(search_files(tree))
    assert not (tree / "pagefind").exists()
    write_search(tree)
    assert made == tree_bytes(tree)


def test_a_tree_without_pages_is_refused(tmp_path):
    with pytest.raises(ToolError, match="has no page to index"):
        write_search(tmp_path / "nothing-here")


def test_a_failure_is_said_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(search_index, "_CONFIG", {"exclude_selectors": 7})
    with pytest.raises(ToolError, match=r"the search index could not be written \(pagefind\): \S+") as error:
        write_search(write_tree(tmp_path))
    assert "\n" not in str(error.value)
