"""The proxy without sockets, in one process: what is counted of it, and timed where only it counts.

As a command, for `bench_instructions`: python -m benchmarks.proxy_calls WHAT NUMBER
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from uvicorn.server import ServerState

from pep_variants.model.platform import Platform, Support
from support.index import JSON
from support.wheels import X86_64, Release, metadata
from variants_index.http.responses import Response
from variants_index.pages import Page, PageFile, json_page, read_page
from variants_proxy import Machine, Settings, Upstream, create_app, encode, index_url
from variants_proxy.clients import ClientSettings
from variants_proxy.server.server import limited_config

VARIANTS = metadata(
    {"null": {}, **{f"x86_64_v{n}": {"x86_64": {"level": [f"v{n}"]}} for n in (2, 3, 4)}},
    namespaces=["x86_64"],
    providers={"x86_64": X86_64},
)
KEY = encode(
    Machine(Platform({"x86_64": Support({"level": ("v3", "v2", "v1")})}), target="linux-x86_64")
)
VERSIONS = 100
_TAGS = [
    f"cp3{minor}-cp3{minor}-manylinux_2_{libc}_x86_64"
    for minor in (10, 11, 12, 13, 14)
    for libc in (17, 28)
]
_URL = "http://127.0.0.1:9/simple/large/"
"""Nothing is fetched."""


class LargePage:
    """A page of thousands of files, and a proxy whose upstream has changed each time.

    All small files are known. Each of 100 versions has wheels for that many tags.
    """

    def __init__(self, folder: Path, *, in_place: bool = False, tags: int = len(_TAGS)) -> None:
        from variants_proxy.service import Service

        entries: list[dict[str, Any]] = []
        for number in range(VERSIONS):
            name = f"large-{number}.0"
            for tag in _TAGS[:tags]:
                for label in ("", "-null", "-x86_64_v2", "-x86_64_v3", "-x86_64_v4"):
                    entries.append(_entry(f"{name}-{tag}{label}.whl"))
            entries.append(_entry(f"{name}-variants.json"))
        tree = {"meta": {"api-version": "1.1"}, "name": "large", "files": entries}
        self.files = len(entries)
        self._body = json.dumps(tree).encode()
        self._upstream = Upstream("main", _URL.removesuffix("large/"))
        self._service = Service(Settings((self._upstream,), folder, fresh_seconds=0.0))
        clients = self._service.clients
        name = clients.register(ClientSettings(KEY)) if in_place else KEY
        self._client = clients.client(name)
        store = self._service.upstreams.store
        document = json.dumps(VARIANTS).encode()
        for entry in entries:
            if entry["filename"].endswith(".json"):
                record = Response(entry["url"], JSON, document).record()
                store.put("http", f"*/* {entry['url']}", record)
        core = b"Metadata-Version: 2.1\nName: large\nVersion: 1.0\n"
        store.put("proxy-metadata", hashlib.sha256(b"metadata").hexdigest(), core)
        self._loop = asyncio.new_event_loop()
        self._turn = 0

    def parse(self) -> None:
        """Read the page."""
        read_page(self._body, JSON, _URL, "large")

    def answer(self) -> None:
        """Read, choose and write."""
        self._turn += 1
        self._loop.run_until_complete(self._answer(f"{self._turn}"))

    async def _answer(self, digest: str) -> None:
        from variants_proxy.choice.offers import ProjectView
        from variants_proxy.upstream.releases import FetchedPage

        page = read_page(self._body, JSON, _URL, "large")
        found = FetchedPage(page, digest, False)
        client = self._client
        choice, sure = await self._service.views.chosen(client, self._upstream, "large", found)
        shown = ProjectView(self._upstream, "large", found, choice, sure)
        answer = await self._service.pages.page(client, [shown], ["json"])
        if answer.body.count(b".whl") < 100:
            raise RuntimeError("the page is empty")


def _entry(filename: str) -> dict[str, Any]:
    digest = hashlib.sha256(filename.encode()).hexdigest()
    core = hashlib.sha256(b"metadata").hexdigest()
    return {
        "filename": filename,
        "url": f"https://files.example/{digest[:2]}/{filename}",
        "hashes": {"sha256": hashlib.sha256(json.dumps(VARIANTS).encode()).hexdigest()
                   if filename.endswith(".json") else digest},
        "requires-python": ">=3.10",
        "size": 1_000_000,
        "upload-time": "2026-01-01T00:00:00.000000Z",
        "core-metadata": {"sha256": core} if filename.endswith(".whl") else False,
    }  # fmt: skip


class _Connection(asyncio.Transport):
    """The server's end of a connection whose client reads everything."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def _bare(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


def ask_for_page(folder: Path, number: int, *, bare: bool) -> None:
    """Ask once for a page, and *number* times again when it is in memory.

    Args:
        folder: empty.
        number: of requests on one connection.
        bare: of an application that does nothing.
    """
    release = Release("project", "1.0", VARIANTS)
    files = {wheel.filename: wheel.build() for wheel in release.wheels()}
    files[release.metadata_filename] = json.dumps(VARIANTS).encode()
    project = folder / "index" / "project"
    project.mkdir(parents=True)
    for name, data in files.items():
        (project / name).write_bytes(data)
    # With hashes: what is made of files without is not kept for long.
    entries = tuple(
        PageFile(name, name, {"sha256": hashlib.sha256(data).hexdigest()})
        for name, data in files.items()
    )
    (project / "index.v1_json").write_bytes(json_page(Page("project", entries)))
    upstream = Upstream("main", f"{project.parent.as_uri()}/")
    settings = Settings((upstream,), folder / "cache", fresh_seconds=1e6)
    config = limited_config(_bare if bare else create_app(settings))
    config.load()
    request = (
        f"GET {index_url(KEY)}project/ HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: uv/0.9.0\r\n"
        f"Accept: {JSON}\r\nAccept-Encoding: gzip\r\n\r\n"
    ).encode()

    async def ask() -> None:
        transport = _Connection()
        make: Any = config.http_protocol_class
        protocol = make(config=config, server_state=ServerState(), app_state={})
        protocol.connection_made(transport)
        for _ in range(number + 1):
            transport.sent = b""
            protocol.data_received(request)
            while not protocol.is_waiting:
                await asyncio.sleep(0)
            if not transport.sent.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError(transport.sent.decode())
        protocol.connection_lost(None)

    asyncio.run(ask())


def main(what: str, number: int) -> None:
    """Call *what* once and *number* times again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if what in ("parse", "answer"):
            page = LargePage(folder)
            call: Callable[[], None] = getattr(page, what)
            for _ in range(number + 1):
                call()
        else:
            ask_for_page(folder, number, bare=what == "bare")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
