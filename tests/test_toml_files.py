"""A TOML file is read whole or refused in one line that names it."""

from __future__ import annotations

import pytest

from generator.schema import toml_files
from generator.schema.errors import InputError
from generator.schema.toml_files import read_toml


class TestReadToml:
    def test_a_good_file(self, tmp_path):
        (tmp_path / "a.toml").write_text('title = "x"\n')
        assert read_toml(tmp_path / "a.toml") == {"title": "x"}

    @pytest.mark.parametrize(
        "content",
        [b"a = ", b"a = \xff", b"a = " + b"9" * 5000, b"a = " + b"[" * 100_000],
        ids=["broken", "not UTF-8", "5,000 digits", "nested without end"],
    )
    def test_each_fault_names_the_file(self, tmp_path, content):
        (tmp_path / "a.toml").write_bytes(content)
        with pytest.raises(InputError, match=r"a\.toml: not (TOML|UTF-8)"):
            read_toml(tmp_path / "a.toml")

    @pytest.mark.parametrize("part", ["a", '"a b"', "'.'", '""'])
    @pytest.mark.parametrize("line", ["{} = 1", "[{}]", "[[{}]]", "x = {{ {} = 1 }}"])
    def test_a_name_of_many_parts_is_refused_before_it_is_parsed(self, tmp_path, monkeypatch, part, line):
        monkeypatch.setattr(toml_files.tomllib, "loads", lambda _: pytest.fail("parsed, in time with a square"))
        (tmp_path / "a.toml").write_text("y = 1\n" + line.format(" . ".join([part] * 40)) + "\n")
        with pytest.raises(InputError, match=r"a\.toml: .*line 2: a name of more than 32 parts"):
            read_toml(tmp_path / "a.toml")

    def test_texts_with_many_dots_are_texts(self, tmp_path):
        text = "a ... b. c. d. " * 40
        (tmp_path / "a.toml").write_text(f'title = "{text}"\nother.part.of = 1\n')
        assert read_toml(tmp_path / "a.toml") == {"title": text, "other": {"part": {"of": 1}}}

    def test_a_folder_is_not_a_file(self, tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_toml(tmp_path)

    def test_an_absent_file_is_the_caller_s_to_explain(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            read_toml(tmp_path / "a.toml")
