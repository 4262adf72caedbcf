"""An index on loopback that does what it is told, faults included, and small wheels for it."""

import hashlib
import io
import json
import zipfile
from contextlib import contextmanager

from support.index import JSON, Answer, Index, handler_of
from support.index_server import Server
from support.loopback import serving
from support.wheels import NVIDIA, Wheel, metadata

OLD = "Mon, 01 Jan 2024 00:00:00 GMT"


def document(*cuda):
    """Variant metadata with the null variant and one for each CUDA version."""
    bounds = {
        f"cu{each.replace('.', '')}": {"nvidia": {"cuda_version_lower_bound": [each]}}
        for each in cuda
    }
    return metadata({"null": {}, **bounds}, namespaces=["nvidia"], providers={"nvidia": NVIDIA})


def wheel(filename, *requires, variants=None, **more):
    """Contents of a wheel; *variants* is the document of its version."""
    name, version, *rest = filename[:-4].split("-")
    label = rest[3] if len(rest) == 4 else None
    own = None
    if label is not None and variants is not None:
        own = {**variants, "variants": {label: variants["variants"][label]}}
    more.setdefault("description", "A description of variant_label.")
    return Wheel(name, version, label, "-".join(rest[:3]), requires, own, **more).build()


def metadata_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith("dist-info/METADATA"))
        return archive.read(path)


class Upstream(Server):
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
    """

    def __init__(self):
        super().__init__()
        self.files, self.attributes, self.lies, self.guarded = {}, {}, set(), {}
        self.hashes = self.ranges = True
        self.core_metadata = self.html = self.etags = False
        self.base = self.credentials = self.cache_control = ""

    def add(self, project, filename, data):
        self.files.setdefault(project, {})[filename] = data
        return data

    def add_release(
        self, version="1.0", *requires, labels=("null", "cu126", "cu128", "cu130"),
        tags=("py3-none-any",), plain=False, project="app", **more,
    ):  # fmt: skip
        found = document("12.6", "12.8", "13.0")
        for tag in tags:
            for label in (*labels, *[None] * plain):
                name = "-".join(filter(None, (project, version, tag, label))) + ".whl"
                self.add(project, name, wheel(name, *requires, variants=found, **more))
        self.add(project, f"{project}-{version}-variants.json", json.dumps(found).encode())

    def answer(self, path, headers):
        self.requests.append((path, headers))
        if path in self.faults:
            return self.faults[path]
        if self.credentials and headers.get("Authorization") != self.credentials:
            return 401, {"WWW-Authenticate": 'Basic realm="here"'}, b"who is it?"
        if path in self.guarded:
            return self.guarded[path]
        kind, *parts = path.strip("/").split("/")
        if kind == "simple" and len(parts) == 1 and parts[0] in self.files:
            return self._page(parts[0], headers)
        if kind == "simple" and not parts:
            tree = {"meta": {"api-version": "1.1"}, "projects": [{"name": n} for n in self.files]}
            return 200, {"Content-Type": JSON}, json.dumps(tree).encode()
        if kind == "files" and len(parts) == 2:
            files, name = self.files.get(parts[0], {}), parts[1]
            data = files.get(name)
            if data is None and name.endswith(".metadata") and self.core_metadata:
                data = metadata_of(files[name.removesuffix(".metadata")])
            if data is not None:
                return self._part(data, headers.get("Range", ""))
        return 404, {}, b"not here"

    def _part(self, data, asked):
        found = Index.part(data, asked if self.ranges else "")
        return found.status, found.headers, found.body

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
    def answer(path, headers):
        status, given, body = server.answer(path, headers)
        return Answer(status, body, headers=given)

    with serving(handler_of(answer), tls) as url:
        server.url = url
        yield server
