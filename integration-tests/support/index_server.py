"""A small HTTP server on loopback with the manners and the faults that tests ask for."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import itertools
import json
import re
import threading
from collections.abc import Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

JSON = "application/vnd.pypi.simple.v1+json"


@dataclass
class Resource:
    """What is at a path.

    Attributes:
        body: contents; an iterable is sent in parts, without its length.
        status, kind, headers: of the answer.
        ranges: give parts of it.
        etag: give it a tag and answer conditional requests.
        gzipped: compress it for clients that take that.
        lie: this much is added to its length.
    """

    body: bytes | Iterable[bytes] = b""
    status: int = 200
    kind: str = "application/octet-stream"
    headers: dict[str, str] = field(default_factory=dict)
    ranges: bool = False
    etag: bool = False
    gzipped: bool = False
    lie: int = 0

    @classmethod
    def redirect(cls, target):
        return cls(status=302, headers={"Location": target})

    @classmethod
    def endless(cls):
        return cls(body=itertools.repeat(b" " * 65536))


class Server:
    """Resources by path; `faults` are answered first, one per request, then the resource.

    Attributes:
        requests: path and headers of every request, in order.
    """

    def __init__(self):
        self.resources = {}
        self.faults = {}
        self.requests = []
        self.url = ""

    @property
    def paths(self):
        return [path for path, _ in self.requests]

    def page(self, project, files, **options):
        """Put a JSON page of *files* (dicts, or filename to contents) at /simple/project/."""
        entries = []
        for filename, data in dict(files).items():
            entry = data if isinstance(data, dict) else {}
            body = entry.pop("body", None) if isinstance(data, dict) else data
            if body is not None:
                self.resources[f"/files/{filename}"] = Resource(body, ranges=True)
                entry.setdefault("hashes", {"sha256": hashlib.sha256(body).hexdigest()})
            entries.append({"filename": filename, "url": f"/files/{filename}", **entry})
        tree = {"meta": {"api-version": "1.1"}, "name": project, "files": entries}
        body = json.dumps(tree).encode()
        self.resources[f"/simple/{project}/"] = Resource(body, kind=JSON, **options)

    @property
    def simple(self):
        return f"{self.url}/simple/"

    def answer(self, path, headers):
        self.requests.append((path, headers))
        faults = self.faults.get(path)
        if faults:
            return faults.pop(0)
        return self.resources.get(path, Resource(b"not found", 404))


@contextmanager
def served(server=None):
    server = server or Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            found = server.answer(self.path, self.headers)
            if callable(found):
                found = found(self.headers)
            status, headers, body = found.status, dict(found.headers), found.body
            headers.setdefault("Content-Type", found.kind)
            if found.etag and isinstance(body, bytes):
                tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
                headers["ETag"] = tag
                if self.headers.get("If-None-Match") == tag:
                    status, body = 304, b""
            span = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
            if found.ranges and span and isinstance(body, bytes):
                size = len(body)
                if span[1]:
                    start, end = int(span[1]), min(int(span[2] or size - 1), size - 1)
                else:
                    start, end = max(0, size - int(span[2])), size - 1
                headers["Content-Range"] = f"bytes {start}-{end}/{size}"
                status, body = 206, body[start : end + 1]
            if found.gzipped and "gzip" in self.headers.get("Accept-Encoding", ""):
                headers["Content-Encoding"] = "gzip"
                body = gzip.compress(body)
            if isinstance(body, bytes):
                headers.setdefault("Content-Length", str(len(body) + found.lie))
                self.close_connection = bool(found.lie)
                parts = [body]
            else:
                self.close_connection = True
                parts = body
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):
                for part in parts:
                    self.wfile.write(part)

        def log_message(self, *args):
            pass

    class Quiet(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request, client_address):
            pass

    web = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    server.url = f"http://127.0.0.1:{web.server_port}"
    try:
        yield server
    finally:
        web.shutdown()
        web.server_close()
        thread.join()
