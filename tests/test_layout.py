"""The house's own rules, read from the source: who may import whom, and how large a module may grow."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*ROOT.glob("generator/**/*.py"), *ROOT.glob("harness/**/*.py")])


def module_name(path: Path) -> str:
    """The dotted name of a source file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """Every project module that a file imports, at the top or inside a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from .run import load` names a sibling.
            here = ".".join(path.relative_to(ROOT).parent.parts)
            module = f"{here}.{node.module}" if node.level else node.module
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    known = {module_name(p) for p in SOURCES}
    return names & known


GRAPH = {module_name(path): imported(path) - {module_name(path)} for path in SOURCES}


# The rooms of each program, from the ground up: a room imports from its own and from those before it, never back.
ROOMS = {
    "generator": (
        "schema", "stats", "machine", "runs", "scoring", "edition", "html", "data", "receipts", "pages", "publishing",
        "verify", "reading", "commands",
    ),
    "harness": (
        "bank", "plan", "calls", "cache", "money", "engine", "batches", "masking", "eval", "judging", "simulated",
        "audit", "stages", "importing", "terminal", "starter", "commands",
    ),
}  # fmt: skip


def room(module: str) -> tuple[str, str]:
    """The program and the room of a module: ("generator", "schema"), or ("generator", "") for what lies outside."""
    program, _, rest = module.partition(".")
    name = rest.partition(".")[0]
    return program, name if name in ROOMS[program] else ""


def runs_back(graph: dict[str, set[str]]) -> list[str]:
    """Every import of a later room by an earlier one of the same program."""
    found = []
    for module, targets in graph.items():
        (program, own), order = room(module), ROOMS[room(module)[0]]
        for target in targets:
            other_program, other = room(target)
            if own and other and program == other_program and order.index(other) > order.index(own):
                found.append(f"{module} -> {target}")
    return sorted(found)


class TestRooms:
    def test_every_folder_of_code_is_a_room(self):
        # `recompute` holds programs for the reader, which import nothing of the project.
        folders = {(p.parent.parent.name, p.parent.name) for p in SOURCES if len(p.relative_to(ROOT).parts) > 2}
        expected = {(program, name) for program, names in ROOMS.items() for name in names}
        assert folders - {("generator", "recompute")} == expected

    def test_every_module_lies_in_a_room(self):
        outside = {m for m in GRAPH if "." in m and not room(m)[1] and not m.startswith("generator.recompute")}
        assert outside == {"generator.__main__", "generator.cli"}

    def test_an_import_of_a_sibling_counts(self):
        assert "generator.reading.run" in GRAPH["generator.reading"]

    def test_no_import_runs_back(self):
        assert runs_back(GRAPH) == []

    def test_the_finder_can_fail(self):
        assert runs_back({"generator.schema.bank": {"generator.stats.cells"}}) == [
            "generator.schema.bank -> generator.stats.cells"
        ]


class TestImports:
    def test_generator_never_imports_harness(self):
        guilty = {
            m: d for m, d in GRAPH.items() if m.startswith("generator") and any(x.startswith("harness") for x in d)
        }
        assert guilty == {}

    def test_harness_imports_only_the_contract(self):
        # The demo is the one verb that runs both programs, through the generator's commands.
        guilty = {
            m: sorted(x for x in d if x.startswith("generator") and not x.startswith("generator.schema"))
            for m, d in GRAPH.items()
            if m.startswith("harness") and m != "harness.commands.demo"
        }
        assert {m: d for m, d in guilty.items() if d and d != ["generator"]} == {}

    def test_no_module_imports_in_a_circle(self):
        packages = {m for m in GRAPH if any(other.startswith(f"{m}.") for other in GRAPH)}
        done: set[str] = set()

        def visit(module: str, above: tuple[str, ...]) -> None:
            assert module not in above, " -> ".join((*above, module))
            if module in done:
                return
            for target in GRAPH[module] - packages:
                visit(target, (*above, module))
            done.add(module)

        for module in GRAPH:
            visit(module, ())

    def test_nothing_imports_a_command(self):
        guilty = {
            m: {x for x in d if ".commands." in x} for m, d in GRAPH.items() if m not in ("harness.commands.demo",)
        }
        assert {m: d for m, d in guilty.items() if d} == {}

    def test_the_circle_finder_can_fail(self):
        assert "generator.schema.errors" in GRAPH["generator.schema.bank"]


def test_an_option_of_several_commands_is_written_once():
    found: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "click.option":
                # The two programs share no code but the contract, so each has its own.
                found.setdefault(f"{path.parts[len(ROOT.parts)]}: {ast.unparse(node)}", []).append(module_name(path))
    assert {option: modules for option, modules in found.items() if len(modules) > 1} == {}
    assert len(found) > 20


@pytest.mark.parametrize("path", SOURCES, ids=[module_name(p) for p in SOURCES])
def test_module_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text())), f"{path.name} has no docstring"


def test_no_vague_module_names():
    vague = {"utils", "util", "helpers", "common", "core", "manager", "misc"}
    assert [m for m in GRAPH if m.rpartition(".")[2] in vague] == []


NAMED = re.compile(r"_?[A-Z]+[a-z]\w*")


def type_names(source: str) -> tuple[set[str], set[str]]:
    """The classes of a module, and the types to which it gives a name of their own (`Watch = Callable[...]`)."""
    body = ast.parse(source)
    classes = {node.name for node in ast.walk(body) if isinstance(node, ast.ClassDef)}
    given = {
        t.id for node in body.body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)
    }
    return classes, {name for name in given if NAMED.fullmatch(name)}


def shared_names(sources: dict[str, str]) -> dict[str, list[str]]:
    """Every class whose name a second module uses for another class, or for a type of its own."""
    users: dict[str, list[str]] = {}
    all_classes: set[str] = set()
    for module, source in sources.items():
        classes, given = type_names(source)
        all_classes |= classes
        for name in classes | given:
            users.setdefault(name, []).append(module)
    return {name: modules for name, modules in sorted(users.items()) if name in all_classes and len(modules) > 1}


class TestNames:
    def test_a_class_name_means_one_thing_in_both_programs(self):
        assert shared_names({module_name(p): p.read_text() for p in SOURCES}) == {}

    def test_the_finder_can_fail(self):
        two = {"a": "class Plan: ...", "b": "class Plan: ...", "c": "class Row: ...", "d": "Row = dict[str, int]"}
        assert shared_names(two) == {"Plan": ["a", "b"], "Row": ["c", "d"]}
        assert shared_names({"a": "IntArray = list[int]\nclass Plan: ...", "b": "IntArray = list[int]"}) == {}


FRONT = sorted(
    p
    for folder in ("site_templates", "harness/audit/audit_page")
    for p in (ROOT / folder).rglob("*")
    if p.suffix in (".html", ".css", ".js", ".mjs", ".svg") and "vendor" not in p.parts
)
LONGEST_LINE, LONGEST_FUNCTION = 160, 60
OPENS = re.compile(r"(?P<indent> *)(?!(?:if|for|while|switch|else|try|catch)\b)\S.*(?:\)|=>) \{$")


def long_functions(script: str, longest: int = LONGEST_FUNCTION) -> list[str]:
    """Every function, method or arrow function of a script above a number of lines, found by its indentation."""
    lines, found = script.splitlines(), []
    for start, line in enumerate(lines):
        if opens := OPENS.match(line):
            closes = re.compile(rf"{opens['indent']}\}}")
            length = next((i for i, rest in enumerate(lines[start + 1 :], 2) if closes.match(rest)), len(lines) - start)
            if length > longest:
                found.append(f"{start + 1}: {line.strip()} ({length} lines)")
    return found


class TestTemplatesAndScripts:
    @pytest.mark.parametrize("path", FRONT, ids=[p.relative_to(ROOT).as_posix() for p in FRONT])
    def test_no_line_is_too_long_to_read(self, path):
        lines = enumerate(path.read_text().splitlines(), 1)
        assert [(number, len(line)) for number, line in lines if len(line) > LONGEST_LINE] == []

    def test_no_script_has_a_function_too_long_to_read(self):
        scripts = {p.name: long_functions(p.read_text()) for p in FRONT if p.suffix == ".js"}
        assert len(scripts) > 10
        assert {name: found for name, found in scripts.items() if found} == {}

    def test_the_finder_can_fail(self):
        body = "  work();\n" * 3
        for head, tail in (("(() => {", "})();"), ("async function a(b) {", "}"), ("const a = (b) => {", "};")):
            assert long_functions(f"{head}\n{body}{tail}\n", 4) == [f"1: {head} (5 lines)"]
            assert long_functions(f"{head}\n{body}{tail}\n", 5) == []
        assert long_functions(f"for (;;) {{\n{body}}}\n", 4) == []


# What a sentence may count by the thousand.
MANY = "answers bytes calls characters faults files keys labels mismatches pages pairs prompts receipts rows votes"
COUNTED = re.compile(rf"(?: (?!(?:and|for|in|of|to) )[a-z-]+)? (?:{'|'.join(MANY.split())})\b")


def bare_counts(source: str) -> list[str]:
    """Every number that an f-string prints before a countable word without asking for thousands separators."""
    found = []
    for text in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.JoinedStr)):
        for value, after in itertools.pairwise(text.values):
            if isinstance(value, ast.FormattedValue) and value.format_spec is None and isinstance(after, ast.Constant):
                bare = isinstance(value.value, ast.Name) and value.value.id.isupper()  # a constant of the code: small
                if COUNTED.match(after.value) and not bare:
                    found.append(f"{text.lineno}: {ast.unparse(text)}")
    return found


# The two values of a mismatch are read by scripts, and a reader's own script stands as its reader has it.
MACHINE = ("generator.verify", "generator.recompute")


class TestCountsInSentences:
    def test_a_count_is_printed_with_thousands_separators(self):
        for_people = {module_name(p): p for p in SOURCES if not module_name(p).startswith(MACHINE)}
        assert {name: found for name, path in for_people.items() if (found := bare_counts(path.read_text()))} == {}

    def test_the_finder_can_fail(self):
        assert bare_counts('f"{len(x)} rows" f"{n} planned rows are absent" f"{n:,} rows" f"{name} judges"') != []
        assert bare_counts('f"{n:,} planned rows, {LEAST} pairs of {name} are rowsome"') == []
