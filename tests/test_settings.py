"""Settings of a run: parameters dropped, queries, headers of the environment, certificates, proxies."""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.schema.bank import Bank
from generator.schema.errors import InputError
from harness.calls.client import HttpEndpoint
from harness.calls.connection import proxy_for
from harness.engine.outcome import Outcome
from harness.stages.session import connect, unsent_lines, with_paths_from
from tests.engine_runs import Run, calls, live_run
from tests.factories import make_bank
from tests.plans import callee, live_data, make_plan
from tests.scripted_server import Reply, ScriptedServer

DEFAULTS = {"temperature": 1.0, "max_tokens": 100, "reasoning_effort": "low", "seed": 7}
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(scope="module")
def bank() -> Bank:
    return make_bank(("age",), quota={"stance": 1})


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


class TestParams:
    def test_a_model_drops_and_overrides_defaults(self, tmp_path: Path, bank: Bank) -> None:
        models = [callee("alpha/one", drop=["temperature", "seed"], params={"reasoning_effort": "high"})]
        known = ["temperature", "max_tokens", "reasoning_effort", "seed"]
        with ScriptedServer() as server:
            run = live_run(tmp_path, bank, server.url, models=models, params=DEFAULTS, local={"params": known})
            asked = calls(1)[0]
            params = run.plan.sent_params(run.plan.subject["alpha/one"])
            run([asked.__class__(asked.key, "subject", "local", asked.request.__class__(
                "alpha/one", "one", asked.request.messages, params, 0))])  # fmt: skip
        sent = {k: v for k, v in server.requests[0].items() if k not in ("model", "messages")}
        assert sent == {"max_tokens": 100, "reasoning_effort": "high"}

    def test_a_default_that_is_not_sent_is_named_with_what_to_do(self, bank: Bank) -> None:
        plan = make_plan(live_data(bank, params=DEFAULTS))
        (line,) = unsent_lines(plan)
        assert line == (
            "note: alpha/one is not sent reasoning_effort, seed: endpoint local does not list it; add it to"
            ' endpoints.local.params, or say so with drop = ["reasoning_effort", "seed"] at the model'
        )

    def test_what_was_dropped_on_purpose_is_not_named(self, bank: Bank) -> None:
        models = [callee("alpha/one", drop=["reasoning_effort", "seed"])]
        assert unsent_lines(make_plan(live_data(bank, params=DEFAULTS, models=models))) == []

    @pytest.mark.parametrize(("changes", "words"), [
        ({"drop": ["max_tokens"]}, "no spend cap would hold"),
        ({"drop": ["temperatur"]}, "'temperatur' is no default of this run, which has: max_tokens, temperature"),
        ({"drop": ["temperature"], "params": {"temperature": 0.5}}, "stands in its params, too"),
    ])  # fmt: skip
    def test_a_drop_that_makes_no_sense_is_refused(self, bank: Bank, changes: dict[str, Any], words: str) -> None:
        with pytest.raises(InputError, match=words):
            make_plan(live_data(bank, models=[callee("alpha/one", **changes)]))


class TestRequests:
    def test_a_query_and_a_header_of_the_environment_are_sent(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer() as server:
            data = live_data(bank, server.url)
            changes = {"query": {"api-version": "2025-04-01"}, "header_env": {"api-key": "AZURE_KEY"}}
            data["endpoints"]["local"].update(changes)
            plan = make_plan(data)
            (endpoint,) = connect(plan, bank, {"AZURE_KEY": "s3cret"}).values()
            Run(tmp_path, plan, {"local": endpoint})(calls(1))
        assert server.paths == ["/v1/chat/completions?api-version=2025-04-01"]
        assert server.headers[0]["api-key"] == "s3cret"
        assert "authorization" not in server.headers[0]

    def test_a_variable_that_is_not_set_is_named(self, bank: Bank) -> None:
        data = live_data(bank)
        data["endpoints"]["local"]["header_env"] = {"api-key": "AZURE_KEY"}
        with pytest.raises(InputError, match="endpoint local: the environment variable AZURE_KEY is not set"):
            connect(make_plan(data), bank, {})

    @pytest.mark.parametrize(("changes", "words"), [
        ({"header_env": {"api-key": "sk-secret"}}, "never the value itself"),
        ({"header_env": {"bad header": "X"}}, "is no name of a header"),
        ({"header_env": {"Authorization": "X"}, "key_env": "K"}, "is set already"),
        ({"header_env": {"x-a": "X"}, "headers": {"X-A": "1"}}, "is set already"),
        ({"query": {"a": "ü"}}, "cannot be sent"),
        ({"base_url": "https://x.example/v1?api-version=1"}, "what follows \\? into query"),
    ])  # fmt: skip
    def test_what_cannot_be_sent_is_refused(self, bank: Bank, changes: dict[str, Any], words: str) -> None:
        data = live_data(bank)
        data["endpoints"]["local"].update(changes)
        with pytest.raises(InputError, match=words):
            make_plan(data)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that nobody signed, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    names = "-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 {names}"
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "ca.pem")]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return folder


class TestCertificates:
    @pytest.fixture
    def server(self, authority: Path) -> Iterator[ScriptedServer]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority / "ca.pem", authority / "key.pem")
        running = ScriptedServer()
        running._server.socket = context.wrap_socket(running._server.socket, server_side=True)
        with running:
            yield running

    def ask(self, folder: Path, bank: Bank, server: ScriptedServer, **local: Any) -> Outcome:
        data = live_data(bank, server.url.replace("http://", "https://"))
        data["endpoints"]["local"].update(local)
        plan = with_paths_from(make_plan(data), folder)
        return Run(folder, plan)(calls(1))

    def test_one_that_nobody_signed_is_named_as_that(self, tmp_path: Path, bank: Bank, server: ScriptedServer) -> None:
        ((_, closure),) = self.ask(tmp_path, bank, server).closures.items()
        assert "the certificate of 127.0.0.1 is not trusted: self-signed certificate" in closure.why
        assert "ca_file" in closure.remedy
        assert "running" not in closure.remedy

    def test_a_ca_file_beside_run_toml(
        self, tmp_path: Path, bank: Bank, server: ScriptedServer, authority: Path
    ) -> None:
        (tmp_path / "own.pem").write_bytes((authority / "ca.pem").read_bytes())
        assert len(self.ask(tmp_path, bank, server, ca_file="own.pem").answers) == 1

    def test_ssl_cert_file_holds_on_this_machine_too(
        self, tmp_path: Path, bank: Bank, server: ScriptedServer, authority: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
        assert len(self.ask(tmp_path, bank, server).answers) == 1

    @pytest.mark.parametrize("content", [None, b"no certificate"])
    def test_a_ca_file_that_is_none_is_refused_before_anything_is_asked(
        self, tmp_path: Path, bank: Bank, content: bytes | None
    ) -> None:
        if content is not None:
            (tmp_path / "own.pem").write_bytes(content)
        data = live_data(bank, "https://x.example/v1")
        data["endpoints"]["local"]["ca_file"] = "own.pem"
        plan = with_paths_from(make_plan(data), tmp_path)
        with pytest.raises(InputError, match=r"endpoint local: ca_file .*own\.pem: cannot be read as PEM certificates"):
            connect(plan, bank, {})

    def test_http_behind_https_is_said(self, tmp_path: Path, bank: Bank) -> None:
        with ScriptedServer() as plain:
            ((_, closure),) = self.ask(tmp_path, bank, plain).closures.items()
        assert "no TLS connection to 127.0.0.1" in closure.why
        assert "does base_url need http:// instead of https://?" in closure.remedy


class TestProxies:
    def endpoint(self, bank: Bank) -> HttpEndpoint:
        plan = make_plan(live_data(bank, "http://model.example/v1"))
        return HttpEndpoint("local", plan.endpoints["local"], plan.models, {})

    def ask(self, folder: Path, bank: Bank) -> Outcome:
        return Run(folder, make_plan(live_data(bank, "http://model.example/v1")))(calls(1))

    @pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
    def test_calls_go_through_it(
        self, tmp_path: Path, bank: Bank, variable: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with ScriptedServer() as proxy:
            monkeypatch.setenv(variable, proxy.url.removesuffix("/v1"))
            assert len(self.ask(tmp_path, bank).answers) == 1
        assert proxy.paths == ["http://model.example/v1/chat/completions"]

    def test_calls_to_this_machine_do_not(self, tmp_path: Path, bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
        with ScriptedServer() as server:
            assert len(live_run(tmp_path, bank, server.url)(calls(1)).answers) == 1

    @pytest.mark.parametrize("proxy", ["socks5://user:pass@127.0.0.1:9", "socks5h://127.0.0.1:9", "ftp://127.0.0.1:9"])
    def test_a_kind_that_is_not_spoken_is_one_line(
        self, bank: Bank, proxy: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ALL_PROXY", proxy)
        kind = proxy.partition(":")[0]
        with pytest.raises(InputError) as caught:
            self.endpoint(bank)
        assert f"the environment names a {kind} proxy ({kind}://127.0.0.1:9)" in str(caught.value)
        assert "pass" not in str(caught.value).replace("127.0.0.1", "")

    def test_one_that_is_down_is_named(self, tmp_path: Path, bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        ((_, closure),) = self.ask(tmp_path, bank).closures.items()
        assert "(by the proxy http://127.0.0.1:1)" in closure.why
        assert "is the proxy running" in closure.remedy

    def test_no_proxy_is_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
        monkeypatch.setenv("NO_PROXY", "inner.example")
        assert proxy_for("https://model.example/v1") == "http://proxy.example:3128"
        assert proxy_for("https://a.inner.example/v1") is None


class TestReasons:
    def test_it_reaches_the_operator(self, tmp_path: Path, bank: Bank) -> None:
        raw = json.dumps({"error": {"message": "`temperature` is deprecated for this model."}})
        body = {"error": {"message": "Provider returned error " + "x" * 200, "metadata": {"raw": raw}}}
        with ScriptedServer([Reply(400, body)]) as server:
            outcome = live_run(tmp_path, bank, server.url)(calls(1))
        assert outcome.reasons == {"http_status": "HTTP status 400: `temperature` is deprecated for this model."}
