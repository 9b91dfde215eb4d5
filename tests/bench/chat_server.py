"""A chat endpoint that costs next to nothing, as a program: `python -m tests.bench.chat_server`. Prints its port.

It answers each POST with the same completion and keeps connections open, so that a benchmark measures its client.
"""

from __future__ import annotations

import asyncio
import json
import sys

TEXT = "There are good reasons on both sides; on balance I would agree with it. SUPPORT"
BODY = json.dumps({
    "id": "x", "object": "chat.completion", "model": "one",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": TEXT}}],
    "usage": {"prompt_tokens": 90, "completion_tokens": 20, "total_tokens": 110},
}).encode()  # fmt: skip
REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY


class Answering(asyncio.Protocol):
    """Reads requests one after another and answers each."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            start = head.find(b"content-length:") + 15
            length = int(head[start : (head + b"\r\n").find(b"\r\n", start)])
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            self._transport.write(REPLY)


async def serve() -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
