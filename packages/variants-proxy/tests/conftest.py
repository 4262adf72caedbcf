"""A proxy and its upstreams, all real, on loopback."""

import logging
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside

from upstream_server import Upstream as Server
from worlds import KnownClients, RunningProxy

from support.index import served
from support.proxies import serving_proxy
from variants_proxy.application import create_app
from variants_proxy.settings import Limits, Settings, Upstream


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
    with ExitStack() as stack:

        def start(*upstreams, **options):
            given = tuple(
                item
                if isinstance(item, Upstream)
                else Upstream(f"index{number}" if number else "main", item.url)
                for number, item in enumerate(upstreams)
            )
            options.setdefault("cache", tmp_path / "cache")
            options.setdefault("environ", {"HOME": str(tmp_path), "PATH": ""})
            options["limits"] = replace(options.get("limits", Limits()), retries=0, page_retries=0)
            app = create_app(settings := Settings(given, **options))
            app.state.service.clients = KnownClients(settings)
            url, server = stack.enter_context(serving_proxy(app))
            proxy = RunningProxy(url, settings, server, app.state.service)
            stack.callback(proxy.client.close)
            return proxy

        yield start


@pytest.fixture(autouse=True)
def quiet():
    logging.getLogger("httpx").setLevel("WARNING")
