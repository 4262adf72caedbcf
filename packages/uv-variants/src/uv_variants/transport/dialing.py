"""Connections to other hosts, directly or through a proxy of the user's."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import TYPE_CHECKING, Final

from .connecting import Unreachable, cause, connected
from .socks import greet
from .tunnel import End, SocketEnd, StreamEnd

if TYPE_CHECKING:
    from variants_index.http.user_proxies import UserProxy

    from .outbound import Outbound

CONNECT_SECONDS: Final = 30.0
"""Seconds until a connection has to be made, through proxies too."""
_HEAD_BYTES: Final = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: ([^\r\n]*))?\r\n")


async def dial(host: str, port: int, outbound: Outbound) -> End:
    """Return a connection to *host* for bytes of TLS.

    Raises:
        Unreachable: it cannot be made.
        InvalidProxy: the user's variable for the proxy cannot be used.
    """
    proxy = outbound.proxy("https", host)
    try:
        return await asyncio.wait_for(_dialled(host, port, proxy, outbound), CONNECT_SECONDS)
    except (asyncio.TimeoutError, TimeoutError):
        through = f" through the proxy {proxy.place}" if proxy else ""
        raise Unreachable(
            f"{host}:{port}: no connection{through} within {CONNECT_SECONDS:g} seconds"
        ) from None


async def _dialled(host: str, port: int, proxy: UserProxy | None, outbound: Outbound) -> End:
    if proxy is None:
        return SocketEnd(await connected(host, port))
    connection = await connected(proxy.host, proxy.port, "the proxy ")
    try:
        if proxy.scheme.startswith("socks"):
            await greet(connection, proxy, host, port)
            return SocketEnd(connection)
        if proxy.scheme == "http":
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(connection, _connect_head(host, port, proxy))
            data = bytearray()
            while b"\r\n\r\n" not in data:
                more = await loop.sock_recv(connection, 4096)
                _check_head(data, more, proxy)
                data += more
            return SocketEnd(connection, _after_head(bytes(data), proxy))
        reader, writer = await asyncio.open_connection(
            sock=connection,
            ssl=outbound.tls(proxy.host, proxy.port),
            server_hostname=proxy.host,
        )
        try:
            writer.write(_connect_head(host, port, proxy))
            data = bytearray()
            while b"\r\n\r\n" not in data:
                more = await reader.read(4096)
                _check_head(data, more, proxy)
                data += more
            return StreamEnd(reader, writer, _after_head(bytes(data), proxy))
        except BaseException:
            writer.close()
            raise
    except OSError as error:
        connection.close()
        raise Unreachable(f"the proxy {proxy.place}: {cause(error)}") from None
    except BaseException:
        connection.close()
        raise


def _connect_head(host: str, port: int, proxy: UserProxy) -> bytes:
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n"
    if proxy.username or proxy.password:
        secret = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
        head += f"Proxy-Authorization: Basic {secret}\r\n"
    return f"{head}\r\n".encode("latin-1")


def _check_head(data: bytearray, more: bytes, proxy: UserProxy) -> None:
    if not more:
        raise Unreachable(f"the proxy {proxy.place}: closed the connection")
    if len(data) > _HEAD_BYTES:
        raise Unreachable(f"the proxy {proxy.place}: the head of its response is too large")


def _after_head(data: bytes, proxy: UserProxy) -> bytes:
    head, _, rest = data.partition(b"\r\n\r\n")
    found = _STATUS.match(head + b"\r\n")
    if found is None:
        raise Unreachable(f"the proxy {proxy.place}: its response is not HTTP")
    if not 200 <= int(found[1]) < 300:
        reason = (found[2] or b"").decode("latin-1")
        words = "".join(c for c in reason[:80] if c.isprintable())
        raise Unreachable(f"the proxy {proxy.place}: HTTP status {int(found[1])} {words}".rstrip())
    return rest
