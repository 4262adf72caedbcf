"""The proxy's server: slow clients, memory, and its end; most in a process."""

import os
import re
import signal
import socket
import stat
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from test_cli import serving
from worlds import BARE

from pep_variants import limits
from support.raw_server import sending
from support.waiting import wait_until
from variants_proxy._server import server as connections
from variants_proxy._server.server import make_server
from variants_proxy.settings import Settings, Upstream

NOWHERE = "http://127.0.0.1:9"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
PART = b"<a href=x-1-py3-none-any.whl b>"
SECURITY = {
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
}
SETTING = "import variants_proxy._server.server as s; s.{} = {}\n"
STUCK = """
import variants_proxy._upstream.upstream_pages as pages
def read_projects(*arguments):
    open('stuck', 'w').close()
    while True: pass
pages.index_pages.read_projects = read_projects
"""
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def proxy_at(folder, index=NOWHERE, **options):
    """A proxy in a process of its own, open to all."""
    return serving(folder, "--open", "--index", f"main={index}/simple/", **options)


@pytest.fixture
def start(tmp_path):
    """Run servers in threads; returns the URL of each."""
    running = []

    def start():
        found = make_server(Settings((Upstream("main", f"{NOWHERE}/simple/"),), tmp_path))
        listening = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=found.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        running.append((found, thread))
        assert wait_until(lambda: found.started)
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    yield start
    for found, thread in running:
        found.should_exit = True
        thread.join(10)


def ask(url, path="/health", host="localhost"):
    return httpx.get(url + path, headers={"Host": host}, trust_env=False, timeout=100)


@contextmanager
def asking(url, number):
    """Ask for the pages of a number of projects, or for the list of them, in vain."""

    def work(path):
        with suppress(httpx.HTTPError):
            ask(url, path)

    paths = [f"/p/{BARE}/simple/p{each}/" for each in range(number)] or [f"/p/{BARE}/simple/"]
    threads = [threading.Thread(target=work, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(100)


@pytest.mark.skipif(os.name == "nt", reason="processes are stopped in another way there")
class TestEnd:
    LAST = SETTING.format("LAST", 0.3)

    @pytest.mark.parametrize("answer", [b"", HEAD + b"x" * 9999], ids=["silent", "drips"])
    def test_while_an_upstream_hangs(self, tmp_path, answer):
        held, ending = [], threading.Event()

        def parts():
            held.append(answer)
            while not ending.wait(0.2):
                yield answer[len(held) : len(held) + 1]

        with (
            sending(parts) as upstream,
            proxy_at(tmp_path, upstream, before=self.LAST) as (url, process),
            asking(url, 20),
        ):
            assert wait_until(lambda: len(held) >= 10)
            self.end(process)
            ending.set()

    def test_while_a_parser_is_stuck(self, tmp_path):
        """No input is known that does this: a fault in a parser is put there."""
        with (
            sending(lambda: [HEAD, b"Content-Length: 1\r\n\r\n "]) as upstream,
            proxy_at(tmp_path, upstream, before=STUCK + self.LAST) as (url, process),
            asking(url, 0),
        ):
            assert wait_until((tmp_path / "stuck").exists)
            assert ask(url).status_code == 200
            self.end(process)

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, -signal.SIGTERM)


def test_headers_for_browsers(start):
    url = start()
    for path, host in (
        ("/health", "localhost"), ("/nothing", "localhost"), ("/p/x/simple/", "localhost"),
        ("/health", "evil.example"), ("/health", "[evil.com"),
    ):  # fmt: skip
        assert ask(url, path, host).headers.items() >= SECURITY.items()


class TestSlowClients:
    @pytest.fixture
    def clients(self):
        """Connect a number of clients to a server."""
        with ExitStack() as stack:
            yield lambda url, number: [
                stack.enter_context(socket.create_connection(address, timeout=20))
                for address in [("127.0.0.1", int(url.rpartition(":")[2]))] * number
            ]

    def is_closed(self, client):
        try:
            return client.recv(1) == b""
        except ConnectionError:
            return True

    def test_of_many_none_stays(self, tmp_path, clients):
        """A request's head comes byte by byte from 200 clients."""
        with proxy_at(tmp_path, before=SETTING.format("HEAD_SECONDS", 1.0)) as (url, _):
            connected = clients(url, 200)
            for byte in GET[:20]:
                for client in connected:
                    with suppress(OSError):
                        client.sendall(bytes([byte]))
            assert ask(url).status_code == 200
            assert all(map(self.is_closed, connected))

    def test_the_oldest_makes_room(self, start, clients, monkeypatch):
        monkeypatch.setattr(connections, "CONNECTIONS", 20)
        connected = clients(url := start(), 40)
        assert ask(url).status_code == 200
        assert self.is_closed(connected[0])

    def test_a_head_comes_in_time(self, start, clients, monkeypatch):
        monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
        (connection,) = clients(start(), 1)
        for _ in range(2):  # the second request has a time of its own
            connection.sendall(GET)
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(2**16)
            assert answer.startswith(b"HTTP/1.1 200")
        connection.sendall(GET[:20])
        assert self.is_closed(connection)


@pytest.mark.skipif(os.name == "nt", reason="permissions are access control lists")
def test_new_directories_are_private_whatever_the_umask(tmp_path):
    cache = tmp_path / "one" / "cache"
    before = os.umask(0)
    try:
        make_server(Settings((Upstream("main", f"{NOWHERE}/simple/"),), cache))
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (cache, cache.parent)] == [0o700] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_with_large_pages(tmp_path):
    """Takes 7 s: of pages of the largest size, which list too much, one at a time is in memory."""
    page = PART * (limits.PAGE_BYTES // len(PART))
    head = HEAD + b"Content-Length: %d\r\n\r\n" % len(page)
    with sending(lambda: [head, page]) as upstream, proxy_at(tmp_path, upstream) as (url, process):
        with asking(url, 6):
            pass
        status = Path(f"/proc/{process.pid}/status").read_text()
        (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
        assert int(peak) < 450 * 1024
