"""How long a reply asks to wait, in every form that vendors document."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.calls.hints import LONGEST, asked_wait, duration

NOW = 1_796_083_200.0  # 2026-12-01 00:00:00 UTC
RETRY_INFO = {
    "error": {
        "code": 429,
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38s"}],
    }
}


def wait(headers: dict[str, str] | None = None, body: Any = None, status: int = 429) -> float | None:
    return asked_wait(status, headers or {}, b"" if body is None else json.dumps(body).encode(), NOW)


class TestAskedInSoManyWords:
    @pytest.mark.parametrize(("headers", "seconds"), [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Tue, 01 Dec 2026 00:00:09 GMT"}, 9.0),
        ({"retry-after": "Tue, 01 Dec 2026 00:00:09 GMT", "date": "Tue, 01 Dec 2026 00:00:04 GMT"}, 5.0),
        ({"retry-after": "2026-12-01T00:01:00Z"}, 60.0),
        ({"retry-after": "Mon, 30 Nov 2026 00:00:00 GMT"}, 0.0),
        ({"retry-after": "9" * 400}, LONGEST),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, LONGEST),
    ])  # fmt: skip
    def test_headers(self, headers: dict[str, str], seconds: float) -> None:
        assert wait(headers) == seconds

    @pytest.mark.parametrize("value", ["", "soon", "-5", "1e3", "٣", "nan", "inf", "0x10"])
    def test_nonsense_asks_for_nothing(self, value: str) -> None:
        assert wait({"retry-after": value, "retry-after-ms": value}) is None

    def test_the_body_of_google(self) -> None:
        assert wait(body=RETRY_INFO) == 38.0

    def test_a_list_around_it_and_an_error_in_an_error(self) -> None:
        assert wait(body=[{"error": {"metadata": RETRY_INFO}}]) == 38.0

    def test_seconds_and_nanos(self) -> None:
        assert wait(body={"retryDelay": {"seconds": "3", "nanos": 500_000_000}}) == 3.5

    @pytest.mark.parametrize("delay", [True, None, [], "soon", {"seconds": []}, -3])
    def test_a_delay_that_is_none(self, delay: Any) -> None:
        assert wait(body={"retryDelay": delay}) is None

    def test_any_status_may_ask(self) -> None:
        assert wait({"retry-after": "7"}, status=503) == 7.0


class TestResets:
    @pytest.mark.parametrize(("headers", "seconds"), [
        ({"x-ratelimit-reset-requests": "1m30s"}, 90.0),
        ({"x-ratelimit-reset-requests": "1m30s", "x-ratelimit-reset-tokens": "6ms"}, 90.0),
        ({"x-ratelimit-reset-requests": "1m30s", "x-ratelimit-remaining-requests": "9",
          "x-ratelimit-reset-tokens": "6ms", "x-ratelimit-remaining-tokens": "0"}, 0.006),
        ({"x-ratelimit-reset-requests": "1m30s", "x-ratelimit-remaining-requests": "9"}, None),
        ({"x-ratelimit-reset-requests": "2m59.56s"}, 179.56),
        ({"anthropic-ratelimit-requests-reset": "2026-12-01T00:00:42Z",
          "anthropic-ratelimit-requests-remaining": "0",
          "anthropic-ratelimit-output-tokens-reset": "2026-12-01T00:09:00Z",
          "anthropic-ratelimit-output-tokens-remaining": "5000"}, 42.0),
        ({"x-ratelimit-reset": str(int(NOW) + 12)}, 12.0),
        ({"x-ratelimit-reset": str((int(NOW) + 12) * 1000), "x-ratelimit-remaining": "0"}, 12.0),
        ({"ratelimit-reset": "30", "ratelimit-remaining": "0"}, 30.0),
    ])  # fmt: skip
    def test_limits(self, headers: dict[str, str], seconds: float | None) -> None:
        found = wait(headers)
        assert found == (seconds if seconds is None else pytest.approx(seconds))

    def test_words_come_before_resets(self) -> None:
        assert wait({"x-ratelimit-reset-requests": "9m", "retry-after": "0"}) == 0.0

    def test_only_a_limit_is_waited_for(self) -> None:
        assert wait({"x-ratelimit-reset-requests": "9m"}, status=500) is None


class TestDuration:
    @given(h=st.integers(0, 99), m=st.integers(0, 59), s=st.integers(0, 59), ms=st.integers(0, 999))
    def test_parts_add_up(self, h: int, m: int, s: int, ms: int) -> None:
        assert duration(f"{h}h{m}m{s}s{ms}ms") == pytest.approx(3600 * h + 60 * m + s + ms / 1000)


@given(value=st.text(max_size=20), body=st.binary(max_size=40), status=st.sampled_from([200, 429, 503]))
def test_whatever_comes_it_is_a_bounded_wait_or_none(value: str, body: bytes, status: int) -> None:
    names = ("retry-after", "retry-after-ms", "date", "x-ratelimit-reset", "anthropic-ratelimit-tokens-reset")
    found = asked_wait(status, dict.fromkeys(names, value), body, NOW)
    assert found is None or 0.0 <= found <= LONGEST
