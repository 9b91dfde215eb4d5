"""A chat endpoint that fails now and then in every passing way, as a program, and keeps books of its own.

    python -m tests.soak_server SHARE

It prints its port, serves until standard input ends, then prints what it saw as one JSON object. Of the first two
attempts at a call, `SHARE` meet each kind of `KINDS`; later ones are answered. So every call ends well, and what each
request costs is known here without a look at the harness: by the usage that was sent, nothing, or unknown.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import gzip
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import format_datetime
from typing import Any

PROMPT_TOKENS, COMPLETION_TOKENS = 20, 5
USAGE = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS, "total_tokens": 25}
FAILING = 2  # attempts at one call that may fail; the third is answered, or an empty text would be kept as unusable
SLOW = 0.3  # seconds
JSON = {"Content-Type": "application/json"}
HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


@dataclass(frozen=True)
class Sent:
    """What goes back for a request: `billed` is `usage`, `nothing` or `unknown`; `last`: the call is answered by it.

    `cut` ends the connection after that many bytes of the whole reply.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    billed: str = "nothing"
    last: bool = False
    cut: int | None = None
    delay: float = 0.0


def completion(model: str, text: str | None, **changes: Any) -> bytes:
    """A chat completion; a change of None takes the field away."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    data = {"id": "x", "model": model, "choices": [choice], "usage": USAGE, **changes}
    return json.dumps({name: value for name, value in data.items() if value is not None}).encode()


def good(model: str, text: str) -> Sent:
    return Sent(body=completion(model, text), billed="usage", last=True)


def _limited(headers: Mapping[str, str], body: bytes = b'{"error": {"message": "slow down"}}') -> Sent:
    return Sent(429, body, {**JSON, **headers})


def _a_moment_on() -> str:
    return format_datetime(dt.datetime.now(dt.UTC) + dt.timedelta(seconds=1), usegmt=True)


def _unknown(body: bytes, **changes: Any) -> Sent:
    return Sent(body=body, billed="unknown", **changes)


_DELAY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.02s"}
_RETRY_INFO = json.dumps({"error": {"code": 429, "details": [_DELAY]}}).encode()
_RESETS = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20ms"}

# Each takes the model's name and the text that it would say.
KINDS: dict[str, Callable[[str, str], Sent]] = {
    "429 Retry-After in seconds": lambda *_: _limited({"Retry-After": "0.02"}),
    "429 Retry-After as a date": lambda *_: _limited({"Retry-After": _a_moment_on()}),
    "429 retry-after-ms": lambda *_: _limited({"retry-after-ms": "20"}),
    "429 RetryInfo": lambda *_: _limited({}, _RETRY_INFO),
    "429 reset header": lambda *_: _limited(_RESETS),
    "408": lambda *_: Sent(408),
    "425": lambda *_: Sent(425),
    "500": lambda *_: Sent(500, b'{"error": {"message": "internal"}}'),
    "502 page": lambda *_: Sent(502, HTML, {"Content-Type": "text/html"}),
    "503": lambda *_: Sent(503, b"busy", {"Content-Type": "text/plain"}),
    "529": lambda *_: Sent(529, b'{"type": "error", "error": {"type": "overloaded_error"}}'),
    "broken before the reply": lambda *_: _unknown(b"", cut=0),
    "broken in the headers": lambda *_: _unknown(b"", cut=20),
    "broken in the body": lambda model, text: _unknown(completion(model, text), cut=200),
    "half a JSON": lambda model, text: _unknown(completion(model, text)[:-30]),
    "a page with 200": lambda *_: Sent(200, HTML, {"Content-Type": "text/html"}),
    "not UTF-8": lambda *_: _unknown(b'{"choices": "\xff"}'),
    "not an object": lambda *_: _unknown(b"[]"),
    "no choices": lambda model, _: Sent(body=completion(model, "", choices=[]), billed="usage"),
    "half a surrogate": lambda model, _: Sent(body=completion(model, "Yes \ud83d."), billed="usage"),
    "empty text": lambda model, _: Sent(body=completion(model, "  "), billed="usage"),
    "null text": lambda model, _: Sent(body=completion(model, None), billed="usage"),
    "error in a 200": lambda *_: Sent(body=b'{"error": {"code": 503, "message": "overloaded"}}', billed="unknown"),
    "error in a 200 with usage": lambda model, _: Sent(
        body=completion(model, "", choices=None, error={"message": "worker died"}), billed="usage"
    ),
    "finish_reason error": lambda model, _: Sent(
        body=completion(model, "", choices=[{"finish_reason": "error", "message": {"content": "Ye"}}]), billed="usage"
    ),
    "gzip cut off": lambda model, text: _unknown(
        gzip.compress(completion(model, text))[:-12], headers={**JSON, "Content-Encoding": "gzip"}
    ),
    "gzip that is none": lambda model, text: _unknown(
        completion(model, text), headers={**JSON, "Content-Encoding": "gzip"}
    ),
    "a packing nobody asked for": lambda model, text: _unknown(
        completion(model, text), headers={**JSON, "Content-Encoding": "br"}
    ),
    # These are answers all the same.
    "slow": lambda model, text: Sent(body=completion(model, text), billed="usage", last=True, delay=SLOW),
    "called plain text": lambda model, text: Sent(
        body=completion(model, text), headers={"Content-Type": "text/plain"}, billed="usage", last=True
    ),
    "packed": lambda model, text: Sent(
        body=gzip.compress(completion(model, text)), headers={**JSON, "Content-Encoding": "gzip"}, billed="usage",
        last=True,
    ),
    "no usage": lambda model, text: _unknown(completion(model, text, usage=None), last=True),
    "usage of zeros": lambda model, text: _unknown(
        completion(model, text, usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}), last=True
    ),
}  # fmt: skip


@dataclass
class Seen:
    """What one model was asked and what that cost; `bytes` and `limit` are of the requests whose cost is unknown."""

    requests: int = 0
    calls: int = 0
    twice: int = 0
    paid: int = 0
    unknown: int = 0
    bytes: int = 0
    limit: int = 0


class Book:
    """Decides on each reply and counts; `share` of first and second attempts meet each kind."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._attempts: Counter[bytes] = Counter()
        self._ended: set[bytes] = set()
        self.seen: dict[str, Seen] = {}
        self.kinds: Counter[str] = Counter()

    def reply(self, request: Mapping[str, Any]) -> Sent:
        """Return what one request brings. A call is told by its model, messages and repeat, which its seed holds."""
        model, messages = str(request["model"]), request["messages"]
        call = hashlib.sha256(json.dumps([model, messages, request["seed"] % 1_000_003]).encode()).digest()
        attempt = self._attempts[call]
        self._attempts[call] += 1
        sent = self._chosen(call, attempt, model, said(request, call))
        self._count(self.seen.setdefault(model, Seen()), call, sent, request)
        return sent

    def _chosen(self, call: bytes, attempt: int, model: str, text: str) -> Sent:
        if attempt < FAILING:
            drawn = int.from_bytes(hashlib.sha256(call + bytes([attempt])).digest()[:8]) / 2**64
            if (number := int(drawn / self._share)) < len(KINDS):
                name = list(KINDS)[number]
                self.kinds[name] += 1
                return KINDS[name](model, text)
        return good(model, text)

    def _count(self, seen: Seen, call: bytes, sent: Sent, request: Mapping[str, Any]) -> None:
        seen.requests += 1
        seen.twice += call in self._ended
        if sent.last:
            self._ended.add(call)
            seen.calls += 1
        if sent.billed == "usage":
            seen.paid += 1
        elif sent.billed == "unknown":
            seen.unknown += 1
            seen.bytes += sum(len(m["content"].encode()) for m in request["messages"])
            seen.limit += request["max_tokens"]

    def as_json(self) -> dict[str, Any]:
        return {"kinds": dict(self.kinds), "models": {name: vars(seen) for name, seen in self.seen.items()}}


def said(request: Mapping[str, Any], call: bytes) -> str:
    """The text of an answer: a verdict where one is asked for, of two labels or scores that vary with the call."""
    schema = request.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is None:
        return f"There are good reasons on both sides ({call.hex()[:8]}). SUPPORT"
    evidence = {"evidence": "ends with SUPPORT"}
    if "score" in schema["properties"]:
        return json.dumps({"score": 40 + call[0] % 2 * 30, "refusal": False, **evidence})
    labels = schema["properties"]["label"]["enum"]
    return json.dumps({"label": labels[call[0] % 2], "verdict_matches_prose": True, **evidence})


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, book: Book) -> None:
    """Answer the requests of one connection, one after another."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            fields = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:] if ": " in line)
            length = next(int(value) for name, value in fields.items() if name.lower() == "content-length")
            sent = book.reply(json.loads(await reader.readexactly(length)))
            await asyncio.sleep(sent.delay)
            raw = _raw(sent)
            writer.write(raw if sent.cut is None else raw[: sent.cut])
            await writer.drain()
            if sent.cut is not None:
                return
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        writer.close()


def _raw(sent: Sent) -> bytes:
    headers = {**sent.headers, "Content-Length": str(len(sent.body))}
    lines = [f"HTTP/1.1 {sent.status} X", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + sent.body


async def serve(share: float) -> None:
    """Serve until standard input ends, then print what was seen."""
    book = Book(share)
    server = await asyncio.start_server(lambda r, w: answer(r, w, book), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps(book.as_json()), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
