"""Builds the whole publication: plan from content hashes, build what changed, keep the rest, swap.

A publish with nothing to do ends before anything heavy is loaded.

See contract: publication, "Publish".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from generator.machine.site_tree import check_site, locked
from generator.publishing.fingerprints import State, file_hash, footprint, read_state, state_file
from generator.publishing.plan import Options, PublishOutcome, PublishPlan, plan_of

__all__ = ["Options", "PublishOutcome", "publish"]


def publish(options: Options, report: Callable[[str], None] = lambda _: None) -> PublishOutcome:
    """Bring the site in `options.out` up to date with its inputs; the old site stays whole until the new one is."""
    check_site(options.out)  # before the walk below: a slip such as --out / would be walked for minutes
    outcome = _published(options, report)
    for run in sorted({*outcome.built, *outcome.kept}):
        outcome.pins[run] = file_hash(options.out / "runs" / run / "data" / "manifest.json")
    return outcome


def _published(options: Options, report: Callable[[str], None]) -> PublishOutcome:
    file = state_file(options.cache_folder, options.out)
    planned = _planned(options, file)
    if isinstance(planned, PublishOutcome):
        return planned
    from generator.publishing.build import build

    with locked(options.out):
        # Another publish may have ended since: what holds is decided under the lock.
        planned = _planned(options, file)
        return planned if isinstance(planned, PublishOutcome) else build(options, *planned, report, file)


def _planned(options: Options, file: Path) -> PublishOutcome | tuple[PublishPlan, State]:
    """Return the plan and the state that it was made from, or the outcome where there is nothing to do."""
    state, before = read_state(file), footprint(options.out)
    plan = plan_of(options, state, before)
    if plan.idle:
        return PublishOutcome(
            kept=list(plan.keep), front=state.front, files=before.files, bytes=before.bytes, largest=before.largest
        )
    return plan, state
