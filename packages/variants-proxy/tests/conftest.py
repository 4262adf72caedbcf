"""A proxy and its upstreams, all real, on loopback."""

import logging
import socket
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside

from machines import NVIDIA
from upstream_server import JSON, served
from upstream_server import Upstream as Server

from variants_proxy import Machine, Settings, Upstream, create_app, encode, index_url
from variants_proxy.choice.in_place_names import wheel_at


class RunningProxy:
    """A running proxy, and what clients do with it."""

    def __init__(self, url, settings, server, service):
        self.url = url
        self.service = service
        self.server = server
        self.settings = settings
        self.client = httpx.Client(base_url=url, timeout=20, trust_env=False)

    def get(self, path, **options):
        return self.client.get(path, **options)

    def page(self, project="app", key=None, index=None):
        key = key or encode(Machine(NVIDIA, target="linux-x86_64"))
        url = f"{index_url(key, index)}{project}/"
        answer = self.get(url, headers={"Accept": JSON})
        answer.raise_for_status()
        tree = answer.json()
        for file in tree["files"]:
            file["url"] = str(httpx.URL(self.url + url).join(file["url"]))
        return tree

    def files(self, *args, **options):
        """Return the entries by plain filename; of equal ones the variant, as pip takes it."""
        found = {}
        for file in self.page(*args, **options)["files"]:
            label, plain = wheel_at(file["url"]) or (None, file["filename"])
            if label is not None or plain not in found:
                found[plain] = file
        return found


@contextmanager
def running(settings):
    app = create_app(settings)
    # What is installed everywhere, not the extra `fast`.
    config = uvicorn.Config(app, http="h11", loop="asyncio", log_level="critical", access_log=False)
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    proxy = RunningProxy(
        f"http://127.0.0.1:{listening.getsockname()[1]}", settings, server, app.state.service
    )
    try:
        yield proxy
    finally:
        proxy.client.close()
        server.should_exit = True
        thread.join(10)
        listening.close()


@pytest.fixture
def upstream():
    with served(Server()) as server:
        yield server


@pytest.fixture
def other():
    with served(Server()) as server:
        yield server


@pytest.fixture
def start(tmp_path):
    """Start proxies; upstreams are servers or `Upstream`s."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def begin(*upstreams, **options):
            given = tuple(
                item
                if isinstance(item, Upstream)
                else Upstream(f"index{number}" if number else "main", item.simple)
                for number, item in enumerate(upstreams)
            )
            options.setdefault("cache", tmp_path / "cache")
            options.setdefault("environ", {"HOME": str(tmp_path), "PATH": ""})
            return stack.enter_context(running(Settings(given, **options)))

        yield begin


@pytest.fixture(autouse=True)
def quiet():
    logging.getLogger("httpx").setLevel("WARNING")
