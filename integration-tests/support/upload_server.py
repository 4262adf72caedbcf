"""An index with the legacy upload API and project pages, on loopback, with faults on request."""

from __future__ import annotations

import io
import json
import re
import socket
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from werkzeug.formparser import parse_form_data

from .index import Answer, Index, Request, handler_of
from .loopback import serving

METADATA = "-variants.json"

RECEIVING = "receiving"
"""Half of the body is received, or what fits into the sockets' buffers."""

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


class Cut(ConnectionError):
    """The connection is closed without an answer."""


@dataclass
class UploadIndex:
    """The index; attributes may be changed while it runs.

    Attributes:
        pages: how the files are served, and all requests.
        url: of the upload API.
        uploads: all requests of that, in order.
        files: what it has: contents by filename.
        credentials: user name and password that an upload needs, None for none.
        takes_metadata: accepts ``*-variants.json``.
        replaces: pattern of filenames that an upload replaces; others are refused if they differ.
        stale: how many reads of a page still show what was there before the last upload.
        before: what `files` was before the last upload.
        faults: pattern of the filename to faults, each of which happens once.
        hook: called with stage and filename of each upload.
    """

    pages: Index = field(default_factory=lambda: Index(ranges=True))
    url: str = ""
    uploads: list[Upload] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    credentials: tuple[str, str] | None = None
    takes_metadata: bool = True
    replaces: str = f"{re.escape(METADATA)}$"
    stale: int = 0
    before: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    hook: Callable[[str, str], None] = lambda _stage, _filename: None

    @property
    def simple(self) -> str:
        """Base URL of the pages."""
        return self.pages.url

    @property
    def accepted(self) -> list[str]:
        """Names of the files that were accepted, in order."""
        return [upload.filename for upload in self.uploads if upload.status == 200]

    @property
    def sent(self) -> list[str]:
        """Names of the files that were sent, accepted or not."""
        return [upload.filename for upload in self.uploads if upload.filename]

    def labels(self, filename: str) -> set[str]:
        """Return the labels in a ``*-variants.json`` that it has."""
        return set(json.loads(self.files[filename])["variants"])

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer to a request for a page or a file."""
        files = self.files
        if self.stale and path.startswith("/simple/"):
            self.stale -= 1
            files = self.before
        self.pages.files = {}
        for name, data in sorted(files.items()):
            self.pages.add(name.partition("-")[0], name, data)
        return self.pages.answer(path, headers)

    def receive(self, upload: Upload, content: bytes) -> Fault:
        """Return the answer to a whole upload, as a `Fault` even where it is taken."""
        pair = b64encode(":".join(self.credentials or ()).encode()).decode()
        if self.credentials is not None and upload.authorization != f"Basic {pair}":
            return Fault(403, reason="Invalid or non-existent authentication information")
        if fault := self.at(RECEIVED, upload.filename):
            return fault
        answer = self._store(upload.filename, content)
        return self.at(STORED, upload.filename) or answer

    def at(self, stage: str, filename: str) -> Fault | None:
        """Call the hook; return the next fault for *filename* at *stage*, once."""
        self.hook(stage, filename)
        for pattern, faults in self.faults.items():
            if faults and faults[0].stage == stage and re.search(pattern, filename):
                return faults.pop(0)
        return None

    def _store(self, filename: str, content: bytes) -> Fault:
        if not filename:
            return Fault(400, reason="Upload payload does not have a file")
        if filename.endswith(METADATA) and not self.takes_metadata:
            return Fault(400, reason="Invalid file extension")
        old = self.files.get(filename, content)
        if old != content and not re.search(self.replaces, filename):
            return Fault(400, reason="File already exists")
        self.before = dict(self.files)
        self.files[filename] = content
        return Fault(200, reason="OK")


@contextmanager
def upload_index() -> Iterator[UploadIndex]:
    """Run an index that is empty at first; its files are in memory."""
    index = UploadIndex()

    class Handler(handler_of(index.answer)):  # type: ignore[misc]  # made by a function
        def do_POST(self) -> None:  # noqa: N802 - the name is the library's
            index.pages.requests.append(Request(self.path, self.headers))
            try:
                upload, content = self._received()
                is_here = self.path == "/legacy/"
                answer = index.receive(upload, content) if is_here else Fault(404)
                if not answer.status:
                    raise Cut
                upload.status = answer.status
                found = Answer(answer.status, answer.body, "text/plain", answer.headers)
                self.send(found, answer.reason or None)
            except ConnectionError:
                self.close_connection = True
                with suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)

        def _received(self) -> tuple[Upload, bytes]:
            size = int(self.headers["Content-Length"])
            body = self.rfile.read(max(size // 2, min(size, 65536)))
            found = re.search(rb'; filename="([^"]*)"', body)
            filename = found[1].decode() if found else ""
            if filename and index.at(RECEIVING, filename):
                raise Cut
            body += self.rfile.read(size - len(body))
            if len(body) < size:
                raise Cut
            environ = {"CONTENT_TYPE": self.headers["Content-Type"], "CONTENT_LENGTH": str(size)}
            _, form, files = parse_form_data({**environ, "wsgi.input": io.BytesIO(body)})
            fields = {name: list(values) for name, values in form.lists()}
            upload = Upload(filename, fields, self.headers.get("Authorization"))
            index.uploads.append(upload)
            return upload, files["content"].read() if "content" in files else b""

    with serving(Handler) as url:
        index.url, index.pages.url = f"{url}/legacy/", f"{url}/simple/"
        yield index
