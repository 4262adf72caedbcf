"""The way of one request below the cache: who may ask, by which route.

Credentials are added at the last moment and by origin: no other host ever gets them, whatever
redirects there are, and nothing above this layer (the cache, messages) ever sees them.
"""

from __future__ import annotations

import base64
import os
import ssl
import threading
import urllib.request
from collections.abc import Collection, Mapping

import httpx

from pep_variants.plugins.sources import Sources

from .credentials import Credentials, find_credentials, split_credentials

_UNAUTHORIZED = 401
_PORTS = {"http": 80, "https": 443}
_CONNECTIONS = httpx.Limits(max_connections=32, max_keepalive_connections=32)

Origin = tuple[str, str, int | None]


def origin_of(url: httpx.URL) -> Origin:
    """Return scheme, host and port: what credentials belong to (RFC 6454)."""
    return url.scheme, url.host, url.port or _PORTS.get(url.scheme)


class Authorizing(httpx.BaseTransport):
    """Tells an index who is there: by its URL or netrc from the start, by keyring when asked."""

    def __init__(
        self, below: httpx.BaseTransport, environ: Mapping[str, str], *, keyring: bool = True
    ) -> None:
        self._below = below
        self._environ = environ
        self._keyring = keyring
        self._lock = threading.Lock()
        self._known: dict[Origin, Credentials | None] = {}
        # Keyrings know an index by the URL that the user gave.
        self._services: dict[Origin, str] = {}
        self._asked: set[Origin] = set()
        self._tokens: dict[Origin, str] = {}

    def learn_token(self, url: str, token: str) -> None:
        """Remember the bearer token (RFC 6750) of an index; it goes before any credentials."""
        with self._lock:
            self._tokens[origin_of(httpx.URL(url))] = token

    def tells(self, url: str) -> bool:
        """Return whether the host of *url* has been told who is there."""
        origin = origin_of(httpx.URL(url))
        with self._lock:
            return origin in self._tokens or self._known.get(origin) is not None

    def learn(self, url: str) -> str:
        """Remember the credentials in the URL of an index; return it without them."""
        plain, credentials = split_credentials(url)
        try:
            origin = origin_of(httpx.URL(plain))
        except httpx.InvalidURL:
            return plain
        with self._lock:
            self._services.setdefault(origin, plain)
            if credentials is not None:
                self._known.setdefault(origin, credentials)
        return plain

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send *request* with what is known, and again with what the keyring knows."""
        origin = origin_of(request.url)
        token = self._tokens.get(origin)
        if token is not None:
            return self._below.handle_request(_with_header(request, f"Bearer {token}"))
        with self._lock:
            if origin not in self._known or not _complete(self._known[origin]):
                self._known[origin] = self._find(origin, request, keyring=False)
            credentials = self._known[origin]
        answer = self._below.handle_request(_authorized(request, credentials))
        if answer.status_code != _UNAUTHORIZED or not self._keyring:
            return answer
        with self._lock:
            if origin not in self._asked:
                self._asked.add(origin)
                self._known[origin] = self._find(origin, request, keyring=True) or credentials
            found = self._known[origin]
        if found == credentials:
            return answer
        answer.read()
        answer.close()
        return self._below.handle_request(_authorized(request, found))

    def close(self) -> None:
        """Close what is below."""
        self._below.close()

    def _find(self, origin: Origin, request: httpx.Request, *, keyring: bool) -> Credentials | None:
        known = self._known.get(origin)
        service = self._services.get(origin, str(request.url.copy_with(query=None)))
        username = known.username if known else None
        found = find_credentials(service, self._environ, username=username, keyring=keyring)
        return found or known


def _complete(credentials: Credentials | None) -> bool:
    # None has been looked for already; without a password netrc may know it.
    return credentials is None or bool(credentials.password)


def _authorized(request: httpx.Request, credentials: Credentials | None) -> httpx.Request:
    """Return *request* with *credentials*; the one that was given stays as it is."""
    if credentials is None:
        return request
    token = base64.b64encode(f"{credentials.username}:{credentials.password}".encode()).decode()
    return _with_header(request, f"Basic {token}")


def _with_header(request: httpx.Request, authorization: str) -> httpx.Request:
    headers = request.headers.copy()
    headers["Authorization"] = authorization
    return httpx.Request(
        request.method,
        request.url,
        headers=headers,
        stream=request.stream,
        extensions=request.extensions,
    )


class Routes(httpx.BaseTransport):
    """Connects directly or through the proxy that the environment or the system names."""

    def __init__(self, sources: Sources, environ: Mapping[str, str]) -> None:
        self._sources = sources
        self._environ = environ
        self._lock = threading.Lock()
        self._routes: dict[tuple[str | None, bool], httpx.HTTPTransport] = {}
        self._known: dict[Origin, httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send *request* on its way."""
        origin = origin_of(request.url)
        with self._lock:
            # The system is asked once: it takes as long as the rest of a small request.
            if origin not in self._known:
                trusted = _trusted(request.url, self._sources.trusted_hosts)
                key = (self._proxy(request.url), trusted)
                if key not in self._routes:
                    self._routes[key] = self._route(*key)
                self._known[origin] = self._routes[key]
            route = self._known[origin]
        return route.handle_request(request)

    def close(self) -> None:
        """Close all connections."""
        for route in self._routes.values():
            route.close()

    def _route(self, proxy: str | None, trusted: bool) -> httpx.HTTPTransport:
        return httpx.HTTPTransport(
            verify=tls_context(self._sources, self._environ, verify=not trusted),
            limits=_CONNECTIONS,
            proxy=proxy,
            trust_env=False,
        )

    def _proxy(self, url: httpx.URL) -> str | None:
        if self._sources.proxy:
            return self._sources.proxy
        if urllib.request.proxy_bypass(url.host):
            return None
        proxies = urllib.request.getproxies()
        return proxies.get(url.scheme) or proxies.get("all") or None


def tls_context(
    sources: Sources, environ: Mapping[str, str], *, verify: bool = True
) -> ssl.SSLContext:
    """Return whom to trust: the named authorities, else those of the system.

    ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name them, and pip's setting before these.
    """
    bundle = sources.cert or environ.get("SSL_CERT_FILE") or None
    folder = environ.get("SSL_CERT_DIR") or None
    context: ssl.SSLContext
    if not verify:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif bundle and os.path.isdir(bundle):  # noqa: PTH112 - may be both, as for pip
        context = ssl.create_default_context(capath=bundle)
    elif bundle or folder:
        context = ssl.create_default_context(cafile=bundle, capath=folder)
    else:
        import truststore

        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if sources.client_cert:
        context.load_cert_chain(sources.client_cert)
    return context


def _trusted(url: httpx.URL, hosts: Collection[str]) -> bool:
    port = url.port or _PORTS.get(url.scheme)
    return url.host in hosts or f"{url.host}:{port}" in hosts
