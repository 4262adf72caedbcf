"""The way to other hosts: directly or through the user's proxy, and bytes both ways."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from socksio import ProtocolError, socks5

from variants_index import http
from variants_index.http import UserProxy

from .._errors import UvVariantsError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""

Origin = tuple[str, str, int]
"""Scheme, host (lower case, no brackets) and port."""


def origin(url: str) -> Origin | None:
    """Origin of *url*, None if it is not a valid URL of http or https."""
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").rstrip(".").lower()
        host = host.encode("idna").decode() if not host.isascii() else host
    except ValueError:
        return None
    if parts.scheme not in http.PORTS or not host:
        return None
    return parts.scheme, host, port or http.PORTS[parts.scheme]


def address(host: str, port: int) -> str:
    """Host and port as in URLs and messages."""
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
        return http.proxy_for(scheme, host, self.environ)

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
    failed: Callable[[str], None] = lambda _: None


CONNECT_SECONDS: Final = 30.0
"""Seconds until a connection has to be made, through proxies too."""
_BUFFER: Final = 256 * 1024
_NEXT_ADDRESS: Final = 0.25
"""Seconds after which the next address of a host is tried as well (RFC 8305)."""
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: ([^\r\n]*))?\r\n")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


FAILED: Final = 424
"""Status for what a repetition does not help: uv repeats requests after those above 499."""


class HostUnreachable(UvVariantsError):
    """A host or a proxy that gives no response; the message names it and the cause.

    Attributes:
        status: of the response that says so.
    """

    def __init__(self, message: str, status: int = 502) -> None:
        self.status = status
        super().__init__(message)


def cause(error: BaseException | None) -> str:
    """*error* in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or error})"
    if isinstance(error, socket.gaierror):
        return f"the name cannot be resolved ({(error.strerror or '').lower()})"
    if isinstance(error, OSError) and error.errno and error.errno in errno.errorcode:
        return os.strerror(error.errno).lower()  # asyncio puts words of its own in its place
    return str(error) or type(error).__name__


def is_asked(scheme: str, proxy: UserProxy) -> bool:
    """Whether *proxy* gets requests themselves, rather than bytes for the host."""
    return scheme == "http" and not proxy.scheme.startswith("socks")


async def dial(host: str, port: int, outbound: Outbound, scheme: str = "") -> Streams:
    """Return a connection to *host*.

    Args:
        host, port: of the server.
        outbound: the way to it.
        scheme: of requests; ``https`` for a connection within TLS. Empty for bytes of a client's
            own TLS.

    Raises:
        HostUnreachable: it cannot be made.
        InvalidProxy: the user's variable for the proxy cannot be used.
    """
    proxy = outbound.proxy(scheme or "https", host)
    through = f" through the proxy {proxy.place}" if proxy else ""
    place = address(host, port)
    try:
        tls = outbound.tls(host, port) if scheme == "https" else None
        made = _dialled(host, port, proxy, outbound, scheme, tls)
        return await asyncio.wait_for(made, CONNECT_SECONDS)
    except (asyncio.TimeoutError, TimeoutError):
        text = f"{place}: no connection{through} within {CONNECT_SECONDS:g} seconds"
        raise HostUnreachable(text, 504) from None
    except OSError as error:
        text = f"{place} ({through.strip()})" if through else place
        raise HostUnreachable(f"{text}: {cause(error)}", _status(error)) from None


async def _dialled(
    host: str,
    port: int,
    proxy: UserProxy | None,
    outbound: Outbound,
    scheme: str,
    tls: ssl.SSLContext | None,
) -> Streams:
    if proxy is None:
        return await _opened(host, port, address(host, port), tls)
    to_proxy = outbound.tls(proxy.host, proxy.port) if proxy.scheme == "https" else None
    what = f"the proxy {proxy.place}"
    if scheme:
        what = f"{address(host, port)} (through {what})"
    reader, writer = await _opened(proxy.host, proxy.port, what, to_proxy)
    if is_asked(scheme, proxy):
        return reader, writer
    try:
        if proxy.scheme.startswith("socks"):
            await _greet(reader, writer, proxy, host, port)
        else:
            await _ask_to_connect(reader, writer, proxy, address(host, port))
    except (OSError, EOFError, ProtocolError) as error:
        writer.close()
        words = "closed the connection" if isinstance(error, EOFError) else cause(error)
        raise HostUnreachable(f"the proxy {proxy.place}: {words}") from None
    except BaseException:
        writer.close()
        raise
    return reader, writer if tls is None else await _within(tls, reader, writer, host)


async def _within(
    tls: ssl.SSLContext, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str
) -> asyncio.StreamWriter:
    """Return the writer after the handshake of TLS."""
    try:
        if sys.version_info >= (3, 11):
            with tls_errors():
                await writer.start_tls(tls, server_hostname=host)
            return writer
        loop = asyncio.get_running_loop()
        protocol = writer.transport.get_protocol()
        try:
            made = await loop.start_tls(writer.transport, protocol, tls, server_hostname=host)
        except TypeError:  # asyncio has no TLS within TLS there
            text = f"{host}: through a proxy with https:// needs Python 3.11 or newer"
            raise HostUnreachable(text, FAILED) from None
    except BaseException:
        writer.close()
        raise
    assert made is not None
    return asyncio.StreamWriter(made, protocol, reader, loop)


@contextlib.contextmanager
def tls_errors() -> Iterator[None]:
    """Raise what broke TLS within TLS, which asyncio before Python 3.13 hides by a TypeError."""
    try:
        yield
    except TypeError as error:
        if isinstance(error.__context__, OSError):
            raise error.__context__ from None
        raise


async def _opened(host: str, port: int, what: str, tls: ssl.SSLContext | None) -> Streams:
    try:
        return await asyncio.open_connection(
            host, port, ssl=tls, limit=_BUFFER, happy_eyeballs_delay=_NEXT_ADDRESS
        )
    except (OSError, UnicodeError) as error:
        raise HostUnreachable(f"{what}: {cause(error)}", _status(error)) from None


def _status(error: Exception) -> int:
    return FAILED if isinstance(error, ssl.SSLCertVerificationError) else 502


async def _ask_to_connect(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, proxy: UserProxy, target: str
) -> None:
    """Have an HTTP proxy connect to *target*, host and port."""
    head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if proxy.authorization:
        head += f"Proxy-Authorization: {proxy.authorization}\r\n"
    writer.write(f"{head}\r\n".encode("latin-1"))
    try:
        status = _STATUS.match(await reader.readuntil(b"\r\n\r\n"))
    except asyncio.LimitOverrunError:
        status = None
    if status is None:
        raise HostUnreachable(f"the proxy {proxy.place}: its response is not HTTP")
    if not 200 <= int(status[1]) < 300:
        reason = (status[2] or b"").decode("latin-1")
        words = "".join(c for c in reason[:80] if c.isprintable())
        raise HostUnreachable(
            f"the proxy {proxy.place}: HTTP status {int(status[1])} {words}".rstrip()
        )


async def _greet(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    proxy: UserProxy,
    host: str,
    port: int,
) -> None:
    """Have a SOCKS proxy (RFC 1928) connect to *host*; ``socks5`` resolves its name here.

    Not by python-socks 3.2: its passwords are ASCII, a user without a password cannot log in, and
    its errors say which step failed in prose alone. httpcore resolves no name here.
    """
    methods = [socks5.SOCKS5AuthMethod.NO_AUTH_REQUIRED]
    if proxy.username or proxy.password:
        methods.append(socks5.SOCKS5AuthMethod.USERNAME_PASSWORD)
    writer.write(socks5.SOCKS5AuthMethodsRequest(methods).dumps())
    method = socks5.SOCKS5AuthReply.loads(await reader.readexactly(2)).method
    if method not in methods:
        raise HostUnreachable(
            f"the proxy {proxy.place}: accepts no way to log in that is configured"
        )
    if method == socks5.SOCKS5AuthMethod.USERNAME_PASSWORD:
        user, password = proxy.username.encode()[:255], proxy.password.encode()[:255]
        writer.write(socks5.SOCKS5UsernamePasswordRequest(user, password).dumps())
        if not socks5.SOCKS5UsernamePasswordReply.loads(await reader.readexactly(2)).success:
            raise HostUnreachable(f"the proxy {proxy.place}: user name or password is wrong")
    if proxy.scheme == "socks5":
        loop = asyncio.get_running_loop()
        host = str((await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))[0][4][0])
    connect = socks5.SOCKS5Command.CONNECT
    writer.write(socks5.SOCKS5CommandRequest.from_address(connect, (host, port)).dumps())
    head = await reader.readexactly(5)  # its address, which says nothing, has one of three lengths
    await reader.readexactly({1: 3, 4: 15}.get(head[3], head[4]) + 2)
    if head[1]:
        with contextlib.suppress(ValueError):
            reason = socks5.SOCKS5ReplyCode(head[1:2]).name.lower().replace("_", " ")
            raise HostUnreachable(f"the proxy {proxy.place}: {address(host, port)}: {reason}")
        raise HostUnreachable(f"the proxy {proxy.place}: {address(host, port)}: status {head[1]}")


async def join(client: Streams, server: Streams) -> None:
    """Pass bytes on until both directions have ended, or one fails. Both are closed then.

    Each direction reads only what the other side takes (back pressure). The end of one is passed
    on, and the other goes on: clients may shut down writing and still read.
    """
    tasks = [
        asyncio.ensure_future(_pass_on(client[0], server[1])),
        asyncio.ensure_future(_pass_on(server[0], client[1])),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _, writer in (client, server):
            writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_BUFFER):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):
        if writer.can_write_eof():  # not within TLS
            writer.write_eof()
