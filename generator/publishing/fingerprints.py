"""Fingerprints of all that a publish is made from, and the state of the last one; `plan` holds the two together.

A fingerprint is a hash of contents, never of time stamps.

Imports nothing heavy, so that a publish with nothing to do ends before anything is loaded. The state of the last one
lies outside `dist/`; without it, or when the tree is not the one that was written, everything is made anew.

See contract: publication, "What a publish keeps".
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from generator.schema.places import own_folder

FORMAT = 1
HERE = Path(__file__).resolve().parent.parent
TEMPLATES = own_folder("site_templates")
PROSE = own_folder("content") / "pages"
SCHEMAS = own_folder("docs/schemas")
NOTEBOOKS = own_folder("docs/notebooks")
# Whose version can change what is written.
LIBRARIES = (
    "altair", "jinja2", "latex2mathml", "markdown-it-py", "markupsafe", "mdit-py-plugins", "numpy", "pagefind",
    "pandas", "pyarrow", "vl-convert-python",
)  # fmt: skip
# Files of a run folder that the harness works with and no page is made from.
_WORKING = (".lock", ".sqlite", ".sqlite-wal", ".sqlite-shm", ".tmp", ".part")


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_hash(*parts: str) -> str:
    """Return the SHA-256 of texts, each told apart from its neighbours."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()


def hash_files(root: Path, files: Iterable[Path]) -> str:
    """Return one hash over files, by their names below `root` and their contents."""
    return text_hash(*(f"{p.relative_to(root).as_posix()} {file_hash(p)}" for p in sorted(files)))


def _files(folder: Path, pattern: str = "**/*") -> list[Path]:
    return [p for p in folder.glob(pattern) if p.is_file() and "__pycache__" not in p.parts]


def _library(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _libraries() -> list[str]:
    return [f"{name} {_library(name)}" for name in LIBRARIES]


def code_version() -> str:
    """Return the hash of the generator's own source and of the libraries' versions."""
    return text_hash(hash_files(HERE, _files(HERE)), sys.version, *_libraries())


def sources_version(content: Path) -> str:
    """Return the hash of all that decides a page beside its run and the options: source, templates, words, libraries.

    Unlike `code_version` it is the same in a checkout and in an install, and on every machine: an auditor has to meet
    the hash that the publisher wrote.
    """
    # An install carries templates and words inside the package; `content_version` has them either way.
    beside = (TEMPLATES.name, PROSE.parent.name, SCHEMAS.name, NOTEBOOKS.name)
    own = [p for p in _files(HERE) if p.relative_to(HERE).parts[0] not in beside]
    return text_hash(hash_files(HERE, own), content_version(content), *_libraries())


def content_version(content: Path) -> str:
    """Return the hash of templates, assets, prose and the site's own files: all that is no run."""
    own = [p for p in _files(content) if p.relative_to(content).parts[0] not in ("runs", "bank")]
    return text_hash(
        hash_files(TEMPLATES, _files(TEMPLATES)),
        hash_files(PROSE, _files(PROSE)),
        hash_files(SCHEMAS, _files(SCHEMAS)),
        hash_files(NOTEBOOKS, _files(NOTEBOOKS, "*.ipynb")),
        hash_files(content, own),
    )


def run_version(folder: Path) -> str:
    """Return the hash of a run folder: manifest, bank, audit with the record of its draw, notes and every shard."""
    files = [*_files(folder, "*"), *_files(folder, "receipts/*"), *_files(folder, "audit/draw.json")]
    return hash_files(folder, (p for p in files if not p.name.endswith(_WORKING)))


@dataclass
class State:
    """What the last publish into a folder was made from, and what it left there.

    `tree`: the digest of the finished tree; `root`: the inputs of the root pages; `front`: the run that the root shows;
    `runs`: the inputs of every run; `parts`: the inputs of every part that can be kept (the receipts of a model);
    `checked`: by run, the shards whose rows were checked by code of version `code`; `modes` and `sizes`: by run, the
    mode it was built in, and the files and bytes expected of it in each mode.
    """

    tree: str = ""
    root: str = ""
    front: str = ""
    runs: dict[str, str] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)
    code: str = ""
    checked: dict[str, list[str]] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def checked_by(self, code: str, run: str) -> frozenset[str]:
        """Return the shards of a run that need no second check."""
        return frozenset(self.checked.get(run, ())) if code == self.code else frozenset()


def state_file(cache: Path, out: Path) -> Path:
    """Return where the state of an output folder is kept."""
    return cache / "publish" / f"{hashlib.sha256(str(out.resolve()).encode()).hexdigest()[:16]}.json"


def read_state(path: Path) -> State:
    """Read the last publish's state; an absent, older or damaged file is an empty state."""
    try:
        data: dict[str, Any] = json.loads(path.read_bytes())
        found = State(**data["state"]) if data["format"] == FORMAT else State()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return State()
    return found if _holds(found) else State()


def _holds(state: State) -> bool:
    """Tell whether a state that was read has the types that one has."""
    texts = (state.tree, state.root, state.front, state.code)
    maps = (state.runs, state.parts, state.checked, state.modes, state.sizes)
    if not all(isinstance(text, str) for text in texts) or not all(isinstance(found, dict) for found in maps):
        return False
    names = (*state.runs.values(), *state.parts.values(), *state.modes.values())
    lists = all(isinstance(keys, list) and all(isinstance(k, str) for k in keys) for keys in state.checked.values())
    return lists and all(isinstance(name, str) for name in names) and all(map(_is_sizes, state.sizes.values()))


def _is_sizes(found: Any) -> bool:
    pairs = [found.get(mode) for mode in ("row", "folded", "files")] if isinstance(found, dict) else [None]
    return all(isinstance(p, list) and len(p) == 2 and all(isinstance(n, int) for n in p) for p in pairs)


def write_state(path: Path, state: State) -> None:
    """Write the state whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(".tmp")
    made.write_text(json.dumps({"format": FORMAT, "state": asdict(state)}, sort_keys=True), encoding="utf-8")
    made.replace(path)


@dataclass(frozen=True)
class Footprint:
    """A tree's files, bytes, the bytes of its largest file, and a digest over name, size and time of every file.

    The digest says whether the tree is the one that a publish left; what has to be made again is never decided by it.
    """

    files: int
    bytes: int
    digest: str
    largest: int = 0


def footprint(tree: Path) -> Footprint:
    """Return the footprint of a folder; one that is not there has no files."""
    digest = hashlib.sha256()
    files, size, largest = _walk(str(tree), digest)
    return Footprint(files, size, digest.hexdigest(), largest)


def _walk(folder: str, digest: hashlib._Hash) -> tuple[int, int, int]:
    folders, facts = [], []
    try:
        with os.scandir(folder) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                else:
                    status = entry.stat(follow_symlinks=False)
                    facts.append((entry.name, status.st_size, status.st_mtime_ns))
    except FileNotFoundError:
        return 0, 0, 0
    folders.sort()
    facts.sort()
    digest.update(repr((folders, facts)).encode(errors="surrogateescape"))
    files, size, largest = len(facts), sum(fact[1] for fact in facts), max((fact[1] for fact in facts), default=0)
    for name in folders:
        more, bytes_below, largest_below = _walk(f"{folder}/{name}", digest)
        files, size, largest = files + more, size + bytes_below, max(largest, largest_below)
    return files, size, largest
