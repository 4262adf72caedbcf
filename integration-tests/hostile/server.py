"""The servers of a case: on loopback, a thread per connection, as wrong as the case wants them.

HTTP is written by hand, because no library writes answers that break it. A request in absolute
form (``GET http://host/path``, as a client sends it to a proxy) is answered by the server of that
name, so that a case has hosts with public names, or with the address of a metadata service,
without reaching any network.
"""

from __future__ import annotations

import hashlib
import html
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from .archives import wheel_filename
from .cases import Case
from .content import GENERATORS, evaluate

JSON = "application/vnd.pypi.simple.v1+json"
HEAD_BYTES = 1 << 20
"""How long the head of a request may be."""
IDLE = 30
"""Seconds after which a connection that sends no request is closed."""
CHUNK = 1 << 16

Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """A request that came: to which server, and the head."""

    server: str
    method: str
    target: str
    headers: Mapping[str, str]

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
        requests: those that came, in order.
    """

    case: Case
    urls: Mapping[str, str]
    requests: list[Request] = field(default_factory=list)


@contextmanager
def serving(case: Case, places: Mapping[str, str]) -> Iterator[Served]:
    """Serve *case* until the context ends.

    Every server of the case has a placeholder of its name; ``canary`` is a server that is always
    there and that nothing may contact.

    Args:
        case: as read.
        places: further placeholders, e.g. ``home``.
    """
    names = [name for name in case.servers if "." not in name]
    sockets = {name: _listening() for name in dict.fromkeys([*names, "canary"])}
    urls = {name: f"http://127.0.0.1:{sock.getsockname()[1]}" for name, sock in sockets.items()}
    ports = {f"{name}-port": url.rpartition(":")[2] for name, url in urls.items()}
    filled = case.filled({**urls, **ports, **places})
    served = Served(filled, urls)
    stop = threading.Event()
    sites = {
        name: _Site(name, spec, urls.get(name, f"http://{name}"))
        for name, spec in {"canary": {}, **filled.servers}.items()
    }
    for name, sock in sockets.items():
        handler = _Handler(sites[name], sites, served.requests, stop)
        threading.Thread(target=_accept, args=(sock, handler), daemon=True).start()
    try:
        yield served
    finally:
        stop.set()
        for sock in sockets.values():
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


def _listening() -> socket.socket:
    sock = socket.create_server(("127.0.0.1", 0))
    sock.listen(64)
    return sock


def _accept(sock: socket.socket, handler: _Handler) -> None:
    while True:
        try:
            connection, _ = sock.accept()
        except OSError:
            return
        threading.Thread(target=handler.connected, args=(connection,), daemon=True).start()


class _Site:
    """What one server answers."""

    def __init__(self, name: str, spec: Mapping[str, Any], url: str) -> None:
        self.name = name
        self._routes: dict[str, Answer] = {}
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()
        for project, its in spec.get("projects", {}).items():
            self._add_project(project, its, url)
        self._routes |= spec.get("routes", {})
        self._bodies: dict[int, bytes] = {}

    def answer(self, target: str) -> Answer:
        """Return the answer to a request of *target*, 404 without one."""
        path = target.split("?")[0]
        answer = self._routes.get(target) or self._routes.get(path)
        if answer is None:
            answer = self._routes.get(unquote(path)) or {"status": 404}
        if "sequence" in answer:
            with self._lock:
                count = self._counts.get(path, 0)
                self._counts[path] = count + 1
            answers: list[Answer] = answer["sequence"]
            return answers[min(count, len(answers) - 1)]
        return answer

    def body(self, answer: Answer) -> bytes:
        """Return the body of *answer*, made once."""
        with self._lock:
            if id(answer) not in self._bodies:
                body = answer.get("body", "")
                self._bodies[id(answer)] = body if isinstance(body, bytes) else evaluate(body)
            return self._bodies[id(answer)]

    def _add_project(self, project: str, spec: Mapping[str, Any], url: str) -> None:
        files: dict[str, Any] = {}
        for release in spec.get("releases", ()):
            files |= _release(project, release)
        files |= spec.get("files", {})
        entries = []
        for filename, given in files.items():
            if given is None:
                continue
            file = given if _is_file(given) else {"content": given}
            data = evaluate(file["content"]) if "content" in file else b""
            path = f"/files/{project}/{filename}"
            where = file.get("url", f"{url}/files/{project}/{quote(filename)}")
            self._routes[path] = {"body": data, "ranges": True, **file.get("answer", {})}
            digest = file.get("hash", hashlib.sha256(data).hexdigest())
            if isinstance(digest, Mapping):  # of another content
                digest = hashlib.sha256(evaluate(digest["of"])).hexdigest()
            entry: dict[str, Any] = {"filename": filename, "url": where}
            entry["hashes"] = {"sha256": digest} if digest else {}
            if "core-metadata" in file:
                beside = evaluate(file["core-metadata"])
                self._routes[f"{path}.metadata"] = {"body": beside}
                entry["core-metadata"] = {"sha256": hashlib.sha256(beside).hexdigest()}
            entry |= file.get("keys", {})
            if file.get("listed", True):
                entries.append(entry)
        page = spec.get("page", {})
        if page.get("format") == "html":
            body = _html(entries, page)
            kind = f"text/html; charset={page.get('charset', 'utf-8')}"
        else:
            tree = {"meta": {"api-version": "1.1"}, "name": project, "files": entries}
            body, kind = json.dumps(tree).encode(), JSON
        answer = {"body": body, "headers": [["Content-Type", kind], *page.get("headers", [])]}
        self._routes[f"/simple/{project}/"] = answer


def _is_file(spec: Any) -> bool:
    return isinstance(spec, Mapping) and ("content" in spec or not GENERATORS.keys() & spec.keys())


def _release(project: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the files of a release: honest wheels of each variant, and the index metadata.

    Keys: ``version``; ``metadata``: the index metadata; ``plain``: whether there is a non-variant
    wheel (default true); ``requires``; ``tag``.
    """
    common = {
        "name": project,
        "version": spec["version"],
        "requires": spec.get("requires", []),
        "tag": spec.get("tag", "py3-none-any"),
    }
    files: dict[str, Any] = {}
    metadata = spec.get("metadata")
    if metadata is not None:
        for label in metadata["variants"]:
            wheel = {**common, "label": label, "variants": metadata}
            files[wheel_filename(wheel)] = {"wheel": wheel}
        name = f"{project.replace('-', '_')}-{spec['version']}-variants.json"
        files[name] = {"json": metadata}
    if spec.get("plain", True):
        files[wheel_filename(common)] = {"wheel": common}
    return files


def _html(entries: list[dict[str, Any]], page: Mapping[str, Any]) -> bytes:
    """Return a page with a link for each entry; ``head`` and ``links`` of *page* are added."""
    lines = [f"<!DOCTYPE html><html><head>{page.get('head', '')}</head><body>"]
    for entry in entries:
        digest = entry["hashes"].get("sha256")
        url = entry["url"] + (f"#sha256={digest}" if digest else "")
        lines.append(f'<a href="{html.escape(url)}">{html.escape(entry["filename"])}</a>')
    for url, text in page.get("links", {}).items():
        lines.append(f'<a href="{html.escape(url)}">{html.escape(text)}</a>')
    return "\n".join([*lines, "</body></html>"]).encode("utf-8", "surrogatepass")


class _Handler:
    """Answers the connections of one server."""

    def __init__(
        self,
        site: _Site,
        sites: Mapping[str, _Site],
        requests: list[Request],
        stop: threading.Event,
    ) -> None:
        self._site = site
        self._sites = sites
        self._requests = requests
        self._stop = stop

    def connected(self, connection: socket.socket) -> None:
        """Answer one request, then close."""
        with connection, suppress(OSError, ValueError):
            connection.settimeout(IDLE)
            head = self._read_head(connection)
            if head is None:
                return
            request, site = self._understood(head)
            self._requests.append(request)
            if request.method == "CONNECT":
                connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
                return
            self._send(connection, site, request, site.answer(request.target))
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
                connection.settimeout(1)
                while connection.recv(CHUNK):
                    pass

    def _read_head(self, connection: socket.socket) -> bytes | None:
        data = b""
        while b"\r\n\r\n" not in data:
            part = connection.recv(CHUNK)
            data += part
            if not part or len(data) > HEAD_BYTES:
                # A connection alone is contact as well.
                self._requests.append(Request(self._site.name, "", "", {}))
                return None
        return data.partition(b"\r\n\r\n")[0]

    def _understood(self, head: bytes) -> tuple[Request, _Site]:
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        site = self._site
        if target.startswith("http://"):
            parts = urlsplit(target)
            host = parts.hostname or ""
            site = self._sites.get(host) or _Site(host, {}, "")
            target = parts.path + (f"?{parts.query}" if parts.query else "")
        elif method == "CONNECT":
            site = _Site(target.rpartition(":")[0], {}, "")
        return Request(site.name, method, target, headers), site

    def _send(  # noqa: C901
        self, connection: socket.socket, site: _Site, request: Request, answer: Answer
    ) -> None:
        if request.method == "HEAD" and "head" in answer:
            answer = answer["head"]
        if "range" in request.headers and "range" in answer:
            answer = answer["range"]
        if "raw" in answer:
            connection.sendall(evaluate(answer["raw"]))
            return
        if answer.get("hang") == "head":
            self._stop.wait()
            return
        body = site.body(answer)
        status, headers = answer.get("status", 200), [tuple(pair) for pair in _headers(answer)]
        if answer.get("ranges") and "range" in request.headers:
            status, body, more = _part(body, request.headers["range"])
            headers += more
        elif answer.get("ranges"):
            headers.append(("Accept-Ranges", "bytes"))
        chunked = answer.get("chunked")
        if chunked:
            headers.append(("Transfer-Encoding", "chunked"))
        elif answer.get("length", True) is True and not answer.get("endless"):
            headers.append(("Content-Length", str(len(body))))
        elif not isinstance(answer.get("length", False), bool):
            headers.append(("Content-Length", str(answer["length"])))
        head = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in headers)]
        head += ["Connection: close", "", ""]
        self._drip(connection, "\r\n".join(head).encode("latin-1"), answer.get("head-drip"))
        if request.method == "HEAD":
            return
        if answer.get("hang") == "body":
            self._stop.wait()
            return
        if "cut" in answer:
            body = body[: answer["cut"]]
        if answer.get("endless"):
            while not self._stop.is_set():
                connection.sendall(body)
            return
        if chunked:
            body = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
            body += b"" if chunked == "truncated" else b"0\r\n\r\n"
        self._drip(connection, body, answer.get("drip"))

    def _drip(self, connection: socket.socket, data: bytes, how: Mapping[str, Any] | None) -> None:
        if how is None:
            connection.sendall(data)
            return
        for start in range(0, len(data), how["bytes"]):
            connection.sendall(data[start : start + how["bytes"]])
            if self._stop.wait(how["seconds"]):
                return


def _headers(answer: Answer) -> list[list[str]]:
    headers = list(answer.get("headers", ()))
    if "redirect" in answer:
        headers.append(["Location", answer["redirect"]])
    for item in answer.get("header-series", ()):
        headers += [[f"{item['name']}-{number}", item["value"]] for number in range(item["count"])]
    return headers


def _part(body: bytes, wanted: str) -> tuple[int, bytes, list[tuple[str, str]]]:
    """Return status, body and headers of the answer to a ``Range`` header."""
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    if first:
        start, end = int(first), min(int(last) + 1 if last else len(body), len(body))
    else:
        start, end = max(0, len(body) - int(last)), len(body)
    if start >= end:
        return 416, b"", [("Content-Range", f"bytes */{len(body)}")]
    return 206, body[start:end], [("Content-Range", f"bytes {start}-{end - 1}/{len(body)}")]
