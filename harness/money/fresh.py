"""Answers asked anew: a token of the run becomes part of each key, and its ledger remembers the token.

A model's token stays until all of its prompts were asked under it, so a stage that was stopped goes on and pays nothing
twice. The next `--fresh` then takes a new one. Older answers stay in the cache for other runs.

See contract: stages, "Cache keys".
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from harness.cache.database import transaction
from harness.money.budget import LEDGER, Ledger

_TABLE = "CREATE TABLE IF NOT EXISTS fresh (model TEXT PRIMARY KEY, token TEXT NOT NULL, done INTEGER NOT NULL) STRICT"


class FreshTokens:
    """The tokens in an open ledger. The table is made where the ledger lacks it."""

    def __init__(self, ledger: Ledger) -> None:
        self._db = ledger.connection
        with transaction(self._db):
            self._db.execute(_TABLE)

    def by_model(self) -> dict[str, str]:
        """Return the token of each model that was ever asked anew, by slug."""
        return dict(self._db.execute("SELECT model, token FROM fresh"))

    def begin(self, models: Iterable[str], token: str) -> list[str]:
        """Give models a new token.

        Args:
            models: slugs.
            token: the new token.

        Returns:
            Those models that keep an older token, because not all of their prompts were asked under it yet.
        """
        open_ = {row[0] for row in self._db.execute("SELECT model FROM fresh WHERE NOT done")}
        wanted = list(models)
        with transaction(self._db):
            self._db.executemany(
                "INSERT OR REPLACE INTO fresh VALUES (?, ?, 0)", [(m, token) for m in wanted if m not in open_]
            )
        return [model for model in wanted if model in open_]

    def end(self, models: Iterable[str]) -> None:
        """Note that all prompts of these models were asked, so that the next `--fresh` takes a new token."""
        with transaction(self._db):
            self._db.executemany("UPDATE fresh SET done = 1 WHERE model = ?", [(model,) for model in models])


def remembered_tokens(folder: Path) -> dict[str, tuple[str, bool]]:
    """Read the tokens of a run's ledger without opening it as one; nothing is written.

    Returns:
        By model, the token and whether all its prompts were asked. Empty without a ledger, or where nothing was asked
        anew.
    """
    ledger = folder / LEDGER
    if not ledger.is_file():
        return {}
    try:
        # Not read-only: such a connection would leave the files of a write-ahead log behind.
        with closing(sqlite3.connect(f"file:{quote(str(ledger))}?mode=rw", uri=True, timeout=60)) as connection:
            rows = connection.execute("SELECT model, token, done FROM fresh").fetchall()
    except sqlite3.Error:  # no such table: nothing was asked anew; anything worse is told when it is opened
        return {}
    return {model: (token, bool(done)) for model, token, done in rows}
