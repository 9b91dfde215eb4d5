"""Which mode a publish builds in: a page a row where the host takes it, else folded, else files, for all runs alike.

A run that need not be made again counts with what was expected of it when it was built, so that the choice is that of a
clean build; where the choice changes, it has to be made again after all.

See contract: publication, "Hosts and modes".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from generator.edition.edition import Mode
from generator.publishing.fingerprints import State, footprint
from generator.publishing.hosts import HOSTS, MODES, Size, faults, fitting_mode
from generator.publishing.plan import Options, PublishPlan


@dataclass(frozen=True)
class Choice:
    """The mode, and the runs that stand in the old tree in the other one."""

    mode: Mode
    stale: tuple[str, ...]


def chosen_mode(
    options: Options,
    plan: PublishPlan,
    state: State,
    expected: Mapping[str, Mapping[Mode, Size]],
    report: Callable[[str], None],
) -> Choice:
    """Choose the mode; `expected` are the sizes of the runs to build. Raises InputError when the site fits in neither.

    Runs that the publish is not about count as they stand.
    """
    host = HOSTS[options.host]
    sizes: dict[Mode, Size] = {mode: Size(0, 0) for mode in MODES}
    kept = [kept_sizes(options.out, run, plan, state) for run in plan.keep]
    for found in (*kept, *expected.values()):
        for mode, size in found.items():
            sizes[mode] += size
    mode = fitting_mode(host, sizes, options.mode)
    for name, size in sizes.items():
        fits = "; ".join(faults(host, size)) or f"fits {host.name}"
        report(f"{name} mode: about {size.text()}; {fits}")
    report(f"building in {mode} mode for {host.name}{f' ({host.advice})' if host.advice else ''}")
    return Choice(mode, tuple(run for run in plan.movable if state.modes.get(run, mode) != mode))


def kept_sizes(out: Path, run: str, plan: PublishPlan, state: State) -> dict[Mode, Size]:
    """Return the sizes that count for a run of the old tree."""
    known = state.sizes.get(run)
    if known and known.keys() >= set(MODES) and run in plan.movable:
        return {mode: Size(*known[mode]) for mode in MODES}
    stands = footprint(out / "runs" / run)
    return dict.fromkeys(MODES, Size(stands.files, stands.bytes))
