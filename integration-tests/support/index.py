"""A real index server on loopback: PEP 503 and PEP 691 pages over files in memory.

Faults are put where a test wants them; every request is recorded.
"""

from __future__ import annotations

import base64
import hashlib
import html
import http.server
import itertools
import json
import re
import ssl
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from urllib.parse import unquote

from .loopback import serving
from .wheels import Release, Wheel

JSON = "application/vnd.pypi.simple.v1+json"


@dataclass(frozen=True)
class Answer:
    """What the server answers to a request.

    Attributes:
        status: HTTP status.
        body: contents; parts are sent one by one, without saying how many bytes there will be.
        kind: content type.
        headers: more headers; a ``Content-Length`` of one's own may lie.
    """

    status: int = 200
    body: bytes | Iterable[bytes] = b""
    kind: str = "application/octet-stream"
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def endless(cls) -> Answer:
        """Return an endless response, which ends when the connection is closed."""
        return cls(body=itertools.repeat(b" " * 65536))

    @classmethod
    def cut_off(cls, body: bytes) -> Answer:
        """Return an answer that ends before it should."""
        return cls(body=body, headers={"Content-Length": str(len(body) + 1000)})

    @classmethod
    def redirect(cls, path: str) -> Answer:
        """Return a redirection to *path*."""
        return cls(302, headers={"Location": path})


@dataclass
class Index:
    """Files by project, and how they are served.

    Below `url`, the root of the simple API, every project has its page. `links_url` is a page
    with all files, for ``--find-links``.

    Attributes:
        files: contents by project and filename.
        metadata_files: PEP 658 files, by filename of the wheel.
        attributes: by filename, what else the page says of a file: ``yanked`` (a reason) and
            ``requires-python``.
        hashes: give sha256 fragments.
        wrong_hashes: filenames whose announced hash is wrong.
        unlisted: filenames that the page leaves out.
        faults: answers by filename that replace the file's.
        page_faults: answers by project that replace the page's; the one of "" is for all.
        api: ``json`` (PEP 691 when asked for) or ``html`` (PEP 503 only).
        credentials: ``user:password`` that every request must have.
        metadata_hashes: pages give the hashes of PEP 658 files, as PyPI does.
        ranges: answer requests for a part of a file with that part.
        requests: paths asked for so far.
    """

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    metadata_files: dict[str, bytes] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    hashes: bool = True
    wrong_hashes: set[str] = field(default_factory=set)
    unlisted: set[str] = field(default_factory=set)
    faults: dict[str, Callable[[], Answer]] = field(default_factory=dict)
    page_faults: dict[str, Callable[[], Answer]] = field(default_factory=dict)
    api: str = "json"
    credentials: str = ""
    metadata_hashes: bool = False
    ranges: bool = False
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

    @property
    def links_url(self) -> str:
        """Page that lists all files of all projects."""
        return self.url.replace("/simple/", "/links/")

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer to a request."""
        self.requests.append(path)
        expected = f"Basic {base64.b64encode(self.credentials.encode()).decode()}"
        if self.credentials and headers.get("Authorization") != expected:
            return Answer(401, b"who is it?", headers={"WWW-Authenticate": 'Basic realm="index"'})
        parts = [unquote(part) for part in path.split("?")[0].strip("/").split("/")]
        if parts[0] == "simple" and len(parts) == 2:
            fault = self.page_faults.get(_normalized(parts[1])) or self.page_faults.get("")
            if fault is not None:
                return fault()
        if parts[0] == "simple" and len(parts) == 2 and _normalized(parts[1]) in self.files:
            project = _normalized(parts[1])
            if self.api == "json" and JSON in headers.get("Accept", ""):
                return Answer(body=self._json(project), kind=JSON)
            return Answer(body=self._html([project]), kind="text/html")
        if parts == ["links"]:
            return Answer(body=self._html(self.files), kind="text/html")
        if parts[0] == "files" and len(parts) == 3:
            _, project, filename = parts
            if filename in self.faults:
                return self.faults[filename]()
            data = self.files.get(project, {}).get(filename)
            if data is None and filename.endswith(".metadata"):
                data = self.metadata_files.get(filename[: -len(".metadata")])
            if data is not None:
                wanted = headers.get("Range", "") if self.ranges else ""
                return self.part(data, wanted) if self.ranges else Answer(body=data)
        return Answer(404, b"not found", kind="text/plain")

    @staticmethod
    def part(data: bytes, wanted: str) -> Answer:
        """Return the bytes that a ``Range`` header asks for, all of them without one."""
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted)
        if match is None:
            return Answer(body=data, headers={"Accept-Ranges": "bytes"})
        first, last = match.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        place = f"bytes {start}-{end - 1}/{len(data)}"
        return Answer(206, data[start:end], headers={"Content-Range": place})

    def _entries(self, project: str) -> Iterator[tuple[str, str, str]]:
        for filename, data in self.files[project].items():
            if filename in self.unlisted:
                continue
            sha256 = hashlib.sha256(data).hexdigest() if self.hashes else ""
            if filename in self.wrong_hashes:
                sha256 = "0" * 64
            yield filename, f"/files/{project}/{filename}", sha256

    def _core_metadata(self, filename: str) -> bool | dict[str, str]:
        """Return what a page says of the PEP 658 file of a wheel."""
        data = self.metadata_files.get(filename)
        if data is None or not self.metadata_hashes:
            return data is not None
        return {"sha256": hashlib.sha256(data).hexdigest()}

    def _html(self, projects: Iterable[str]) -> bytes:
        rows = []
        for filename, url, sha256 in itertools.chain.from_iterable(map(self._entries, projects)):
            fragment = f"#sha256={sha256}" if sha256 else ""
            promised = self._core_metadata(filename)
            text = f"sha256={promised['sha256']}" if isinstance(promised, dict) else "true"
            extra = f' data-core-metadata="{text}"' if promised else ""
            for name, value in self.attributes.get(filename, {}).items():
                extra += f' data-{name}="{html.escape(value)}"'
            rows.append(f'<a href="{url}{fragment}"{extra}>{filename}</a><br>')
        return f"<!DOCTYPE html><html><body>{''.join(rows)}</body></html>".encode()

    def _json(self, project: str) -> bytes:
        files = [
            {
                "filename": filename,
                "url": url,
                "hashes": {"sha256": sha256} if sha256 else {},
                "core-metadata": self._core_metadata(filename),
                **self.attributes.get(filename, {}),
            }
            for filename, url, sha256 in self._entries(project)
        ]
        return json.dumps(
            {"meta": {"api-version": "1.0"}, "name": project, "files": files}
        ).encode()


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def handler_of(
    answer: Callable[[str, Message], Answer],
    posted: Callable[[str], object] | None = None,
    silent: Container[str] = (),
) -> type[http.server.BaseHTTPRequestHandler]:
    """Return what answers requests.

    Args:
        answer: called with path and headers of a ``GET`` or ``HEAD``.
        posted: called with the path of a ``POST``, which is accepted.
        silent: paths without an answer, until the client goes away.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body go out one after the other: no waiting for the first to be acknowledged.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            if self.path in silent:
                self.connection.recv(1)
            found = answer(self.path, self.headers)
            headers = {"Content-Type": found.kind, **found.headers}
            if isinstance(found.body, bytes):
                headers.setdefault("Content-Length", str(len(found.body)))
                parts: Iterable[bytes] = (found.body,)
                self.close_connection = headers["Content-Length"] != str(len(found.body))
            else:
                parts = found.body
                self.close_connection = True
            self.send_response(found.status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                with suppress(ConnectionError):
                    for part in parts:
                        self.wfile.write(part)

        do_HEAD = do_GET  # noqa: N815 - the name is the library's

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if posted is not None:
                posted(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    return Handler


@contextmanager
def served(index: Index, tls: ssl.SSLContext | None = None) -> Iterator[Index]:
    """Serve *index* on a free port of loopback; its `url` is the simple API's root.

    With *tls* it is an HTTPS server.
    """
    handler = handler_of(
        lambda path, headers: index.answer(path, {k.title(): v for k, v in headers.items()}),
        lambda path: index.requests.append(f"POST {path}"),
    )
    with serving(handler, tls) as url:
        index.url = f"{url}/simple/"
        yield index


def index_of(releases: Iterable[Release], **options: Any) -> Index:
    """Return an index with *releases* on it."""
    index = Index(**options)
    for release in releases:
        index.add_release(release)
    return index
