"""Fetches a published data folder from a served site: SHA256SUMS and every file that it lists.

See contract: publication, "Verify".
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import httpx2

from generator.data.folder import SUMS
from generator.data.table_files import SIZE_LIMIT
from generator.schema.errors import InputError
from generator.schema.names import RUN_ID
from generator.verify.hashes import read_sums

# A manifest or the dictionary may pass the limit for data files, but nothing published is larger than this.
LARGEST = 4 * SIZE_LIMIT
TIMEOUT = 30.0
_RUN_LINK = re.compile(r'href="([^"/]+)/index\.html"')


def fetch_runs(url: str, folder: Path) -> dict[str, Path]:
    """Fetch a data folder, or every run of a site, below `folder`; returns each data folder by a name for reports.

    `url` is the address of a data folder or of a site's root. Raises InputError when neither is found there, or when a
    file cannot be had.
    """
    base = url.rstrip("/")
    with httpx2.Client(timeout=TIMEOUT, follow_redirects=True) as client:
        if (sums := _text(client, f"{base}/{SUMS}")) is not None:
            return {base: _fetch_folder(client, base, sums, folder / "data")}
        listing = _text(client, f"{base}/runs/index.html")
        if listing is None:
            raise InputError(f"{base}: neither {SUMS} nor runs/index.html is there; give the address of a data folder")
        found = {}
        for run_id in sorted({r for r in _RUN_LINK.findall(listing) if RUN_ID.fullmatch(r)}):
            place = f"{base}/runs/{run_id}/data"
            text = _text(client, f"{place}/{SUMS}")
            if text is None:
                continue  # a removed run leaves a tombstone page and no data
            found[f"runs/{run_id}/data"] = _fetch_folder(client, place, text, folder / run_id)
    if not found:
        raise InputError(f"{base}/runs/index.html: lists no run with a data folder")
    return found


def _fetch_folder(client: httpx2.Client, base: str, sums: str, folder: Path) -> Path:
    """Fetch what SHA256SUMS lists; a file that is not served is left out, and its absence is then a finding."""
    folder.mkdir(parents=True)
    (folder / SUMS).write_text(sums, encoding="utf-8")
    for name in read_sums(sums, f"{base}/{SUMS}"):
        data = _bytes(client, f"{base}/{quote(name)}")
        if data is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return folder


def _text(client: httpx2.Client, url: str) -> str | None:
    data = _bytes(client, url)
    return None if data is None else data.decode("utf-8", errors="replace")


def _bytes(client: httpx2.Client, url: str) -> bytes | None:
    """Return what a URL holds, None on 404; raises InputError on any other failure or when it is too large."""
    try:
        with client.stream("GET", url) as response:
            if response.status_code == httpx2.codes.NOT_FOUND:
                return None
            response.raise_for_status()
            parts, size = [], 0
            for chunk in response.iter_bytes():
                size += len(chunk)
                if size > LARGEST:
                    raise InputError(f"{url}: larger than {LARGEST:,} bytes; no published file is")
                parts.append(chunk)
            return b"".join(parts)
    except httpx2.HTTPStatusError as error:
        raise InputError(f"{url}: answered {error.response.status_code}; expected 200") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise InputError(f"{url}: cannot be fetched: {type(error).__name__}") from None
