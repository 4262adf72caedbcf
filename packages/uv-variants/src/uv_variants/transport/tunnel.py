"""Bytes both ways between two connections, until both sides have ended.

Each direction reads only what the other side takes (back pressure). The end of one direction is
passed on, and the other goes on: clients may shut down writing and still read.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from typing import Final, Protocol

IDLE_SECONDS: Final = 600.0
"""Seconds without a byte in either direction after which a tunnel ends."""
HALF_SECONDS: Final = 120.0
"""The same once one direction has ended."""
_FIRST_BUFFER: Final = 16 * 1024
_BUFFER: Final = 256 * 1024
"""Size of a buffer that was filled once: most tunnels carry little."""
_TURN: Final = 16
"""Buffers that are passed on before other connections have their turn."""


class End(Protocol):
    """One end of a tunnel."""

    async def read_into(self, buffer: memoryview) -> int:
        """Read up to the size of *buffer*; return the number of bytes, 0 at the end."""

    async def write(self, data: memoryview) -> None:
        """Write all of *data*."""

    def shut(self) -> None:
        """End writing, if that is possible without ending reading."""

    def close(self) -> None:
        """Close it."""


class SocketEnd:
    """A socket without TLS."""

    def __init__(self, connection: socket.socket, first: bytes = b"") -> None:
        """Set up; *first* was read before."""
        self._socket = connection
        self._first = first
        self._loop = asyncio.get_running_loop()

    async def read_into(self, buffer: memoryview) -> int:
        """Read up to the size of *buffer*; return the number of bytes, 0 at the end."""
        if self._first:
            part = self._first[: len(buffer)]
            self._first = self._first[len(part) :]
            buffer[: len(part)] = part
            return len(part)
        return await self._loop.sock_recv_into(self._socket, buffer)

    async def write(self, data: memoryview) -> None:
        """Write all of *data*."""
        await self._loop.sock_sendall(self._socket, data)

    def shut(self) -> None:
        """End writing."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close it."""
        self._socket.close()


class StreamEnd:
    """A connection with TLS, to a proxy of the user's."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes = b""
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._first = first

    async def read_into(self, buffer: memoryview) -> int:
        """Read up to the size of *buffer*; return the number of bytes, 0 at the end."""
        data = self._first or await self._reader.read(len(buffer))
        part, self._first = data[: len(buffer)], data[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)

    async def write(self, data: memoryview) -> None:
        """Write all of *data*."""
        self._writer.write(bytes(data))
        await self._writer.drain()

    def shut(self) -> None:
        """Do nothing: asyncio's TLS cannot end one direction."""

    def close(self) -> None:
        """Close it."""
        self._writer.close()


class _Activity:
    """When bytes were last passed on, and how many directions are open."""

    def __init__(self) -> None:
        self.last = time.monotonic()
        self.open = 2

    @property
    def left(self) -> float:
        """Seconds until the tunnel is idle for too long."""
        limit = IDLE_SECONDS if self.open == 2 else HALF_SECONDS
        return self.last + limit - time.monotonic()


async def join(client: End, server: End) -> None:
    """Pass bytes on until both directions have ended, one fails, or nothing comes for too long.

    Both ends are closed then.
    """
    activity = _Activity()
    tasks = [
        asyncio.ensure_future(_pass_on(client, server, activity)),
        asyncio.ensure_future(_pass_on(server, client, activity)),
    ]
    try:
        waiting = set(tasks)
        while waiting and activity.left > 0:
            done, waiting = await asyncio.wait(
                waiting, timeout=activity.left, return_when=asyncio.FIRST_COMPLETED
            )
            if any(not task.cancelled() and task.exception() for task in done):
                break
    finally:
        for task in tasks:
            task.cancel()
        # Sockets must not be closed while the loop still watches them.
        await asyncio.gather(*tasks, return_exceptions=True)
        client.close()
        server.close()


async def _pass_on(source: End, target: End, activity: _Activity) -> None:
    buffer = memoryview(bytearray(_FIRST_BUFFER))
    turn = 0
    while count := await source.read_into(buffer):
        await target.write(buffer[:count])
        activity.last = time.monotonic()
        if count == len(buffer) < _BUFFER:
            buffer = memoryview(bytearray(_BUFFER))
        turn += 1
        if turn % _TURN == 0:
            await asyncio.sleep(0)  # both calls return at once while bytes are there
    target.shut()
    activity.open -= 1
