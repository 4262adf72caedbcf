"""TCP connections to hosts, and the causes of failures in words."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import ssl
from collections.abc import Sequence
from typing import Final

from ..errors import UvVariantsError

_NEXT_ADDRESS: Final = 0.25
"""Seconds after which the next address of a host is tried as well (RFC 8305)."""


class Unreachable(UvVariantsError):
    """A host or a proxy that cannot be connected to; the message names it and the cause."""


async def connected(host: str, port: int, what: str = "") -> socket.socket:
    """Return a socket that is connected to *host*, at the first of its addresses that answers.

    Args:
        host: name or IP address.
        port: of the host.
        what: before the name, in messages.

    Raises:
        Unreachable: none answers.
    """
    place = f"{what}{host}:{port}"
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"{place}: the name cannot be resolved ({cause(error)})") from None
    attempts: set[asyncio.Task[socket.socket]] = set()
    waiting = _interleaved(found)
    last: BaseException | None = None
    try:
        while waiting or attempts:
            if waiting:
                attempts.add(asyncio.ensure_future(_connected_to(waiting.pop(0))))
            done, attempts = await asyncio.wait(
                attempts,
                timeout=_NEXT_ADDRESS if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in done:
                last = task.exception()
                if last is None:
                    return task.result()
    finally:
        for task in attempts:
            task.cancel()
            task.add_done_callback(_close_result)
    raise Unreachable(f"{place}: {cause(last)}") from None


def _close_result(task: asyncio.Task[socket.socket]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


_Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[object, ...]]


def _interleaved(found: Sequence[tuple[object, ...]]) -> list[_Address]:
    """Return addresses of both families in turn, in the order of the resolver otherwise."""
    first = [each for each in found if each[0] == found[0][0]]
    others = [each for each in found if each[0] != found[0][0]]
    result: list[_Address] = []
    while first or others:
        for each in (first, others):
            if each:
                result.append(each.pop(0))  # type: ignore[arg-type]
    return result


async def _connected_to(address: _Address) -> socket.socket:
    connection = socket.socket(address[0], address[1], address[2])
    try:
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connection, address[4])
    except BaseException:
        connection.close()
        raise
    return connection


def cause(error: BaseException | None) -> str:
    """Return *error* in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or error})"
    if isinstance(error, OSError) and error.errno is not None:
        # asyncio puts words of its own in place of the system's.
        own = isinstance(error, socket.gaierror) or error.errno not in errno.errorcode
        return ((error.strerror or "") if own else os.strerror(error.errno)).lower()
    return str(error) or type(error).__name__
