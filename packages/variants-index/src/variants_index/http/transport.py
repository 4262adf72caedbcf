"""Transports below the cache: authentication, proxies, certificates.

Credentials are added here, by origin: redirects cannot send them to another host, and the layers
above (cache, messages) do not see them.
"""

from __future__ import annotations

import base64
import os
import ssl
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import httpcore
import httpx

from pep_variants.sources import Sources

from .addresses import AddressPolicy
from .connections import GuardedBackend, GuardedStream
from .credentials import Credentials, find_credentials, split_credentials
from .user_proxies import proxy_for

_UNAUTHORIZED = 401
_PORTS = {"http": 80, "https": 443}
_CONNECTIONS = 32
"""Connections at a time, of one way to the outside."""

OWN_CREDENTIALS = "pep_variants.credentials"
"""Extension of a request: the credentials in its own URL, for this request only."""

Origin = tuple[str, str, int | None]


def origin_of(url: httpx.URL) -> Origin:
    """Return the origin of *url*: scheme, host and port (RFC 6454)."""
    return url.scheme, url.host, url.port or _PORTS.get(url.scheme)


class AuthTransport(httpx.BaseTransport):
    """Adds credentials: from index URLs and netrc to the first request, from keyring after a 401.

    Links do not change them. As in pip, a link that has credentials is requested with these if the
    user configured none; unlike in pip, no other request is.
    """

    def __init__(
        self, below: httpx.BaseTransport, environ: Mapping[str, str], *, keyring: bool = True
    ) -> None:
        self._below = below
        self._environ = environ
        self._keyring = keyring
        self._lock = threading.Lock()
        self._known: dict[Origin, Credentials | None] = {}
        # Keyrings have the URL of the index as the user configured it.
        self._services: dict[Origin, str] = {}
        self._asked: set[Origin] = set()
        self._tokens: dict[Origin, str] = {}

    def add_token(self, url: str, token: str) -> None:
        """Use a bearer token (RFC 6750) for the host of *url*, in place of credentials."""
        with self._lock:
            self._tokens[origin_of(httpx.URL(url))] = token

    def is_authenticated(self, url: str) -> bool:
        """Return whether credentials are sent to the host of *url*."""
        origin = origin_of(httpx.URL(url))
        with self._lock:
            return origin in self._tokens or self._known.get(origin) is not None

    def add_index(self, url: str) -> str:
        """Use the credentials in the URL of an index for its host; return it without them."""
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
        """Send *request* with known credentials, and after a 401 with those of the keyring."""
        origin = origin_of(request.url)
        token = self._tokens.get(origin)
        if token is not None:
            return self._below.handle_request(_with_header(request, f"Bearer {token}"))
        with self._lock:
            if origin not in self._known or not _complete(self._known[origin]):
                self._known[origin] = self._find(origin, request, keyring=False)
            configured = self._known[origin]
        credentials = configured or request.extensions.get(OWN_CREDENTIALS)
        response = self._below.handle_request(_authorized(request, credentials))
        if response.status_code != _UNAUTHORIZED or not self._keyring:
            return response
        with self._lock:
            if origin not in self._asked:
                self._asked.add(origin)
                self._known[origin] = self._find(origin, request, keyring=True) or configured
            found = self._known[origin]
        if found is None or found == credentials:
            return response
        response.close()  # unread: it may be of any size
        return self._below.handle_request(_authorized(request, found))

    def close(self) -> None:
        """Close what is below."""
        self._below.close()

    def _find(self, origin: Origin, request: httpx.Request, *, keyring: bool) -> Credentials | None:
        known = self._known.get(origin)
        service = self._services.get(origin, str(request.url.copy_with(query=None)))
        username = known.username if known else None
        found = find_credentials(
            service,
            self._environ,
            username=username,
            keyring=keyring,
            configured=origin in self._services,
        )
        return found or known


def _complete(credentials: Credentials | None) -> bool:
    # None: netrc was read already; without a password netrc may have it.
    return credentials is None or bool(credentials.password)


def _authorized(request: httpx.Request, credentials: Credentials | None) -> httpx.Request:
    """Return a copy of *request* with *credentials*."""
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


class RoutingTransport(httpx.BaseTransport):
    """Connects directly, or through the proxy of the settings, the environment or the system.

    Every connection is checked, see `addresses` and `connections`.
    """

    def __init__(self, sources: Sources, environ: Mapping[str, str], policy: AddressPolicy) -> None:
        self._sources = sources
        self._environ = environ
        self._policy = policy
        self._lock = threading.Lock()
        self._routes: dict[tuple[str | None, bool, bool], httpx.HTTPTransport] = {}
        self._known: dict[Origin, tuple[httpx.HTTPTransport, bool]] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send *request*.

        Raises:
            ForbiddenAddress: its host has a forbidden address.
        """
        origin = origin_of(request.url)
        with self._lock:
            # Once per origin: asking the system takes as long as a small request.
            if origin not in self._known:
                trusted = _trusted(request.url, self._sources.trusted_hosts)
                key = (self._proxy(request.url), trusted, request.url.scheme == "https")
                if key not in self._routes:
                    self._routes[key] = self._route(*key)
                self._known[origin] = self._routes[key], key[0] is not None
            route, proxied = self._known[origin]
        if proxied:
            self._policy.check_name(request.url.host, origin[2])
        response = route.handle_request(request)
        stream = response.extensions.get("network_stream")
        if isinstance(stream, GuardedStream):
            stream.response_began()
        return response

    def close(self) -> None:
        """Close all connections."""
        for route in self._routes.values():
            route.close()

    def _route(self, proxy: str | None, trusted: bool, secure: bool) -> httpx.HTTPTransport:
        if secure or proxy is not None:
            context = tls_context(self._sources, self._environ, verify=not trusted)
        else:
            # No connection has TLS. Reading certificates would take 17 ms; this trusts none.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        route = httpx.HTTPTransport(
            verify=context,
            proxy=proxy,
            trust_env=False,
            limits=httpx.Limits(
                max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS
            ),
        )
        # httpx has no argument for the backend of its pool. The proxy may have any address.
        pool: httpcore.ConnectionPool = route._pool
        pool._network_backend = GuardedBackend(None if proxy else self._policy)
        return route

    def _proxy(self, url: httpx.URL) -> str | None:
        if self._sources.proxy:
            return self._sources.proxy
        found = proxy_for(url.scheme, url.host.lower(), self._environ)
        return found.url if found is not None else None


@dataclass
class Traffic:
    """Counts what a session sends.

    Attributes:
        requests: requests sent, retries and redirects included.
    """

    requests: int = 0


class CountingTransport(httpx.BaseTransport):
    """Counts the requests that are sent, below the cache."""

    def __init__(self, below: httpx.BaseTransport, traffic: Traffic) -> None:
        self._below = below
        self._traffic = traffic
        self._lock = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Count *request* and send it."""
        with self._lock:
            self._traffic.requests += 1
        return self._below.handle_request(request)

    def close(self) -> None:
        """Close what is below."""
        self._below.close()


def tls_context(
    sources: Sources, environ: Mapping[str, str], *, verify: bool = True
) -> ssl.SSLContext:
    """Return a TLS context with the configured certificate authorities, else the system's.

    pip's setting goes before ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``.
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
