"""Transports of a session: authentication, proxies, certificates, guarded connections.

Credentials are added here, by origin: redirects cannot send them to another host, and messages do
not see them. Connections go to allowed addresses only; heads of responses have a limit, and bodies
a least speed.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

from pep_variants.internal import Sources, limits

from .addresses import AddressPolicy, ForbiddenAddress
from .credentials import PORTS, Credentials, find_credentials, split_credentials
from .user_proxies import proxy_for

_UNAUTHORIZED = 401
_CONNECTIONS = 32
"""Connections at a time, of one way to the outside."""

OWN_CREDENTIALS = "pep_variants.credentials"
"""Extension of a request: the credentials in its own URL, for this request only."""

Origin = tuple[str, str, int | None]


def origin_of(url: httpx.URL) -> Origin:
    """Return the origin of *url*: scheme, host and port (RFC 6454), None for the default one."""
    return url.scheme, url.host, url.port


@dataclass
class _Login:
    """What is known of the user's login at an origin.

    Attributes:
        service: URL of the index as the user configured it, which keyrings have; empty for links.
        credentials: None without any.
        token: in place of credentials.
        netrc_read, keyring_asked: whether that was done.
    """

    service: str = ""
    credentials: Credentials | None = None
    token: str = ""
    netrc_read: bool = False
    keyring_asked: bool = False


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
        self._logins: defaultdict[Origin, _Login] = defaultdict(_Login)

    def add_token(self, url: str, token: str) -> None:
        """Use a bearer token (RFC 6750) for the host of *url*, in place of credentials."""
        with self._lock:
            self._logins[origin_of(httpx.URL(url))].token = token

    def is_authenticated(self, url: str) -> bool:
        """Return whether credentials are sent to the host of *url*."""
        with self._lock:
            login = self._logins[origin_of(httpx.URL(url))]
            return bool(login.token) or login.credentials is not None

    def add_index(self, url: str) -> str:
        """Use the credentials in the URL of an index for its host; return it without them."""
        plain, credentials = split_credentials(url)
        try:
            origin = origin_of(httpx.URL(plain))
        except httpx.InvalidURL:
            return plain
        with self._lock:
            login = self._logins[origin]
            login.service = login.service or plain
            login.credentials = login.credentials or credentials
        return plain

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send *request* with known credentials, and after a 401 with those of the keyring."""
        with self._lock:
            login = self._logins[origin_of(request.url)]
            if login.token:
                authorization = f"Bearer {login.token}"
            else:
                known = login.credentials
                if not (login.netrc_read or (known and known.password)):
                    login.netrc_read = True
                    self._find(login, request, keyring=False)
                credentials = login.credentials or request.extensions.get(OWN_CREDENTIALS)
                authorization = credentials.authorization if credentials else ""
        response = self._below.handle_request(_authorized(request, authorization))
        if response.status_code != _UNAUTHORIZED or not self._keyring or login.token:
            return response
        with self._lock:
            if not login.keyring_asked:
                login.keyring_asked = True
                self._find(login, request, keyring=True)
            found = login.credentials
        if found is None or found.authorization == authorization:
            return response
        response.close()  # unread: it may be of any size
        return self._below.handle_request(_authorized(request, found.authorization))

    def close(self) -> None:
        """Close what is below."""
        self._below.close()

    def _find(self, login: _Login, request: httpx.Request, *, keyring: bool) -> None:
        found = find_credentials(
            login.service or str(request.url.copy_with(query=None)),
            self._environ,
            username=login.credentials.username if login.credentials else None,
            keyring=keyring,
            configured=bool(login.service),
        )
        login.credentials = found or login.credentials


def _authorized(request: httpx.Request, authorization: str) -> httpx.Request:
    """Return a copy of *request* with the header, if it is not empty."""
    if not authorization:
        return request
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

    Every connection is checked, see `AddressPolicy` and `GuardedBackend`.

    Attributes:
        requests: the number of requests sent, retries and redirects included.
    """

    def __init__(self, sources: Sources, environ: Mapping[str, str], policy: AddressPolicy) -> None:
        self.requests = 0
        self._sources = sources
        self._environ = environ
        self._policy = policy
        self._lock = threading.Lock()
        self._routes: dict[tuple[str | None, bool, bool], httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send *request*.

        Raises:
            ForbiddenAddress: its host has a forbidden address.
        """
        url = request.url
        port = url.port or PORTS.get(url.scheme)
        proxy = self._sources.proxy
        if not proxy and (found := proxy_for(url.scheme, url.host.lower(), self._environ)):
            proxy = found.url
        if proxy:
            self._policy.check_name(url.host, port)
        uses_tls = url.scheme == "https" or bool(proxy)
        key = proxy or None, self._policy.trusts(url.host, port), uses_tls
        with self._lock:
            self.requests += 1
            if key not in self._routes:
                self._routes[key] = self._route(*key)
            route = self._routes[key]
        response = route.handle_request(request)
        stream = response.extensions.get("network_stream")
        if isinstance(stream, GuardedStream):
            stream.response_began()
        return response

    def close(self) -> None:
        """Close all connections."""
        for route in self._routes.values():
            route.close()

    def _route(self, proxy: str | None, trusted: bool, uses_tls: bool) -> httpx.HTTPTransport:
        if uses_tls:
            context = tls_context(self._sources, self._environ, verify=not trusted)
        else:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody; loads nothing
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


class TooSlow(httpcore.ReadTimeout):
    """A server that sends less than `limits.LEAST_BYTES_PER_SECOND`; it is not retried."""


class GuardedStream(httpcore.NetworkStream):
    """A connection that fails if the server sends too slowly, or too much before the response."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self._begin()

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read as `httpcore.NetworkStream.read` does.

        Raises:
            TooSlow: the average speed since the request is too low.
            httpcore.RemoteProtocolError: the response does not begin (endless interim responses).
        """
        start = time.monotonic()
        data = self._stream.read(max_bytes, timeout)
        self._waited += time.monotonic() - start
        self._received += len(data)
        # The user's timeout applies to the first byte.
        allowed = limits.SLOW_SECONDS + (timeout or 0)
        if self._waited > allowed and self._received < self._waited * limits.LEAST_BYTES_PER_SECOND:
            raise TooSlow(
                f"less than {limits.LEAST_BYTES_PER_SECOND} bytes per second for "
                f"{self._waited:.0f} seconds"
            )
        if self._before_response and self._received > limits.HEAD_BYTES:
            raise httpcore.RemoteProtocolError(
                f"more than {limits.HEAD_BYTES:,} bytes before the response begins"
            )
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write a request; the next bytes are the head of its response."""
        self._begin()
        self._stream.write(buffer, timeout)

    def response_began(self) -> None:
        """Record that the head of the response was received."""
        self._before_response = False

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Return the connection with TLS, guarded as well."""
        return GuardedStream(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - httpcore's signature
        """Return information on the connection, as httpcore does."""
        return self._stream.get_extra_info(info)

    def _begin(self) -> None:
        self._before_response = True
        self._waited = 0.0
        self._received = 0


class GuardedBackend(httpcore.NetworkBackend):
    """Connects to addresses that the policy allows."""

    def __init__(self, policy: AddressPolicy | None) -> None:
        """Set up; without *policy*, for the user's proxy, any address is allowed."""
        self._policy = policy
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of *host* that is allowed and answers.

        Raises:
            ForbiddenAddress: none of its addresses is allowed.
            httpcore.ConnectError, httpcore.ConnectTimeout: it cannot be reached.
        """
        problem: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in self._addresses(host, port):
            try:
                if self._policy is not None:
                    self._policy.check(host, port, address)
                stream = self._backend.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (ForbiddenAddress, httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
            else:
                if self._policy is not None:
                    self._policy.connected(host, address)
                return GuardedStream(stream)
        raise problem

    @staticmethod
    def _addresses(host: str, port: int) -> list[str]:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:  # UnicodeError: a label of more than 63 characters
            raise httpcore.ConnectError(str(error)) from None
        return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


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
