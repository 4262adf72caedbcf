"""The first request of a connection, as far as it has to be read to know where it goes."""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
import re
import socket
from dataclasses import dataclass, field
from typing import Final

import h11

HEAD_BYTES: Final = 64 * 1024
"""Maximum size of a request's head."""
_END: Final = b"\r\n\r\n"
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_CHUNK: Final = 16 * 1024


class BadRequest(Exception):
    """A request that is refused.

    Attributes:
        status: of the response.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True)
class ConnectRequest:
    """A request for a connection to a host.

    Attributes:
        host: name in lower case, or IP address without brackets.
        port: of the host.
        credentials: id and token of the session, None without any that can be read.
        rest: bytes that came after the head.
        agent: value of ``User-Agent``, empty without one.
    """

    host: str
    port: int
    credentials: tuple[str, str] | None = field(repr=False)
    rest: bytes = field(repr=False)
    agent: bytes = b""

    @property
    def may_be_uv(self) -> bool:
        """Whether uv may have sent it. Every uv says so; git, which uv starts, says what it is."""
        return not self.agent or self.agent.startswith(b"uv/")

    @property
    def place(self) -> str:
        """Host and port, for messages."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


async def first_bytes(connection: socket.socket) -> bytes:
    """Return the start of the first request: all of its head if it is a CONNECT request.

    It is empty if the client ends the connection before.

    Raises:
        BadRequest: the head is too large.
    """
    loop = asyncio.get_running_loop()
    data = bytearray()
    while True:
        more = await loop.sock_recv(connection, _CHUNK)
        if not more:
            return b""
        searched = max(0, len(data) - len(_END) + 1)
        data += more
        kind = is_connect(data)
        if kind is False or (kind and data.find(_END, searched) >= 0):
            return bytes(data)
        if len(data) > HEAD_BYTES:
            raise BadRequest("the head of the request is too large", 431)


def is_connect(data: bytes | bytearray) -> bool | None:
    """Return whether a request that begins with *data* is CONNECT, None if that is too short."""
    method = b"CONNECT "
    if len(data) < len(method):
        return None if method.startswith(data) else False
    return data.startswith(method)


def read_connect(data: bytes) -> ConnectRequest:
    """Return the CONNECT request in *data*, whose head is complete.

    Raises:
        BadRequest: it is not valid.
    """
    parser = h11.Connection(h11.SERVER, HEAD_BYTES)
    try:
        parser.receive_data(data)
        request = parser.next_event()
    except h11.RemoteProtocolError as error:
        raise BadRequest(f"not a valid request: {error}") from None
    if not isinstance(request, h11.Request) or request.method != b"CONNECT":
        raise BadRequest("not a valid request")
    headers = [(bytes(name), bytes(value)) for name, value in request.headers]
    names = [name for name, _ in headers]
    if b"transfer-encoding" in names or any(
        value.strip(b"0 ") for name, value in headers if name == b"content-length"
    ):
        raise BadRequest("a CONNECT request has no body")
    host, port = read_authority(bytes(request.target).decode("latin-1"))
    rest = parser.trailing_data[0]
    agent = next((value for name, value in headers if name == b"user-agent"), b"")
    return ConnectRequest(host, port, session_credentials(headers), rest, agent)


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


def session_credentials(headers: list[tuple[bytes, bytes]]) -> tuple[str, str] | None:
    """Return id and token of the session in ``Proxy-Authorization``, None without.

    Two such headers are none: which of them counts must not depend on who reads it.
    """
    values = [value for name, value in headers if name == b"proxy-authorization"]
    if len(values) != 1:
        return None
    scheme, _, given = values[0].partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        text = base64.b64decode(given.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    user, colon, password = text.partition(":")
    return (user, password) if colon else None
