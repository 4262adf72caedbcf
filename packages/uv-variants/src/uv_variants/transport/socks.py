"""The client's side of SOCKS 5 (RFC 1928), with user name and password (RFC 1929).

Small enough to be written here: the libraries for it are for threads, or not kept up.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TYPE_CHECKING, Final

from .connecting import Unreachable

if TYPE_CHECKING:
    from variants_index.http.user_proxies import UserProxy

_NONE, _PASSWORD = 0, 2
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REASONS: Final = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
    7: "command not supported",
    8: "address type not supported",
}


async def greet(connection: socket.socket, proxy: UserProxy, host: str, port: int) -> None:
    """Have the proxy at *connection* connect to *host*.

    ``socks5`` resolves names here, ``socks5h`` at the proxy.

    Raises:
        Unreachable: the proxy refuses.
        OSError: the connection fails.
    """
    loop = asyncio.get_running_loop()

    async def read(count: int) -> bytes:
        data = b""
        while len(data) < count:  # not one byte more: the rest is the other host's
            more = await loop.sock_recv(connection, count - len(data))
            if not more:
                raise Unreachable(f"the proxy {proxy.place}: closed the connection")
            data += more
        return data

    with_password = bool(proxy.username or proxy.password)
    methods = bytes([_NONE, _PASSWORD] if with_password else [_NONE])
    await loop.sock_sendall(connection, bytes([5, len(methods)]) + methods)
    version, method = await read(2)
    if version != 5 or method not in methods:
        raise Unreachable(f"the proxy {proxy.place}: accepts no way to log in that is configured")
    if method == _PASSWORD:
        user, password = proxy.username.encode()[:255], proxy.password.encode()[:255]
        await loop.sock_sendall(
            connection, b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password
        )
        if (await read(2))[1] != 0:
            raise Unreachable(f"the proxy {proxy.place}: user name or password is wrong")
    if proxy.scheme == "socks5":
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Unreachable(f"{host}: the name cannot be resolved ({error.strerror})") from None
        host = str(found[0][4][0])
    await loop.sock_sendall(connection, b"\x05\x01\x00" + _address(host) + port.to_bytes(2, "big"))
    _, status, _, kind = await read(4)
    if status:
        reason = _REASONS.get(status, f"status {status}")
        raise Unreachable(f"the proxy {proxy.place}: {host}:{port}: {reason}")
    length = {_IPV4: 4, _IPV6: 16}.get(kind)
    await read((length if length is not None else (await read(1))[0]) + 2)


def _address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("idna" if not host.isascii() else "ascii")[:255]
        return bytes([_NAME, len(name)]) + name
    return bytes([_IPV4 if address.version == 4 else _IPV6]) + address.packed
