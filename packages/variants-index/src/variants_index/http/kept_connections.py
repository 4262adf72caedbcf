"""Connections that are kept between requests, in place of httpcore's own pool.

That looks at each of its connections several times for every request: with thirty of them this took
a fourth of the time of a request.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import httpcore

_Origin = tuple[bytes, bytes, int]


class KeptConnections:
    """What `httpx.HTTPTransport` needs of a pool; safe to use from several threads."""

    def __init__(self, pool: httpcore.ConnectionPool, most: int) -> None:
        """Set up.

        Args:
            pool: makes the connections, and has none itself.
            most: connections at a time.
        """
        self._pool = pool
        self._places = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._idle: list[tuple[_Origin, httpcore.ConnectionInterface]] = []
        """Those that were used last at the end; not more than there are places."""
        self._most = most
        self._closed = False

    def handle_request(self, request: httpcore.Request) -> httpcore.Response:
        """Send a request, and return the response, which the caller has to close.

        Raises:
            PoolTimeout: too many connections are busy.
            NetworkError, ProtocolError, TimeoutException, ProxyError: there is no response.
            UnsupportedProtocol: it is for neither http nor https.
        """
        if request.url.scheme not in (b"http", b"https"):
            scheme = request.url.scheme.decode()
            raise httpcore.UnsupportedProtocol(f"{scheme or 'a relative URL'} is not http or https")
        wanted = request.url.origin
        if not self._places.acquire(timeout=request.extensions.get("timeout", {}).get("pool")):
            raise httpcore.PoolTimeout
        origin = (wanted.scheme, wanted.host, wanted.port)
        connection: httpcore.ConnectionInterface | None = None
        try:
            connection = self._idle_one(origin) or self._pool.create_connection(wanted)
            response = connection.handle_request(request)
        except BaseException:
            self._leave(origin, connection)
            raise
        assert isinstance(response.stream, Iterable)
        return httpcore.Response(
            response.status,
            headers=response.headers,
            content=_Body(response.stream, self, origin, connection),
            extensions=response.extensions,
        )

    def close(self) -> None:
        """Close what is idle now, and what requests in progress use when they end."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _idle_one(self, origin: _Origin) -> httpcore.ConnectionInterface | None:
        """Return an idle connection to *origin*, None without one."""
        while True:
            with self._lock:
                places = reversed(range(len(self._idle)))
                place = next((each for each in places if self._idle[each][0] == origin), None)
                if place is None:
                    return None
                connection = self._idle.pop(place)[1]
            if not connection.has_expired():
                return connection
            connection.close()

    def _leave(self, origin: _Origin, connection: httpcore.ConnectionInterface | None) -> None:
        """Keep the connection of a request that has ended, if it can be used again."""
        ended = []
        with self._lock:
            if connection is not None and connection.is_idle() and not self._closed:
                self._idle.append((origin, connection))
            elif connection is not None and not connection.is_closed():
                ended.append(connection)
            while self._idle and (len(self._idle) > self._most or self._idle[0][1].has_expired()):
                ended.append(self._idle.pop(0)[1])
        for each in ended:
            each.close()
        self._places.release()


class _Body:
    """The body of a response, whose connection is kept when it is closed."""

    def __init__(
        self,
        stream: Iterable[bytes],
        connections: KeptConnections,
        origin: _Origin,
        connection: httpcore.ConnectionInterface,
    ) -> None:
        self._stream = stream
        self._connections = connections
        self._place = (origin, connection)
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._stream
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            close = getattr(self._stream, "close", None)
            if close is not None:
                close()
        finally:
            self._connections._leave(*self._place)
