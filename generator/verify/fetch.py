"""Fetches a published data folder from a served site: SHA256SUMS and every file that it lists.

See contract: publication, "Verify".
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx2

from generator.data.folder import SIGNATURE, SUMS
from generator.data.table_files import SIZE_LIMIT
from generator.edition.site_pages import page_at
from generator.html.links import page_links, resolved
from generator.schema.errors import InputError
from generator.schema.names import RUN_ID
from generator.verify.hashes import read_sums

# A manifest or the dictionary may pass the limit for data files, but nothing published is larger than this.
LARGEST = 4 * SIZE_LIMIT
ALL_TOGETHER = 200 * SIZE_LIMIT  # a thousand models with their receipts come to a tenth of it
TIMEOUT = 30.0  # seconds without a byte
DEADLINE = 3600.0  # seconds for everything


def fetch_runs(url: str, folder: Path, deadline: float = DEADLINE) -> dict[str, Path]:
    """Fetch a data folder, or every run of a site, below `folder`; returns each data folder by a name for reports.

    `url` is the address of a data folder or of a site's root. Raises InputError when neither is found there, when a
    file cannot be had, or when it takes longer than `deadline` seconds, however busily bytes arrive.
    """
    try:
        return asyncio.run(_within(url.rstrip("/"), folder, deadline))
    except TimeoutError:
        raise InputError(f"{url}: not fetched whole in {deadline:,.0f} seconds; give it more with --deadline") from None


async def _within(base: str, folder: Path, deadline: float) -> dict[str, Path]:
    async with asyncio.timeout(deadline), httpx2.AsyncClient(timeout=TIMEOUT, follow_redirects=True) as client:
        return await _Fetch(client).runs(base, folder)


@dataclass
class _Fetch:
    """One fetch of a site or data folder; `size` counts the bytes that came."""

    client: httpx2.AsyncClient
    size: int = 0

    async def runs(self, base: str, folder: Path) -> dict[str, Path]:
        """Fetch what an address holds."""
        if (sums := await self._bytes(f"{base}/{SUMS}")) is not None:
            return {base: await self._folder(base, sums, folder / "data")}
        listing = await self._bytes(f"{base}/runs/index.html")
        if listing is None:
            raise InputError(f"{base}: neither {SUMS} nor runs/index.html is there; give the address of a data folder")
        found = {}
        for run_id in linked_runs(listing):
            place = f"{base}/runs/{run_id}/data"
            sums = await self._bytes(f"{place}/{SUMS}")
            if sums is not None:  # a removed run leaves a tombstone page and no data
                found[f"runs/{run_id}/data"] = await self._folder(place, sums, folder / run_id)
        if not found:
            raise InputError(f"{base}/runs/index.html: lists no run with a data folder")
        return found

    async def _folder(self, base: str, sums: bytes, folder: Path) -> Path:
        """Fetch what SHA256SUMS lists, and the signature; that a listed file is not served is found later."""
        folder.mkdir(parents=True)
        (folder / SUMS).write_bytes(sums)
        for name in (*read_sums(sums.decode("utf-8", errors="replace"), f"{base}/{SUMS}"), SIGNATURE):
            data = await self._bytes(f"{base}/{quote(name)}")
            if data is not None:
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        return folder

    async def _bytes(self, url: str) -> bytes | None:
        """Return what a URL holds, None on 404; raises InputError on any other failure or when it is too large."""
        parts, before = [], self.size
        try:
            async with self.client.stream("GET", url) as response:
                if response.status_code == httpx2.codes.NOT_FOUND:
                    return None
                response.raise_for_status()
                async for chunk in response.aiter_bytes():
                    self.size += len(chunk)
                    if self.size - before > LARGEST:
                        raise InputError(f"{url}: larger than {LARGEST:,} bytes; no published file is")
                    if self.size > ALL_TOGETHER:
                        raise InputError(f"{url}: more than {ALL_TOGETHER:,} bytes in all; no publication has as many")
                    parts.append(chunk)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise not_fetched(url, error) from None
        return b"".join(parts)


def not_fetched(url: str, error: httpx2.HTTPError | httpx2.InvalidURL) -> InputError:
    """Return what a person is told where an address gives no file."""
    if isinstance(error, httpx2.HTTPStatusError):
        return InputError(f"{url}: answered {error.response.status_code}; expected 200")
    return InputError(f"{url}: cannot be fetched: {type(error).__name__}")


def linked_runs(listing: bytes) -> list[str]:
    """Return the ids of the runs that the page of all runs leads to."""
    places = (resolved("runs/index.html", target) for target in page_links(listing).targets)
    pages = (page_at(place[0]) for place in places if place is not None)
    return sorted({p.run for p in pages if p.kind == "leaderboard" and p.run and RUN_ID.fullmatch(p.run)})
