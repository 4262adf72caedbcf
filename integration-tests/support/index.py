"""A package index on loopback, with files in memory, and the server of it and of other answers.

Faults are put where a test wants them; every request is recorded.
"""

from __future__ import annotations

import base64
import hashlib
import html
import http.server
import io
import itertools
import json
import re
import ssl
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, unquote

from .loopback import serving
from .wheels import Release, Wheel

JSON = "application/vnd.pypi.simple.v1+json"
LONG_AGO = "Mon, 01 Jan 2024 00:00:00 GMT"
"""A cache that guesses from this how long a page is fresh would guess too much."""
PIECE = 2**16
CUT = 2
"""Bytes that are missing of an answer that is cut off."""


class Request(str):
    """Path of a request, with its headers."""

    __slots__ = ("headers",)
    headers: Mapping[str, str]

    def __new__(cls, path: str, headers: Mapping[str, str]) -> Request:
        """Return the path *path*."""
        found = super().__new__(cls, path)
        found.headers = headers
        return found


@dataclass(frozen=True)
class Answer:
    """What the server answers to a request.

    Attributes:
        status: HTTP status.
        body: contents; parts are sent one by one, without saying how many bytes there will be.
        kind: content type.
        headers: more headers; a ``Content-Length`` of one's own may lie.
        ranges: give the part that is asked for.
        etag: give it a tag, and answer 304 to a client that has it.
    """

    status: int = 200
    body: bytes | Iterable[bytes] = b""
    kind: str = "application/octet-stream"
    headers: Mapping[str, str] = field(default_factory=dict)
    ranges: bool = False
    etag: bool = False

    @classmethod
    def endless(cls) -> Answer:
        """Return an endless response, which ends when the connection is closed."""
        return cls(body=itertools.repeat(b" " * 65536))

    @classmethod
    def cut_off(cls, body: bytes, **more: Any) -> Answer:
        """Return an answer that ends before it should."""
        return cls(body=body, headers={"Content-Length": str(len(body) + CUT)}, **more)

    @classmethod
    def redirect(cls, path: str) -> Answer:
        """Return a redirection to *path*."""
        return cls(302, headers={"Location": path})

    def to(self, asked: Mapping[str, str]) -> Answer:
        """Return what a client gets whose request has the headers *asked*."""
        status, body, headers = self.status, self.body, dict(self.headers)
        if self.etag and isinstance(body, bytes):
            headers["ETag"] = f'"{_sha256(body)[:16]}"'
            if asked.get("If-None-Match") == headers["ETag"]:
                return replace(self, status=304, body=b"", headers=headers)
        if self.ranges and isinstance(body, bytes):
            match = re.fullmatch(r"bytes=(\d*)-(\d*)", asked.get("Range", ""))
            if match is None:
                headers["Accept-Ranges"] = "bytes"
            else:
                first, last = match.groups()
                start = int(first) if first else max(0, len(body) - int(last))
                end = min(int(last) + 1, len(body)) if first and last else len(body)
                headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(body)}"
                status, body = 206, body[start:end]
        return replace(self, status=status, body=body, headers=headers)


@dataclass
class Index:
    """Files by page, and how they are served.

    Below `url`, the root of the simple API, every project has its page. `links_url` is a page
    with all files, for ``--find-links``.

    Attributes:
        files: contents by filename, by name of the project or path of a page of any other place.
        metadata_files: PEP 658 files, by filename of the wheel.
        core_metadata: the other wheels have such files too, as is in them.
        attributes: by filename, what else the page says of a file, such as ``yanked`` (a reason)
            and ``requires-python``.
        hashes: give sha256 fragments.
        unhashed: filenames and paths of pages without them.
        wrong_hashes: filenames whose announced hash is wrong.
        unlisted: filenames that the page leaves out.
        resources: what else is there, by path; a call gets the headers of the request.
        faults: answers by path or filename in place of what is there; the one of "" is for all
            pages. Those of a list are given once each.
        api: ``json`` (PEP 691 when asked for) or ``html`` (PEP 503 only).
        credentials: ``user:password`` or a bearer's token that every request must have.
        metadata_hashes: pages give the hashes of PEP 658 files, as PyPI does.
        sizes: pages give sizes, as PyPI does.
        ranges: answer requests for a part of a file with that part.
        suffixes: also those for its last bytes; else the file is sent whole for these.
        etags: give pages entity tags, and the date of a change long ago.
        page_headers: more headers of pages.
        files_url: what the URLs of files begin with: of another server, or of this one.
        requests: paths asked for so far.
        sent: bytes of answers so far.
    """

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    metadata_files: dict[str, bytes] = field(default_factory=dict)
    core_metadata: bool = False
    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    hashes: bool = True
    unhashed: set[str] = field(default_factory=set)
    wrong_hashes: set[str] = field(default_factory=set)
    unlisted: set[str] = field(default_factory=set)
    resources: dict[str, Answer | Callable[[Mapping[str, str]], Answer]] = field(
        default_factory=dict
    )
    faults: dict[str, Answer | Callable[[], Answer] | list[Answer]] = field(default_factory=dict)
    api: str = "json"
    credentials: str = ""
    metadata_hashes: bool = False
    sizes: bool = False
    ranges: bool = False
    suffixes: bool = True
    etags: bool = False
    page_headers: Mapping[str, str] = field(default_factory=dict)
    files_url: str = ""
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    sent: int = 0

    def add(self, project: str, filename: str, data: bytes, **attributes: Any) -> bytes:
        """Put a file on the index; return its contents."""
        self.files.setdefault(_key(project), {})[filename] = data
        if attributes:
            self.attributes[filename] = attributes
        return data

    def add_wheel(self, wheel: Wheel, *, metadata_file: bool = False, **attributes: Any) -> None:
        """Put a wheel on the index, with its PEP 658 file if wanted."""
        self.add(wheel.name, wheel.filename, wheel.build(), **attributes)
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
        del self.files[_key(project)][filename]

    @property
    def fetched(self) -> list[str]:
        """Filenames asked for so far, in order."""
        return [path.rpartition("/")[2] for path in self.requests if path.startswith("/files/")]

    @property
    def root(self) -> str:
        """URL of the server, without a slash."""
        return self.url.removesuffix("/simple/")

    @property
    def links_url(self) -> str:
        """Page that lists all files of all projects."""
        return f"{self.root}/links/"

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer to a request."""
        self.requests.append(Request(path, headers))
        expected = f"Bearer {self.credentials}"
        if ":" in self.credentials:
            expected = f"Basic {base64.b64encode(self.credentials.encode()).decode()}"
        if self.credentials and headers.get("Authorization") != expected:
            return Answer(401, b"who is it?", headers={"WWW-Authenticate": 'Basic realm="index"'})
        if not self.suffixes and headers.get("Range", "").startswith("bytes=-"):
            headers = {}
        plain = unquote(path.partition("?")[0])
        for key in (path, plain.rpartition("/")[2]):
            if fault := self.faults.get(key):
                found = fault.pop(0) if isinstance(fault, list) else fault
                return (found if isinstance(found, Answer) else found()).to(headers)
        if resource := self.resources.get(path):
            return (resource if isinstance(resource, Answer) else resource(headers)).to(headers)
        return self._found(plain, headers)

    def _found(self, path: str, headers: Mapping[str, str]) -> Answer:
        kind, _, rest = path.strip("/").partition("/")
        if kind == "files":
            folder, _, filename = rest.rpartition("/")
            page = folder if folder in self.files else f"/{folder}/"
            data = self.files.get(page, {}).get(filename)
            if data is None and filename.endswith(".metadata"):
                data = self._metadata(page, filename.removesuffix(".metadata"))
            if data is not None:
                return Answer(body=data, ranges=self.ranges).to(headers)
        page = _key(rest) if kind == "simple" else path
        if path.strip("/") == "links":
            found = self._html(self.files), "text/html"
        elif path == "/simple/" and JSON in headers.get("Accept", ""):
            tree = {"meta": {"api-version": "1.1"}, "projects": [{"name": n} for n in self.files]}
            found = json.dumps(tree).encode(), JSON
        elif page not in self.files:
            return Answer(404, b"not found", kind="text/plain")
        elif self.api == "json" and JSON in headers.get("Accept", ""):
            found = self._json(page), JSON
        else:
            found = self._html([page]), "text/html"
        more = {"Last-Modified": LONG_AGO} if self.etags else {}
        return Answer(200, *found, {**more, **self.page_headers}, etag=self.etags).to(headers)

    def _metadata(self, page: str, filename: str) -> bytes | None:
        """Return the PEP 658 file of a wheel."""
        data = self.files.get(page, {}).get(filename)
        if filename in self.metadata_files or data is None or not filename.endswith(".whl"):
            return self.metadata_files.get(filename)
        return metadata_of(data) if self.core_metadata else None

    def entries(self, page: str) -> Iterator[dict[str, Any]]:
        """Yield what a page lists, as in its JSON."""
        folder = f"{self.files_url}/files{page if page.startswith('/') else f'/{page}/'}"
        for filename, data in self.files[page].items():
            if filename in self.unlisted:
                continue
            sha256 = "0" * 64 if filename in self.wrong_hashes else _sha256(data)
            hashed = self.hashes and self.unhashed.isdisjoint((page, filename))
            metadata = self._metadata(page, filename)
            promised: Any = metadata is not None
            if metadata is not None and self.metadata_hashes:
                promised = {"sha256": _sha256(metadata)}
            yield {
                "filename": filename,
                # Publishers' pages quote ``+``.
                "url": folder + (quote(filename) if page.startswith("/") else filename),
                "hashes": {"sha256": sha256} if hashed else {},
                "core-metadata": promised,
                **({"size": len(data)} if self.sizes else {}),
                **self.attributes.get(filename, {}),
            }

    def _html(self, pages: Iterable[str]) -> bytes:
        rows = []
        for entry in itertools.chain.from_iterable(map(self.entries, pages)):
            name, url = entry.pop("filename"), entry.pop("url")
            fragment = "".join(f"#{kind}={each}" for kind, each in entry.pop("hashes").items())
            promised = entry.pop("core-metadata")
            if promised:
                text = f"sha256={promised['sha256']}" if isinstance(promised, dict) else "true"
                entry["core-metadata"] = text
            entry.pop("size", None)
            more = "".join(f' data-{key}="{html.escape(each)}"' for key, each in entry.items())
            rows.append(f'<a href="{html.escape(url + fragment)}"{more}>{name}</a><br>')
        return f"<!DOCTYPE html><html><body>{''.join(rows)}</body></html>".encode()

    def _json(self, page: str) -> bytes:
        meta = {"api-version": "1.1" if self.sizes else "1.0"}
        name = page.strip("/").rpartition("/")[2]
        return json.dumps({"meta": meta, "name": name, "files": [*self.entries(page)]}).encode()


def _key(project: str) -> str:
    """Return the key of a project's page, or of the page at a path."""
    return project if "/" in project else re.sub(r"[-_.]+", "-", project).lower()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def metadata_of(wheel: bytes) -> bytes:
    """Return the METADATA in the contents of a wheel."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith("dist-info/METADATA"))
        return archive.read(path)


def handler_of(
    answer: Callable[[str, Mapping[str, str]], Answer],
    posted: Callable[[str, Mapping[str, str]], object] | None = None,
    sent: Callable[[int], object] | None = None,
) -> type[http.server.BaseHTTPRequestHandler]:
    """Return what answers requests.

    Args:
        answer: called with path and headers of a ``GET`` or ``HEAD``.
        posted: called with path and headers of a ``POST``, which is accepted.
        sent: called with the number of bytes of a body, piece by piece.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body go out one after the other: no waiting for the first to be acknowledged.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self.send(answer(self.path, self.headers))  # type: ignore[arg-type]  # reads as one

        def send(self, found: Answer, reason: str | None = None) -> None:
            """Send an answer."""
            headers = {"Content-Type": found.kind, **found.headers}
            parts = found.body
            if isinstance(parts, bytes):
                length = str(len(parts))
                headers.setdefault("Content-Length", length)
                parts = (parts,)
                self.close_connection |= headers["Content-Length"] != length
            else:
                self.close_connection = True
            self.send_response(found.status, reason)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                with suppress(ConnectionError):
                    for part in parts:
                        for start in range(0, len(part), PIECE):
                            piece = part[start : start + PIECE]
                            self.wfile.write(piece)
                            if sent is not None:
                                sent(len(piece))

        do_HEAD = do_GET  # noqa: N815 - the name is the library's

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if posted is not None:
                posted(self.path, self.headers)  # type: ignore[arg-type]
            self.send(Answer())

        def log_message(self, *args: Any) -> None:
            pass

    return Handler


@contextmanager
def served(index: Index | None = None, tls: ssl.SSLContext | None = None) -> Iterator[Index]:
    """Serve *index* on a free port of loopback; its `url` is the simple API's root.

    With *tls* it is an HTTPS server.
    """
    index = Index() if index is None else index

    def count(size: int) -> None:
        index.sent += size

    handler = handler_of(
        lambda path, headers: index.answer(path, headers),  # a test may replace the method
        lambda path, headers: index.requests.append(Request(f"POST {path}", headers)),
        count,
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
