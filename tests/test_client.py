"""The client against a scripted server over real sockets: each kind of answer has one outcome.

See contract: stages, "Replies".
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from typing import Any

import pytest

from generator.schema.errors import InputError
from harness.calls.call import Answer, CallError, EndpointError, Message, Request
from harness.calls.client import SEED_STEP, HttpEndpoint, wire
from harness.calls.replies import same_model
from harness.calls.secret_text import Secrets
from harness.plan.records import Callee, EndpointPlan, Prices
from tests.scripted_server import Reply, Script, ScriptedServer, chat, finished

# 20 prompt and 5 completion tokens, which the scripted server counts, come to 250 picodollars.
CHEAP = Prices(prompt_per_million=5e-6, completion_per_million=3e-5)


def callee(**changes: Any) -> Callee:
    return Callee(**{"model": "alpha/one", "endpoint": "local", "api_model": "one", "prices": CHEAP, **changes})


def limits(url: str = "http://127.0.0.1:9/v1", **changes: Any) -> EndpointPlan:
    return EndpointPlan(
        **{"base_url": url, "connect_timeout": 20.0, "read_timeout": 20.0, "max_bytes": 50_000, **changes}
    )


def request(**changes: Any) -> Request:
    fields = {"model": "alpha/one", "api_model": "one", "messages": (Message("user", "Hi"),), "repeat": 0}
    return Request(**{**fields, "params": {"max_tokens": 10}, **changes})  # type: ignore[arg-type]


def complete(
    url: str, ask: Request | None = None, to: Callee | None = None, *,
    environment: dict[str, str] | None = None, secrets: Secrets | None = None, **changes: Any,
) -> Answer:  # fmt: skip
    async def once() -> Answer:
        keys = environment or {"KEY": "secret"}
        endpoint = HttpEndpoint("local", limits(url, **changes), [to or callee()], keys, secrets=secrets)
        try:
            return await endpoint.complete(ask or request())
        finally:
            await endpoint.close()

    return asyncio.run(once())


def answer_to(reply: Reply | Script, **changes: Any) -> Answer:
    with ScriptedServer([reply] if isinstance(reply, Reply) else reply) as server:
        return complete(server.url, **changes)


def failure_of(reply: Reply, **changes: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        answer_to(reply, **changes)
    return caught.value


def ok(body: Any = None, **fields: Any) -> Reply:
    return Reply(body=chat(**fields) if body is None else body)


class TestAnswers:
    def test_a_good_answer(self) -> None:
        assert answer_to(ok()) == Answer("Yes.", "answered", "stop", "one@local", 20, 5)

    def test_the_provider_that_served_is_recorded(self) -> None:
        assert answer_to(ok(provider="Acme")).served_by == "one@Acme"

    def test_a_reported_cost_is_taken(self) -> None:
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.00012}
        assert answer_to(ok(usage=usage)).cost == 120_000_000

    @pytest.mark.parametrize("cost", [-1, "0.1", True, 1e300, None])
    def test_an_absurd_cost_is_not_taken(self, cost: Any) -> None:
        assert answer_to(ok(usage={"prompt_tokens": 1, "completion_tokens": 1, "cost": cost})).cost is None

    @pytest.mark.parametrize("count", [-1, 2**31, 1.5, "7", True, None])
    def test_an_absurd_token_count_is_not_taken(self, count: Any) -> None:
        assert answer_to(ok(usage={"prompt_tokens": count, "completion_tokens": 3})).prompt_tokens is None

    @pytest.mark.parametrize("usage", [None, [], "none"])
    def test_absent_usage_is_no_failure(self, usage: Any) -> None:
        found = answer_to(ok(usage=usage))
        assert (found.text, found.prompt_tokens, found.completion_tokens) == ("Yes.", None, None)

    def test_text_in_parts_is_joined(self) -> None:
        assert answer_to(ok(chat([{"type": "text", "text": "Ye"}, {"type": "text", "text": "s."}]))).text == "Yes."

    def test_a_cut_answer_is_told_apart(self) -> None:
        found = answer_to(ok(finished("length", "Yes, bec")))
        assert (found.text, found.outcome, found.finish_reason) == ("Yes, bec", "cut", "length")

    def test_a_filtered_answer_is_told_apart(self) -> None:
        found = answer_to(ok(finished("content_filter", None)))
        assert (found.text, found.outcome, found.finish_reason) == ("", "filtered", "content_filter")

    def test_a_prompt_that_the_filter_stopped_with_400_is_filtered_too(self) -> None:
        found = answer_to(Reply(400, {"error": {"code": "content_filter", "message": "no"}}))
        assert (found.text, found.outcome) == ("", "filtered")

    def test_a_refusal_field_is_the_vendors_refusal(self) -> None:
        found = answer_to(ok(finished("stop", None, refusal="I will not say.")))
        assert (found.text, found.outcome, found.filter_word) == ("I will not say.", "filtered", "refusal")

    @pytest.mark.parametrize("content", [None, "", 7, []])
    def test_null_content_is_an_answer_of_nothing(self, content: Any) -> None:
        assert answer_to(ok(finished("stop", content))).text == ""

    def test_an_absent_finish_reason_is_said_to_be(self) -> None:
        assert answer_to(ok(finished(None))).finish_reason == "unreported"

    def test_hostile_text_comes_through_unchanged(self) -> None:
        hostile = "\u202e<script>\x00é𝄞 =1+1\r\n"
        assert answer_to(ok(chat(hostile))).text == hostile

    def test_compressed_replies_are_read(self) -> None:
        import gzip

        body = gzip.compress(json.dumps({"model": "one", **chat()}).encode())
        assert answer_to(Reply(body=body, headers={"Content-Encoding": "gzip"})).text == "Yes."


class TestFailures:
    @pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
    def test_a_passing_status_may_be_asked_again_and_costs_nothing(self, status: int) -> None:
        error = failure_of(Reply(status, b"busy"))
        assert (error.code, error.retryable, error.billed) == ("http_status", True, "none")
        assert error.reason == f"HTTP status {status}: busy"

    @pytest.mark.parametrize("status", [301, 307, 400, 404, 413, 422])
    def test_a_lasting_status_fails_at_once(self, status: int) -> None:
        error = failure_of(Reply(status, b"no", headers={"Location": "http://127.0.0.1:9/"}))
        assert (error.code, error.retryable) == ("http_status", False)

    def test_a_403_is_an_intermediarys_block(self) -> None:
        error = failure_of(Reply(403, {"error": {"message": "not from your network"}}))
        assert (error.code, error.retryable, error.status) == ("blocked", False, 403)

    @pytest.mark.parametrize(
        ("status", "words"), [(401, "the key in KEY was refused"), (402, "the account there has no credit left")]
    )
    def test_a_refused_key_or_account_stops_the_stage(self, status: int, words: str) -> None:
        with pytest.raises(EndpointError, match=words):
            answer_to(Reply(status, b"{}"), key_env="KEY")

    def test_a_call_without_a_key_that_needs_one_says_so(self) -> None:
        with pytest.raises(EndpointError, match="a call without a key"):
            answer_to(Reply(401, b"{}"))

    # Each line: a reply, and the code, whether it is asked again, and what is booked.
    @pytest.mark.parametrize(
        ("reply", "expected"),
        [
            (Reply(body=b"<html>Gateway</html>"), ("provider_error", True, "none")),
            (Reply(body=b""), ("provider_error", True, "unknown")),
            (Reply(body=b"{"), ("provider_error", True, "unknown")),
            (Reply(body=b"[]"), ("provider_error", True, "unknown")),
            (Reply(body=b'{"choices": NaN}'), ("provider_error", True, "unknown")),
            (Reply(body=b"[" * 40_000), ("provider_error", True, "unknown")),
            (Reply(body=b'{"x": "\xff\xfe"}'), ("provider_error", True, "unknown")),
            (ok({"choices": []}), ("provider_error", True, "unknown")),
            (ok({"choices": None}), ("provider_error", True, "unknown")),
            (ok({"id": "x"}), ("provider_error", True, "unknown")),
            (ok({"choices": [], "usage": {"cost": 0.001}}), ("provider_error", True, 10**9)),
            (ok(finished("error", "Ye")), ("provider_error", True, 250)),
            (ok(finished("stop", "half \ud800 a pair")), ("provider_error", True, 250)),
            (ok({**finished("error", "Ye"), "usage": None}), ("provider_error", True, "unknown")),
            (ok({"error": "overloaded"}), ("provider_error", True, "unknown")),
            (ok({"error": {"code": 502, "message": "x"}}), ("provider_error", True, "unknown")),
            (ok({"error": {"code": "429", "message": "x"}, "usage": {"cost": 0}}), ("provider_error", True, 0)),
            (ok({"error": {"code": 400, "message": "x"}}), ("provider_error", False, "unknown")),
            (ok({"error": {"code": 403, "message": "x"}}), ("blocked", False, "unknown")),
            (ok({"choices": [{"error": {"code": 500}}]}), ("provider_error", True, "unknown")),
            (ok(model="other"), ("wrong_model", False, 250)),
            (ok(model="other", usage=None), ("wrong_model", False, "unknown")),
            (Reply(body=b"x" * 60_000), ("provider_error", False, "unknown")),
            (Reply(body=chat(), cut=40), ("transport", True, "unknown")),
            (Reply(body=chat(), delay=5.0), ("transport", True, "unknown")),
            (Reply(body=b"not gzip", headers={"Content-Encoding": "gzip"}), ("transport", True, "unknown")),
        ],
    )  # fmt: skip
    def test_each_broken_reply_has_one_outcome(self, reply: Reply, expected: tuple[Any, ...]) -> None:
        patience = 0.2 if reply.delay else 20.0
        error = failure_of(reply, read_timeout=patience, connect_timeout=patience)
        assert (error.code, error.retryable, error.billed) == expected

    @pytest.mark.parametrize(("code", "words"), [(401, "was refused"), (402, "no credit")])
    def test_401_and_402_inside_a_200_stop_the_stage_too(self, code: int, words: str) -> None:
        with pytest.raises(EndpointError, match=words):
            answer_to(ok({"error": {"code": code, "message": "x"}}))

    def test_nobody_listening_is_unreachable_and_costs_nothing(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
            with pytest.raises(CallError) as caught:
                complete(url)
        assert (caught.value.code, caught.value.billed, caught.value.unreachable) == ("transport", "none", True)

    def test_a_reply_that_drips_is_cut_off(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            import threading

            def drip() -> None:
                connection, _ = server.accept()
                with connection:
                    try:
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                        while True:
                            connection.sendall(b" ")
                            time.sleep(0.05)
                    except OSError:
                        return

            thread = threading.Thread(target=drip)
            thread.start()
            with pytest.raises(CallError, match="the connection broke"):
                complete(f"http://127.0.0.1:{server.getsockname()[1]}/v1", read_timeout=0.3, connect_timeout=0.1)
            thread.join()

    def test_a_megabyte_answer_is_not_read_to_its_end(self) -> None:
        with pytest.raises(CallError, match="a reply of more than 50,000 bytes"):
            answer_to(Reply(body=b"x" * 20_000_000))

    def test_a_providers_words_are_short_and_printable(self) -> None:
        error = failure_of(Reply(500, b"\x1b[31mred\nline " + b"y" * 5000))
        assert error.reason.startswith("HTTP status 500: [31mred line yyy")
        assert len(error.reason) < 200


class TestWire:
    def test_only_what_is_configured_is_sent(self) -> None:
        assert wire(request(), callee(), limits()) == {
            "model": "one",
            "messages": [{"role": "user", "content": "Hi"}],
            "max_tokens": 10,
        }

    def test_provider_routing_is_sent_only_where_configured(self) -> None:
        routing = {"require_parameters": True, "allow_fallbacks": False}
        assert wire(request(), callee(provider=routing), limits())["provider"] == routing

    def test_max_tokens_goes_by_the_name_that_the_vendor_knows(self) -> None:
        body = wire(request(), callee(), limits(max_tokens_name="max_completion_tokens"))
        assert (body.get("max_tokens"), body["max_completion_tokens"]) == (None, 10)

    def test_a_seed_is_shifted_by_repeat_and_try(self) -> None:
        params = {"max_tokens": 10, "seed": 5}
        seeds = [
            wire(request(params=params, repeat=r, try_=t), callee(), limits())["seed"]
            for r, t in ((0, 0), (2, 0), (2, 1))
        ]
        assert seeds == [5, 7, 7 + SEED_STEP]

    @pytest.mark.parametrize(
        ("form", "sent"), [("json_schema", "json_schema"), ("json_object", "json_object"), ("none", None)]
    )
    def test_a_schema_is_asked_for_as_the_endpoint_can(self, form: str, sent: str | None) -> None:
        body = wire(request(schema={"type": "object"}), callee(), limits(response_format=form))
        assert body.get("response_format", {}).get("type") == sent

    def test_a_strict_schema_is_sent_whole(self) -> None:
        body = wire(request(schema={"type": "object"}), callee(), limits())
        assert body["response_format"]["json_schema"] == {"name": "label", "strict": True, "schema": {"type": "object"}}

    def test_key_and_headers_reach_the_server_and_nothing_else_of_the_environment(self) -> None:
        with ScriptedServer() as server:
            complete(server.url, key_env="KEY", headers={"X-Title": "bench"})
        assert server.headers[0]["authorization"] == "Bearer secret"
        assert server.headers[0]["x-title"] == "bench"

    def test_without_key_env_no_key_is_sent(self) -> None:
        with ScriptedServer() as server:
            complete(server.url)
        assert "authorization" not in server.headers[0]

    @pytest.mark.parametrize(
        ("environment", "words"),
        [({}, "KEY is not set"), ({"KEY": " "}, "KEY is not set"), ({"KEY": "a\nb"}, "no header can carry")],
    )
    def test_a_missing_or_broken_key_is_refused_before_any_call(self, environment: dict[str, str], words: str) -> None:
        with pytest.raises(InputError, match=words) as caught:
            HttpEndpoint("local", limits(key_env="KEY"), [callee()], environment)
        assert "a\nb" not in str(caught.value)


class TestSameModel:
    @pytest.mark.parametrize(
        ("asked", "answered"),
        [
            ("gpt-x", "gpt-x"),
            ("GPT-X", "gpt-x"),
            ("vendor/gpt-x:free", "vendor/gpt-x"),
            ("vendor/gpt-x", "gpt-x-2026-08-06"),
            ("gpt-x", "gpt-x-20260806"),
            ("gpt-x", "gpt-x-0806"),
            ("gpt-x", "alias"),
        ],
    )
    def test_the_same_model_by_another_name(self, asked: str, answered: str) -> None:
        assert same_model(asked, answered, ("alias",))

    @pytest.mark.parametrize("answered", ["gpt-x-mini", "gpt-y", "gpt", "other/gpt-x", "gpt-x-20", "Alias", "gpt-x "])
    def test_another_model(self, answered: str) -> None:
        assert not same_model("vendor/gpt-x", answered, ("alias",))
