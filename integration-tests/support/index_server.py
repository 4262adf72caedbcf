"""A small HTTP server on loopback with the manners and the faults that tests ask for."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field

from .index import JSON, Answer, Index, handler_of
from .loopback import serving


@dataclass
class Resource:
    """What is at a path.

    Attributes:
        body: contents; an iterable is sent in parts, without its length.
        status, kind, headers: of the answer.
        ranges: give parts of it.
        etag: give it a tag and answer conditional requests.
        lie: this much is added to its length.
    """

    body: bytes | Iterable[bytes] = b""
    status: int = 200
    kind: str = "application/octet-stream"
    headers: dict[str, str] = field(default_factory=dict)
    ranges: bool = False
    etag: bool = False
    lie: int = 0

    def answer(self, headers):
        """Return what is sent to a client with *headers*."""
        status, body, sent = self.status, self.body, dict(self.headers)
        if isinstance(body, bytes):
            if self.etag:
                sent["ETag"] = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
                if headers.get("If-None-Match") == sent["ETag"]:
                    status, body = 304, b""
            wanted = headers.get("Range", "")
            if self.ranges and wanted:
                part = Index.part(body, wanted)
                status, body = part.status, part.body
                sent |= part.headers
        if self.lie:
            sent["Content-Length"] = str(len(body) + self.lie)
        return Answer(status, body, self.kind, sent)

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
        missing = Resource(b"not found", 404)
        found = faults.pop(0) if faults else self.resources.get(path, missing)
        return (found(headers) if callable(found) else found).answer(headers)


@contextmanager
def served(server=None, tls=None):
    server = server or Server()
    with serving(handler_of(server.answer), tls) as url:
        server.url = url
        yield server
