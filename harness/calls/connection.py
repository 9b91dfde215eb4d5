"""How an endpoint is reached, and what a connection that fails says.

Proxies are those of the environment (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY), never for this machine itself.
Certificates are those of the system, of SSL_CERT_FILE or SSL_CERT_DIR, and of the endpoint's `ca_file`.

See contract: stages, "Endpoints".
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from generator.schema.errors import InputError
from harness.calls.call import CallError
from harness.calls.unpack import ACCEPTED, PackingError
from harness.plan.records import EndpointPlan

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def open_client(limits: EndpointPlan, headers: Mapping[str, str]) -> httpx2.AsyncClient:
    """Return a client of a single connection, with an endpoint's bounds, certificates, proxy and query.

    Args:
        limits: the endpoint's settings.
        headers: what each call carries (`request_headers`).
    """
    return httpx2.AsyncClient(
        headers={"Accept-Encoding": ACCEPTED, **headers},
        params=limits.query or None,
        timeout=httpx2.Timeout(limits.read_timeout, connect=limits.connect_timeout, pool=None),
        limits=httpx2.Limits(max_connections=1),
        trust_env=False,  # the proxy is chosen here, and no .netrc may add a password
        proxy=proxy_for(limits.base_url),
        verify=certificates(limits.ca_file),
    )


def certificates(ca_file: str | None) -> ssl.SSLContext:
    """Return the certificates that are trusted: the system's or the environment's, and those in `ca_file`.

    Raises:
        OSError: a file cannot be read.
        ssl.SSLError: it holds no PEM certificates.
    """
    return _context(ca_file, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _context(ca_file: str | None, *_of_environment: str | None) -> ssl.SSLContext:
    """Read certificates once for all clients, because that takes longer than many a call."""
    context = httpx2.create_ssl_context()
    if ca_file is not None:
        context.load_verify_locations(cafile=ca_file)
    return context


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for an address; None to connect directly."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in _LOOPBACK or proxy_bypass(f"{host}:{parts.port}" if parts.port else host):
        return None
    known = getproxies()
    found = known.get(parts.scheme) or known.get("all")
    return f"http://{found}" if found and "://" not in found else found or None


def check_connection(name: str, limits: EndpointPlan) -> None:
    """Check an endpoint's proxy and CA file before anything is asked, and paid.

    Raises:
        InputError: the proxy is of a kind that is not spoken (SOCKS), or certificates cannot be read.
    """
    proxy = proxy_for(limits.base_url)
    if proxy is not None and urlsplit(proxy).scheme.lower() not in ("http", "https"):
        kind = urlsplit(proxy).scheme
        raise InputError(
            f"endpoint {name}: the environment names a {kind} proxy ({shown_proxy(proxy)}), which this program does not"
            " speak; name an http:// proxy in HTTPS_PROXY or ALL_PROXY, or list the host in NO_PROXY"
        )
    try:
        certificates(limits.ca_file)
    except (OSError, ssl.SSLError) as error:
        where = f"ca_file {limits.ca_file}" if limits.ca_file else "SSL_CERT_FILE or SSL_CERT_DIR"
        raise InputError(f"endpoint {name}: {where}: cannot be read as PEM certificates: {error}") from None


def shown_proxy(proxy: str) -> str:
    """Return a proxy's address without user and password, fit for messages."""
    parts = urlsplit(proxy)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def connection_fault(error: httpx2.RequestError | TimeoutError | PackingError, url: str) -> CallError:
    """Return what a failed connection comes to: the cause, what to do about it, and whether it may have cost something.

    Args:
        error: what the client raised.
        url: the address that was called.

    Returns:
        An error of code `transport`. Before the request was sent nothing can be billed; after that the cost is unknown.
    """
    # The client wraps what TLS says; the cause lies at the bottom of the chain.
    tls = next((e for e in _causes(error) if isinstance(e, ssl.SSLError)), None)
    proxy = proxy_for(url)
    if isinstance(error, httpx2.ProxyError):
        return _unreachable(
            f"the proxy {shown_proxy(proxy or url)} refused: {words(error)}",
            "mend HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, or list the host in NO_PROXY",
            retryable=True,
        )
    if tls is not None and isinstance(error, httpx2.ConnectError):
        return _tls_fault(tls, url)
    if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)):
        why = "no connection in time" if isinstance(error, httpx2.ConnectTimeout) else f"no connection: {words(error)}"
        if proxy is None:
            return CallError("transport", why, retryable=True, unreachable=True)
        remedy = "is the proxy running, and is HTTPS_PROXY, HTTP_PROXY or ALL_PROXY right?"
        return _unreachable(f"{why} (by the proxy {shown_proxy(proxy)})", remedy, retryable=True)
    return CallError("transport", f"the connection broke: {words(error)}", retryable=True, billed="unknown")


def _tls_fault(error: ssl.SSLError, url: str) -> CallError:
    host = urlsplit(url).hostname
    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"the certificate of {host} is not trusted: {error.verify_message}"
        remedy = "name the certificate of its authority as ca_file of the endpoint in run.toml, or in SSL_CERT_FILE"
        return _unreachable(why, remedy, retryable=False)
    why = f"no TLS connection to {host}: {error.reason or words(error)}"
    return _unreachable(why, "does base_url need http:// instead of https://?", retryable=False)


def _unreachable(reason: str, remedy: str, *, retryable: bool) -> CallError:
    return CallError("transport", reason, retryable=retryable, unreachable=True, remedy=remedy)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def words(error: BaseException) -> str:
    """Return an error's words on one line, or the name of its class where it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def headers_from(name: str, limits: EndpointPlan, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the headers whose values are environment variables (`header_env`).

    Raises:
        InputError: a variable is missing or cannot be sent.
    """
    return {header: secret(name, variable, environment) for header, variable in limits.header_env.items()}


def secret(name: str, variable: str, environment: Mapping[str, str]) -> str:
    """Return the value of an environment variable, fit for a header.

    Args:
        name: the endpoint's name in run.toml, for messages.
        variable: name of the environment variable.
        environment: environment variables.

    Raises:
        InputError: it is not set, empty, or holds a character that no header can carry.
    """
    value = environment.get(variable, "").strip()
    if not value:
        raise InputError(f"endpoint {name}: the environment variable {variable} is not set; export the key there")
    if not value.isascii() or not value.isprintable():
        raise InputError(f"endpoint {name}: the key in {variable} holds a character that no header can carry")
    return value
