"""Mutation testing itself: which faults it makes, and that it tells a noticed fault from an unnoticed one."""

from __future__ import annotations

import ast
import datetime
import subprocess
import sys
import textwrap

import pytest

from tests.mutants import __main__ as program
from tests.mutants.operators import mutants
from tests.mutants.trial import ROOT, source_path

SMALL = textwrap.dedent(
    """
    WORD = re.compile(r"[abc]x{1,3}")

    def least(values: int | None, *, most: int = 3) -> int:
        \"\"\"Say the least of some.\"\"\"
        if not values:
            raise ValueError(f"none: {values}")
        return min(values) + most
    """
)


def changes(source: str) -> set[str]:
    """What the mutants of a source are called, without the module."""
    return {mutant.name.removeprefix("m:") for mutant in mutants("m", source)}


class TestOperators:
    @pytest.mark.parametrize(
        ("source", "made"),
        [
            ("a < b", {"a < b -> a <= b", "a < b -> a >= b"}),
            ("a == b", {"a == b -> a != b"}),
            ("a + b", {"a + b -> a - b"}),
            ("a and b", {"a and b -> a or b"}),
            ("not a", {"not a -> a"}),
            ("x if a else y", {"x if a else y -> y if a else x"}),
            ("3", {"3 -> 4", "3 -> 2"}),
            ("True", {"True -> False"}),
            ("'word'", {"'word' -> 'wordXX'"}),
            ("'a sentence'", set()),
            ("r'[ab]c'", {"'[ab]c' -> '[a]c'", "'[ab]c' -> '[b]c'"}),
            (r"r'\b{0,3}'", {r"'\\b{0,3}' -> '\\b{1,3}'", r"'\\b{0,3}' -> '\\b{0,2}'"}),
            ("min(a)", {"min(a) -> max(a)"}),
            ("a.startswith(b)", {"a.startswith(b) -> a.endswith(b)"}),
        ],
    )
    def test_an_expression_and_its_faults(self, source, made):
        assert changes(f"x = {source}") == {f"{change}" for change in made}

    def test_a_function_and_its_faults(self):
        made = {name.removeprefix("least:") for name in changes(SMALL) if name.startswith("least:")}
        assert made == {
            "3 -> 4", "3 -> 2", "if not not values", "not values -> values", "return None for min(values) + most",
            "min(values) + most -> min(values) - most", "min(values) -> max(values)",
            "no raise ValueError(f'none: {values}')",
        }  # fmt: skip

    def test_equal_changes_in_one_function_are_numbered(self):
        assert changes("x = a < b, a < b") == {f"a < b -> a {op} b{n}" for op in ("<=", ">=") for n in ("", "#2")}

    def test_the_order_is_random_and_always_the_same(self):
        names = [mutant.name for mutant in mutants("m", SMALL)]
        assert names == [mutant.name for mutant in mutants("m", SMALL)]
        assert names != sorted(names)

    def test_every_mutant_of_every_module_compiles_and_differs(self):
        for module in ("generator.stats.tiers", "harness.masking.mask"):
            source = source_path(module).read_text()
            plain = ast.unparse(ast.parse(source))
            for mutant in mutants(module, source):
                compile(mutant.tree, module, "exec")
                assert ast.unparse(mutant.tree) != plain, mutant.name


class TestModules:
    def test_every_module_and_its_test_files_are_there(self):
        for module, files in program.load_modules().items():
            assert source_path(module).is_file(), module
            assert all((ROOT / "tests" / f"{file}.py").is_file() for file in files), files

    def test_nothing_of_the_rooms_that_it_covers_is_left_out(self):
        rooms = ("generator/stats", "harness/masking", "harness/calls")
        there = {path for room in rooms for path in ROOT.glob(f"{room}/*.py") if path.name != "__init__.py"}
        assert there <= {source_path(module) for module in program.load_modules()}

    def test_every_explained_mutant_is_one_that_can_be_made(self):
        made = {
            mutant.name
            for module in program.load_modules()
            for mutant in mutants(module, source_path(module).read_text())
        }
        reasons = program.load_reasons()
        assert set(reasons) <= made
        assert all(reasons.values())


def result(name, outcome="killed", source="s", tests="t"):
    return program.Result("m", name, outcome, 1.0, source, tests)


class TestReport:
    def test_counts_by_module_and_names_what_nobody_noticed(self):
        results = [result("a"), result("b", "hung"), result("c", "survived"), result("d", "survived")]
        report = program.render_report(results, {"c": "same value"}, datetime.date(2026, 1, 2))
        assert report.splitlines()[1].split() == ["m", "2", "4", "1"]
        assert report.splitlines()[2:] == ["2026-01-02: 2 of 4 noticed, 50.0 %", "UNNOTICED (survived) d"]

    @pytest.mark.parametrize(
        ("survivors", "reasons", "well"),
        [(1, {"0": "same"}, True), (1, {}, False), (2, {"0": "same", "1": "same"}, False), (0, {}, True)],
    )
    def test_passes_at_95_per_cent_with_the_rest_explained(self, survivors, reasons, well):
        results = [result(str(i), "survived" if i < survivors else "killed") for i in range(20)]
        assert program.passed(results, reasons) is well

    def test_a_noticed_fault_is_known_until_its_module_changes(self):
        assert program.known(result("a"), "s", "other tests")
        assert not program.known(result("a"), "other", "t")
        assert not program.known(None, "s", "t")

    def test_an_unnoticed_one_until_its_tests_change_too(self):
        assert program.known(result("a", "survived"), "s", "t")
        assert not program.known(result("a", "survived"), "s", "other tests")


class TestRun:
    def test_a_fault_is_noticed_and_the_module_as_it_is_is_not(self):
        """A child process: mutants are forked from a parent that has not imported the project."""
        program_text = textwrap.dedent(
            """
            import ast
            import time
            from tests.mutants.operators import Mutant, mutants
            from tests.mutants.trial import source_path, take_baseline, try_mutant

            module = "generator.stats.tiers"
            source = source_path(module).read_text()
            baseline = take_baseline(module, ["test_stats_tiers"])
            boundary = "too_many_errors:errors > MOST_ERRORS * planned -> errors >= MOST_ERRORS * planned"
            faulty = next(m for m in mutants(module, source) if m.name == f"{module}:{boundary}")
            as_it_is = Mutant("as it is", faulty.line, faulty.statement, lambda: ast.parse(source))
            for mutant in (faulty, as_it_is):
                trial = try_mutant(module, mutant, baseline)
                while (outcome := trial.result()) is None:
                    time.sleep(0.01)
                print(len(baseline.tests(mutant)) > 0, outcome)
            print(baseline.tests(Mutant("on no line", 10**6, 10**6, lambda: ast.parse(source))))
            """
        )
        done = subprocess.run(
            [sys.executable, "-c", program_text], cwd=ROOT, capture_output=True, text=True, timeout=300
        )
        assert done.stderr == ""
        assert done.stdout.splitlines() == ["True killed", "True survived", "[]"]
