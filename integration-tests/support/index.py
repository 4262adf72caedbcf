"""A real index server on loopback: PEP 503 and PEP 691 pages over files in memory.

Faults are put where a test wants them; every request is recorded.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from .wheels import Release, Wheel

Answer = tuple[int, bytes]


@dataclass
class Index:
    """Files by project, and how they are served.

    Attributes:
        files: contents by project and filename.
        metadata_files: PEP 658 files, by filename of the wheel.
        hashes: give sha256 fragments.
        wrong_hashes: filenames whose announced hash is wrong.
        faults: answers by filename that replace the file's.
        api: ``json`` (PEP 691 when asked for) or ``html`` (PEP 503 only).
        requests: paths asked for so far.
    """

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    metadata_files: dict[str, bytes] = field(default_factory=dict)
    hashes: bool = True
    wrong_hashes: set[str] = field(default_factory=set)
    faults: dict[str, Callable[[], Answer]] = field(default_factory=dict)
    api: str = "json"
    requests: list[str] = field(default_factory=list)
    url: str = ""

    def add(self, project: str, filename: str, data: bytes) -> None:
        """Put a file on the index."""
        self.files.setdefault(_normalized(project), {})[filename] = data

    def add_wheel(self, wheel: Wheel, *, metadata_file: bool = False) -> None:
        """Put a wheel on the index, with its PEP 658 file if wanted."""
        self.add(wheel.name, wheel.filename, wheel.build())
        if metadata_file:
            self.metadata_files[wheel.filename] = wheel.metadata()

    def add_release(
        self, release: Release, *, metadata: Any = None, metadata_file: bool = False
    ) -> None:
        """Put all wheels of a release and its index metadata on the index.

        *metadata* replaces the index metadata: bytes as they are, anything else as JSON.
        """
        for wheel in release.wheels():
            self.add_wheel(wheel, metadata_file=metadata_file)
        tree = release.metadata if metadata is None else metadata
        data = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
        self.add(release.name, release.metadata_filename, data)

    def remove(self, project: str, filename: str) -> None:
        """Take a file off the index."""
        del self.files[_normalized(project)][filename]

    @property
    def fetched(self) -> list[str]:
        """Filenames asked for so far, in order."""
        return [path.rpartition("/")[2] for path in self.requests if path.startswith("/files/")]

    def answer(self, path: str, accept: str) -> tuple[int, str, bytes]:
        """Return status, content type and body for a request."""
        self.requests.append(path)
        parts = [unquote(part) for part in path.split("?")[0].strip("/").split("/")]
        if parts[0] == "simple" and len(parts) == 2:
            project = _normalized(parts[1])
            if project not in self.files:
                return 404, "text/plain", b"no such project"
            if self.api == "json" and "application/vnd.pypi.simple.v1+json" in accept:
                return 200, "application/vnd.pypi.simple.v1+json", self._json(project)
            return 200, "text/html", self._html(project)
        if parts[0] == "files" and len(parts) == 3:
            _, project, filename = parts
            if filename in self.faults:
                status, body = self.faults[filename]()
                return status, "application/octet-stream", body
            data = self.files.get(project, {}).get(filename)
            if data is None and filename.endswith(".metadata"):
                data = self.metadata_files.get(filename[: -len(".metadata")])
            if data is not None:
                return 200, "application/octet-stream", data
        return 404, "text/plain", b"not found"

    def _entries(self, project: str) -> Iterator[tuple[str, str, str]]:
        for filename, data in self.files[project].items():
            sha256 = hashlib.sha256(data).hexdigest() if self.hashes else ""
            if filename in self.wrong_hashes:
                sha256 = "0" * 64
            yield filename, f"/files/{project}/{filename}", sha256

    def _html(self, project: str) -> bytes:
        rows = []
        for filename, url, sha256 in self._entries(project):
            fragment = f"#sha256={sha256}" if sha256 else ""
            extra = ' data-core-metadata="true"' if filename in self.metadata_files else ""
            rows.append(f'<a href="{url}{fragment}"{extra}>{filename}</a><br>')
        return f"<!DOCTYPE html><html><body>{''.join(rows)}</body></html>".encode()

    def _json(self, project: str) -> bytes:
        files = [
            {
                "filename": filename,
                "url": url,
                "hashes": {"sha256": sha256} if sha256 else {},
                "core-metadata": filename in self.metadata_files,
            }
            for filename, url, sha256 in self._entries(project)
        ]
        return json.dumps(
            {"meta": {"api-version": "1.0"}, "name": project, "files": files}
        ).encode()


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@contextmanager
def served(index: Index) -> Iterator[Index]:
    """Serve *index* on a free port of loopback; its `url` is the simple API's root."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, kind, body = index.answer(self.path, self.headers.get("Accept", ""))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    index.url = f"http://127.0.0.1:{server.server_port}/simple/"
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def index_of(releases: Iterable[Release], **options: Any) -> Index:
    """Return an index with *releases* on it."""
    index = Index(**options)
    for release in releases:
        index.add_release(release)
    return index


__all__ = ["Answer", "Index", "Mapping", "index_of", "served"]
