"""A server with the batch endpoints of two vendors over a real socket: OpenAI's files and batches, Anthropic's batches.

It keeps every file and batch that it was given, so that a test can count what was handed in and what was paid for. What
goes wrong is set on it: see the fields of `Faults`.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.scripted_server import chat

# What the model says to one request: (status, body of a chat completion or of an error).
Say = Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]


@dataclass
class Faults:
    """What goes wrong.

    `polls` before a batch ends. `cut_at_submit`: so many times the batch is made, but the connection breaks before the
    answer. `refuse_submit`: so many times submitting ends in this status. `state` overrides the word of an ended batch;
    `expire_after` results, the rest is not tried. `no_files`: an ended batch names none. `missing`: custom_ids whose
    number is in here never come back; `twice` come twice. `errors`: reasons of a batch that failed.
    """

    polls: int = 1
    cut_at_submit: int = 0
    refuse_submit: list[int] = field(default_factory=list)
    refuse_poll: list[int] = field(default_factory=list)
    state: str | None = None
    expire_after: int | None = None
    no_files: bool = False
    missing: set[int] = field(default_factory=set)
    twice: bool = False
    errors: list[str] = field(default_factory=list)
    results_url: str | None = None
    cut_results: int = 0
    said: str = "not now"
    drip: bool = False


@dataclass
class Batch:
    """One batch as the server keeps it."""

    name: str
    requests: list[dict[str, Any]]
    metadata: dict[str, str]
    polls: int = 0
    results: list[dict[str, Any]] = field(default_factory=list)


class BatchServer:
    """Speaks both vendors' forms below one base URL."""

    def __init__(self, say: Say | None = None, faults: Faults | None = None) -> None:
        self.say: Say = say or (lambda _: (200, chat()))
        self.faults = faults or Faults()
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Batch] = {}
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The body of every request of every batch that was ever made."""
        return [r.get("body") or r["params"] for b in self.batches.values() for r in b.requests]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def make(self, requests: list[dict[str, Any]], metadata: dict[str, str]) -> Batch:
        """Keep a batch."""
        with self._lock:
            batch = Batch(f"batch_{len(self.batches)}", requests, metadata)
            self.batches[batch.name] = batch
            return batch

    def polled(self, batch: Batch) -> bool:
        """Count a look at a batch; returns whether it has ended by now."""
        with self._lock:
            batch.polls += 1
            if batch.polls >= self.faults.polls and not batch.results:
                batch.results = self._results(batch)
            return batch.polls >= self.faults.polls

    def _results(self, batch: Batch) -> list[dict[str, Any]]:
        found = []
        for number, request in enumerate(batch.requests):
            if number in self.faults.missing:
                continue
            tried = self.faults.expire_after is None or number < self.faults.expire_after
            found.append(self._result(request, tried=tried))
        return [*found[::-1], *(found if self.faults.twice else [])]

    def _result(self, request: dict[str, Any], *, tried: bool) -> dict[str, Any]:
        custom_id = request["custom_id"]
        if "params" in request:
            return {
                "custom_id": custom_id,
                "result": self._message(request["params"]) if tried else {"type": "expired"},
            }
        if not tried:
            error = {"code": "batch_expired", "message": "This request could not be executed in time."}
            return {"id": "r", "custom_id": custom_id, "response": None, "error": error}
        status, body = self.say(request["body"])
        body = {"model": request["body"]["model"], **body} if "choices" in body else body
        return {"id": "r", "custom_id": custom_id, "response": {"status_code": status, "body": body}, "error": None}

    def _message(self, params: dict[str, Any]) -> dict[str, Any]:
        status, body = self.say(params)
        if status != 200:
            return {"type": "errored", "error": {"type": "error", "error": body["error"]}}
        if "choices" not in body:
            return {"type": "succeeded", "message": body}
        text, usage = body["choices"][0]["message"]["content"], body["usage"]
        message = {
            "type": "message", "role": "assistant", "model": params["model"], "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]},
        }  # fmt: skip
        return {"type": "succeeded", "message": message}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.headers.append({k.lower(): v for k, v in self.headers.items()})
                faults = server.faults
                if self.path == "/v1/files":
                    self._send(200, {"id": server._keep(_uploaded(body))})
                elif faults.refuse_submit:
                    self._send(faults.refuse_submit.pop(0), {"error": {"message": faults.said}})
                else:
                    batch = server._made(self.path, json.loads(body))
                    if faults.cut_at_submit:
                        faults.cut_at_submit -= 1
                        self.close_connection = True
                        return
                    self._send(200, server._shown(batch, self.path, ended=False))

            def do_GET(self) -> None:
                path = self.path.partition("?")[0].removeprefix("/v1")
                if content := re.fullmatch(r"/files/(\w+)/content", path):
                    self._lines(server.files[content[1]])
                elif results := re.fullmatch(r"/messages/batches/(\w+)/results", path):
                    self._lines(_lines(server.batches[results[1]].results))
                elif path.endswith("/batches"):
                    ended = [(b, b.polls >= server.faults.polls) for b in server.batches.values()]
                    self._send(200, {"data": [server._shown(b, path, ended=e) for b, e in ended]})
                elif server.faults.refuse_poll:
                    self._send(server.faults.refuse_poll.pop(0), {"error": {"message": "try later"}})
                else:
                    batch = server.batches[path.rpartition("/")[2]]
                    self._send(200, server._shown(batch, path, ended=server.polled(batch)))

            def _lines(self, raw: bytes) -> None:
                if server.faults.cut_results:
                    server.faults.cut_results -= 1
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw[: len(raw) // 2])
                    self.close_connection = True
                    return
                self._raw(200, raw)

            def _send(self, status: int, body: dict[str, Any]) -> None:
                self._raw(status, json.dumps(body).encode())

            def _raw(self, status: int, raw: bytes) -> None:
                if server.faults.drip:
                    self.send_response(200)
                    self.send_header("Content-Length", "100000")
                    self.end_headers()
                    with contextlib.suppress(OSError):
                        while True:
                            self.wfile.write(b" ")
                            time.sleep(0.05)
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args: Any) -> None:
                pass

        return Handler

    def _keep(self, content: bytes) -> str:
        with self._lock:
            name = f"file_{len(self.files)}"
            self.files[name] = content
            return name

    def _made(self, path: str, order: dict[str, Any]) -> Batch:
        if path == "/v1/messages/batches":
            return self.make(order["requests"], {})
        lines = self.files[order["input_file_id"]].split(b"\n")
        return self.make([json.loads(line) for line in lines if line], order["metadata"])

    def _shown(self, batch: Batch, path: str, *, ended: bool) -> dict[str, Any]:
        """A batch as the vendor whose path was asked shows it."""
        if "/messages/" in path:
            url = self.faults.results_url or f"{self.url}/messages/batches/{batch.name}/results"
            status = (self.faults.state or "ended") if ended else "in_progress"
            shown = url if ended and not self.faults.no_files else None
            return {"id": batch.name, "processing_status": status, "results_url": shown}
        shown_: dict[str, Any] = {"id": batch.name, "metadata": batch.metadata, "status": "in_progress"}
        if not ended:
            return shown_
        shown_["status"] = self.faults.state or ("failed" if self.faults.errors else "completed")
        if self.faults.errors:
            shown_["errors"] = {"data": [{"message": m} for m in self.faults.errors]}
        elif not self.faults.no_files:
            good = [r for r in batch.results if not r["error"] and r["response"]["status_code"] == 200]
            bad = [r for r in batch.results if r not in good]
            shown_["output_file_id"] = self._keep(_lines(good)) if good else None
            shown_["error_file_id"] = self._keep(_lines(bad)) if bad else None
        return shown_


def _lines(results: list[dict[str, Any]]) -> bytes:
    """JSON Lines with characters unescaped, as vendors send them: a text may hold U+2028."""
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in results).encode()


def _uploaded(body: bytes) -> bytes:
    """The file in a multipart form."""
    return body.split(b"application/jsonl\r\n\r\n", 1)[1].rsplit(b"\r\n--", 1)[0]
