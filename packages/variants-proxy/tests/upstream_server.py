"""An index on loopback that does what it is told, faults included, and small wheels for it."""

import base64
import gzip
import hashlib
import http.server
import io
import json
import threading
import time
import zipfile
from contextlib import contextmanager, suppress

JSON = "application/vnd.pypi.simple.v1+json"
OLD = "Mon, 01 Jan 2024 00:00:00 GMT"
SCHEMA = "https://variants-schema.wheelnext.dev/v0.2.0.json"
NVIDIA = {
    "requires": ["nvidia-variant-provider>=0.0.1,<1.0.0"],
    "plugin-api": "nvidia_variant_provider.plugin:NvidiaVariantPlugin",
}


def document(*cuda):
    """Variant metadata with the null variant and one for each CUDA version."""
    variants = {"null": {}}
    for version in cuda:
        label = f"cu{version.replace('.', '')}"
        variants[label] = {"nvidia": {"cuda_version_lower_bound": [version]}}
    return {
        "$schema": SCHEMA,
        "default-priorities": {"namespace": ["nvidia"]},
        "providers": {"nvidia": NVIDIA},
        "variants": variants,
    }


def wheel(filename, *requires, variants=None, payload=b"", compression=zipfile.ZIP_DEFLATED):
    """Contents of a wheel; *variants* is the document of its version."""
    parts = filename[:-4].split("-")
    name, version, label = parts[0], parts[1], parts[5] if len(parts) == 6 else None
    info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {item}" for item in requires]
    files = {
        f"{name}.py": b"LABEL = %r\n" % label,
        f"{name}.bin": payload,
        f"{info}/METADATA": "\n".join([*lines, "", "A description of variant_label."]).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if label is not None and variants is not None:
        own = {**variants, "variants": {label: variants["variants"][label]}}
        files[f"{info}/variant.json"] = json.dumps(own).encode()
    record = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for path, data in files.items():
            archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), data, compression)
    return buffer.getvalue()


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def metadata_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith("dist-info/METADATA"))
        return archive.read(path)


class Upstream:
    """Files by project.

    Attributes:
        files: contents by project and filename.
        attributes: of the page's entries, by filename.
        hashes: announce them; `lies` are filenames whose hash is wrong.
        core_metadata: announce and serve METADATA beside wheels.
        html: pages are HTML only.
        base: where files are, another server's URL for example.
        credentials: value of Authorization that is asked for.
        ranges: give parts of files.
        etags: give pages an entity tag and answer 304.
        cache_control: header of pages, empty for none.
        faults: answers (status, headers, body or chunks) by path, in place of what is there.
        guarded: the same, for requests with the credentials.
        delay: seconds before every answer.
        requests: path and headers, in order.
    """

    def __init__(self):
        self.files = {}
        self.attributes = {}
        self.hashes = True
        self.lies = set()
        self.core_metadata = False
        self.html = False
        self.base = ""
        self.credentials = ""
        self.ranges = True
        self.etags = False
        self.cache_control = ""
        self.faults = {}
        self.guarded = {}
        self.delay = 0.0
        self.requests = []
        self.url = ""

    @property
    def simple(self):
        return f"{self.url}/simple/"

    @property
    def paths(self):
        return [path for path, _ in self.requests]

    def add(self, project, filename, data):
        self.files.setdefault(project, {})[filename] = data
        return data

    def add_release(
        self, version="1.0", *requires, labels=("null", "cu126", "cu128", "cu130"),
        tags=("py3-none-any",), plain=False, project="app",
    ):  # fmt: skip
        found = document("12.6", "12.8", "13.0")
        for tag in tags:
            for label in labels:
                name = f"{project}-{version}-{tag}-{label}.whl"
                self.add(project, name, wheel(name, *requires, variants=found))
            if plain:
                name = f"{project}-{version}-{tag}.whl"
                self.add(project, name, wheel(name, *requires))
        name = f"{project}-{version}-variants.json"
        self.add(project, name, json.dumps(found).encode())

    def answer(self, path, headers):
        self.requests.append((path, headers))
        time.sleep(self.delay)
        if path in self.faults:
            return self.faults[path]
        if self.credentials and headers.get("Authorization") != self.credentials:
            return 401, {"WWW-Authenticate": 'Basic realm="here"'}, b"who is it?"
        if path in self.guarded:
            return self.guarded[path]
        parts = path.strip("/").split("/")
        if parts[0] == "simple" and len(parts) == 2 and parts[1] in self.files:
            return self._page(parts[1], headers)
        if parts == ["simple"]:
            tree = {"meta": {"api-version": "1.1"}, "projects": [{"name": n} for n in self.files]}
            return 200, {"Content-Type": JSON}, json.dumps(tree).encode()
        if parts[0] == "files" and len(parts) == 3:
            data = self.files.get(parts[1], {}).get(parts[2])
            if data is None and parts[2].endswith(".metadata") and self.core_metadata:
                data = metadata_of(self.files[parts[1]][parts[2][: -len(".metadata")]])
            if data is not None:
                return self._part(data, headers.get("Range", ""))
        return 404, {}, b"not here"

    def _part(self, data, asked):
        if not asked or not self.ranges:
            return 200, {}, data
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(len(data), int(last) + 1) if first and last else len(data)
        place = f"bytes {start}-{end - 1}/{len(data)}"
        return 206, {"Content-Range": place}, data[start:end]

    def _page(self, project, headers):
        files = []
        for name, data in self.files[project].items():
            digest = hashlib.sha256(data).hexdigest() if name not in self.lies else "0" * 64
            entry = {
                "filename": name,
                "url": f"{self.base}/files/{project}/{name}",
                "hashes": {"sha256": digest} if self.hashes else {},
                "size": len(data),
                **self.attributes.get(name, {}),
            }
            if self.core_metadata and name.endswith(".whl"):
                entry["core-metadata"] = {"sha256": hashlib.sha256(metadata_of(data)).hexdigest()}
            files.append(entry)
        if self.html or JSON not in headers.get("Accept", ""):
            rows = (
                f'<a href="{e["url"]}#sha256={e["hashes"].get("sha256", "")}">x</a>' for e in files
            )
            kind, body = "text/html", "".join(rows).encode()
        else:
            tree = {"meta": {"api-version": "1.1"}, "name": project, "files": files}
            kind, body = JSON, json.dumps(tree).encode()
        tag = f'"{hashlib.sha256(body).hexdigest()}"'
        given = {
            "Content-Type": kind,
            **({"ETag": tag, "Last-Modified": OLD} if self.etags else {}),
            **({"Cache-Control": self.cache_control} if self.cache_control else {}),
        }
        if self.etags and headers.get("If-None-Match") == tag:
            return 304, given, b""
        return 200, given, body


@contextmanager
def served(server, tls=None):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self):
            status, headers, body = server.answer(
                self.path, {name.title(): value for name, value in self.headers.items()}
            )
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if isinstance(body, bytes):
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(body)))
                body = [body]
            else:
                self.send_header("Connection", "close")
            self.close_connection = not isinstance(body, list) or "Content-Length" in headers
            self.end_headers()
            if status != 304 and self.command != "HEAD":
                with suppress(OSError):
                    for part in body:
                        self.wfile.write(part)

        do_HEAD = do_GET  # noqa: N815 - the name is the library's

        def log_message(self, *args):
            pass

    class Quiet(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args):
            pass

    http_server = Quiet(("127.0.0.1", 0), Handler)
    if tls is not None:
        http_server.socket = tls.wrap_socket(http_server.socket, server_side=True)
    thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    server.url = f"http{'s' if tls else ''}://127.0.0.1:{http_server.server_port}"
    try:
        yield server
    finally:
        http_server.shutdown()
        http_server.server_close()
        thread.join()


def bomb(size=1 << 30):
    """A page that is small on the wire and huge when decompressed."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=9) as stream:
        block = b" " * (1 << 20)
        for _ in range(size >> 20):
            stream.write(block)
    return buffer.getvalue()
