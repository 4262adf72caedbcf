"""Which addresses a session may connect to: links must not lead into the user's own network.

Hosts that the user configured may have any address. A host from a link or a redirect may be as
near as the page or server that names it: a page from a public address leads to public addresses
only, one from a private network also into private networks, one from this machine anywhere. The
address that is connected to is checked, so DNS rebinding has no effect.
"""

from __future__ import annotations

import contextlib
import enum
import ipaddress
import socket
import threading
from collections.abc import Iterable
from urllib.parse import urlsplit

import httpx

from .credentials import PORTS

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Its metadata service, which is reachable from inside of Azure only.
_AZURE = ipaddress.ip_address("168.63.129.16")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Place = tuple[str, int | None]


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

    These are mapped addresses, 6to4, Teredo and NAT64 (RFC 4291, 3056, 4380, 6052).
    """
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address.teredo is not None:
            inner = address.teredo[1]
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return reach_of(inner)
        if address.is_site_local:
            return Reach.NETWORK
    if (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address == _AZURE
        or (address.version == 4 and int(address) < 2**24)  # 0.0.0.0/8: "this host"
    ):
        return Reach.MACHINE
    return Reach.PUBLIC if address.is_global else Reach.NETWORK


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
