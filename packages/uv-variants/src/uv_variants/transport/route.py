"""The way of a command's requests: which hosts are answered here, and how others are reached."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from variants_index.internal import PORTS, UserProxy, proxy_for

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""

Origin = tuple[str, str, int]
"""Scheme, host (lower case, no brackets) and port."""


def origin(url: str) -> Origin | None:
    """Return the origin of *url*, None if it is not a valid URL of http or https."""
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").rstrip(".").lower()
        host = host.encode("idna").decode() if not host.isascii() else host
    except ValueError:
        return None
    if parts.scheme not in PORTS or not host:
        return None
    return parts.scheme, host, port or PORTS[parts.scheme]


def address(host: str, port: int) -> str:
    """Return host and port as in URLs and messages."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True)
class Outbound:
    """The user's own way to other hosts: proxies of the environment, and trusted certificates.

    Attributes:
        environ: the user's proxy and TLS variables.
        roots: file with the certificates that uv would trust, see `trusted_roots`.
        insecure_hosts: hosts whose certificates are not verified, with or without port.
    """

    environ: Mapping[str, str] = field(repr=False)  # proxies may have passwords
    roots: Path
    insecure_hosts: frozenset[str] = frozenset()

    def proxy(self, scheme: str, host: str) -> UserProxy | None:
        """Return the user's proxy for *host*, None without one.

        Raises:
            InvalidProxy: the variable's value cannot be used.
        """
        return proxy_for(scheme, host, self.environ)

    def tls(self, host: str, port: int) -> ssl.SSLContext:
        """Return the context for a connection to *host*.

        Raises:
            OSError: a file with certificates cannot be read (`ssl.SSLError` if not understood).
        """
        is_insecure = {host, f"{host}:{port}"} & self.insecure_hosts
        return self._unverified if is_insecure else self._verified

    @cached_property
    def _verified(self) -> ssl.SSLContext:
        context = self._context()
        context.load_verify_locations(str(self.roots))
        return context

    @cached_property
    def _unverified(self) -> ssl.SSLContext:
        context = self._context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        client = self.environ.get("SSL_CLIENT_CERT")
        if client:
            context.load_cert_chain(client)
        return context


def _ignored(_: str) -> None:
    pass


@dataclass(frozen=True)
class Route:
    """The way of a command's requests.

    Attributes:
        hosts: origins that `application` answers.
        application: gets scopes whose scheme, server, path and query are those of the URL that the
            client asked for.
        outbound: the way to all other hosts.
        failed: gets, as one line each, what the client could not be said: uv does not show the
            body of a response to CONNECT.
    """

    hosts: frozenset[Origin]
    application: Application
    outbound: Outbound
    failed: Callable[[str], None] = _ignored
