"""HTTP for batch endpoints: small JSON calls, uploads, and result files of any size, all bounded.

See contract: stages, "Batch endpoints".
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2

from harness.batches.dialect import BatchError
from harness.calls.secret_text import Secrets
from harness.calls.unpack import PackingError, unpacked

_SHOWN = 200
_SLOWEST = 20_000  # bytes a second of an upload
_LONGEST_DOWNLOAD = 3_600.0  # seconds of one result file
_HEAD = 4_000  # bytes of an error in which its words are looked for


class BatchClient:
    """Calls below one base URL. Whatever goes wrong is a BatchError.

    Args:
        base_url: address of the endpoint.
        client: the HTTP client, with the key in its headers.
        largest_reply: bytes of a JSON reply, at most.
        largest_line: bytes of one line of a result file, at most.
        patience: seconds that one small call may take from first to last; uploads get more by their size.
        secrets: the keys in use, taken out of whatever the vendor says.
    """

    def __init__(
        self, base_url: str, client: httpx2.AsyncClient,
        *, largest_reply: int, largest_line: int, patience: float, secrets: Secrets,
    ) -> None:  # fmt: skip
        self._base, self._client = base_url.rstrip("/"), client
        self._largest_reply, self._largest_line = largest_reply, largest_line
        self._patience, self._secrets = patience, secrets

    def url(self, path: str) -> str:
        """Return the address of a path below the base URL, or an address at the same host as it is.

        Raises:
            BatchError: it leads to another host.
        """
        if not path.startswith(("http://", "https://")):
            return f"{self._base}{path}"
        own, other = httpx2.URL(self._base), httpx2.URL(path)
        if (own.scheme, own.host, own.port) != (other.scheme, other.host, other.port):
            # The key goes with every call, so it goes to no host but the one that it was given for.
            raise BatchError(f"the results are said to lie at another host ({other.host}); not asked", final=True)
        return path

    async def json(self, method: str, path: str, *, size: int = 0, **options: Any) -> dict[str, Any]:
        """Make a call and return the JSON object of its reply.

        Args:
            method: HTTP method.
            path: path below the base URL, or an address at the same host.
            size: bytes that go up with it.
            options: content, form or headers, as httpx takes them.

        Raises:
            BatchError: no reply, an error status, a reply above its bound, or no JSON object.
        """
        body = bytearray()
        async for chunk in self._stream(method, path, self._patience + size / _SLOWEST, **options):
            body += chunk
            if len(body) > self._largest_reply:
                raise BatchError(f"a reply of more than {self._largest_reply:,} bytes", final=True, sent=True)
        try:
            data = json.loads(self._secrets.mask(body.decode(errors="replace")))
        except (ValueError, RecursionError):
            raise BatchError("a reply that is not JSON", sent=True) from None
        if not isinstance(data, dict):
            raise BatchError("a reply that is no JSON object", sent=True)
        return data

    async def lines(self, path: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the JSON objects of a file of lines, such as results.

        A line that is no object is passed over, so its request counts as absent.

        Raises:
            BatchError: the connection fails, or a line is above its bound.
        """
        rest = b""
        async for chunk in self._stream("GET", path, _LONGEST_DOWNLOAD):
            # Split at line feeds only: JSON strings may hold U+2028, which splitlines takes for an end.
            *whole, rest = (rest + chunk).split(b"\n")
            if len(rest) > self._largest_line:
                raise BatchError(f"a line of more than {self._largest_line:,} bytes", final=True)
            for line in whole:
                if (found := _object(line)) is not None:
                    yield found
        if (found := _object(rest)) is not None:
            yield found

    async def _stream(self, method: str, path: str, patience: float, **options: Any) -> AsyncIterator[bytes]:
        """Yield the unpacked body; the whole of it comes within `patience` seconds, however slowly it drips."""
        try:
            async with (
                asyncio.timeout(patience),
                self._client.stream(method, self.url(path), **options) as response,
            ):
                if response.status_code >= httpx2.codes.BAD_REQUEST:
                    raise await _status_error(response, self._secrets)
                async for piece in unpacked(response.aiter_raw(), response.headers.get("content-encoding", "")):
                    yield piece
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise BatchError(f"no connection: {_words(str(error))}") from None
        except TimeoutError:
            raise BatchError(f"no whole reply within {patience:,.0f} seconds", sent=True) from None
        except PackingError as error:
            raise BatchError(f"a reply {self._secrets.mask(str(error))}", sent=True) from None
        except httpx2.HTTPError as error:
            raise BatchError(f"the connection broke: {_words(str(error)) or type(error).__name__}", sent=True) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


async def _status_error(response: httpx2.Response, secrets: Secrets) -> BatchError:
    head = b""
    try:
        async for piece in unpacked(response.aiter_raw(), response.headers.get("content-encoding", "")):
            head += piece
            if len(head) > _HEAD:
                break
    except PackingError:
        head = b""
    status = response.status_code
    passing = status in (408, 409, 425, 429)
    # A 5xx may have come from a proxy after the vendor took the request: it counts as sent.
    broken = status >= httpx2.codes.INTERNAL_SERVER_ERROR
    words = _words(secrets.mask(_message(head)))
    return BatchError(
        f"HTTP status {status}{': ' + words if words else ''}", final=not (passing or broken), sent=broken
    )


def _message(head: bytes) -> str:
    """Return an error's own message where there is one, else the start of the reply."""
    found = _object(head)
    error = found.get("error") if found else None
    message = error.get("message") if isinstance(error, Mapping) else error
    return message if isinstance(message, str) else head.decode(errors="replace")


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _words(text: str) -> str:
    """Return a vendor's words on one line, printable and short."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:_SHOWN]


def field(reply: Mapping[str, Any], name: str) -> str:
    """Return a text that a reply must have.

    Raises:
        BatchError: it is missing, empty, or no text. The vendor may have taken the request all the same.
    """
    value = reply.get(name)
    if not isinstance(value, str) or not value:
        raise BatchError(f"a reply without {name}", sent=True)
    return value


def segment(name: str) -> str:
    """Return a vendor's id as one segment of a path.

    Raises:
        BatchError: it holds characters that could lead to another path.
    """
    if not name.isascii() or not all(c.isalnum() or c in "-_." for c in name) or name in (".", ".."):
        raise BatchError("an id that can be no part of an address", final=True)
    return name
