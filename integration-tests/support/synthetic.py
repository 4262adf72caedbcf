"""An index of any number of projects that exist only while they are requested.

Every project has twenty versions and requires two others, so that the first one requires all of
them. Of some, every version has variants. Run as a script it serves the index until its input
ends; the first line that it prints is the URL.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import sys
import threading
from functools import cache

from support.wheels import NVIDIA, metadata

VERSIONS = 20
LABELS = 12
JSON = "application/vnd.pypi.simple.v1+json"


def name(number: int) -> str:
    """Return the name of a project."""
    return f"project-{number}"


class Synthetic:
    """The index.

    Attributes:
        projects: how many.
        every: every so many-th project has variants, 0 for none.
        fitting: whether the variants fit a machine with CUDA 12.8; otherwise none does, and
            there is no null variant and no non-variant wheel.
    """

    def __init__(
        self, projects: int, every: int, *, versions: int = VERSIONS, fitting: bool = True
    ) -> None:
        self.projects = projects
        self.every = every
        self.versions = versions
        self.fitting = fitting

    def body(self, path: str) -> tuple[bytes, str] | None:
        """Return contents and type of what is at *path*, None for nothing."""
        parts = path.strip("/").split("/")
        if parts[0] == "simple" and len(parts) == 2:
            number = int(parts[1].rpartition("-")[2])
            return (self.page(number), JSON) if number < self.projects else None
        filename = parts[-1]
        number = int(filename.split("-")[0].rpartition("_")[2])
        if filename.endswith(".metadata"):
            return self.core_metadata(number, filename.split("-")[1]), "text/plain"
        if filename.endswith("-variants.json"):
            return self.variants, "application/json"
        return None

    def has_variants(self, number: int) -> bool:
        """Return whether a project has variants."""
        return bool(self.every) and number % self.every == 0

    @property
    def variants(self) -> bytes:
        """Contents of every metadata file."""
        return _variants(self.fitting)

    def core_metadata(self, number: int, version: str) -> bytes:
        """Return METADATA of every wheel of a version."""
        requires = [child for child in (2 * number + 1, 2 * number + 2) if child < self.projects]
        lines = [f"Requires-Dist: {name(child)}>=3; python_version >= '3'" for child in requires]
        head = ["Metadata-Version: 2.1", f"Name: {name(number)}", f"Version: {version}"]
        return ("\n".join([*head, *lines]) + "\n").encode()

    def page(self, number: int) -> bytes:
        """Return the page of a project."""
        stem = name(number).replace("-", "_")
        files = []
        for version in range(1, self.versions + 1):
            labels = [""]
            if self.has_variants(number):
                labels = [f"-{label}" for label in json.loads(self.variants)["variants"]]
                files.append(self.entry(f"{stem}-{version}.0-variants.json", self.variants))
            # All wheels of a version have the same core metadata.
            digest = hashlib.sha256(self.core_metadata(number, f"{version}.0")).hexdigest()
            for label in labels:
                entry = self.entry(f"{stem}-{version}.0-py3-none-any{label}.whl", b"")
                files.append({**entry, "core-metadata": {"sha256": digest}, "size": 12345})
        tree = {"meta": {"api-version": "1.1"}, "name": name(number), "files": files}
        return json.dumps(tree).encode()

    @staticmethod
    def entry(filename: str, body: bytes) -> dict:
        """Return the entry of a file on its page."""
        hashes = {"sha256": hashlib.sha256(body or filename.encode()).hexdigest()}
        return {"filename": filename, "url": f"/files/{filename}", "hashes": hashes}


@cache
def _variants(fitting: bool) -> bytes:
    releases = [f"12.{minor}" for minor in range(LABELS - 1)] if fitting else ["14.0"] * LABELS
    variants = {"null": {}} if fitting else {}
    for number, release in enumerate(releases):
        properties = {"cuda_version_lower_bound": [release]}
        variants[f"label{number}"] = {"nvidia": properties}
    tree = metadata(variants, namespaces=["nvidia"], providers={"nvidia": NVIDIA})
    return json.dumps(tree).encode()


def main() -> None:
    """Serve until standard input ends."""
    projects, every, versions, fitting = map(int, sys.argv[1:5])
    index = Synthetic(projects, every, versions=versions, fitting=bool(fitting))

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            found = index.body(self.path)
            body, kind = found or (b"", "text/plain")
            head = (
                f"HTTP/1.1 {200 if found else 404} x\r\nContent-Type: {kind}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            self.wfile.write(head.encode() + body)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}/simple/", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
