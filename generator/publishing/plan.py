"""What a publish has to do: options in, and from content hashes alone which runs to build, keep and remove.

Imports nothing heavy, so that a publish with nothing to do ends before pages or scores are loaded.

See contract: publication, "What a publish keeps".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from generator.edition.history import HISTORY, History, read_history
from generator.publishing.fingerprints import (
    Footprint,
    State,
    code_version,
    content_version,
    run_version,
    text_hash,
)
from generator.schema.errors import InputError, raise_faults
from generator.schema.names import path_fault

if TYPE_CHECKING:
    from generator.data.ssh_signature import Signer
    from generator.edition.edition import Mode


@dataclass(frozen=True)
class Options:
    """What the command line asks for.

    `runs`: the runs to build, empty for all. `remove`: runs to replace by a tombstone. `mode`: None lets the host
    decide. `jobs`: processes on this machine. `dask`: a scheduler's address. `sign`: who signs the data manifests.
    """

    out: Path
    runs: tuple[str, ...] = ()
    content: Path = Path("content")
    base_url: str | None = None
    host: str = "plain"
    mode: Mode | None = None
    preview: bool = False
    withhold: bool = False
    remove: tuple[str, ...] = ()
    jobs: int = 1
    dask: str | None = None
    cache: Path | None = None
    sign: Signer | None = None

    @property
    def key(self) -> str:
        """What of the options changes the bytes of a run."""
        asked = [self.base_url, self.host, self.mode, self.preview, self.withhold]
        return json.dumps([*asked, *([self.sign.public.line] if self.sign else [])])

    @property
    def cache_folder(self) -> Path:
        """Where state and finished charts are kept, outside the site."""
        return self.cache or self.content.resolve().parent / ".cache"


@dataclass(frozen=True)
class PublishPlan:
    """What a publish has to do.

    `build`: run folders to build, by id; `keep`: runs that stay as they stand in the old tree; `removed`: tombstones
    that the site has afterwards; `keys`: the inputs of every run of the finished site; `root`: those of the root pages;
    `superseded`: which run supersedes which; `fixed`: options, code and content, what all runs have in common.
    `unchanged`: the folders of kept runs that are what the old tree was made from; `movable`: those of them that this
    publish is about, so that it may build them anew.
    """

    build: dict[str, Path]
    keep: tuple[str, ...]
    removed: tuple[str, ...]
    keys: dict[str, str]
    root: str
    superseded: dict[str, str]
    trusted: bool
    code: str = ""
    fixed: str = ""
    idle: bool = False
    unchanged: dict[str, Path] = field(default_factory=dict)
    movable: tuple[str, ...] = ()

    def rebuilding(self, runs: tuple[str, ...]) -> PublishPlan:
        """Return the plan that builds some unchanged runs, too."""
        build = {**self.build, **{run: self.unchanged[run] for run in runs}}
        return replace(self, build=build, keep=tuple(run for run in self.keep if run not in runs))


@dataclass
class PublishOutcome:
    """What a publish did: for the command line and for scripts. `pins`: by run, the hash of its data manifest.

    `files`, `bytes`, `largest`: the site's, the last the bytes of its largest file.
    """

    built: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    front: str = ""
    changed: bool = False
    files: int = 0
    bytes: int = 0
    largest: int = 0
    pins: dict[str, str] = field(default_factory=dict)


def run_folders(content: Path) -> dict[str, Path]:
    """Return the run folders whose judge stage has finished, by run id; raises InputError for a name not in UTF-8."""
    found = sorted(p.parent for p in (content / "runs").glob("*/manifest.json"))
    raise_faults([fault for fault in (path_fault(str(folder)) for folder in found) if fault])
    return {folder.name: folder for folder in found}


def check_known(content: Path, *runs: str) -> None:
    """Raise InputError for runs that a content folder does not hold."""
    folders = run_folders(content)
    there = ", ".join(folders) or "none"
    raise_faults(
        [f"run {run}: no finished run of that name in {content / 'runs'}; there are: {there}" for run in runs
         if run not in folders]
    )  # fmt: skip


def _chosen(options: Options, folders: Mapping[str, Path], tombstones: set[str], history: History) -> dict[str, Path]:
    """Return the run folders that this publish is about; a withdrawn run never comes back, a removed one by name."""
    known = ", ".join(folders) or "none"
    where = options.content / "runs"
    unknown = [run for run in options.runs if run not in folders]
    both = sorted(set(options.runs) & set(options.remove))
    found = [f"run {run}: no finished run of that name in {where}; there are: {known}" for run in unknown]
    found += [f"run {run}: named both to publish and to remove" for run in both]
    for entry in history.withdrawn:
        if entry.run in options.runs:
            found.append(
                f"run {entry.run}: withdrawn on {entry.date} by {options.content / HISTORY}; a withdrawn run is never "
                "published again. Give a corrected run a name of its own"
            )
    if found:
        raise InputError(*found)
    gone = tombstones | set(options.remove)
    return {run: folder for run, folder in folders.items() if run in options.runs or not (options.runs or run in gone)}


def _supersedes(folders: Mapping[str, Path], out: Path, kept: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return (run, the run that it supersedes) from the oldest to the newest, from manifests as they lie on disk."""
    manifests = {run: folder / "manifest.json" for run, folder in folders.items()}
    manifests |= {run: out / "runs" / run / "data" / "run_manifest.json" for run in kept}
    found = []
    for run, file in manifests.items():
        try:
            data: Any = json.loads(file.read_bytes())
            found.append((str(data["date"]), run, str(data["supersedes"] or "")))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # load_run says what is wrong with it
    return [(run, old) for _, run, old in sorted(found) if old]


def plan_of(options: Options, state: State, before: Footprint) -> PublishPlan:
    """Decide what to build, from content hashes alone."""
    out = options.out
    trusted = bool(state.tree) and before.digest == state.tree
    stands = {p.parent.parent.name for p in out.glob("runs/*/data/manifest.json")}
    history = read_history(options.content / HISTORY)
    withdrawn = history.withdrawn_runs
    tombstones = {p.parent.name for p in out.glob("runs/*/index.html")} - stands | withdrawn
    folders = run_folders(options.content)
    chosen = _chosen(options, folders, tombstones, history)
    missing = [run for run in options.remove if run not in stands | withdrawn]
    if missing:
        raise InputError(*(f"--remove {run}: {out} has no run of that name" for run in missing))
    others = tuple(sorted(stands - set(chosen) - set(options.remove) - withdrawn))
    if not chosen and not others:
        raise InputError(_nothing_left(options, folders))
    every = {*chosen, *others, *tombstones, *options.remove}
    pairs = _supersedes(chosen, out, others)
    superseded, supersedes = history.successors({old: run for run, old in pairs}), dict(pairs)
    code, content = code_version(), content_version(options.content)
    fixed = (options.key, code, content)

    def key(run: str, folder: Path) -> str:
        older = supersedes.get(run, "")
        return text_hash(*fixed, run_version(folder), superseded.get(run, ""), older if older in every else "")

    keys = {run: key(run, folder) for run, folder in folders.items() if run in every}
    unchanged = {run: folders[run] for run, own in keys.items() if trusted and state.runs.get(run) == own}
    unchanged = {run: folder for run, folder in unchanged.items() if run in stands and run not in options.remove}
    build = {run: folder for run, folder in chosen.items() if run not in unchanged}
    keep = tuple(sorted({*others, *(set(chosen) - set(build))}))
    removed = tuple(sorted((tombstones | set(options.remove)) - set(chosen)))
    # What a run of an untrusted tree was made from is not known.
    keys = {run: keys[run] for run in chosen} | {run: state.runs.get(run, "") if trusted else "" for run in others}
    root = text_hash(*fixed, *(f"{run} {keys[run]}" for run in sorted(keys)), "removed", *removed)
    idle = trusted and not build and not options.remove and root == state.root
    return PublishPlan(
        build, keep, removed, keys, root, superseded, trusted, code, text_hash(*fixed), idle,
        unchanged={run: folder for run, folder in unchanged.items() if run in keep},
        movable=tuple(run for run in keep if run in unchanged and run in chosen),
    )  # fmt: skip


def _nothing_left(options: Options, folders: Mapping[str, Path]) -> str:
    if folders:
        return f"{options.out}: nothing would be left; a site needs one run at least. Publish another run with it"
    return f"{options.content / 'runs'}: no finished run to publish; `aibiasbench demo` makes one"
