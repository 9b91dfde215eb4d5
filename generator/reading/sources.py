"""Where a published run's data lie: a folder, an archive or an address. Each gives the bytes of a file by its name.

A source promises nothing about what it returns; `PublishedRun` holds every file against its hash.

See contract: publication, "From Python".
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol
from urllib.parse import quote, urlsplit, urlunsplit

import httpx2

from generator.schema import bounded_files
from generator.schema.bounded_files import read_bytes
from generator.schema.errors import InputError
from generator.verify.fetch import not_fetched

from .archive import first_line, members, opened_tape, unpacked_tape

MANIFEST = "manifest.json"
_TIMEOUT = 30.0  # seconds without a byte
_PAGES = ("index.html", MANIFEST)


class RunSource(Protocol):
    """The data folder of one run, wherever it lies."""

    @property
    def where(self) -> str:
        """The place, as messages name it."""

    @property
    def remote(self) -> bool:
        """Whether a file is worth keeping once it was read."""

    def read(self, name: str, most: int) -> bytes:
        """Return a file of the data folder.

        Raises:
            FileNotFoundError: there is no such file.
            InputError: it is larger than `most` bytes or cannot be read.
        """


@dataclass(frozen=True)
class FolderSource:
    """A data folder on this machine."""

    folder: Path
    remote: bool = False

    @property
    def where(self) -> str:
        """The folder."""
        return str(self.folder)

    def read(self, name: str, most: int) -> bytes:
        """Return a file below the folder."""
        return read_bytes(self.folder / name, most)


@dataclass(frozen=True)
class ArchiveSource:
    """A data folder in a ZIP or tar archive, the latter packed in any way.

    `prefix` is its place in there, "" or a path with a slash at the end.
    """

    path: Path
    prefix: str = ""
    remote: bool = False

    @property
    def where(self) -> str:
        """The archive and the folder in it."""
        return f"{self.path}:{self.prefix}" if self.prefix else str(self.path)

    def read(self, name: str, most: int) -> bytes:
        """Return a member; it is unpacked no further than `most` bytes, and no link is followed."""
        try:
            return self._read(self.prefix + name, name, most)
        except KeyError:
            raise FileNotFoundError(name) from None
        except InputError:
            raise
        except Exception as error:  # damage shows as a different exception for each way of packing
            raise InputError(f"{self.where}: {name} cannot be unpacked: {first_line(error)}") from None

    def _read(self, place: str, name: str, most: int) -> bytes:
        if zipfile.is_zipfile(self.path):
            with zipfile.ZipFile(self.path) as packed, packed.open(place) as member:
                return self._bounded(member, name, most)
        with opened_tape(unpacked_tape(self.path)) as tape:
            found = tape.extractfile(members(self.path)[place])
            assert found is not None  # `members` holds plain files alone
            with found:
                return self._bounded(found, name, most)

    def _bounded(self, member: IO[bytes], name: str, most: int) -> bytes:
        data = member.read(most + 1)
        if len(data) > most:
            raise InputError(f"{self.where}: {name} is larger than {most:,} bytes, the most that is read of it")
        return data

    def manifests(self) -> list[str]:
        """Return the paths of all members that may be a data manifest, the uppermost first."""
        try:
            if zipfile.is_zipfile(self.path):
                with zipfile.ZipFile(self.path) as packed:
                    names = packed.namelist()
            else:
                names = list(members(self.path))
        except InputError:
            raise
        except Exception as error:  # as above
            reason = first_line(error)
            raise InputError(f"{self.path}: neither a folder nor a ZIP or tar archive: {reason}") from None
        found = [name for name in names if PurePosixPath(name).name == MANIFEST]
        return sorted(found, key=lambda name: (name.count("/"), name.encode()))


@dataclass(frozen=True)
class WebSource:
    """A data folder that is served over HTTP. `deadline`: seconds that one file may take."""

    address: str
    deadline: float
    remote: bool = True

    @property
    def where(self) -> str:
        """The address."""
        return self.address

    def read(self, name: str, most: int) -> bytes:
        """Return what the address of a file answers."""
        url, parts, size = f"{self.address}/{quote(name)}", [], 0
        end = time.monotonic() + self.deadline
        try:
            with httpx2.stream("GET", url, timeout=_TIMEOUT, follow_redirects=True) as answer:
                if answer.status_code == httpx2.codes.NOT_FOUND:
                    raise FileNotFoundError(name)
                answer.raise_for_status()
                for part in answer.iter_bytes():
                    size += len(part)
                    if size > most:
                        raise InputError(f"{url}: larger than {most:,} bytes, the most that is read of it")
                    if time.monotonic() > end:
                        raise InputError(f"{url}: not there whole in {self.deadline:,.0f} seconds; raise `deadline`")
                    parts.append(part)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise not_fetched(url, error) from None
        return b"".join(parts)


def open_source(where: str | Path, deadline: float) -> tuple[RunSource, bytes]:
    """Find the data folder that a person means, and read its manifest.

    Args:
        where: the address of a run or of its data folder; the folder of either; an archive that holds one of them.
        deadline: seconds that a file may take over HTTP.

    Returns:
        The source, and the bytes of `manifest.json`.

    Raises:
        InputError: no data folder is there, or an archive holds those of several runs.
    """
    tried = []
    for source in _candidates(where, deadline):
        tried.append(source.where)
        try:
            data = source.read(MANIFEST, bounded_files.JSON)
        except FileNotFoundError:
            continue
        if _is_data_manifest(data):
            return source, data
    raise InputError(
        f"{where}: no published run is there (looked for {MANIFEST} of a data folder in "
        f"{' and '.join(tried) or 'it'}); give the address or folder of one run, such as runs/2026-12, or of its data"
    )


def _candidates(where: str | Path, deadline: float) -> Iterator[RunSource]:
    if isinstance(where, str) and urlsplit(where).scheme in ("http", "https"):
        base = _without_page(where)
        yield from (WebSource(place, deadline) for place in _below(base, base.endswith("/data")))
        return
    path = Path(where)
    if path.name == MANIFEST:
        path = path.parent
    if path.is_dir():
        yield from (FolderSource(Path(place)) for place in _below(str(path), path.name == "data"))
        return
    if not path.is_file():
        raise InputError(f"{where}: no such folder or archive")
    archive = ArchiveSource(path)
    found = [ArchiveSource(path, name.removesuffix(MANIFEST)) for name in archive.manifests()]
    runs = [source for source in found if _is_data_manifest(source.read(MANIFEST, bounded_files.JSON))]
    if len(runs) > 1:
        places = ", ".join(source.prefix for source in runs)
        raise InputError(f"{where}: holds several runs ({places}); unpack it and give the folder of one")
    yield from runs


def _below(base: str, data: bool) -> list[str]:
    """Return where the data folder may be, the likelier place first."""
    return [base, f"{base}/data"] if data else [f"{base}/data", base]


def _without_page(address: str) -> str:
    """Return the address of a folder: without the name of a page, query, fragment or slash at the end."""
    parts = urlsplit(address)
    head, _, last = parts.path.rpartition("/")
    path = head if last in _PAGES else parts.path
    return urlunsplit((parts.scheme, parts.netloc, path.rstrip("/"), "", ""))


def _is_data_manifest(data: bytes) -> bool:
    """Tell a data manifest from the harness's manifest, and from the page that some hosts send for every address."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {"files", "run", "receipts"} <= found.keys()
