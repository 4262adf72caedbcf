"""The index proxy in this process, for clients that are real."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from variants_proxy.application import create_app
from variants_proxy.settings import Settings


@contextmanager
def running_proxy(settings: Settings) -> Iterator[str]:
    """Serve a proxy with *settings* on a free port of loopback; its address is the result."""
    with serving_proxy(create_app(settings)) as (url, _):
        yield url


@contextmanager
def serving_proxy(application: Starlette) -> Iterator[tuple[str, uvicorn.Server]]:
    """Serve *application* on a free port of loopback; yield its address and the server."""
    # What is installed everywhere, not the extra `fast`.
    server = _Server(
        uvicorn.Config(
            application, http="h11", loop="asyncio", log_level="critical", access_log=False
        )
    )
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        assert server.ready.wait(30), "the proxy does not start"
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", server
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


class _Server(uvicorn.Server):
    """A server that says when it has started, and ends at once."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        while not self.should_exit:
            await asyncio.sleep(0.01)
