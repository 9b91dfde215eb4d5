"""The notebooks of the Data page: well formed, without outputs, and run cell by cell against a served site."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest

import generator.reading
from generator.data.notebooks import FOLDER, NAMES, notebooks
from generator.schema.errors import InputError
from tests.editions import make_edition, small_bank, write_data
from tests.serving import served_folder

BANK = small_bank()
FIRST = {BANK.groups_of(attribute.id)[0].id for attribute in BANK.attributes}
# What nbformat 4.5 requires of a notebook of Markdown and code cells.
_SOURCE = {"source": {"type": "array", "items": {"type": "string"}}, "metadata": {"type": "object"}}
_ID = {"id": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"}}
_MARKDOWN = {
    "required": ["id", "cell_type", "metadata", "source"],
    "properties": {**_ID, "cell_type": {"const": "markdown"}, **_SOURCE},
    "additionalProperties": False,
}
_CODE = {
    "required": [*_MARKDOWN["required"], "outputs", "execution_count"],
    "properties": {
        **_ID,
        "cell_type": {"const": "code"},
        **_SOURCE,
        "outputs": {"maxItems": 0},
        "execution_count": {"type": "null"},
    },
    "additionalProperties": False,
}
NOTEBOOK = {
    "required": ["metadata", "nbformat", "nbformat_minor", "cells"],
    "properties": {
        "metadata": {
            "required": ["kernelspec", "language_info"],
            "properties": {
                "kernelspec": {"required": ["name", "display_name"]},
                "language_info": {"required": ["name"]},
            },
        },
        "nbformat": {"const": 4},
        "nbformat_minor": {"const": 5},
        "cells": {"type": "array", "minItems": 1, "items": {"oneOf": [_MARKDOWN, _CODE]}},
    },
    "additionalProperties": False,
}


def book(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / name).read_bytes())


def code_of(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(cell["id"], "".join(cell["source"])) for cell in found["cells"] if cell["cell_type"] == "code"]


def unlike(model: str, concept: str, framing: str, group: str, repeat: int) -> Any:
    """One model answers every group alike, the other one of them always otherwise."""
    value = float(model == "sim-beta/two" and group in FIRST)
    return (value, value)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A site with one run at the address that its files name: (data folder, address of the site)."""
    folder = tmp_path_factory.mktemp("notebooks")
    (folder / "site").mkdir()
    with served_folder(folder / "site") as address:
        edition = make_edition(folder / "run-a", bank=BANK, base_url=address, answers=unlike)
        data = folder / "site" / "runs" / "run-a" / "data"
        write_data(edition, data)
        yield data, address


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """The door for Python under the name that an installation gives it, with a cache of its own."""
    monkeypatch.setitem(sys.modules, "aibiasbench", generator.reading)
    monkeypatch.setenv("AIBIASBENCH_CACHE", str(tmp_path / "cache"))


def run_cells(path: Path) -> dict[str, Any]:
    """Run the code cells of a notebook one after the other in one namespace, as Jupyter does."""
    space: dict[str, Any] = {"__name__": "__main__"}
    for cell, source in code_of(json.loads(path.read_bytes())):
        exec(compile(source, f"{path.name}: {cell}", "exec"), space)
    return space


class TestSources:
    def test_the_folder_holds_those_that_are_published(self):
        assert sorted(p.name for p in FOLDER.iterdir()) == sorted(NAMES)

    @pytest.mark.parametrize("name", NAMES)
    def test_each_is_a_notebook_without_outputs(self, name):
        found = book(name)
        jsonschema.Draft7Validator(NOTEBOOK).validate(found)
        ids = [cell["id"] for cell in found["cells"]]
        assert len(set(ids)) == len(ids)
        assert found["cells"][0]["source"][0].startswith("# ")

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda b: b["cells"][1].pop("outputs"),
            lambda b: b["cells"][1].update(outputs=[{"output_type": "stream", "name": "stdout", "text": ["x"]}]),
            lambda b: b["cells"][1].update(execution_count=3),
            lambda b: b["cells"][0].pop("id"),
            lambda b: b.update(nbformat_minor=2),
        ],
    )
    def test_what_is_required_can_fail(self, spoil):
        found = copy.deepcopy(book(NAMES[0]))
        spoil(found)
        assert not jsonschema.Draft7Validator(NOTEBOOK).is_valid(found)

    @pytest.mark.parametrize("name", NAMES)
    def test_each_reads_as_the_repository_holds_it_and_is_written_alike(self, name):
        data = (FOLDER / name).read_bytes()
        assert data.decode() == json.dumps(json.loads(data), indent=1, ensure_ascii=False) + "\n"


class TestPublished:
    def test_only_the_address_is_another(self, served):
        data, address = served
        for name in NAMES:
            found, source = json.loads((data / "notebooks" / name).read_bytes()), book(name)
            (changed,) = [(a, b) for a, b in zip(found["cells"], source["cells"], strict=True) if a != b]
            assert changed[0]["source"][-1] == f'ADDRESS = "{address}/runs/run-a/data"'
            assert changed[1]["source"][-1] == 'ADDRESS = ".."'
            assert {k: v for k, v in found.items() if k != "cells"} == {k: v for k, v in source.items() if k != "cells"}

    def test_without_an_address_they_are_the_sources(self, tmp_path):
        found = notebooks(make_edition(tmp_path / "run-a", bank=BANK))
        assert [book.data for book in found] == [(FOLDER / name).read_bytes() for name in NAMES]
        assert [book.heading for book in found] == [
            "Which models differ?",
            "The answers behind a number",
            "Recompute it",
        ]

    def test_the_manifest_names_them(self, served):
        listed = {entry["name"] for entry in json.loads((served[0] / "manifest.json").read_bytes())["files"]}
        assert {f"notebooks/{name}" for name in NAMES} <= listed


@pytest.mark.usefixtures("installed")
class TestRunOverHttp:
    def test_which_models_differ(self, served, capsys):
        space = run_cells(served[0] / "notebooks" / "which-models-differ.ipynb")
        rows = pq.read_table(served[0] / "comparisons.parquet").to_pylist()
        differ = {(r["model_a"], r["model_b"]) for r in rows if r["attribute"] == "overall" and r["p_within"] < 0.05}
        assert differ == {("sim-alpha/one", "sim-beta/two")}
        assert set(zip(space["differ"]["model_a"], space["differ"]["model_b"], strict=True)) == differ
        by_attribute = [r for r in rows if r["attribute"] != "overall" and r["p_all"] < 0.05]
        assert len(space["differ_by_attribute"]) == len(by_attribute)
        out = capsys.readouterr().out
        assert (
            f"pairs of models that differ overall: {len(differ)} of {sum(r['attribute'] == 'overall' for r in rows)}"
            in out
        )
        assert str(space["run"]).endswith(f"{served[1]}/runs/run-a/data>")

    def test_the_answers_behind_a_number(self, served, capsys):
        space = run_cells(served[0] / "notebooks" / "the-answers-behind-a-number.ipynb")
        rows = pq.read_table(served[0] / "receipts" / "sim-alpha__one.parquet").to_pylist()
        disparities = pq.read_table(served[0] / "disparities.parquet").to_pylist()
        own = [r for r in disparities if r["model"] == "sim-alpha/one" and r["attribute"] == space["attribute"]]
        largest = max(r["disparity"] for r in own if r["disparity"] is not None)
        assert space["behind"]["disparity"].iloc[0] == largest
        answers = [r for r in rows if r["concept"] == space["concept"]]
        assert space["answers"]["response"].tolist() == [r["response"] for r in answers]
        out = capsys.readouterr().out
        assert answers[0]["prompt"] in out
        assert all(f"{vote['judge']} | " in out for vote in answers[0]["votes"])

    def test_recompute_it(self, served, capsys):
        space = run_cells(served[0] / "notebooks" / "recompute-it.ipynb")
        assert space["again"].agrees
        assert space["apart"] < 1e-9
        out = capsys.readouterr().out
        assert "cell means, each as published" in out
        assert "all as published" in out
        assert space["run"].pin in out

    def test_an_answer_that_was_changed_stops_it(self, served, tmp_path, monkeypatch):
        monkeypatch.setenv("AIBIASBENCH_CACHE", str(tmp_path / "empty"))
        path = served[0] / "receipts" / "sim-alpha__one.parquet"
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + b"x")
        try:
            with pytest.raises(InputError, match=r"receipts/sim-alpha__one.parquet: SHA-256 is"):
                run_cells(served[0] / "notebooks" / "recompute-it.ipynb")
        finally:
            path.write_bytes(whole)
