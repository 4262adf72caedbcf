"""The proxy's server in a process: slow clients, invalid requests, and its end."""

from __future__ import annotations

import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pep_variants.model.platform import Platform
from variants_proxy import Machine, encode

KEY = encode(Machine(Platform({}), target="linux-x86_64"))
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
upstreams = tuple(Upstream(f"index{n}", url) for n, url in enumerate(message["urls"]))
settings = Settings(upstreams, Path(message["cache"]), compress=False)
server.make_server(settings).run_until_signal(socket.socket(fileno=message["socket"]))
"""


@contextmanager
def proxy_at(tmp_path, *urls, code=STARTED):
    """A proxy process as `uv-variants` starts it; yields process and port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        settings = {
            "urls": urls,
            "cache": str(tmp_path / "cache"),
            "socket": listening.fileno(),
        }
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


def ask(port, path, host="localhost", seconds=30.0):
    """Return status line, headers and body of an answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
        )
        head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return status, headers, body


@contextmanager
def silent_server(answer=b"", pause=0.0):
    """A server that says nothing, or *answer* byte by byte; yields its URL and the connections."""
    ending = threading.Event()
    connections = []

    def talk(connection):
        for byte in answer:
            if ending.wait(pause):
                return
            try:
                connection.sendall(bytes([byte]))
            except OSError:
                return
        ending.wait()

    with socket.create_server(("127.0.0.1", 0), backlog=200) as listening:

        def accept():
            while not ending.is_set():
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                connections.append(connection)
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/simple/", connections
        finally:
            ending.set()
            for connection in connections:
                connection.close()


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@pytest.mark.skipif(os.name == "nt", reason="sockets are handed on in another way there")
class TestEnd:
    DRIP = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n" + b" " * 999
    )

    @pytest.mark.parametrize(
        ("answer", "pause"),
        [(b"", 0.0), (DRIP, 0.2), (DRIP[:60] + b"x" * 9999, 0.2)],
        ids=["silent", "drip", "drip in the head"],
    )
    def test_while_an_upstream_hangs(self, tmp_path, answer, pause):
        with (
            silent_server(answer, pause) as (url, connections),
            proxy_at(tmp_path, url) as found,
        ):
            process, port = found
            asking = [
                threading.Thread(target=ask_in_vain, args=(port, f"/p/{KEY}/simple/p{number}/"))
                for number in range(20)
            ]
            for thread in asking:
                thread.start()
            wait_for(lambda: len(connections) >= 10)
            self.end(process)
            for thread in asking:
                thread.join(10)

    def test_while_a_parser_is_stuck(self, tmp_path):
        """No input is known that does this: a fault in a parser is put there."""
        stuck = (
            "import variants_proxy.upstream.upstreams as upstreams\n"
            "def read_projects(*arguments):\n"
            "    while True: pass\n"
            f"upstreams.read_projects = read_projects\n{STARTED}"
        )
        page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1\r\n\r\n "
        with (
            silent_server(page) as (url, connections),
            proxy_at(tmp_path, url, code=stuck) as found,
        ):
            process, port = found
            threading.Thread(target=ask_in_vain, args=(port, f"/p/{KEY}/simple/")).start()
            wait_for(lambda: connections)
            time.sleep(0.3)
            assert ask(port, "/health")[0] == "HTTP/1.1 200 OK"
            self.end(process)

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, -signal.SIGTERM)


def ask_in_vain(port, path):
    with suppress(OSError, ValueError):
        ask(port, path)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with proxy_at(tmp_path_factory.mktemp("proxy"), "http://127.0.0.1:9/simple/") as (_, port):
        yield port


@pytest.mark.parametrize("host", ["evil.com]", "[evil.com", "[::1", "[x]y]"])
def test_an_invalid_host(served, host):
    status, headers, _ = ask(served, "/health", host)
    assert status.startswith(("HTTP/1.1 400", "HTTP/1.1 421"))
    assert headers.items() >= SECURITY.items()


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("/health", "localhost"), ("/nothing", "localhost"),
        ("/health", "evil.example"), ("/p/x/simple/", "localhost"),
    ],
)  # fmt: skip
def test_headers_for_browsers(served, path, host):
    assert ask(served, path, host)[1].items() >= SECURITY.items()


class TestSlowClients:
    def test_of_many_none_stays(self, tmp_path):
        """A request's head comes byte by byte from 200 clients."""
        code = f"import variants_proxy.server.server as s; s.HEAD_SECONDS = 1.0\n{STARTED}"
        with proxy_at(tmp_path, "http://127.0.0.1:9/simple/", code=code) as (_, port):
            clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
            try:
                for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ":
                    for client in clients:
                        try:
                            client.sendall(bytes([byte]))
                        except OSError:
                            continue
                    time.sleep(0.05)
                    if byte == ord("H"):
                        assert ask(port, "/health")[0] == "HTTP/1.1 200 OK"
                for client in clients:
                    client.settimeout(20)
                    assert is_closed(client)
            finally:
                for client in clients:
                    client.close()

    def test_the_oldest_makes_room(self, tmp_path):
        code = f"import variants_proxy.server.server as s; s.CONNECTIONS = 20\n{STARTED}"
        with proxy_at(tmp_path, "http://127.0.0.1:9/simple/", code=code) as (_, port):
            clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
            try:
                assert ask(port, "/health")[0] == "HTTP/1.1 200 OK"
                clients[0].settimeout(20)
                assert is_closed(clients[0])
            finally:
                for client in clients:
                    client.close()


def is_closed(client):
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


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
    """Many clients ask for pages of 31 MiB that cannot be used."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/simple/"
        try:
            with proxy_at(tmp_path, url) as (process, port):
                threads = [
                    threading.Thread(target=ask_in_vain, args=(port, f"/p/{KEY}/simple/p{number}/"))
                    for number in range(12)
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(100)
                status = Path(f"/proc/{process.pid}/status").read_text()
                (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
                assert int(peak) < 300 * 1024
        finally:
            server.shutdown()
