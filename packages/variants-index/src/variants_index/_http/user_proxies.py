"""Which proxy the user's variables name for a host, by the rules of uv (reqwest) and curl.

``HTTP_PROXY`` and ``HTTPS_PROXY`` are for URLs of that scheme, ``ALL_PROXY`` for both; names in
capitals go first. ``NO_PROXY`` lists hosts that are reached directly: ``*`` for all, a domain for
itself and its subdomains, with or without a dot before it, an IP address or a network.
"""

from __future__ import annotations

import base64
import ipaddress
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from .._errors import PackageIndexError

PORTS = {"http": 80, "https": 443}
"""Default ports by scheme."""

_PROXY_PORTS = {**PORTS, "socks5": 1080, "socks5h": 1080}
_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


class InvalidProxy(PackageIndexError):
    """A proxy variable whose value is no proxy that can be used."""


@dataclass(frozen=True)
class UserProxy:
    """A proxy of the user's.

    Attributes:
        scheme: ``http``, ``https``, ``socks5`` or ``socks5h``.
        host: name or IP address, without brackets.
        port: of the proxy.
        username, password: decoded; empty without any.
    """

    scheme: str
    host: str
    port: int
    username: str = ""
    password: str = field(default="", repr=False)

    @property
    def place(self) -> str:
        """Host and port, for messages."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def authorization(self) -> str:
        """The value of ``Proxy-Authorization`` (RFC 7617), empty without user and password."""
        if not (self.username or self.password):
            return ""
        return f"Basic {base64.b64encode(f'{self.username}:{self.password}'.encode()).decode()}"

    @property
    def url(self) -> str:
        """URL, with user name and password."""
        user = ""
        if self.username or self.password:
            user = f"{quote(self.username, safe='')}:{quote(self.password, safe='')}@"
        return f"{self.scheme}://{user}{self.place}"


def proxy_for(scheme: str, host: str, environ: Mapping[str, str]) -> UserProxy | None:
    """Return the proxy for a host, None if it is reached directly.

    Args:
        scheme: ``http`` or ``https``.
        host: name or IP address, in lower case and without brackets.
        environ: environment variables of the user.

    Raises:
        InvalidProxy: the variable's value cannot be used; the message has its name.

    >>> from variants_index.http import proxy_for
    >>> environ = {"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": "host.example"}
    >>> proxy_for("https", "pypi.org", environ).port
    3128
    >>> proxy_for("https", "host.example", environ) is None
    True
    """
    for name in (f"{scheme.upper()}_PROXY", "ALL_PROXY"):
        value = _variable(name, environ)
        if value:
            return None if is_exempt(host, _variable("NO_PROXY", environ)) else read(value, name)
    if sys.platform in ("darwin", "win32") and not any(_variable(n, environ) for n in _VARIABLES):
        value = urllib.request.getproxies().get(scheme, "")
        if value and not urllib.request.proxy_bypass(host):
            return read(value, "the system's settings")
    return None


def is_exempt(host: str, no_proxy: str) -> bool:
    """Return whether *no_proxy*, a value of ``NO_PROXY``, has *host*."""
    entries = [entry.strip().lower() for entry in no_proxy.split(",")]
    if "*" in entries:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        host = host.rstrip(".")
        domains = (entry.strip(".") for entry in entries)
        return any(each and (host == each or host.endswith("." + each)) for each in domains)
    return any(_has(entry, address) for entry in entries)


def read(value: str, name: str) -> UserProxy:
    """Return the proxy in *value* of the variable *name*.

    Raises:
        InvalidProxy: it cannot be used.
    """
    text = value if "://" in value else f"http://{value}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidProxy(f"{name}: not a valid URL of a proxy") from None
    scheme = {"socks": "socks5"}.get(parts.scheme, parts.scheme)
    if scheme not in _PROXY_PORTS or not parts.hostname:
        raise InvalidProxy(
            f"{name}: a proxy of the kind {parts.scheme[:20]!r} cannot be used: "
            "http, https, socks5 and socks5h can"
        )
    return UserProxy(
        scheme,
        parts.hostname,
        port or _PROXY_PORTS[scheme],
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )


def _variable(name: str, environ: Mapping[str, str]) -> str:
    return (environ.get(name) or environ.get(name.lower()) or "").strip()


def _has(entry: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return address in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return False
