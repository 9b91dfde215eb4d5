"""The faults: each turns one spot of a module's syntax tree into another that a slip of the hand could have made.

Comparisons, arithmetic, and/or, conditions turned round, `not` and minus left out, numbers one up and one down, words
of a closed list spoiled, min for max, results and statements dropped, and, in regular expressions, a letter missing
from a class or a count that is one off. Left alone: annotations, decorators, docstrings, and sentences for people.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_PAIRS = (
    ("min", "max"), ("minimum", "maximum"), ("any", "all"), ("floor", "ceil"), ("lower", "upper"),
    ("startswith", "endswith"), ("lstrip", "rstrip"), ("zeros", "ones"),
)  # fmt: skip
_OTHER_NAME = dict(_PAIRS) | {b: a for a, b in _PAIRS}
_CLASS = re.compile(r"\[([^\]\\^\[-]+)\]")
_COUNT = re.compile(r"\{(\d+),(\d+)\}")
_MARKS = re.compile(r"(?<=[\])])[?*+]")
_EXPRESSION = re.compile(r"\[[^\]]+\]|\\[sbwWdS]|\(\?")

_SKIPPED_FIELDS = ("annotation", "returns", "decorator_list", "type_params")


@dataclass(frozen=True)
class Mutant:
    """One fault: its name, its line, the line where its statement begins, and what makes the module that has it."""

    name: str
    line: int
    statement: int
    make: Callable[[], ast.Module]

    @property
    def tree(self) -> ast.Module:
        """The whole module with the fault in it, made when it is needed: a copy for each takes long."""
        return self.make()


@dataclass(frozen=True)
class _Spot:
    """A node by its way from the root (field, index), what stands there instead, and how the change is called."""

    way: tuple[tuple[str, int | None], ...]
    scope: str
    line: int
    statement: int
    label: str
    instead: ast.AST


def mutants(module: str, source: str) -> list[Mutant]:
    """Return every mutant of a module's source, in an order that is random and always the same.

    A name is MODULE:FUNCTION:CHANGE, with #2, #3 ... where a function has the same change more than once.
    """
    tree = ast.parse(source)
    seen: Counter[str] = Counter()
    made = []
    for spot in _spots(tree, (), module, (0, 0)):
        name = f"{spot.scope}:{spot.label}"
        seen[name] += 1
        full = f"{name}#{seen[name]}" if seen[name] > 1 else name
        made.append(Mutant(full, spot.line, spot.statement, partial(_with, tree, spot)))
    return sorted(made, key=lambda mutant: hashlib.sha256(mutant.name.encode()).digest())


def _with(tree: ast.Module, spot: _Spot) -> ast.Module:
    """Return a copy of the tree with the spot's node replaced."""
    mutated = copy.deepcopy(tree)
    node: ast.AST = mutated
    for field, index in spot.way[:-1]:
        child = getattr(node, field)
        node = child if index is None else child[index]
    field, index = spot.way[-1]
    instead = ast.fix_missing_locations(ast.copy_location(spot.instead, _at(node, field, index)))
    if index is None:
        setattr(node, field, instead)
    else:
        getattr(node, field)[index] = instead
    return mutated


def _at(node: ast.AST, field: str, index: int | None) -> ast.AST:
    child = getattr(node, field)
    found: ast.AST = child if index is None else child[index]
    return found


def _spots(
    node: ast.AST, way: tuple[tuple[str, int | None], ...], scope: str, lines: tuple[int, int]
) -> Iterator[_Spot]:
    """Yield the spots under a node, depth first; `lines` are the node's own and that of its statement."""
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED_FIELDS:
            continue
        children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if not isinstance(child, ast.AST) or _is_text_for_people(node, child):
                continue
            here = (*way, (field, index))
            line = getattr(child, "lineno", lines[0])  # the loop of a comprehension has none
            at = line, line if isinstance(child, ast.stmt) else lines[1]
            for label, instead in _changes(child):
                yield _Spot(here, scope, *at, label, instead)
            inner = scope
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{scope}{':' if ':' not in scope else '.'}{child.name}"
            yield from _spots(child, here, inner, at)


def _is_text_for_people(parent: ast.AST, node: ast.AST) -> bool:
    """Tell docstrings and the words of an f-string: people read them, not the program."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return (
        isinstance(parent, ast.JoinedStr) and isinstance(node, ast.Constant) and not _EXPRESSION.search(str(node.value))
    )


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield (what is changed, the node to stand there instead)."""
    match node:
        case ast.Compare():
            yield from _comparisons(node)
        case ast.BinOp() if type(node.op) in _ARITHMETIC:
            other = _ARITHMETIC[type(node.op)]
            yield _label(node, changed := ast.BinOp(node.left, other(), node.right)), changed
        case ast.BoolOp():
            op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield _label(node, swapped := ast.BoolOp(op, node.values)), swapped
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield _label(node, node.operand), node.operand
        case ast.Constant():
            for value in _other_values(node.value):
                yield _label(node, constant := ast.Constant(value)), constant
        case ast.Call(func=ast.Name(id=name)) if name in _OTHER_NAME:
            yield _label(node, call := ast.Call(_name(_OTHER_NAME[name]), node.args, node.keywords)), call
        case ast.Call(func=ast.Attribute(attr=name)) if name in _OTHER_NAME:
            func = ast.Attribute(node.func.value, _OTHER_NAME[name], ast.Load())
            yield _label(node, method := ast.Call(func, node.args, node.keywords)), method
        case ast.If() | ast.While():
            turned = copy.copy(node)
            turned.test = ast.UnaryOp(ast.Not(), node.test)
            yield f"{type(node).__name__.lower()} not {_text(node.test)}", turned
        case ast.IfExp():
            yield _label(node, choice := ast.IfExp(node.test, node.orelse, node.body)), choice
        case ast.comprehension() if node.ifs:
            every = ast.comprehension(node.target, node.iter, [], node.is_async)
            yield f"no if {_text(node.ifs[0])}", every
        case ast.Return(value=ast.expr()) if _text(node.value) != "None":
            yield f"return None for {_text(node.value)}", ast.Return(ast.Constant(None))
        case ast.Expr() | ast.AugAssign() | ast.Raise():
            yield f"no {_text(node)}", ast.Pass()
        case ast.Continue():
            yield "break for continue", ast.Break()
        case ast.Break():
            yield "continue for break", ast.Continue()


def _comparisons(node: ast.Compare) -> Iterator[tuple[str, ast.AST]]:
    for place, op in enumerate(node.ops):
        for other in _COMPARISONS[type(op)]:
            ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield _label(node, changed := ast.Compare(node.left, ops, node.comparators)), changed


def _other_values(value: object) -> Iterator[object]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield value + 1
        yield value - 1
    elif isinstance(value, str):
        yield from _other_texts(value)


def _other_texts(text: str) -> Iterator[str]:
    if _EXPRESSION.search(text):
        yield from _other_expressions(text)
    elif text and " " not in text:
        yield text + "XX"


def _other_expressions(text: str) -> Iterator[str]:
    """Yield a regular expression with a letter missing from a class, a count one off, or another repetition."""
    for found in _CLASS.finditer(text):
        letters = found[1]
        for i in range(len(letters)) if len(letters) > 1 else ():
            yield f"{text[: found.start(1)]}{letters[:i]}{letters[i + 1 :]}{text[found.end(1) :]}"
    for found in _COUNT.finditer(text):
        for low, high in ((int(found[1]) + 1, int(found[2])), (int(found[1]), int(found[2]) - 1)):
            if low <= high:
                yield f"{text[: found.start()]}{{{low},{high}}}{text[found.end() :]}"
    for found in _MARKS.finditer(text):
        other = {"?": "", "*": "+", "+": "*"}[found[0]]
        yield text[: found.start()] + other + text[found.end() :]


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _label(node: ast.AST, instead: ast.AST) -> str:
    return f"{_text(node)} -> {_text(instead)}"


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else f"{text[:60]}...{hashlib.sha256(text.encode()).hexdigest()[:6]}"
