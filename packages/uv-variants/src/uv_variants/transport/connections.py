"""Connections to upstreams that are kept between requests.

httpcore's own pool looks at each of its connections several times for every request, and closes
idle ones while more than it may keep are busy: with the fifty requests that uv sends at a time this
took as long as the requests themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from typing import Final

import httpcore

_MOST: Final = 256
_MOST_IDLE: Final = 64

_Origin = tuple[bytes, bytes, int]


class Connections:
    """The connections of one way to the outside (proxy, certificates); belongs to an event loop."""

    def __init__(self, pool: httpcore.AsyncConnectionPool) -> None:
        """Set up; *pool* makes the connections, and has none itself."""
        self._pool = pool
        self._places = asyncio.Semaphore(_MOST)
        self._idle: list[tuple[_Origin, httpcore.AsyncConnectionInterface]] = []
        """Those that were used last at the end."""
        self._closed = False

    async def send(self, request: httpcore.Request) -> httpcore.Response:
        """Send a request, and return the response, which the caller has to close.

        Raises:
            PoolTimeout: too many connections are busy.
            NetworkError, ProtocolError, TimeoutException, ProxyError: there is no response.
        """
        if self._places.locked():
            timeout = request.extensions.get("timeout", {}).get("pool")
            try:
                await asyncio.wait_for(self._places.acquire(), timeout)
            except (asyncio.TimeoutError, TimeoutError):
                raise httpcore.PoolTimeout from None
        else:
            await self._places.acquire()
        wanted = request.url.origin
        origin = (wanted.scheme, wanted.host, wanted.port)
        connection: httpcore.AsyncConnectionInterface | None = None
        try:
            connection = await self._idle_one(origin) or self._pool.create_connection(wanted)
            response = await connection.handle_async_request(request)
        except BaseException:
            await self._leave(origin, connection)
            raise
        assert isinstance(response.stream, AsyncIterable)
        return httpcore.Response(
            response.status,
            headers=response.headers,
            content=_Body(response.stream, self, origin, connection),
            extensions=response.extensions,
        )

    async def close(self) -> None:
        """Close what is idle now, and what requests in progress use when they end."""
        self._closed = True
        while self._idle:
            await self._idle.pop()[1].aclose()

    async def _idle_one(self, origin: _Origin) -> httpcore.AsyncConnectionInterface | None:
        for place in reversed(range(len(self._idle))):
            if self._idle[place][0] == origin:
                connection = self._idle.pop(place)[1]
                if not connection.has_expired():
                    return connection
                await connection.aclose()
        return None

    async def _leave(
        self, origin: _Origin, connection: httpcore.AsyncConnectionInterface | None
    ) -> None:
        """Keep the connection of a request that has ended, if it can be used again."""
        self._places.release()
        if connection is not None and connection.is_idle() and not self._closed:
            self._idle.append((origin, connection))
        elif connection is not None and not connection.is_closed():
            await connection.aclose()
        while self._idle and (len(self._idle) > _MOST_IDLE or self._idle[0][1].has_expired()):
            await self._idle.pop(0)[1].aclose()


class _Body:
    """The body of a response, whose connection is kept when it is closed."""

    def __init__(
        self,
        stream: AsyncIterable[bytes],
        connections: Connections,
        origin: _Origin,
        connection: httpcore.AsyncConnectionInterface,
    ) -> None:
        self._stream = stream
        self._connections = connections
        self._place = (origin, connection)
        self._closed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._stream.__aiter__()

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            close = getattr(self._stream, "aclose", None)
            if close is not None:
                await close()
        finally:
            await self._connections._leave(*self._place)
