"""An index with the legacy upload API and project pages, on loopback, with faults on request.

Bodies are received into files, so that wheels of gigabytes can be tried.
"""

from __future__ import annotations

import hashlib
import html
import http.server
import json
import re
import shutil
import socket
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from werkzeug.formparser import parse_form_data

JSON = "application/vnd.pypi.simple.v1+json"
METADATA = "-variants.json"

RECEIVING = "receiving"
"""Half of the body is received."""

RECEIVED = "received"
"""All of it is, and nothing is stored."""

STORED = "stored"
"""The file is stored, and not answered."""


@dataclass
class Upload:
    """One request.

    Attributes:
        filename: empty for a form without a file.
        fields: values by name of the field.
        authorization: header, None without.
        status: of the answer, 0 if there was none.
    """

    filename: str
    fields: dict[str, list[str]]
    authorization: str | None
    status: int = 0


@dataclass
class Fault:
    """What happens to a request in place of what it asks for.

    Attributes:
        status: of the answer; 0 closes the connection without one.
        stage: when: `RECEIVING`, `RECEIVED`, or `STORED`, when the file is stored already.
        headers: of the answer.
        reason: in the status line.
        body: of the answer.
    """

    status: int = 0
    stage: str = RECEIVED
    headers: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    body: bytes = b""


class UploadIndex:
    """The index; attributes may be changed while it runs.

    Attributes:
        folder: where files are kept.
        url: of the upload API.
        simple: base URL of the pages.
        uploads: all requests, in order.
        files: what it has: filename to path.
        credentials: user name and password that an upload needs, None for none.
        paths: of all requests, in order.
        takes_metadata: accepts ``*-variants.json``.
        replaces: pattern of filenames that an upload replaces; others are refused if they differ.
        hashes: give hashes on pages.
        pages: ``json`` (when asked for), or ``html`` only.
        stale: how many reads of a page still show what was there before the last upload.
        faults: pattern of the filename to faults, each of which happens once.
        hook: called with stage and filename of each upload.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = self.simple = ""
        self.uploads: list[Upload] = []
        self.files: dict[str, Path] = {}
        self.credentials: tuple[str, str] | None = None
        self.paths: list[str] = []
        self.takes_metadata = True
        self.replaces = f"{re.escape(METADATA)}$"
        self.hashes = True
        self.pages = "json"
        self.stale = 0
        self.faults: dict[str, list[Fault]] = {}
        self.hook: Callable[[str, str], None] = lambda _stage, _filename: None
        self._before: dict[str, Path] = {}
        self._lock = threading.Lock()

    @property
    def accepted(self) -> list[str]:
        """Names of the files that were accepted, in order."""
        return [upload.filename for upload in self.uploads if upload.status == 200]

    @property
    def sent(self) -> list[str]:
        """Names of the files that were sent, accepted or not."""
        return [upload.filename for upload in self.uploads if upload.filename]

    def read(self, filename: str) -> bytes:
        """Return the contents of a file that it has."""
        return self.files[filename].read_bytes()

    def labels(self, filename: str) -> set[str]:
        """Return the labels in a ``*-variants.json`` that it has."""
        return set(json.loads(self.read(filename))["variants"])

    def fault(self, filename: str, stage: str) -> Fault | None:
        """Return the next fault for *filename* at *stage*, once."""
        with self._lock:
            for pattern, faults in self.faults.items():
                if faults and faults[0].stage == stage and re.search(pattern, filename):
                    return faults.pop(0)
        return None

    def store(self, filename: str, content: Path) -> tuple[int, str]:
        """Take the file *content*; return status and reason of the answer."""
        if not filename:
            return 400, "Upload payload does not have a file"
        if filename.endswith(METADATA) and not self.takes_metadata:
            return 400, "Invalid file extension"
        with self._lock:
            old = self.files.get(filename)
            if old is not None and not re.search(self.replaces, filename):
                if digest_of(old) == digest_of(content):
                    return 200, "OK"
                return 400, "File already exists"
            self._before = dict(self.files)
            place = self.folder / f"{digest_of(content)[:16]}-{len(self.uploads)}" / filename
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(content, place)
            self.files[filename] = place
        return 200, "OK"

    def page(self, project: str, *, as_json: bool) -> bytes | None:
        """Return the page of *project*, None if it has no files of it."""
        with self._lock:
            files = self.files
            if self.stale:
                self.stale -= 1
                files = self._before
            found = {
                name: path
                for name, path in sorted(files.items())
                if re.sub(r"[-_.]+", "-", name.partition("-")[0]).lower() == project
            }
        if not found:
            return None
        entries = []
        for name, path in found.items():
            hashes = {"sha256": digest_of(path)} if self.hashes else {}
            entries.append(
                {"filename": name, "url": f"/files/{path.parent.name}/{name}", "hashes": hashes}
            )
        if as_json and self.pages == "json":
            tree = {"meta": {"api-version": "1.1"}, "name": project, "files": entries}
            return json.dumps(tree).encode()
        links = []
        for entry in entries:
            digest = dict(entry["hashes"]).get("sha256")  # type: ignore[arg-type]
            fragment = f"#sha256={digest}" if digest else ""
            links.append(
                f'<a href="{entry["url"]}{fragment}">{html.escape(str(entry["filename"]))}</a>'
            )
        return f"<!DOCTYPE html><html><body>{'<br>'.join(links)}</body></html>".encode()


def digest_of(path: Path) -> str:
    """Return the SHA-256 of the file at *path*."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1024 * 1024):
            digest.update(chunk)
    return digest.hexdigest()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    index: UploadIndex
    number = 0

    def do_POST(self) -> None:
        index = self.index
        index.paths.append(self.path)
        _Handler.number += 1
        body = index.folder / f"body-{_Handler.number}-{threading.get_ident()}"
        upload = Upload("", {}, self.headers.get("Authorization"))
        try:
            filename = self._receive(body)
            fields, content = _parts(body, self.headers["Content-Type"])
            upload.fields, upload.filename = fields, filename
            index.uploads.append(upload)
            index.hook(RECEIVED, filename)
            if self.path != "/legacy/":
                self._answer(upload, 404, "Not Found")
            elif not self._allowed(upload):
                self._answer(upload, 403, "Invalid or non-existent authentication information")
            elif fault := index.fault(filename, RECEIVED):
                self._fail(upload, fault)
            else:
                status, reason = index.store(filename, content)
                index.hook(STORED, filename)
                fault = index.fault(filename, STORED)
                if fault is not None:
                    self._fail(upload, fault)
                else:
                    self._answer(upload, status, reason)
        except ConnectionError:
            self.close_connection = True
        finally:
            for path in (body, body.with_suffix(".content")):
                with suppress(OSError):
                    path.unlink()

    def _receive(self, body: Path) -> str:
        """Write the body to a file; return the filename in it, as soon as that is known."""
        size = int(self.headers["Content-Length"])
        received, filename, hooked = 0, "", False
        with body.open("wb") as stream:
            while received < size:
                chunk = self.rfile.read1(min(64 * 1024, size - received))
                if not chunk:
                    raise ConnectionAbortedError
                received += len(chunk)
                stream.write(chunk)
                if not filename and (found := re.search(rb'; filename="([^"]*)"', chunk)):
                    filename = found[1].decode()
                if filename and not hooked and received >= size // 2:
                    hooked = True
                    self.index.hook(RECEIVING, filename)
                    if self.index.fault(filename, RECEIVING) is not None:
                        self._cut()
                        raise ConnectionAbortedError
        return filename

    def _allowed(self, upload: Upload) -> bool:
        credentials = self.index.credentials
        pair = b64encode(":".join(credentials or ()).encode()).decode()
        return credentials is None or upload.authorization == f"Basic {pair}"

    def _fail(self, upload: Upload, fault: Fault) -> None:
        if fault.status:
            self._answer(upload, fault.status, fault.reason, fault.headers, fault.body)
        else:
            self._cut()

    def _cut(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _answer(
        self,
        upload: Upload,
        status: int,
        reason: str,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> None:
        upload.status = status
        self._send(status, body, {"Content-Type": "text/plain", **(headers or {})}, reason)

    def do_GET(self) -> None:
        self.index.paths.append(self.path)
        if self.path == "/simple/":
            self._send(200, b"<html></html>", {"Content-Type": "text/html"})
        elif self.path.startswith("/simple/"):
            as_json = JSON in self.headers.get("Accept", "")
            page = self.index.page(self.path.split("/")[2], as_json=as_json)
            is_json = page is not None and page.startswith(b"{")
            kind = {"Content-Type": JSON if is_json else "text/html"}
            self._send(404 if page is None else 200, page or b"", kind)
        else:
            self._file()

    def do_HEAD(self) -> None:
        self.do_GET()

    def _file(self) -> None:
        parts = self.path.split("/")
        path = self.index.folder / parts[2] / parts[3] if len(parts) == 4 else Path()
        if not path.is_file():
            self._send(404, b"", {})
            return
        size, start, status, headers = path.stat().st_size, 0, 200, {}
        end = size - 1
        if span := re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "")):
            start = int(span[1]) if span[1] else max(0, size - int(span[2]))
            end = min(int(span[2]), end) if span[1] and span[2] else end
            headers["Content-Range"] = f"bytes {start}-{end}/{size}"
            status = 206
        with path.open("rb") as stream:
            stream.seek(start)
            self._send(status, stream.read(end + 1 - start), headers)

    def _send(
        self, status: int, body: bytes, headers: dict[str, str], reason: str | None = None
    ) -> None:
        self.send_response(status, reason or None)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):
            if self.command != "HEAD":
                self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _parts(body: Path, content_type: str) -> tuple[dict[str, list[str]], Path]:
    """Return the fields of a multipart form, and the path of a file with its ``content``."""
    place = body.with_suffix(".content")
    place.touch()
    environ = {"CONTENT_TYPE": content_type, "CONTENT_LENGTH": str(body.stat().st_size)}
    with body.open("rb") as stream:
        _, fields, files = parse_form_data({**environ, "wsgi.input": stream})
    if "content" in files:
        files["content"].save(place)
    return {name: list(values) for name, values in fields.lists()}, place


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def upload_index(folder: Path) -> Iterator[UploadIndex]:
    """Run an index that keeps its files in *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    index = UploadIndex(folder)
    handler = type("Handler", (_Handler,), {"index": index})
    web = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    root = f"http://127.0.0.1:{web.server_port}"
    index.url, index.simple = f"{root}/legacy/", f"{root}/simple/"
    try:
        yield index
    finally:
        web.shutdown()
        web.server_close()
        thread.join()
