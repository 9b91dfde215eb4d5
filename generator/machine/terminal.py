"""The program's way out: what a command prints reaches the terminal with no character that the terminal would obey.

Answers, run files and published pages are other people's text, and any line may quote them. One stream at the edge sees
every line, so no command has to remember it.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import IO, Any

from generator.schema.shown import shown


class ShownStream:
    """A text stream that passes on what `shown` makes of a text, line feeds aside.

    It offers no `buffer`: bytes would get around it. Rich draws bars and tables with escape sequences of its own; it
    finds the stream behind this one as `rich_proxied_file`, so text that is handed to Rich goes through `shown` first.
    """

    def __init__(self, stream: IO[str]) -> None:
        self.rich_proxied_file = stream
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        """Write a text; returns its length, as it was given."""
        self.rich_proxied_file.write(shown(text, keep="\n"))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self.rich_proxied_file, name)


@contextlib.contextmanager
def shown_streams() -> Iterator[None]:
    """Stand in front of standard output and standard error while the block runs."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (ShownStream(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
