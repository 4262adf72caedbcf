"""The proxy's server: slow clients, memory, and its end; most in a process."""

from __future__ import annotations

import http.server
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from worlds import BARE

from support.waiting import wait_until
from variants_proxy import Settings, Upstream
from variants_proxy.server import server as connections
from variants_proxy.server.server import make_server

NOWHERE = "http://127.0.0.1:9/simple/"
SECURITY = {
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
}
STARTED = """
import json, socket, sys
from pathlib import Path
from variants_proxy import Settings, Upstream
from variants_proxy.server import server
message = json.load(sys.stdin)
settings = Settings((Upstream("main", message["url"]),), Path(message["cache"]))
server.make_server(settings).run_until_signal(socket.socket(fileno=message["socket"]))
"""


@contextmanager
def proxy_at(tmp_path, url=NOWHERE, code=STARTED):
    """A proxy process at a socket that it is given; yields process and port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        settings = {"url": url, "cache": str(tmp_path / "cache"), "socket": listening.fileno()}
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(listening.fileno(),),
            env={**os.environ, "HOME": str(tmp_path)},
        )
        try:
            process.stdin.write(json.dumps(settings).encode())
            process.stdin.close()
            process.stdin = None
            port = listening.getsockname()[1]
            ask(port, "/health")
            yield process, port
        finally:
            process.kill()
            process.communicate()


@contextmanager
def running(found):
    """Run a server in a thread; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=found.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        assert wait_until(lambda: found.started)
        try:
            yield listening.getsockname()[1]
        finally:
            found.should_exit = True
            thread.join(10)


def asked(port, data):
    """Return what a server answers before it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(data)
        return everything(connection)


def everything(connection):
    found = b""
    with suppress(ConnectionError):
        while part := connection.recv(2**16):
            found += part
    return found


def ask(port, path, host="localhost"):
    """Return status line and headers of an answer."""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    head = asked(port, request.encode()).partition(b"\r\n\r\n")[0]
    status, *lines = head.decode("latin-1").split("\r\n")
    return status, dict(line.lower().split(": ", 1) for line in lines)


def asking_in_vain(port, number):
    """Ask for the pages of a number of projects; return the threads that do."""

    def work(path):
        with suppress(OSError, ValueError):
            ask(port, path)

    paths = [f"/p/{BARE}/simple/p{each}/" for each in range(number)] or [f"/p/{BARE}/simple/"]
    threads = [threading.Thread(target=work, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    return threads


@contextmanager
def silent_server(answer=b"", pause=0.0):
    """A server that says nothing, or *answer* byte by byte; yields its URL and the connections."""
    ending = threading.Event()
    connections = []

    def talk(connection):
        with suppress(OSError):
            for byte in answer:
                if ending.wait(pause):
                    return
                connection.sendall(bytes([byte]))
            ending.wait()

    with socket.create_server(("127.0.0.1", 0), backlog=200) as listening:

        def accept():
            with suppress(OSError):
                while not ending.is_set():
                    connections.append(listening.accept()[0])
                    threading.Thread(target=talk, args=connections[-1:], daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/simple/", connections
        finally:
            ending.set()
            for connection in connections:
                connection.close()


@pytest.mark.skipif(os.name == "nt", reason="sockets are handed on in another way there")
class TestEnd:
    CODE = f"import variants_proxy.server.server as s; s.LAST = 0.3\n{STARTED}"
    HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1\r\n"

    @pytest.mark.parametrize(
        ("answer", "pause"), [(b"", 0.0), (HEAD + b"x" * 9999, 0.2)], ids=["silent", "drips"]
    )
    def test_while_an_upstream_hangs(self, tmp_path, answer, pause):
        with (
            silent_server(answer, pause) as (url, held),
            proxy_at(tmp_path, url, self.CODE) as (process, port),
        ):
            threads = asking_in_vain(port, 20)
            assert wait_until(lambda: len(held) >= 10)
            self.end(process)
            for thread in threads:
                thread.join(10)

    def test_while_a_parser_is_stuck(self, tmp_path):
        """No input is known that does this: a fault in a parser is put there."""
        stuck = (
            "import variants_proxy.upstream.upstream_pages as pages\n"
            "def read_projects(*arguments):\n"
            "    open('stuck', 'w').close()\n"
            "    while True: pass\n"
            f"pages.read_projects = read_projects\n{self.CODE}"
        ).replace("'stuck'", repr(str(tmp_path / "stuck")))
        with (
            silent_server(self.HEAD + b"\r\n ") as (url, _),
            proxy_at(tmp_path, url, code=stuck) as (process, port),
        ):
            (thread,) = asking_in_vain(port, 0)
            assert wait_until((tmp_path / "stuck").exists)
            assert ask(port, "/health")[0] == "HTTP/1.1 200 OK"
            self.end(process)
            thread.join(10)

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, -signal.SIGTERM)


def test_headers_for_browsers(tmp_path):
    settings = Settings((Upstream("main", NOWHERE),), tmp_path)
    with running(make_server(settings)) as port:
        for path, host in (
            ("/health", "localhost"), ("/nothing", "localhost"), ("/p/x/simple/", "localhost"),
            ("/health", "evil.example"), ("/health", "[evil.com"),
        ):  # fmt: skip
            assert ask(port, path, host)[1].items() >= SECURITY.items()


class TestSlowClients:
    def test_of_many_none_stays(self, tmp_path):
        """A request's head comes byte by byte from 200 clients."""
        code = f"import variants_proxy.server.server as s; s.HEAD_SECONDS = 1.0\n{STARTED}"
        with proxy_at(tmp_path, code=code) as (_, port):
            clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
            try:
                for byte in b"GET / HTTP/1.1\r\nHost":
                    for client in clients:
                        with suppress(OSError):
                            client.sendall(bytes([byte]))
                assert ask(port, "/health")[0] == "HTTP/1.1 200 OK"
                assert all(map(is_closed, clients))
            finally:
                for client in clients:
                    client.close()

    def test_the_oldest_makes_room(self, tmp_path, monkeypatch):
        monkeypatch.setattr(connections, "CONNECTIONS", 20)
        settings = Settings((Upstream("main", NOWHERE),), tmp_path)
        with running(make_server(settings)) as port:
            clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
            try:
                assert ask(port, "/health")[0] == "HTTP/1.1 200 OK"
                assert is_closed(clients[0])
            finally:
                for client in clients:
                    client.close()

    def test_a_head_comes_in_time(self, tmp_path, monkeypatch):
        monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
        settings = Settings((Upstream("main", NOWHERE),), tmp_path)
        with running(make_server(settings)) as port:
            with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                for _ in range(2):  # the second request has a time of its own
                    connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    answer = b""
                    while not answer.endswith(b"}"):
                        answer += connection.recv(2**16)
                    assert answer.startswith(b"HTTP/1.1 200")
                connection.sendall(b"GET /health HTTP/1.1\r\n")
                assert everything(connection) == b""


def is_closed(client):
    client.settimeout(20)
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.skipif(os.name == "nt", reason="permissions are access control lists")
def test_new_directories_are_private_whatever_the_umask(tmp_path):
    cache = tmp_path / "one" / "cache"
    before = os.umask(0)
    try:
        make_server(Settings((Upstream("main", NOWHERE),), cache))
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (cache, cache.parent)] == [0o700] * 2


PAGE = b"<a href='x-1-py3-none-any.whl' b>" * (31 * 2**20 // 33)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(PAGE)

    def log_message(self, *args):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_with_large_pages(tmp_path):
    """Takes 6 s: many clients ask for pages of 31 MiB that cannot be used."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/simple/"
        try:
            with proxy_at(tmp_path, url) as (process, port):
                for thread in asking_in_vain(port, 6):
                    thread.join(100)
                status = Path(f"/proc/{process.pid}/status").read_text()
                (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
                assert int(peak) < 300 * 1024
        finally:
            server.shutdown()
