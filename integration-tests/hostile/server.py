"""The servers of a case: on loopback, as wrong as the case wants them.

Requests are read by `http.server`; answers are written by hand, because no library writes answers
that break HTTP. A request in absolute form (``GET http://host/path``, as a client sends it to a
proxy) is answered by the server of that name, so that a case has hosts with public names, or with
the address of a metadata service, without reaching any network.
"""

from __future__ import annotations

import hashlib
import html
import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from .cases import Case
from .content import evaluate, wheel_filename

JSON = "application/vnd.pypi.simple.v1+json"

Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """A request that came: to which server, and the head; no method if nothing could be read."""

    server: str
    method: str = ""
    target: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Server and path, as ``must-not`` of a case names them."""
        return f"{self.server}{self.target}"


@dataclass
class Served:
    """The running servers of a case.

    Attributes:
        case: the case with its placeholders filled.
        urls: by name of the server, without a slash at the end.
        sites: what each server answers, those included that are reached as hosts of a proxy.
        requests: those that came, in order.
        stop: set when the servers end.
    """

    case: Case
    urls: Mapping[str, str]
    sites: Mapping[str, _Site]
    requests: list[Request] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(case: Case, places: Mapping[str, str]) -> Iterator[Served]:
    """Serve *case* until the context ends.

    Every server of the case has a placeholder of its name; ``canary`` is a server that is always
    there and that nothing may contact.

    Args:
        case: as read.
        places: further placeholders, e.g. ``home``.
    """
    names = dict.fromkeys([*(name for name in case.servers if "." not in name), "canary"])
    servers = {name: _Server(("127.0.0.1", 0), _Handler) for name in names}
    urls = {name: f"http://127.0.0.1:{server.server_port}" for name, server in servers.items()}
    ports = {f"{name}-port": str(server.server_port) for name, server in servers.items()}
    filled = case.filled({**urls, **ports, **places})
    specs = {"canary": {}, **filled.servers}
    sites = {
        name: _Site(name, spec, urls.get(name, f"http://{name}")) for name, spec in specs.items()
    }
    served = Served(filled, urls, sites)
    for name, server in servers.items():
        server.site, server.served = sites[name], served
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield served
    finally:
        served.stop.set()
        for server in servers.values():
            server.shutdown()
            server.server_close()


class _Site:
    """What one server answers."""

    def __init__(self, name: str, spec: Mapping[str, Any] | None = None, url: str = "") -> None:
        self.name = name
        self._routes: dict[str, Answer] = {}
        for project, its in (spec or {}).get("projects", {}).items():
            self._add_project(project, its, url)
        self._routes |= (spec or {}).get("routes", {})

    def answer(self, target: str) -> Answer:
        """Return the answer to a request of *target*, 404 without one."""
        path = target.split("?")[0]
        for wanted in (target, path, unquote(path)):
            if wanted in self._routes:
                return self._routes[wanted]
        return {"status": 404}

    def _add_project(self, project: str, spec: Mapping[str, Any], url: str) -> None:
        files: dict[str, Any] = {}
        for release in spec.get("releases", ()):
            files |= _release(project, release)
        files |= spec.get("files", {})
        entries = []
        for filename, given in files.items():
            if given is None:
                continue
            is_file = "content" in given and not isinstance(given, str)
            file = given if is_file else {"content": given}
            data = evaluate(file["content"])
            path = f"/files/{project}/{filename}"
            self._routes[path] = {"body": data, "ranges": True, **file.get("answer", {})}
            digest = file.get("hash", hashlib.sha256(data).hexdigest())
            if isinstance(digest, Mapping):  # of another content
                digest = hashlib.sha256(evaluate(digest["of"])).hexdigest()
            entry: dict[str, Any] = {
                "filename": filename,
                "url": file.get("url", f"{url}/files/{project}/{quote(filename)}"),
                "hashes": {"sha256": digest} if digest else {},
            }
            if "core-metadata" in file:
                beside = evaluate(file["core-metadata"])
                self._routes[f"{path}.metadata"] = {"body": beside}
                entry["core-metadata"] = {"sha256": hashlib.sha256(beside).hexdigest()}
            entries.append({**entry, **file.get("keys", {})})
        page = spec.get("page", {})
        if page.get("format") == "html":
            body = _html(entries, page)
            kind = f"text/html; charset={page.get('charset', 'utf-8')}"
        else:
            tree = {"meta": {"api-version": "1.1"}, "name": project, "files": entries}
            body, kind = json.dumps(tree).encode(), JSON
        headers = [["Content-Type", kind], *page.get("headers", [])]
        self._routes[f"/simple/{project}/"] = {"body": body, "headers": headers}


def _release(project: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the files of a release: honest wheels of each variant, and the index metadata.

    Keys: ``version``; ``metadata``: the index metadata; ``plain``: whether there is a non-variant
    wheel (default true); ``requires``; ``tag``.
    """
    metadata = spec.get("metadata")
    common = {key: spec[key] for key in ("version", "requires", "tag") if key in spec}
    common["name"] = project
    wheels = [
        {**common, "label": label, "variants": metadata}
        for label in (metadata or {}).get("variants", ())
    ]
    files: dict[str, Any] = {wheel_filename(wheel): {"wheel": wheel} for wheel in wheels}
    if metadata is not None:
        name = f"{project.replace('-', '_')}-{spec['version']}-variants.json"
        files[name] = {"json": metadata}
    if spec.get("plain", True):
        files[wheel_filename(common)] = {"wheel": common}
    return files


def _html(entries: Iterable[Mapping[str, Any]], page: Mapping[str, Any]) -> bytes:
    """Return a page with a link for each entry; ``head`` and ``links`` of *page* are added."""
    links = [
        (
            entry["url"] + "".join(f"#sha256={digest}" for digest in entry["hashes"].values()),
            entry["filename"],
        )
        for entry in entries
    ]
    lines = [f"<!DOCTYPE html><html><head>{page.get('head', '')}</head><body>"]
    for url, text in [*links, *page.get("links", {}).items()]:
        lines.append(f'<a href="{html.escape(url)}">{html.escape(text)}</a>')
    return "\n".join([*lines, "</body></html>"]).encode("utf-8", "surrogatepass")


class _Server(ThreadingHTTPServer):
    """One server of a case."""

    request_queue_size = 64
    site: _Site
    served: Served

    def server_bind(self) -> None:
        """Bind, without asking a name server for the name as `HTTPServer` does."""
        TCPServer.server_bind(self)
        self.server_port = self.server_address[1]


class _Handler(BaseHTTPRequestHandler):
    """Answers one request of a connection, then closes it."""

    server: _Server
    timeout = 30

    def handle(self) -> None:
        with suppress(OSError):
            self._answer()

    def log_message(self, *args: object) -> None:
        """Log nothing."""

    def _answer(self) -> None:
        site, served = self.server.site, self.server.served
        try:
            self.raw_requestline = self.rfile.readline(1 << 16)
            understood = bool(self.raw_requestline) and self.parse_request()
        except OSError:
            understood = False
        if not understood:  # a connection alone is contact as well
            served.requests.append(Request(site.name))
            return
        target = self.requestline.split()[1]
        if self.command == "CONNECT":
            site = _Site(target.rpartition(":")[0])
        elif target.startswith("http://"):
            parts = urlsplit(target)
            site = served.sites.get(parts.hostname or "") or _Site(parts.hostname or "")
            target = parts.path + (f"?{parts.query}" if parts.query else "")
        headers = {name.lower(): value for name, value in self.headers.items()}
        served.requests.append(Request(site.name, self.command, target, headers))
        if self.command == "CONNECT":
            self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return
        answer = site.answer(target)
        self._send(answer.get("range", answer) if "range" in headers else answer)

    def _send(self, answer: Answer) -> None:
        if "raw" in answer:
            self.wfile.write(evaluate(answer["raw"]))
            return
        if "hang" in answer:
            self.server.served.stop.wait()
            return
        body = answer.get("body", "")
        body = body if isinstance(body, bytes) else evaluate(body)
        status, headers = (
            answer.get("status", 200),
            [tuple(pair) for pair in answer.get("headers", ())],
        )
        if "redirect" in answer:
            headers.append(("Location", answer["redirect"]))
        for item in answer.get("header-series", ()):
            headers += [
                (f"{item['name']}-{number}", item["value"]) for number in range(item["count"])
            ]
        if answer.get("ranges") and "range" in self.headers:
            status, body, span = _part(body, self.headers["range"])
            headers.append(("Content-Range", span))
        elif answer.get("ranges"):
            headers.append(("Accept-Ranges", "bytes"))
        length = answer.get("length", len(body))
        if "chunked" in answer:
            headers.append(("Transfer-Encoding", "chunked"))
            body = b"%x\r\n%s\r\n" % (len(body), body)
        elif length is not False and not answer.get("endless"):
            headers.append(("Content-Length", str(length)))
        lines = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in headers)]
        head = "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")
        self._drip(head, answer.get("head-drip"))
        if self.command == "HEAD":
            return
        self._drip(body[: answer.get("cut")], answer.get("drip"))
        while answer.get("endless") and not self.server.served.stop.is_set():
            self.wfile.write(body)

    def _drip(self, data: bytes, how: Mapping[str, Any] | None) -> None:
        if how is None:
            self.wfile.write(data)
            return
        for start in range(0, len(data), how["bytes"]):
            self.wfile.write(data[start : start + how["bytes"]])
            if self.server.served.stop.wait(how["seconds"]):
                return


def _part(body: bytes, wanted: str) -> tuple[int, bytes, str]:
    """Return status, body and ``Content-Range`` of the answer to a ``Range`` header."""
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    start = int(first) if first else max(0, len(body) - int(last))
    end = min(int(last) + 1, len(body)) if first and last else len(body)
    if start >= end:
        return 416, b"", f"bytes */{len(body)}"
    return 206, body[start:end], f"bytes {start}-{end - 1}/{len(body)}"
