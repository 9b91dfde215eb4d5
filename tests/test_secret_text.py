"""Keys in a stranger's words, and through a real server in every text of a reply (contract: stages, "Keys")."""

from __future__ import annotations

import base64
import html
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.calls.call import CallError, EndpointError
from harness.calls.client import keys_of
from harness.calls.secret_text import MASK, Secrets
from harness.judging.verdict_text import read_verdict
from harness.plan.records import EndpointPlan
from tests.scripted_server import Reply, ScriptedServer, chat, finished
from tests.test_client import complete, ok

ROOT = Path(__file__).parent.parent
KEY = 'sk-or-v1-0123+45/6789"ab\\cdef&x'
SIMPLE = "sk-live-0123456789abcdef"
FORMS = {
    "as it is": str,
    "in a header": "Authorization: Bearer {}".format,
    "quoted for JSON": json.dumps,
    "quoted twice": lambda key: json.dumps(json.dumps(key)),
    "every character escaped": lambda key: "".join(f"\\u{ord(c):04x}" for c in key),
    "escaped in capitals": lambda key: "".join(f"\\u{ord(c):04X}" for c in key),
    "some characters escaped": lambda key: "".join(f"\\u{ord(c):04x}" if i % 3 else c for i, c in enumerate(key)),
    "with slashes escaped": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "in a URL": lambda key: quote(key, safe=""),
    "in a path": quote,
    "every byte of a URL": lambda key: "".join(f"%{ord(c):02x}" for c in key),
    "in HTML": html.escape,
    "in numbers of HTML": lambda key: "".join(f"&#{ord(c)};" for c in key),
}


def in_base64(key: str, before: str, after: str, *, url: bool = False) -> str:
    raw = f"{before}{key}{after}".encode()
    return (base64.urlsafe_b64encode(raw) if url else base64.b64encode(raw)).decode()


class TestForms:
    @pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
    @pytest.mark.parametrize("key", [KEY, SIMPLE])
    def test_a_key_goes_in_whatever_form(self, form: Any, key: str) -> None:
        masked = Secrets([key]).mask(f"before {form(key)} after")
        assert MASK in masked
        assert masked.startswith("before ")
        assert masked.endswith(" after")
        assert key[6:-6] not in masked

    @given(st.text(max_size=5), st.text(max_size=5), st.booleans())
    def test_a_key_goes_wherever_it_begins_in_base64(self, before: str, after: str, url: bool) -> None:
        masked = Secrets([SIMPLE]).mask(f"Basic {in_base64(SIMPLE, before, after, url=url)}")
        left = masked.removeprefix("Basic ").replace(MASK, "")
        # What is left are the neighbors and at most the parts of two characters of the key.
        assert MASK in masked
        assert len(left) <= len(in_base64("", before, after)) + 8

    @given(st.text(max_size=60))
    def test_a_text_without_a_key_stays(self, text: str) -> None:
        assert Secrets([SIMPLE]).mask(text) == text

    @pytest.mark.parametrize("key", ["", "x", "none", "EMPTY"])
    def test_a_placeholder_is_no_secret(self, key: str) -> None:
        assert Secrets([key]).mask(f"I have {key}, none or EMPTY.") == f"I have {key}, none or EMPTY."

    def test_the_longer_of_two_keys_goes_first(self) -> None:
        assert (Secrets(["sk-abc123"]) | Secrets(["sk-abc123-more"])).mask("sk-abc123-more") == MASK

    def test_the_key_in_a_header_of_ones_own_is_a_secret_without_its_word(self) -> None:
        limits = EndpointPlan(base_url="http://127.0.0.1/v1", header_env={"Authorization": "OWN"})
        secrets = keys_of([limits], {"OWN": f"Bearer {SIMPLE}"})
        assert secrets.mask(f"Incorrect API key provided: {SIMPLE}") == f"Incorrect API key provided: {MASK}"

    def test_a_cut_leaves_no_half_of_a_key(self) -> None:
        with ScriptedServer([Reply(500, b"y" * 150 + SIMPLE.encode())]) as server, pytest.raises(CallError) as caught:
            complete(server.url, key_env="KEY", environment={"KEY": SIMPLE})
        assert SIMPLE[:8] not in caught.value.reason


ECHO = f"Authorization: Bearer {SIMPLE}"
BASIC = f"Basic {in_base64(SIMPLE, 'user:', '')}"
ESCAPED = FORMS["every character escaped"](SIMPLE)
WRAPPED = {"error": {"message": "x", "metadata": {"raw": json.dumps({"error": ECHO})}}}
REPLIES = {
    "answer": ok(chat(f"You sent {ECHO}.")),
    "answer in base64": ok(chat(BASIC)),
    "answer in parts": ok(chat([{"type": "text", "text": SIMPLE[:9]}, {"type": "text", "text": SIMPLE[9:]}])),
    "finish reason": ok(finished(f"stop {ECHO}")),
    "filter word": ok(finished(f"content_filter: {ECHO}", None)),
    "filter word behind a long one": ok(finished("content_filter " + "x" * 50 + SIMPLE, None)),
    "provider": ok(provider=ECHO),
    "refusal": ok(finished("stop", None, refusal=ECHO)),
    "policy code": Reply(400, {"error": {"code": f"content_filter {ECHO}"}}),
    "escaped in the body": Reply(body=json.dumps({"model": "one", **chat("KEY")}).replace("KEY", ESCAPED).encode()),
}  # fmt: skip
FAILURES = {
    "400": Reply(400, {"error": {"message": ECHO}}),
    "401": Reply(401, {"error": {"message": BASIC}}),
    "402": Reply(402, ECHO.encode()),
    "404 as HTML": Reply(404, f"<html>{ECHO}</html>".encode()),
    "429": Reply(429, {"error": ECHO}),
    "500 in base64": Reply(500, BASIC.encode()),
    "an error in a 200": ok({"error": {"code": 400, "message": ECHO}}),
    "a router's wrapped error": Reply(400, WRAPPED),
    "HTML in a 200": Reply(body=f"<html>{ECHO}</html>".encode()),
    "another model": ok(model=f"other {SIMPLE}"),
    "a broken packing": Reply(body=b"x", headers={"Content-Encoding": f"br{SIMPLE}"}),
}  # fmt: skip


class TestReplies:
    @pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
    def test_no_text_of_an_answer_holds_the_key(self, reply: Reply) -> None:
        with ScriptedServer([reply]) as server:
            found = complete(server.url, key_env="KEY", environment={"KEY": SIMPLE})
        assert SIMPLE[4:] not in repr(found)
        assert in_base64(SIMPLE[3:], "", "")[:-4] not in repr(found)
        assert "[key removed" in repr(found)

    @pytest.mark.parametrize("reply", FAILURES.values(), ids=FAILURES.keys())
    def test_no_failure_shows_the_key(self, reply: Reply) -> None:
        with ScriptedServer([reply]) as server, pytest.raises((CallError, EndpointError)) as caught:
            complete(server.url, key_env="KEY", environment={"KEY": SIMPLE})
        words = f"{caught.value} {getattr(caught.value, 'reason', '')}"
        assert SIMPLE[4:] not in words
        assert in_base64(SIMPLE[3:], "", "")[:-4] not in words

    @pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
    def test_no_evidence_of_a_judge_holds_the_key(self, form: Any) -> None:
        verdict = json.dumps({"label": "MIXED", "evidence": form(SIMPLE)})
        with ScriptedServer([ok(chat(verdict))]) as server:
            found = complete(server.url, key_env="KEY", environment={"KEY": SIMPLE})
        assert SIMPLE[4:] not in str(read_verdict(found.text).data)

    def test_the_key_of_another_endpoint_goes_too(self) -> None:
        with ScriptedServer([ok(chat(f"It is {SIMPLE}."))]) as server:
            assert complete(server.url, secrets=Secrets([SIMPLE])).text == f"It is {MASK}."


class TestLength:
    @pytest.mark.parametrize("text", ["\\", "\\\\u0073", "s\\", "%73", "&#", "&#0", "sk-", "\\u0041"])
    def test_a_long_reply_is_searched_in_a_child_with_a_time_limit(self, text: str) -> None:
        # In a child, so that a text that takes for ever fails this test and does not hang it.
        code = (
            f"from harness.calls.secret_text import Secrets; text = '\\\\u0041' + {text!r} * 200_000;"
            f"assert Secrets([{KEY!r}]).mask(text) == text"
        )
        subprocess.run([sys.executable, "-"], input=code, text=True, check=True, timeout=30, cwd=ROOT)

    def test_a_key_is_found_behind_a_run_of_backslashes(self) -> None:
        escaped = "".join(f"\\u{ord(char):04x}" for char in SIMPLE)
        assert Secrets([SIMPLE]).mask("\\" * 1_000 + escaped[1:] + "\\" * 1_000) == MASK + "\\" * 1_000
