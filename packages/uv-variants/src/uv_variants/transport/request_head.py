"""The first request of a connection, as far as it has to be read to know where it goes."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from typing import Final, NamedTuple

import h11

from .forwarding import BadRequest

HEAD_BYTES: Final = 64 * 1024
"""Maximum size of a request's head."""
_END: Final = b"\r\n\r\n"
_CONNECT: Final = b"CONNECT "
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")


class ConnectRequest(NamedTuple):
    """A request for a connection to a host.

    Attributes:
        host: name in lower case, or IP address without brackets.
        port: of the host.
        headers: of the request.
        rest: bytes that came after the head.
    """

    host: str
    port: int
    headers: list[tuple[bytes, bytes]]
    rest: bytes

    @property
    def may_be_uv(self) -> bool:
        """Whether uv may have sent it. Every uv says so; git, which uv starts, says what it is."""
        agent = next((value for name, value in self.headers if name == b"user-agent"), b"")
        return not agent or agent.startswith(b"uv/")


async def first_bytes(connection: socket.socket) -> bytes:
    """Return the start of the first request: all of its head if it is a CONNECT request.

    It is empty if the client ends the connection before.

    Raises:
        BadRequest: the head is too large.
    """
    loop = asyncio.get_running_loop()
    data = b""
    while more := await loop.sock_recv(connection, HEAD_BYTES):
        data += more
        begins = data[: len(_CONNECT)]
        if not _CONNECT.startswith(begins) or _END in data:
            return data
        if len(data) > HEAD_BYTES:
            raise BadRequest("the head of the request is too large", 431)
    return b""


def read_connect(data: bytes) -> ConnectRequest | None:
    """Return the CONNECT request in *data*, what `first_bytes` returned; None for another method.

    Raises:
        BadRequest: it is not valid.
    """
    if not data.startswith(_CONNECT):
        return None
    parser = h11.Connection(h11.SERVER, HEAD_BYTES)
    try:
        parser.receive_data(data)
        request = parser.next_event()
    except h11.RemoteProtocolError as error:
        raise BadRequest(f"not a valid request: {error}") from None
    if not isinstance(request, h11.Request):
        raise BadRequest("not a valid request")
    headers = [(bytes(name), bytes(value)) for name, value in request.headers]
    if any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 "))
        for name, value in headers
    ):
        raise BadRequest("a CONNECT request has no body")
    host, port = read_authority(bytes(request.target).decode("latin-1"))
    return ConnectRequest(host, port, headers, parser.trailing_data[0])


def read_authority(text: str, default: int | None = None) -> tuple[str, int]:
    """Return host (in lower case, without brackets) and port of ``host:port``.

    Args:
        text: with port, unless there is a *default*.
        default: port if there is none.

    Raises:
        BadRequest: it is not valid.
    """
    host, colon, port = text.rpartition(":")
    if not colon or (text.endswith("]") and default is not None):
        host, port = text, str(default or "")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536):
        raise BadRequest("the port is not valid")
    if host.startswith("[") and host.endswith("]"):
        try:
            return str(ipaddress.IPv6Address(host[1:-1])), int(port)
        except ValueError:
            raise BadRequest("the host is not valid") from None
    if len(host) > 254 or not _NAME.fullmatch(host):
        raise BadRequest("the host is not valid")
    return host.rstrip(".").lower(), int(port)
