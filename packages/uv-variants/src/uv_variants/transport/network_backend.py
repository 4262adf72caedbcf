"""Connections of httpcore over asyncio: large reads, and no task for each timeout.

The backend that comes with httpcore reads at most one record of TLS, 16 KiB, at a time, which takes
four times the CPU time of what is here. TLS within TLS is its business, though.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import httpcore

from .connecting import Unreachable, cause, connected
from .socks import greet

if TYPE_CHECKING:
    from variants_index.http.user_proxies import UserProxy

_BUFFER: Final = 512 * 1024
"""Bytes that wait to be read before the upstream has to wait."""


class AsyncioBackend(httpcore.AsyncNetworkBackend):
    """Makes connections, through a SOCKS proxy if there is one."""

    def __init__(self, socks: UserProxy | None = None) -> None:
        self._socks = socks

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 - httpcore's signature
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        """Return a connection to *host*."""
        try:
            return _PlainStream(await asyncio.wait_for(self._connected(host, port), timeout))
        except (asyncio.TimeoutError, TimeoutError):
            raise httpcore.ConnectTimeout from None
        except (Unreachable, OSError) as error:
            raise httpcore.ConnectError(cause(error)) from None

    async def _connected(self, host: str, port: int) -> socket.socket:
        if self._socks is None:
            return await connected(host, port)
        connection = await connected(self._socks.host, self._socks.port, "the proxy ")
        try:
            await greet(connection, self._socks, host, port)
        except BaseException:
            connection.close()
            raise
        return connection

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class _Stream(httpcore.AsyncNetworkStream):
    """A connection whose reads and writes end when it is aborted."""

    def __init__(self) -> None:
        self._late = False

    def abort(self) -> None:
        """End reads and writes."""
        raise NotImplementedError

    def _expire(self) -> None:
        self._late = True
        self.abort()

    @contextlib.contextmanager
    def _within(self, seconds: float | None, late: type[Exception], failed: type[Exception]) -> Any:  # noqa: ANN401
        handle = None
        if seconds is not None:
            handle = asyncio.get_running_loop().call_later(seconds, self._expire)
        try:
            yield
        except (OSError, ssl.SSLError) as error:
            if self._late:
                raise late from None
            raise failed(cause(error)) from error
        finally:
            if handle is not None:
                handle.cancel()
        if self._late:
            raise late


class _PlainStream(_Stream):
    """A socket without TLS."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._socket = connection
        self._loop = asyncio.get_running_loop()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the next bytes, none at the end."""
        with self._within(timeout, httpcore.ReadTimeout, httpcore.ReadError):
            return await self._loop.sock_recv(self._socket, max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of *buffer*."""
        if buffer:
            with self._within(timeout, httpcore.WriteTimeout, httpcore.WriteError):
                await self._loop.sock_sendall(self._socket, buffer)

    async def aclose(self) -> None:
        """Close the connection."""
        self._socket.close()

    def abort(self) -> None:
        """End reads and writes."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Return the connection with TLS."""
        try:
            reader, writer = await asyncio.wait_for(
                asyncio.open_connection(
                    sock=self._socket,
                    ssl=ssl_context,
                    server_hostname=server_hostname,
                    limit=_BUFFER // 2,
                ),
                timeout,
            )
        except (asyncio.TimeoutError, TimeoutError):
            self._socket.close()
            raise httpcore.ConnectTimeout from None
        except OSError as error:
            self._socket.close()
            raise httpcore.ConnectError(cause(error)) from error
        except BaseException:
            self._socket.close()
            raise
        return _TlsStream(reader, writer)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401
        """Return what the pool asks for."""
        if info == "is_readable":
            return _is_readable(self._socket)
        return self._socket if info == "socket" else None


class _TlsStream(_Stream):
    """A connection with TLS."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__()
        self._reader = reader
        self._writer = writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the next bytes, none at the end."""
        with self._within(timeout, httpcore.ReadTimeout, httpcore.ReadError):
            return await self._reader.read(max(max_bytes, _BUFFER))

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of *buffer*."""
        if buffer:
            with self._within(timeout, httpcore.WriteTimeout, httpcore.WriteError):
                self._writer.write(buffer)
                await self._writer.drain()

    async def aclose(self) -> None:
        """Close the connection, without waiting for the other side's farewell."""
        self._writer.transport.abort()

    def abort(self) -> None:
        """End reads and writes."""
        self._writer.transport.abort()

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401
        """Return what the pool asks for."""
        if info == "is_readable":
            # The loop reads ahead: what the other side sent, its end too, is here already.
            waiting = getattr(self._reader, "_buffer", b"")
            return bool(waiting) or self._reader.at_eof() or self._writer.transport.is_closing()
        if info == "ssl_object":
            return self._writer.get_extra_info("ssl_object")
        return None


def _is_readable(connection: socket.socket) -> bool:
    if connection.fileno() == -1:
        return True
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([connection], [], [], 0)[0])
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))
