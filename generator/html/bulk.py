"""Many pages from one Jinja template without a call per page: markers, constants, columns, one Arrow join.

A template is evaluated once with `Holes` where row values go. What comes out is split at the markers into constant
text and column names (`compile_template`). `render_columns` then joins constants and columns of a whole batch of rows
into one Arrow array, a page a row; a loop over a nested list (`each` in the template) is the same join one level down.

The ordinary render of the same template with `plain_environment` is what the result must equal byte for byte.

See contract: publication, "Receipt pages".
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from generator.html import text_bytes
from generator.html.text_bytes import Ints, cut, edges_of

# A marker reads SIGN name.column SIGN, or SIGN name.column > partial SIGN for a loop. The sign changes from one render
# of a template to the next, and what does not change with it is text (see `_pieces`): no text need be free of any sign.
_SIGN = "bulk_sign"  # what a template's context calls it
_TRIES = 64
LOOP = ">"


@dataclass(frozen=True)
class Field:
    """A place in a template where a column's value goes."""

    column: str


@dataclass(frozen=True)
class Loop:
    """A place where a nested list goes, each item rendered by its own parts."""

    column: str
    parts: tuple[Part, ...]


Part = str | Field | Loop


@dataclass(frozen=True)
class Text:
    """A column of text that is escaped on its way into a page; null becomes nothing."""

    array: pa.Array

    @cached_property
    def html(self) -> pa.Array:
        """The column as it stands on pages, made once however often they show it."""
        return _filled(escaped(self.array))


@dataclass(frozen=True)
class Html:
    """A column of finished HTML; null becomes nothing."""

    array: pa.Array

    @cached_property
    def html(self) -> pa.Array:
        """The column as it stands on pages, made once however often they show it."""
        array = self.array
        return _filled(array.dictionary.take(array.indices) if isinstance(array, pa.DictionaryArray) else array)


@dataclass(frozen=True)
class Nested:
    """A list a row: `offsets` (rows + 1, from 0) into the items whose columns are given."""

    offsets: Ints
    columns: Mapping[str, PageColumn]


PageColumn = Text | Html | Nested


def _filled(array: pa.Array) -> pa.Array:
    return pc.fill_null(array, "") if array.null_count else array


class Holes:
    """Stands for a row while a template is compiled: every attribute and item is a marker of its name."""

    def __init__(self, name: str, sign: str) -> None:
        self._name, self._sign = name, sign

    def __getattr__(self, column: str) -> str:
        return f"{self._sign}{self._name}.{column}{self._sign}"

    def __getitem__(self, column: str) -> str:
        return f"{self._sign}{self._name}.{column}{self._sign}"


@pass_context
def _each_marker(context: Context, template: str, items: str) -> Markup:
    sign = context[_SIGN]
    path = items.removeprefix(sign).removesuffix(sign)
    return Markup(f"{sign}{path}{LOOP}{template}{sign}")  # noqa: S704 - a marker, never data


@pass_context
def _each_item(context: Context, template: str, items: Any) -> Markup:
    partial = context.environment.get_template(template)
    values = dict(context.get_all())
    return Markup("").join(Markup(partial.render(values, item=item)) for item in items)  # noqa: S704 - a template's text


@functools.cache
def _with_each(environment: Environment, each: Callable[..., Markup]) -> Environment:
    overlay = environment.overlay()
    overlay.globals = {**environment.globals, "each": each}
    return overlay


def plain_environment(environment: Environment) -> Environment:
    """Return the environment for the ordinary render of a template that uses `each`."""
    return _with_each(environment, _each_item)


def compile_template(
    environment: Environment, template: str, context: Callable[[Holes], Mapping[str, Any]], name: str = "row"
) -> tuple[Part, ...]:
    """Evaluate a template and split it into constants, fields and loops.

    `context` returns what the template needs besides the row, given the row: titles and addresses may hold its values.
    `name` is what the template calls the row; inside a partial of `each` it is `item`.
    """
    marking = _with_each(environment, _each_marker)
    return _compile(marking, template, context, name)


def _compile(
    environment: Environment, template: str, context: Callable[[Holes], Mapping[str, Any]], name: str
) -> tuple[Part, ...]:
    parts: list[Part] = []
    for index, piece in enumerate(_pieces(environment, template, context, name)):
        if index % 2 == 0:
            parts += [piece] if piece else []
            continue
        path, _, partial = piece.partition(LOOP)
        owner, _, column = path.partition(".")
        if owner != name:
            raise ValueError(f"{template}: {path} is not a column of {name}")
        parts.append(Loop(column, _compile(environment, partial, context, "item")) if partial else Field(column))
    return tuple(parts)


def _pieces(
    environment: Environment, template: str, context: Callable[[Holes], Mapping[str, Any]], name: str
) -> list[str]:
    """Render a template with two signs and split each text at its own; text and paths by turns, once both agree.

    Two lists that agree hold neither sign: no piece of the first holds the first, nor any of the second the second.
    So whatever was split stood at a hole, for everything else is the same in both texts. Where a text of the context
    holds one of the signs the lists differ, and two other signs are taken.
    """
    page = environment.get_template(template)

    def split(number: int) -> list[str]:
        sign = f"\x1f{number}\x1e"
        return page.render({**context(Holes("row", sign)), name: Holes(name, sign), _SIGN: sign}).split(sign)

    for pair in range(_TRIES):
        first, second = split(2 * pair), split(2 * pair + 1)
        if first == second:
            return first
    raise ValueError(f"{template}: renders differ from one to the next")


def constants(parts: tuple[Part, ...]) -> str:
    """Return a text that differs whenever constants, fields or loops do: what a template's hash is made of."""
    return repr(parts)


def escaped(array: pa.Array) -> pa.Array:
    """Escape text as Jinja does; a dictionary column is escaped once per distinct value."""
    if isinstance(array, pa.DictionaryArray):
        return text_bytes.escaped(array.dictionary).take(array.indices)
    return text_bytes.escaped(array)


def _loop(loop: Loop, nested: Nested) -> pa.Array:
    items = int(nested.offsets[-1])
    texts = render_columns(loop.parts, nested.columns, items) if items else pa.array([], pa.string())
    return collapsed(texts, nested.offsets)


def collapsed(pieces: pa.Array, offsets: Ints) -> pa.Array:
    """Return one text a row from pieces that lie one after the other; `offsets` count pieces (rows + 1, from 0)."""
    if len(pieces) == 0:
        return pa.array([""] * (len(offsets) - 1), pa.string())
    return cut(pieces, edges_of(pieces)[offsets])


def render_columns(parts: tuple[Part, ...], columns: Mapping[str, PageColumn], length: int) -> pa.Array:
    """Return one text a row (`length` of them) from a compiled template and its columns."""
    pieces: list[Any] = []
    for part in parts:
        if isinstance(part, str):
            pieces.append(pa.scalar(part))
            continue
        column = columns[part.column]
        if isinstance(part, Loop):
            assert isinstance(column, Nested), part.column
            pieces.append(_loop(part, column))
        else:
            assert not isinstance(column, Nested), part.column
            pieces.append(column.html)
    if all(isinstance(piece, pa.Scalar) for piece in pieces):
        return pa.array(["".join(piece.as_py() for piece in pieces)] * length, pa.string())
    return pc.binary_join_element_wise(*pieces, "")


def plain(array: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array, dictionaries unified."""
    if isinstance(array, pa.ChunkedArray):
        array = array.unify_dictionaries().combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    return array


def list_offsets(lists: pa.ListArray) -> Ints:
    """Return a list column's offsets from 0."""
    offsets: Ints = lists.offsets.to_numpy()
    shifted: Ints = (offsets - offsets[0]).astype(np.int32)
    return shifted


def write_slices(folder: str, names: list[str], texts: pa.Array) -> int:
    """Write each text as a file below `folder`, by plain system calls; returns the bytes written."""
    edges = edges_of(texts).tolist()
    data = memoryview(texts.buffers()[2]).cast("B")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for name, start, end in zip(names, edges[:-1], edges[1:], strict=True):
        handle = os.open(f"{folder}/{name}", flags, 0o644)
        try:
            while start < end:
                start += os.write(handle, data[start:end])  # noqa: PLW2901 - a short write goes on where it ended
        finally:
            os.close(handle)
    return int(edges[-1] - edges[0])
