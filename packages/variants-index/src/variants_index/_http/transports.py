"""Connections: proxies, certificates, speed, and the addresses that may be connected to.

Links must not lead into the network of the user. Hosts that the user configured may have any
address. A host from a link or a redirect may be as near as the page or server that names it: a page
from a public address leads to public addresses only, one from a private network also into private
networks, one from this machine anywhere. The address that is connected to is checked, so DNS
rebinding has no effect.

Heads of responses have a limit, and bodies a least speed.
"""

from __future__ import annotations

import contextlib
import enum
import ipaddress
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpcore
import httpx
import truststore

from pep_variants import limits
from pep_variants.preferences import Sources

from .user_proxies import PORTS, proxy_for

# IANA's special-purpose registries, not `is_global`, which another Python decides otherwise. Left
# out: 192.0.0.9, 192.0.0.10 and parts of 2001::/23, which are global, and have no index.
_NOT_PUBLIC = [
    ipaddress.ip_network(text)
    for text in (
        "10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
        "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "240.0.0.0/4",
        "::/3", "4000::/2", "8000::/1",  # all but 2000::/3, global unicast
        "2001::/23", "2001:db8::/32", "3fff::/20",
    )
]  # fmt: skip
_LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")
_EMBEDDING = [
    *map(ipaddress.ip_network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")),
    _LOCAL_NAT64,
]
"""IPv6 addresses that end with an IPv4 one."""
# Its metadata service, which is reachable from inside of Azure only.
_AZURE = ipaddress.ip_address("168.63.129.16")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Place = tuple[str, int | None]
_CONNECTIONS = 32
"""Connections at a time, of one way to the outside."""


class Reach(enum.IntEnum):
    """How near an address is to this machine."""

    PUBLIC = 0
    """Global, as IANA's registries have it."""

    NETWORK = 1
    """In a private network (RFC 1918, 4193, 6598, and everything else that is not global)."""

    MACHINE = 2
    """On this machine or its link: loopback, link-local (cloud metadata services), multicast."""


class ForbiddenAddress(Exception):
    """A host that is nearer than the page that links to it.

    Attributes:
        host: the name or address in the URL.
        address: that it resolves to.
    """

    def __init__(self, host: str, address: str) -> None:
        self.host = host
        self.address = address
        super().__init__(
            f"leads to {host if host == address else f'{host} ({address})'}, which is not a public "
            "address and not a configured index: to allow it, make it a trusted host, whose "
            "certificate is then not verified"
        )


def reach_of(address: Address) -> Reach:
    """Return how near *address* is; IPv6 addresses that embed an IPv4 one are as near as that.

    These are mapped, compatible and translated addresses, 6to4, Teredo and NAT64 (RFC 4291, 2765,
    3056, 4380, 6052, 8215).
    """
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.sixtofour
        if inner is None and address.teredo is not None:
            inner = address.teredo[1]
        if inner is None and any(address in network for network in _EMBEDDING):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            own = Reach.NETWORK if address in _LOCAL_NAT64 else Reach.PUBLIC
            return max(own, reach_of(inner))
    if (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address == _AZURE
        or (address.version == 4 and int(address) < 2**24)  # 0.0.0.0/8: "this host"
    ):
        return Reach.MACHINE
    is_near = any(address in network for network in _NOT_PUBLIC)
    return Reach.NETWORK if is_near else Reach.PUBLIC


class AddressPolicy:
    """Decides by host and port; safe to use from several threads."""

    def __init__(self, trusted_hosts: Iterable[str] = ()) -> None:
        """Set up; *trusted_hosts* (with or without port) may have any address."""
        self._trusted = {_ascii(host) for host in trusted_hosts}
        self._lock = threading.Lock()
        self._allowed: dict[Place, Reach] = {}
        self._seen: dict[str, Reach] = {}
        # Configured hosts that were not connected to yet, by the hosts that they link to.
        self._unseen: dict[Place, set[str]] = {}

    def configure(self, url: str) -> None:
        """Allow any address for the host of *url*, which the user configured."""
        place = _place(url)
        if place is not None:
            with self._lock:
                self._allowed[place] = Reach.MACHINE

    def allow_links(self, source: str, targets: Iterable[str]) -> None:
        """Allow the hosts of *targets* to be as near as *source*, the page that links to them."""
        # Thousands of links lead to a few hosts.
        origins = {"/".join(target.split("/", 3)[:3]) for target in targets}
        places = {place for origin in origins if (place := _place(origin)) is not None}
        reach = self._reach(source)
        unseen = (_place(source) or ("", None))[0]
        with self._lock:
            if reach is None:
                for place in places:
                    self._unseen.setdefault(place, set()).add(unseen)
            elif reach is not Reach.PUBLIC:
                for place in places:
                    self._allowed[place] = max(reach, self._allowed.get(place, Reach.PUBLIC))

    def check(self, host: str, port: int | None, address: str) -> None:
        """Check that *host* may have *address*, before connecting to it.

        Raises:
            ForbiddenAddress: it must not.
        """
        reach = _reach_of_text(address)
        place = _ascii(host), port
        if reach > self._limit(place) and reach > self._limit_of_unseen(place):
            raise ForbiddenAddress(host, address)

    def connected(self, host: str, address: str) -> None:
        """Record that *host* was connected to at *address*.

        Of several addresses the farthest counts: an index at a public address does not become
        local by a DNS record with a local address.
        """
        reach = _reach_of_text(address)
        host = _ascii(host)
        with self._lock:
            self._seen[host] = min(reach, self._seen.get(host, reach))

    def check_name(self, host: str, port: int | None) -> None:
        """Check *host* without resolving it, because a proxy connects.

        Raises:
            ForbiddenAddress: it is a forbidden address, or "localhost".
        """
        literal = _literal(host)
        if literal is not None:
            self.check(host, port, literal)

    def trusts(self, host: str, port: int | None) -> bool:
        """Return whether *host* may have any address and certificate."""
        host = _ascii(host)
        return host in self._trusted or f"{host}:{port}" in self._trusted

    def _limit(self, place: Place) -> Reach:
        return Reach.MACHINE if self.trusts(*place) else self._allowed.get(place, Reach.PUBLIC)

    def _limit_of_unseen(self, place: Place) -> Reach:
        """Return how near *place* may be, from the addresses of the hosts that link to it.

        They are resolved only if needed: behind a proxy there may be no DNS.
        """
        with self._lock:
            hosts = self._unseen.pop(place, set())
        reach = max(map(_resolved, hosts), default=Reach.PUBLIC)
        with self._lock:
            reach = max(reach, self._allowed.get(place, Reach.PUBLIC))
            if reach is not Reach.PUBLIC:
                self._allowed[place] = reach
        return reach

    def _reach(self, url: str) -> Reach | None:
        """Return how near the host of *url* is; None for a configured one without connection."""
        if url[:5].lower() == "file:":
            return Reach.MACHINE
        place = _place(url)
        if place is None:
            return Reach.PUBLIC
        literal = _literal(place[0])
        if literal is not None:
            return _reach_of_text(literal)
        with self._lock:
            # A page may come from a cache, or through a proxy.
            return self._seen.get(place[0], None if place in self._allowed else Reach.PUBLIC)


def _reach_of_text(address: str) -> Reach:
    return reach_of(ipaddress.ip_address(address.partition("%")[0]))


def _place(url: str) -> Place | None:
    """Return host and port of *url*, None for an invalid one."""
    try:
        parts = urlsplit(url)
        return _ascii(parts.hostname or ""), parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return None


def _ascii(host: str) -> str:
    """Return *host* in lower case, and encoded (IDNA)."""
    host = host.lower()
    if not host.isascii():
        with contextlib.suppress(ValueError, httpx.InvalidURL):
            return httpx.URL(f"//{host}").raw_host.decode("ascii")
    return host


def _resolved(host: str) -> Reach:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return Reach.PUBLIC
    return min((_reach_of_text(str(sockaddr[0])) for *_, sockaddr in found), default=Reach.PUBLIC)


def _literal(host: str) -> str | None:
    """Return the address that *host* spells, in any form that resolvers accept; None for a name."""
    host = host.lower().rstrip(".").strip("[]")
    if host == "localhost" or host.endswith(".localhost"):
        return "127.0.0.1"
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host))  # "127.1", "0x7f000001", "2130706433"
    except (OSError, ValueError):
        return None


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
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts no authority; loads none
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
        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if sources.client_cert:
        context.load_cert_chain(sources.client_cert)
    return context
