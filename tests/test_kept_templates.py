"""Compiled templates kept between processes: the same text, and never one of other modules or of another template."""

from __future__ import annotations

import os
import sys

import pytest
from jinja2 import Environment, FileSystemLoader

from generator.html.kept_templates import kept_templates, modules_key


@pytest.fixture
def render(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "pages").mkdir()

    def rendered(source, word=str.upper, key="one"):
        (tmp_path / "pages" / "page.html").write_text(source)
        cache = kept_templates(tmp_path / "kept", key)
        env = Environment(loader=FileSystemLoader(tmp_path / "pages"), autoescape=True, bytecode_cache=cache)
        env.filters["word"] = word
        return env.get_template("page.html").render()

    return rendered


class TestKeptTemplates:
    def test_a_template_is_read_back(self, render, monkeypatch):
        assert render("{{ 'a'|word }}") == "A"
        monkeypatch.setattr(Environment, "_parse", None)  # nothing can be compiled from here on
        assert render("{{ 'a'|word }}") == "A"

    def test_another_text_is_compiled_anew(self, render):
        assert [render("{{ 'a'|word }}"), render("{{ 'b'|word }}")] == ["A", "B"]

    def test_what_other_modules_made_is_not_taken(self, render, tmp_path):
        # The filter is applied to a constant while the template is compiled.
        found = [render("{{ 'aB'|word }}"), render("{{ 'aB'|word }}", str.lower, key="two")]
        assert found == ["AB", "ab"]
        assert [p.name for p in (tmp_path / "kept").iterdir()] == ["two"]

    def test_a_damaged_file_is_compiled_anew(self, render, tmp_path):
        render("{{ 'a'|word }}")
        for file in (tmp_path / "kept" / "one").iterdir():
            file.write_bytes(file.read_bytes()[:-9])
        assert render("{{ 'a'|word }}") == "A"

    def test_nothing_is_kept_where_python_keeps_nothing(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        assert kept_templates(tmp_path / "kept") is None
        assert not (tmp_path / "kept").exists()

    def test_a_place_that_takes_no_folder_is_left(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sys, "dont_write_bytecode", False)
        (tmp_path / "kept").write_text("a file")
        assert kept_templates(tmp_path / "kept") is None


class TestModulesKey:
    def test_any_change_of_a_module_changes_it(self, tmp_path):
        (tmp_path / "room").mkdir()
        file = tmp_path / "room" / "a.py"
        file.write_text("a = 1")
        first = modules_key(tmp_path)
        os.utime(file, ns=(1, 1))
        second = modules_key(tmp_path)
        file.write_text("a = 10")
        os.utime(file, ns=(1, 1))
        third = modules_key(tmp_path)
        (tmp_path / "room" / "b.py").write_text("")
        assert len({first, second, third, modules_key(tmp_path)}) == 4
        assert modules_key(tmp_path) == modules_key(tmp_path)
