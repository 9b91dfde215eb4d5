"""Money: caps, reservations and the ledger of a run.

Before each attempt its worst case is reserved on the disk. Afterwards the reservation is settled at what the attempt
cost. What is committed (settled, open and lost) never passes a cap, whatever the number of workers or processes: check
and reservation are one SQLite transaction. All money is in whole picodollars, so sums are exact.

States of an entry:

- `open`: reserved, the attempt is in flight.
- `settled`: booked at its cost.
- `lost`: in a crash, an interrupt or a broken connection. It counts as spent at its worst case until the operator
settles it.
- `reused`: an answer from the cache that an earlier run paid for. It is part of what this run's answers cost, and never
counts against a cap.

See contract: stages, "Spend caps".
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.cache.answers import Cache
from harness.cache.database import Database, transaction
from harness.calls.call import Call, Request
from harness.plan.records import PICO, Prices, RunPlan

LEDGER = "ledger.sqlite"
RUN_ACCOUNT = "run"
_VERSION = 1
_TABLES = """
CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    stage TEXT NOT NULL,           -- eval or judge
    role TEXT NOT NULL,            -- subject or judge
    model TEXT NOT NULL,
    key TEXT NOT NULL,             -- of the answer in the cache
    reserved INTEGER NOT NULL,     -- picodollars
    cost INTEGER,                  -- picodollars, null while open or lost
    state TEXT NOT NULL            -- open, settled, lost, reused
) STRICT;
CREATE INDEX entries_key ON entries (key);
CREATE INDEX entries_unsettled ON entries (state) WHERE state IN ('open', 'lost');
CREATE TABLE accounts (name TEXT PRIMARY KEY, committed INTEGER NOT NULL) STRICT;
CREATE TABLE failures (key TEXT PRIMARY KEY, code TEXT NOT NULL) STRICT
"""


def picodollars(usd: float) -> int:
    """Return US dollars in picodollars (10^-12 dollars), to the nearest whole one."""
    return round(usd * PICO)


def dollars(amount: int) -> float:
    """Return picodollars in US dollars, to be shown and not to be added up."""
    return amount / PICO


def worst_case(request: Request, prices: Prices) -> int:
    """Return the most that one attempt may cost, in picodollars (contract: stages, "Spend caps").

    That is as many prompt tokens as the messages and the answer's schema have UTF-8 bytes, plus 64, and `max_tokens` of
    answer. No tokenizer makes more tokens than bytes.

    Args:
        request: what is asked.
        prices: the declared prices of the model.
    """
    # 64 covers the few tokens that a chat format puts around the messages.
    size = sum(len(m.content.encode()) for m in request.messages)
    if request.schema is not None:
        size += len(str(request.schema).encode())
    return prices.cost(size + 64, int(request.params["max_tokens"]))


@dataclass(frozen=True)
class Book:
    """What the calls of one role came to, in picodollars, by state of their entries."""

    settled: int = 0
    lost: int = 0
    open: int = 0
    reused: int = 0

    @property
    def total(self) -> int:
        """What the answers cost, whoever paid for them: the manifest's figure."""
        return self.settled + self.lost + self.open + self.reused

    @property
    def committed(self) -> int:
        """What counts against the caps: everything but answers from the cache."""
        return self.settled + self.lost + self.open


@dataclass(frozen=True)
class Refusal:
    """A reservation that was not made; `account` is the one whose cap it could have passed."""

    account: str


def account_of(call: Call) -> str:
    """Return the account of a call's model or judge: `subject:SLUG` or `judge:SLUG`."""
    return f"{call.role}:{call.request.model}"


def cap_name(account: str) -> str:
    """Return the cap of an account in words: `the run's cap`, or that of a model or judge."""
    if account == RUN_ACCOUNT:
        return "the run's cap"
    role, _, slug = account.partition(":")
    return f"the cap of {'model' if role == 'subject' else role} {slug}"


def caps_of(plan: RunPlan) -> dict[str, int]:
    """Return the caps of a plan by account, in picodollars. An account without a cap is bounded by that of the run."""
    caps = {RUN_ACCOUNT: picodollars(plan.caps.run)}
    caps |= {f"subject:{m}": picodollars(usd) for m, usd in plan.caps.models.items()}
    return caps | {f"judge:{m}": picodollars(usd) for m, usd in plan.caps.judges.items()}


class Ledger(Database):
    """The ledger in a run folder, opened by one stage.

    Args:
        folder: the run folder.
        run_id: id of the run, part of every ticket.
        stage: `eval` or `judge`.
        caps: by account, in picodollars.

    Raises:
        ToolError: the file cannot be read or written; InputError where it is damaged.
    """

    remedy = (
        "bring back a copy of it, or move it away with its -wal and -shm files: answers stay in the cache, but what was"
        " spent is counted from 0 again"
    )

    def __init__(self, folder: Path, *, run_id: str, stage: str, caps: Mapping[str, int]) -> None:
        super().__init__(folder / LEDGER, _TABLES, _VERSION)
        self.check()
        self._run, self._stage, self._caps = run_id, stage, caps
        self._failed = set(self.failures())
        self._open: dict[int, tuple[str, str, int]] = {}  # role, model, reserved of what this process has in flight

    def remember_cache(self, path: str) -> None:
        """Keep where the answers of this run are (`harness.engine.cache_choice`).

        Args:
            path: the cache's path as seen from the run's folder.
        """
        # Not among the tables above: ledgers of the same format have been written without it.
        with transaction(self._db):
            self._db.execute("CREATE TABLE IF NOT EXISTS cache_file (path TEXT NOT NULL) STRICT")
            self._db.execute("DELETE FROM cache_file")
            self._db.execute("INSERT INTO cache_file VALUES (?)", (path,))

    @property
    def connection(self) -> sqlite3.Connection:
        """The open database, for other things that a run remembers in the same file."""
        return self._db

    @property
    def owner(self) -> str:
        """Who asks under this ledger: run folder and stage, which a lock keeps to one process."""
        return f"{self.path.resolve()}#{self._stage}"

    def overruns(self) -> dict[str, int]:
        """Return the most that one call of an account cost beyond its reservation, in picodollars, where one did."""
        query = "SELECT role || ':' || model, max(cost - reserved) FROM entries WHERE state = 'settled' GROUP BY 1"
        return {name: beyond for name, beyond in self._db.execute(query) if beyond > 0}

    def ticket(self, entry: int) -> str:
        """Return the name of a reservation outside this ledger, as the cache keeps it beside an answer."""
        return f"{self._run}/{entry}"

    def reserve(self, wanted: Sequence[tuple[Call, int]]) -> list[int | Refusal]:
        """Reserve each call's worst case unless that could pass a cap.

        Args:
            wanted: (call, amount in picodollars), served in this order.

        Returns:
            For each call, in order: its entry, or the refusal.
        """
        with transaction(self._db):
            committed = self._committed()
            # Ids are given here and not by SQLite, because the rows are inserted together at the end.
            number = int(self._db.execute("SELECT coalesce(max(id), 0) FROM entries").fetchone()[0])
            made: list[int | Refusal] = []
            rows: list[tuple[object, ...]] = []
            for call, amount in wanted:
                over = self._over(call, amount, committed)
                if over is not None:
                    made.append(Refusal(over))
                    continue
                for account in (RUN_ACCOUNT, account_of(call)):
                    committed[account] = committed.get(account, 0) + amount
                number += 1
                made.append(number)
                self._open[number] = (call.role, call.request.model, amount)
                rows.append((number, self._stage, call.role, call.request.model, call.key, amount, None, "open"))
            self._insert(rows)
            self._commit_accounts(committed)
        return made

    def _over(self, call: Call, amount: int, committed: Mapping[str, int]) -> str | None:
        for account in (RUN_ACCOUNT, account_of(call)):
            cap = self._caps.get(account)
            if cap is not None and committed.get(account, 0) + amount > cap:
                return account
        return None

    def _committed(self) -> dict[str, int]:
        return dict(self._db.execute("SELECT name, committed FROM accounts"))

    def _commit_accounts(self, committed: Mapping[str, int]) -> None:
        self._db.executemany("INSERT OR REPLACE INTO accounts VALUES (?, ?)", list(committed.items()))

    def _insert(self, rows: Iterable[tuple[object, ...]]) -> None:
        self._db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def settle(
        self,
        costs: Mapping[int, int | None],
        failures: Mapping[str, str] | None = None,
        answered: Iterable[str] = (),
    ) -> None:
        """Settle reservations, in one transaction.

        Args:
            costs: by entry, the cost in picodollars; None where the attempt is lost.
            failures: by key, the code of a call that failed for good.
            answered: keys that have an answer now; an earlier failure of theirs is forgotten.
        """
        with transaction(self._db):
            committed = self._committed()
            for entry, cost in costs.items():
                if cost is not None:
                    role, model, reserved = self._open.get(entry) or self._stored(entry)
                    for account in (RUN_ACCOUNT, f"{role}:{model}"):
                        # The worst case was committed before. A lost entry stays committed at it.
                        committed[account] += cost - reserved
            self._db.executemany(
                "UPDATE entries SET cost = ?, state = iif(? IS NULL, 'lost', 'settled') WHERE id = ?",
                [(cost, cost, entry) for entry, cost in costs.items()],
            )
            self._commit_accounts(committed)
            if failures:
                self._db.executemany("INSERT OR REPLACE INTO failures VALUES (?, ?)", list(failures.items()))
                self._failed.update(failures)
            if cured := self._failed.intersection(answered):
                self._db.executemany("DELETE FROM failures WHERE key = ?", [(key,) for key in sorted(cured)])
                self._failed -= cured
        for entry in costs:
            self._open.pop(entry, None)

    def _stored(self, entry: int) -> tuple[str, str, int]:
        row = self._db.execute("SELECT role, model, reserved FROM entries WHERE id = ?", (entry,)).fetchone()
        return (row[0], row[1], row[2])

    def reuse(self, calls: Sequence[tuple[Call, int]]) -> None:
        """Book answers from the cache at what they cost when they were paid for.

        A key that this ledger knows already is not booked again.

        Args:
            calls: (call, cost in picodollars).
        """
        with transaction(self._db):
            known = self._known([call.key for call, _ in calls])
            fresh = {call.key: (call, cost) for call, cost in calls if call.key not in known}
            self._insert(
                (None, self._stage, call.role, call.request.model, call.key, 0, cost, "reused")
                for call, cost in fresh.values()
            )

    def _known(self, keys: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for i in range(0, len(keys), 500):
            # SQLite bounds the variables of a query.
            chunk = keys[i : i + 500]
            marks = ",".join("?" * len(chunk))
            query = f"SELECT key FROM entries WHERE key IN ({marks}) AND state IN ('settled', 'reused')"  # noqa: S608
            found.update(row[0] for row in self._db.execute(query, chunk))
        return found

    def unsettled(self, entries: Iterable[int]) -> set[int]:
        """Return those entries that are open or lost: their true cost is not booked."""
        query = "SELECT state FROM entries WHERE id = ?"
        states = {entry: self._db.execute(query, (entry,)).fetchone() for entry in entries}
        return {entry for entry, row in states.items() if row is not None and row[0] in ("open", "lost")}

    def asked(self, tickets: Mapping[str, str]) -> set[str]:
        """Return those keys whose answer was asked for by this run, in this sitting or an earlier one.

        An answer counts as asked where this very ledger holds the reservation that paid for it. Everything else was in
        the cache already, or another run put it there first.

        Args:
            tickets: by key, the ticket that the cache keeps beside the answer.
        """
        start = f"{self._run}/"
        numbers = {key: ticket.removeprefix(start) for key, ticket in tickets.items() if ticket.startswith(start)}
        keys, paid = list(numbers), set[tuple[str, str]]()
        for i in range(0, len(keys), 500):
            chunk = keys[i : i + 500]
            marks = ",".join("?" * len(chunk))
            query = f"SELECT key, id FROM entries WHERE key IN ({marks}) AND state <> 'reused'"  # noqa: S608
            paid.update((key, str(number)) for key, number in self._db.execute(query, chunk))
        return {key for key, number in numbers.items() if (key, number) in paid}

    def recover(
        self, cache: Cache, local: frozenset[str] = frozenset(), elsewhere: frozenset[int] = frozenset()
    ) -> int:
        """Take up what a crash left open in this stage.

        An entry whose answer reached the cache is settled at its cost. The others are lost, with two exceptions.

        Args:
            cache: where answers may have arrived.
            local: models that are answered inside this process. Nobody can bill those, so they are settled at 0.
            elsewhere: entries that a vendor still works on. They stay open, and a later process collects them.

        Returns:
            How many entries are lost. They count as spent at their worst case.
        """
        query = "SELECT id, model, key FROM entries WHERE state = 'open' AND stage = ?"
        found = self._db.execute(query, (self._stage,)).fetchall()
        left = [row for row in found if row[0] not in elsewhere]
        if not left:
            return 0
        paid = cache.paid([self.ticket(i) for i, _, _ in left], [key for _, _, key in left])
        costs = {i: paid.get(self.ticket(i), 0 if model in local else None) for i, model, _ in left}
        self.settle(costs)
        return sum(cost is None for cost in costs.values())

    def settle_lost(self, total: int) -> int:
        """Book all lost entries at what was billed for them together.

        Args:
            total: the bill in picodollars, shared out in proportion to what was reserved; the last entry takes the
                rest.

        Returns:
            How many entries there were.
        """
        lost = self._db.execute("SELECT id, reserved FROM entries WHERE state = 'lost' ORDER BY id").fetchall()
        reserved = sum(amount for _, amount in lost)
        costs, rest = {}, total
        for i, amount in lost:
            # Whole picodollars; the last entry takes what rounding leaves.
            share = min(rest, total * amount // reserved) if reserved else 0
            costs[i], rest = share, rest - share
        if lost:
            costs[lost[-1][0]] += rest
            self.settle(costs)
        return len(lost)

    def book(self, role: str) -> Book:
        """Return what the calls of a role, `subject` or `judge`, came to; raises InputError in a damaged file."""
        query = "SELECT state, sum(coalesce(cost, reserved)) FROM entries WHERE role = ? GROUP BY state"
        found = dict(self._db.execute(query, (role,)))
        if not found.keys() <= set(Book.__dataclass_fields__):
            raise self.damaged("an entry has a state that is never written")
        return Book(**found)

    def committed(self, account: str = RUN_ACCOUNT) -> int:
        """Return what an account has spent and reserved, in picodollars; 0 for one that was never used."""
        row = self._db.execute("SELECT committed FROM accounts WHERE name = ?", (account,)).fetchone()
        return int(row[0]) if row else 0

    def costs(self) -> dict[str, int]:
        """Return what each key's calls cost, in picodollars: open, settled, lost and reused together."""
        query = "SELECT key, sum(coalesce(cost, reserved)) FROM entries GROUP BY key"
        return dict(self._db.execute(query))

    def failures(self) -> dict[str, str]:
        """Return the code of each call whose last attempt failed for good, by key."""
        return dict(self._db.execute("SELECT key, code FROM failures"))

    def faults(self) -> list[str]:
        """Return where accounts differ from the sums of their entries, as in a file that was changed by hand."""
        where = "FROM entries WHERE state <> 'reused'"
        sums = dict(self._db.execute(
            f"SELECT role || ':' || model, sum(coalesce(cost, reserved)) {where} GROUP BY role, model"
        ))  # fmt: skip
        sums[RUN_ACCOUNT] = sum(sums.values())
        booked = self._committed()
        return [
            f"{self.path}: account {name} says {booked.get(name, 0)} picodollars, its entries {sums.get(name, 0)}"
            for name in sorted(sums.keys() | booked.keys())
            if booked.get(name, 0) != sums.get(name, 0)
        ]
