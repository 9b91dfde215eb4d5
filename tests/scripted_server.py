"""An OpenAI-compatible server over a real socket that answers by script: every failure of a real one, on demand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Self

from tests.serving import Server

Script = Callable[[dict[str, Any], int], "Reply"]


@dataclass
class Reply:
    """What the server does with one request; `cut` ends the connection after that many bytes of the body."""

    status: int = 200
    body: bytes | dict[str, Any] = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: int | None = None

    @property
    def raw(self) -> bytes:
        """The body's bytes."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def chat(content: Any = "Yes.", **changes: Any) -> dict[str, Any]:
    """A chat completion as a vendor would send it; the model's name is filled in by the server."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage, **changes}


def finished(reason: str | None, content: Any = "Yes.", **message: Any) -> dict[str, Any]:
    """A chat completion with a finish reason, and further fields of its message."""
    data = chat(content)
    data["choices"][0]["finish_reason"] = reason
    data["choices"][0]["message"].update(message)
    return data


class _Server(Server):
    request_queue_size = 128  # the usual five would turn many workers into slow connections


class ScriptedServer:
    """Runs a script: `script(request, number)` gives the reply to the request of that number, from 0."""

    def __init__(self, script: Script | list[Reply] | None = None) -> None:
        self.script: Script = (
            _in_order(script) if isinstance(script, list) else script or (lambda *_: Reply(body=chat()))
        )
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _enter(self, request: dict[str, Any], headers: dict[str, str]) -> int:
        with self._lock:
            self.requests.append(request)
            self.headers.append(headers)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            return len(self.requests) - 1

    def _leave(self) -> None:
        with self._lock:
            self._at_once -= 1

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = json.loads(body)
                server.paths.append(self.path)
                number = server._enter(request, {k.lower(): v for k, v in self.headers.items()})
                try:
                    reply = server.script(request, number)
                    time.sleep(reply.delay)
                finally:
                    server._leave()
                self._send(reply, request)

            def _send(self, reply: Reply, request: dict[str, Any]) -> None:
                raw = reply.raw
                if isinstance(reply.body, dict) and "choices" in reply.body:
                    raw = json.dumps({"model": request["model"], **reply.body}).encode()
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(raw if reply.cut is None else raw[: reply.cut])

            def log_message(self, *args: Any) -> None:
                pass

        return Handler


def _in_order(replies: list[Reply]) -> Script:
    """Give the replies one after another; the last one again and again."""
    return lambda _, number: replies[min(number, len(replies) - 1)]
