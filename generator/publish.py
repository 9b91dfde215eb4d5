"""Builds the whole publication (SPEC 6 and 7): plan from content hashes, build what changed, keep the rest, swap.

A publish with nothing to do ends before anything heavy is loaded.
"""

from __future__ import annotations

from collections.abc import Callable

from generator.incremental import footprint, read_state, state_file
from generator.publish_plan import Options, Outcome, plan_of
from generator.tree import check_site

__all__ = ["Options", "Outcome", "publish"]


def publish(options: Options, report: Callable[[str], None] = lambda _: None) -> Outcome:
    """Bring the site in `options.out` up to date with its inputs; the old site stays whole until the new one is."""
    check_site(options.out)  # before the walk below: a slip such as --out / would be walked for minutes
    file = state_file(options.cache_folder, options.out)
    state = read_state(file)
    before = footprint(options.out)
    plan = plan_of(options, state, before)
    if plan.idle:
        return Outcome(kept=list(plan.keep), front=state.front, files=before.files, bytes=before.bytes)
    from generator.build import build

    return build(options, plan, state, report, file)
