"""Which runs of a site are compared: only runs of one bank hash and one kind that have a model in common.

Takes manifests alone. See methodology: change, "What can be compared".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from generator.schema.manifest import Manifest

Reason = Literal["bank", "kind", "nobody"]


@dataclass(frozen=True)
class Family:
    """Runs of one bank hash and one kind, the oldest first."""

    runs: tuple[Manifest, ...]

    @property
    def newest(self) -> Manifest:
        """The last of them."""
        return self.runs[-1]


def incomparable(old: Manifest, new: Manifest) -> Reason | None:
    """Return why two runs cannot be compared, or None.

    `bank`: another bank hash; `kind`: one is simulated and the other is not; `nobody`: no model is in both.
    """
    if old.bank_sha256 != new.bank_sha256:
        return "bank"
    if old.kind != new.kind:
        return "kind"
    return None if matches(old, new) else "nobody"


def matches(old: Manifest, new: Manifest) -> dict[str, str]:
    """Return the model of the older run that each model of the newer one is compared with.

    That is the model that it follows by its vendor's word, or the one of the same name.
    """
    there, found = {model.model for model in old.models}, {}
    for model in new.models:
        before = model.successor_of if model.successor_of in there else model.model
        if before in there:
            found[model.model] = before
    return dict(sorted(found.items(), key=lambda item: item[0].encode()))


def families(runs: Iterable[Manifest]) -> list[Family]:
    """Return the runs by bank hash and kind, each family from the oldest run to the newest; the newest family first.

    Runs of one day stand in the order of their ids.
    """
    found = defaultdict[tuple[str, str], list[Manifest]](list)
    for run in sorted(runs, key=lambda m: (m.date, m.run_id)):
        found[run.bank_sha256, run.kind].append(run)
    return sorted(
        (Family(tuple(own)) for own in found.values()), key=lambda f: (f.newest.date, f.newest.run_id), reverse=True
    )


def pairs_of(family: Family) -> list[tuple[Manifest, Manifest]]:
    """Return (older, newer) of the runs that get a page: each with the one before it, and each with the newest.

    Runs without a common model make no pair. The newest pairs stand first.
    """
    runs = family.runs
    steps = list(pairwise(runs))[::-1]
    pairs = [*steps[:1], *((old, family.newest) for old in runs[-3::-1]), *steps[1:]]
    return [(old, new) for old, new in pairs if incomparable(old, new) is None]
