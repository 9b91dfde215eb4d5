"""SECURITY.md promises nothing without a test: each test that it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)((?:::\w+)*)`")


def holds(source: str, names: list[str]) -> bool:
    """Tell whether a test file has a class or test of these names, one within the other, with a test in it."""
    node: ast.AST = ast.parse(source)
    for name in names:
        inner = [n for n in ast.iter_child_nodes(node) if getattr(n, "name", None) == name]
        if not inner:
            return False
        node = inner[-1]
    return any(isinstance(n, ast.FunctionDef) and n.name.startswith("test_") for n in ast.walk(node))


def rows() -> list[list[str]]:
    """The rows of promises: [promise, tests]."""
    lines = [line for line in TEXT.splitlines() if line.startswith("|") and not line.startswith(("|---", "| What is"))]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


class TestPromises:
    def test_there_are_promises(self):
        assert len(rows()) >= 17
        assert all(len(row) == 2 for row in rows())

    @pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:50])
    def test_each_names_tests_that_are_there(self, row):
        found = NAMED.findall(row[1])
        assert found, row[0]
        for file, names in found:
            assert holds((ROOT / file).read_text(encoding="utf-8"), [n for n in names.split("::") if n]), (file, names)

    @pytest.mark.parametrize("target", re.findall(r"`make ([\w-]+)`", TEXT))
    def test_each_target_of_make_is_there(self, target):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


class TestFinder:
    SOURCE = "class TestA:\n    def test_b(self): ...\nclass Empty:\n    x = 1\n"

    def test_what_is_there_is_found_and_what_is_not_is_not(self):
        assert holds(self.SOURCE, ["TestA", "test_b"])
        assert holds(self.SOURCE, ["TestA"])
        assert not holds(self.SOURCE, ["TestA", "test_c"])
        assert not holds(self.SOURCE, ["TestB"])
        assert not holds(self.SOURCE, ["Empty"])
