"""No reply ends a call in anything but an answer or a named failure: bombs, wrong types, surrogates, endless numbers.

See contract: stages, "Replies".
"""

from __future__ import annotations

import copy
import gzip
import json
import random
import tracemalloc
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.schema.verdict import VOTE_ERRORS
from harness.calls.call import Answer, CallError, EndpointError
from harness.calls.error_text import codes, innermost, load_json, messages
from harness.calls.replies import Addressee, answer_of, read_reply
from harness.calls.secret_text import Secrets
from harness.plan.records import Prices
from tests.scripted_server import Reply, chat, finished
from tests.test_client import answer_to, failure_of, ok

PRICES = Prices(prompt_per_million=1, completion_per_million=10)
SUBJECT = Addressee("local", "one", secrets=Secrets(["sk-0123456789"]), prices=PRICES)
JUDGE = Addressee("local", "one", secrets=Secrets(["sk-0123456789"]), prices=PRICES, verdict=True)
NINES = "9" * 5_000
WHOLE = {
    "model": "one",
    "provider": "x",
    "choices": [
        {
            "index": 0, "finish_reason": "stop", "native_finish_reason": "STOP", "stop_reason": None,
            "message": {
                "role": "assistant", "content": "<think>a</think>Yes.", "refusal": None, "reasoning_content": "Hm",
                "tool_calls": [{"function": {"name": "label", "arguments": "{}"}}],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25, "cost": 0.1, "is_byok": True,
        "cost_details": {"upstream_inference_cost": 0.1}, "completion_tokens_details": {"reasoning_tokens": 3},
    },
    "promptFeedback": {"blockReason": None},
    "error": None,
}  # fmt: skip
ODD: list[Any] = [
    None, True, 0, -1, 10**400, 1.5, 1e308, "", "\ud800", "x" * 100_000, "\x1b[31m\u202e", [], {}, ["stop"], {"a": 1},
    [None], [[]], "SAFETY", "length", "error", "content_filter", NINES, [{"type": "text", "text": "\udfff"}],
    [1, "a", {}],
]  # fmt: skip


def outcome(status: int, body: bytes, asked: Addressee = SUBJECT) -> Answer | CallError | EndpointError:
    """Read a reply and check that what comes of it can be stored, booked and shown."""
    try:
        found: Answer | CallError | EndpointError = answer_of(status, body, asked)
    except (CallError, EndpointError) as error:
        found = error
    if isinstance(found, CallError):
        assert found.code in VOTE_ERRORS
        assert isinstance(found.billed, int) or found.billed in ("none", "unknown")
        assert len(found.reason.encode()) < 2_000
    if not isinstance(found, Answer):
        str(found).encode()
        return found
    for text in (found.text, found.finish_reason, found.served_by, found.filter_word or ""):
        text.encode()
    assert len(found.finish_reason) <= 80
    assert len(found.served_by) <= 400
    assert len(found.filter_word or "") <= 80
    assert (found.outcome == "filtered") == (found.filter_word is not None)
    for count in (found.prompt_tokens, found.completion_tokens, found.reasoning_tokens):
        assert count is None or 0 <= count < 2**31
    assert found.cost is None or 0 <= found.cost < 2**62
    return found


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value within a JSON value."""
    yield path
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(value, (*path, key))


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of a JSON value with another value at a path."""
    if not path:
        return value
    copied = copy.deepcopy(data)
    node = copied
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return copied


class TestEveryPlace:
    @pytest.mark.parametrize("asked", [SUBJECT, JUDGE], ids=["subject", "judge"])
    @pytest.mark.parametrize("path", list(places(WHOLE)), ids=str)
    def test_any_value_may_stand_there(self, path: tuple[Any, ...], asked: Addressee) -> None:
        for value in ODD:
            outcome(200, json.dumps(changed(WHOLE, path, value)).encode(), asked)

    @pytest.mark.parametrize("status", [400, 403, 429, 500])
    def test_and_in_an_error(self, status: int) -> None:
        error = {"error": {"code": "x", "message": "m", "metadata": {"raw": '{"error": {}}', "reasons": ["a"]}}}
        for path in places(error):
            for value in ODD:
                outcome(status, json.dumps(changed(error, path, value)).encode())
                outcome(200, json.dumps(changed(error, path, value)).encode())

    def test_numbers_of_five_thousand_digits(self) -> None:
        for path in places(WHOLE):
            body = json.dumps(changed(WHOLE, path, "DIGITS")).replace('"DIGITS"', NINES).encode()
            outcome(200, body)
        assert isinstance(outcome(200, f'{{"error": {{"code": {NINES}}}}}'.encode()), CallError)
        assert isinstance(outcome(200, f'{{"error": {{"code": "{NINES}"}}}}'.encode()), CallError)

    def test_the_rest_of_an_answer_stands_where_a_count_is_absurd(self) -> None:
        body = json.dumps({"model": "one", **chat(usage={"prompt_tokens": 1, "completion_tokens": "N"})})
        found = read_reply(body.replace('"N"', NINES).encode(), SUBJECT)
        assert (found.text, found.prompt_tokens, found.completion_tokens) == ("Yes.", 1, None)

    @pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 50_000, b'{"choices": ' + b"[" * 100_000], ids=len)
    def test_deep_nesting_is_no_json(self, body: bytes) -> None:
        found = outcome(200, body)
        assert isinstance(found, CallError)
        assert (found.code, found.billed) == ("provider_error", "unknown")

    def test_nesting_just_below_what_can_be_parsed(self) -> None:
        for depth in (100, 500, 900, 950):
            deep = '{"error":' * depth + '"x"' + "}" * depth
            outcome(400, deep.encode())
            outcome(200, deep.encode())
            outcome(200, json.dumps({"model": "one", **chat(deep)}).encode(), JUDGE)

    def test_a_long_finish_reason_is_cut(self) -> None:
        assert len(answer_to(ok(finished("x" * 40_000))).finish_reason) == 80

    def test_half_a_surrogate_in_a_name_is_replaced(self) -> None:
        found = answer_to(ok(provider="a \ud800 b"))
        assert found.served_by == "one@a \ufffd b"


class TestMutations:
    def test_thousands_of_mutated_replies(self) -> None:
        draw = random.Random(20261130)
        whole = json.dumps(WHOLE).encode()
        kinds = set()
        for _ in range(4_000):
            body = bytearray(whole)
            for _ in range(draw.randrange(1, 6)):
                at = draw.randrange(len(body))
                match draw.randrange(4):
                    case 0:
                        body[at] = draw.randrange(256)
                    case 1:
                        del body[at : at + draw.randrange(1, 40)]
                    case 2:
                        body[at:at] = whole[draw.randrange(len(whole)) :][: draw.randrange(1, 60)]
                    case 3:
                        body[at:at] = draw.choice(
                            [b"\\ud800", b"null", b"[", b"]", b"{}", b"\xff", b"1e999", b'"', b"-"]
                        )
                if not body:
                    break
            status = draw.choice([200, 200, 200, 400, 403, 401, 429, 500])
            kinds.add(type(outcome(status, bytes(body), draw.choice([SUBJECT, JUDGE]))))
        assert kinds == {Answer, CallError, EndpointError}

    @settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
    @given(st.binary(max_size=200), st.sampled_from([200, 400, 401, 403, 429, 500]))
    def test_any_bytes(self, body: bytes, status: int) -> None:
        outcome(status, body)

    @given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
    def test_a_walk_finds_only_texts(self, data: Any) -> None:
        assert all(isinstance(word, str) for word in (*codes(data), *messages(data)))
        assert isinstance(innermost(data), str | None)


class TestPacked:
    @pytest.mark.parametrize(
        ("name", "pack"),
        [
            ("gzip", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes),
            ("deflate", lambda data: zlib.compress(data, wbits=-15)), ("GZIP", gzip.compress), ("", bytes),
            ("gzip, gzip", lambda data: gzip.compress(gzip.compress(data))),
            ("deflate, gzip", lambda data: gzip.compress(zlib.compress(data))),
        ],
    )  # fmt: skip
    def test_what_was_asked_for_is_unpacked(self, name: str, pack: Any) -> None:
        body = pack(json.dumps({"model": "one", **chat()}).encode())
        assert answer_to(Reply(body=body, headers={"Content-Encoding": name})).text == "Yes."

    @pytest.mark.parametrize("layers", [1, 2])
    def test_a_bomb_is_not_unpacked(self, layers: int) -> None:
        bomb = gzip.compress(b" " * 200_000_000, 9)
        for _ in range(layers - 1):
            bomb = gzip.compress(bomb, 9)
        reply = Reply(body=bomb, headers={"Content-Encoding": ", ".join(["gzip"] * layers)})
        tracemalloc.start()
        error = failure_of(reply)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (error.code, error.retryable, error.billed) == ("provider_error", False, "unknown")
        assert error.reason == "a reply of more than 50,000 bytes"
        assert peak < 5_000_000

    @pytest.mark.parametrize(
        ("name", "body"),
        [
            ("br", b"x"), ("zstd", b"x"), ("gzip, br", b"x"), ("gzip, gzip, gzip, gzip", b"x"), ("gzip", b"no gzip"),
            ("deflate", b"no deflate"), ("gzip", gzip.compress(b'{"choices": []}', mtime=0)[:-9]),
        ],
    )  # fmt: skip
    def test_what_cannot_be_unpacked_is_a_broken_connection(self, name: str, body: bytes) -> None:
        error = failure_of(Reply(body=body, headers={"Content-Encoding": name}))
        assert (error.code, error.retryable, error.billed) == ("transport", True, "unknown")

    def test_an_empty_body_needs_no_packing(self) -> None:
        assert failure_of(Reply(500, b"", headers={"Content-Encoding": "gzip"})).code == "http_status"


class TestNumbers:
    @pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}'])
    def test_what_is_no_json(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"NaN|Infinity"):
            load_json(text)

    def test_a_number_without_an_end_is_beyond_all_bounds(self) -> None:
        assert load_json(f"[{NINES}, -{NINES}, 7]") == [float("inf"), float("inf"), 7]
