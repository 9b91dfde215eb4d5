"""The environment in which a page of prose is filled in: it reads facts, and reaches nothing else of the machine.

A site's own pages may come from others, as a pull request does, and a template language can call whatever it can name.
Here a page calls the functions that it is given and the methods of plain values; a file's path is no value to it.

See contract: publication, "Own pages".
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any

from jinja2 import StrictUndefined
from jinja2.exceptions import SecurityError
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

_PLAIN = (str, int, float, list, tuple, dict, dt.date)
LONGEST_RANGE = 1000


class ProseEnvironment(ImmutableSandboxedEnvironment):
    """Jinja with the marks of prose; `functions` are all that a page may call, beside methods of plain values."""

    intercepted_binops = frozenset(("*", "**"))

    def __init__(self, functions: Iterable[Callable[..., Any]], finalize: Callable[[Any], Any]) -> None:
        # No autoescape: what comes out is Markdown, and `finalize` escapes for that.
        super().__init__(
            block_start_string="<%",
            block_end_string="%>",
            variable_start_string="<<",
            variable_end_string=">>",
            comment_start_string="<#",
            comment_end_string="#>",
            undefined=StrictUndefined,
            finalize=finalize,
            keep_trailing_newline=True,
        )
        self.globals = {"range": _range}
        self._functions = frozenset(map(_plain_function, (*functions, _range)))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Refuse what begins with an underscore or is inside a function, and every path of a file."""
        return super().is_safe_attribute(obj, attr, value) and not isinstance(value, PurePath)

    def is_safe_callable(self, obj: Any) -> bool:
        """Tell whether a page may call this."""
        named = isinstance(obj, Macro) or _plain_function(obj) in self._functions
        return named or isinstance(getattr(obj, "__self__", None), _PLAIN)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Multiply numbers; a text times a number, or a power, could fill the memory."""
        if operator == "**" or not all(isinstance(value, int | float) for value in (left, right)):
            raise SecurityError(f"{operator} is for two numbers here, and there are no powers")
        return super().call_binop(context, operator, left, right)


def _plain_function(found: Any) -> Any:
    """Return the function behind a method, which is the same for every page; None for what cannot be looked up."""
    function = getattr(found, "__func__", found)
    return function if callable(function) and getattr(type(function), "__hash__", None) else None


def _range(*limits: int) -> range:
    made = range(*limits)
    if len(made) > LONGEST_RANGE:
        raise SecurityError(f"a range of {len(made):,}; at most {LONGEST_RANGE:,}")
    return made
