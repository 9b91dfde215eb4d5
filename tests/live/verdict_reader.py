"""A judge that only reads: the last verdict word, or the last `SCORE: N` line, of the answer that it is shown.

It serves OpenAI-compatible chat completions on loopback. It holds no model. Where the answer has no such word or line,
it says so in a form that no rubric accepts, so that the vote is an error and never a guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from harness.judging.ballot import unfenced
from tests.serving import Server, serving

NAME = "verdict-reader"
SCORE_LINE = re.compile(r"(?im)^\W*SCORE\W*:\W*(\d{1,3})\b")


def last_word(answer: str, labels: list[str]) -> str | None:
    """Return the label that occurs last in capitals as a whole word, or None."""
    found = re.findall(rf"\b({'|'.join(map(re.escape, labels))})\b", answer)
    return found[-1] if found else None


def verdict(answer: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the reader's JSON for an answer under a judge's schema."""
    if "score" in schema["properties"]:
        scores = [int(n) for n in SCORE_LINE.findall(answer) if int(n) <= 100]
        if scores:
            return {"score": scores[-1], "refusal": False, "evidence": f"last score line says {scores[-1]}"}
    else:
        labels = [label for label in schema["properties"]["label"]["enum"] if label != "REFUSAL"]
        word = last_word(answer, labels)
        if word:
            return {"label": word, "verdict_matches_prose": True, "evidence": f"last verdict word is {word}"}
    return {"unreadable": "no verdict word and no SCORE line"}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        _, answer = unfenced(body["messages"][-1]["content"])
        text = json.dumps(verdict(answer, body["response_format"]["json_schema"]["schema"]))
        message = {"role": "assistant", "content": text}
        reply = {
            "model": NAME,
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0},
        }
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serve_reader(port: int = 0) -> Iterator[str]:
    """Serve the reader on loopback; yields its base URL."""
    with serving(Server(("127.0.0.1", port), _Handler)) as address:
        yield f"{address}/v1"
