"""A stand-in for GitHub: releases and their assets by the REST API, and their downloads.

After https://docs.github.com/en/rest/releases: assets are renamed, a broken upload leaves an asset
of the state ``starter`` that keeps its name, and names are taken once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOKEN = "ghs_kept-out-of-messages"


@dataclass
class GithubServer:
    """A running server with one repository, ``octo/demo``.

    Attributes:
        url: of the REST API.
        tags: that are pushed.
        releases: by tag.
        assets: by identifier, with ``content``.
        digests: whether assets have a ``digest``, as of 2025.
        requests: method and path of each request.
        fault: returns what happens to a request: ``half`` (the connection ends in the middle of an
            upload), ``lost`` (it ends before the answer), a status; None for nothing.
    """

    url: str = ""
    tags: set[str] = field(default_factory=set)
    releases: dict[str, dict[str, Any]] = field(default_factory=dict)
    assets: dict[int, dict[str, Any]] = field(default_factory=dict)
    digests: bool = True
    requests: list[tuple[str, str]] = field(default_factory=list)
    fault: Callable[[str, str, int], str | int | None] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def environ(self) -> dict[str, str]:
        """Return variables with which a workflow would use this server."""
        return {"GITHUB_API_URL": self.url, "GITHUB_TOKEN": TOKEN, "NO_PROXY": "127.0.0.1"}

    def names(self) -> dict[str, str]:
        """Return the state of each asset by name."""
        return {asset["name"]: asset["state"] for asset in self.assets.values()}


def _handler(server: GithubServer) -> type[BaseHTTPRequestHandler]:  # noqa: C901
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._route()

        def do_POST(self) -> None:
            self._route()

        def do_DELETE(self) -> None:
            self._route()

        def _route(self) -> None:
            with server.lock:
                server.requests.append((self.command, self.path))
                number = len(server.requests)
            fault = server.fault(self.command, self.path, number) if server.fault else None
            parts = urlsplit(self.path)
            path = unquote(parts.path)
            if found := re.fullmatch(r"/octo/demo/releases/download/(.+)/([^/]+)", path):
                return self._download(found[1], found[2])
            if isinstance(fault, int) and "/uploads/" not in path:
                return self._answer(fault, {"message": "Fault"})
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                return self._answer(401, {"message": "Bad credentials"})
            path = path.removeprefix("/api/v3")
            prefix = "/repos/octo/demo"
            if found := re.fullmatch(prefix + r"/releases/tags/(.+)", path):
                release = server.releases.get(found[1])
                return self._answer(200, release) if release else self._missing()
            if found := re.fullmatch(prefix + r"/git/ref/tags/(.+)", path):
                return self._answer(200, {}) if found[1] in server.tags else self._missing()
            if path == f"{prefix}/releases" and self.command == "POST":
                tag = json.loads(self._body())["tag_name"]
                return self._answer(201, add_release(server, tag))
            if found := re.fullmatch(prefix + r"/releases/(\d+)/assets", path):
                query = parse_qs(parts.query)
                page, size = int(query["page"][0]), int(query["per_page"][0])
                with server.lock:
                    listed = [_public(asset) for asset in server.assets.values()]
                return self._answer(200, listed[(page - 1) * size : page * size])
            if re.fullmatch(r"/uploads/\d+", path):
                return self._upload(parse_qs(parts.query)["name"][0], fault)
            if found := re.fullmatch(prefix + r"/releases/assets/(\d+)", path):
                with server.lock:
                    asset = server.assets.get(int(found[1]))
                    if asset is not None and self.command == "DELETE":
                        del server.assets[asset["id"]]
                if asset is None:
                    return self._missing()
                if self.command == "DELETE":
                    return self._answer(204, None)
                self.send_response(302)
                self.send_header("Location", asset["browser_download_url"])
                self.send_header("Content-Length", "0")
                return self.end_headers()
            return self._missing()

        def _upload(self, name: str, fault: str | int | None) -> None:
            name = re.sub(r"[^A-Za-z0-9._+@-]", ".", name).strip(".")
            with server.lock:
                taken = any(asset["name"] == name for asset in server.assets.values())
                identifier = max(server.assets, default=0) + 1
                if not taken:
                    asset = server.assets[identifier] = {
                        "id": identifier,
                        "name": name,
                        "size": 0,
                        "state": "starter",
                        "digest": None,
                        "browser_download_url": server.url.removesuffix("/api/v3")
                        + f"/octo/demo/releases/download/v1/{quote(name)}",
                        "content": b"",
                    }
            if taken:
                self._body()
                error = {"resource": "ReleaseAsset", "code": "already_exists", "field": "name"}
                return self._answer(422, {"message": "Validation Failed", "errors": [error]})
            if fault == "half":
                self.rfile.read(int(self.headers["Content-Length"]) // 2)
                return self._hang_up()
            content = self._body()
            if isinstance(fault, int):
                return self._answer(fault, {"message": "Fault"})
            if len(content) != int(self.headers["Content-Length"]):
                return self._hang_up()
            asset.update(content=content, size=len(content), state="uploaded")
            if server.digests:
                asset["digest"] = f"sha256:{hashlib.sha256(content).hexdigest()}"
            if fault == "lost":
                return self._hang_up()
            return self._answer(201, _public(asset))

        def _download(self, tag: str, name: str) -> None:
            found = [
                asset["content"]
                for asset in server.assets.values()
                if asset["name"] == name and asset["state"] == "uploaded" and tag in server.releases
            ]
            if not found:
                return self._missing()
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(found[0])))
            self.end_headers()
            self.wfile.write(found[0])
            return None

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def _missing(self) -> None:
            self._answer(404, {"message": "Not Found"})

        def _answer(self, status: int, tree: object) -> None:
            body = b"" if tree is None else json.dumps(tree).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _hang_up(self) -> None:
            self.close_connection = True
            self.connection.close()

    return Handler


def add_release(server: GithubServer, tag: str, **values: object) -> dict[str, Any]:
    """Make a release of *tag*."""
    host = server.url.removesuffix("/api/v3")
    server.tags.add(tag)
    server.releases[tag] = {
        "id": 7,
        "url": f"{server.url}/repos/octo/demo/releases/7",
        "html_url": f"{host}/octo/demo/releases/tag/{quote(tag)}",
        "upload_url": f"{host}/uploads/7{{?name,label}}",
        "draft": False,
        **values,
    }
    return server.releases[tag]


def _public(asset: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in asset.items() if key != "content"}


@contextlib.contextmanager
def github_server() -> Iterator[GithubServer]:
    """Yield a server that runs, with the release ``v1``."""
    server = GithubServer()
    running = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    running.daemon_threads = True
    server.url = f"http://127.0.0.1:{running.server_port}/api/v3"
    add_release(server, "v1")
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        running.shutdown()
        running.server_close()
        thread.join()
