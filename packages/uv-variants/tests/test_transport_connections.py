"""Connections that are kept between requests: used again, ended when they cannot be, limited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpcore
import pytest

from support.proxied_network import Reply, Server, origin
from uv_variants.transport import connections
from uv_variants.transport.connections import Connections
from uv_variants.transport.network_backend import AsyncioBackend

SECONDS = {"connect": 10.0, "read": 10.0, "write": 10.0, "pool": 0.1}


class Counting(AsyncioBackend):
    """Counts the connections that are made."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 0

    async def connect_tcp(self, *args, **options) -> httpcore.AsyncNetworkStream:  # type: ignore[no-untyped-def]
        self.made += 1
        return await super().connect_tcp(*args, **options)


def kept(backend: Counting, seconds: float = 15.0) -> Connections:
    return Connections(
        httpcore.AsyncConnectionPool(network_backend=backend, keepalive_expiry=seconds)
    )


def request(server: Server, path: str = "/") -> httpcore.Request:
    return httpcore.Request(
        "GET",
        server.url + path,
        headers=[("Host", server.place)],
        extensions={"timeout": SECONDS},
    )


async def body(connections: Connections, server: Server, path: str = "/") -> bytes:
    response = await connections.send(request(server, path))
    try:
        assert not isinstance(response.stream, bytes)
        return b"".join([part async for part in response.stream])  # type: ignore[union-attr]
    finally:
        await response.aclose()
        await response.aclose()  # a second time does nothing


def run(work: Callable[[Server, Counting], Awaitable[None]]) -> None:
    with origin() as server, origin() as other:
        for each in (server, other):
            each.replies["/"] = Reply(b"body")
            each.replies["/cut"] = Reply(b"body", cut=True)
            each.replies["/other"] = Reply(other.url.encode())
        asyncio.run(work(server, Counting()))  # type: ignore[arg-type]


def test_connections_are_used_again() -> None:
    async def work(server: Server, backend: Counting) -> None:
        known = kept(backend)
        for _ in range(3):
            found = await asyncio.gather(*(body(known, server) for _ in range(50)))
            assert found == [b"body"] * 50
        assert backend.made <= 50
        other = (await body(known, server, "/other")).decode()
        before = backend.made
        port = int(other.rpartition(":")[2])
        assert await body(known, Server(port, other)) == b"body"
        assert backend.made == before + 1  # each origin has its own
        await known.close()

    run(work)


def test_what_broke_off_or_was_not_read_is_not_used_again() -> None:
    async def work(server: Server, backend: Counting) -> None:
        known = kept(backend)
        with pytest.raises(httpcore.RemoteProtocolError):
            await body(known, server, "/cut")
        assert await body(known, server) == b"body"
        assert backend.made == 2
        await (await known.send(request(server))).aclose()  # unread
        assert await body(known, server) == b"body"
        assert backend.made == 3

    run(work)


def test_connections_expire() -> None:
    async def work(server: Server, backend: Counting) -> None:
        known = kept(backend, seconds=0.0)
        for _ in range(3):
            assert await body(known, server) == b"body"
        assert backend.made == 3

    run(work)


def test_cancelled_and_failed_requests_leave_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST", 2)

    async def work(server: Server, backend: Counting) -> None:
        known = kept(backend)
        for _ in range(4):
            task = asyncio.ensure_future(known.send(request(server)))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            with pytest.raises(httpcore.ConnectError):
                await known.send(request(Server(1, "http://127.0.0.1:1")))
        one, two = await known.send(request(server)), await known.send(request(server))
        with pytest.raises(httpcore.PoolTimeout):
            await known.send(request(server))
        await one.aclose()
        assert await body(known, server) == b"body"
        await known.close()
        await two.aclose()

    run(work)


def test_closing_ends_what_is_in_progress_too() -> None:
    async def work(server: Server, backend: Counting) -> None:
        known = kept(backend)
        response = await known.send(request(server))
        await known.close()
        async for _ in response.stream:  # type: ignore[union-attr]
            pass
        await response.aclose()
        assert known._idle == []

    run(work)
