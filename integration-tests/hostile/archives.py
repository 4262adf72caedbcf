"""Wheels, source distributions and zip directories as a case describes them, hostile or not."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import stat
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

Evaluate = Callable[[Any], bytes]
"""Returns the bytes that a content description stands for, see `content`."""

_EPOCH = (2020, 1, 1, 0, 0, 0)


def wheel_filename(spec: Mapping[str, Any]) -> str:
    """Return the filename of the wheel *spec*."""
    parts = [
        spec["name"].replace("-", "_"),
        spec["version"],
        spec.get("build", ""),
        spec.get("tag", "py3-none-any"),
        spec.get("label") or "",
    ]
    return "-".join(part for part in parts if part) + ".whl"


def core_metadata(spec: Mapping[str, Any]) -> bytes:
    """Return ``METADATA`` of the wheel or source distribution *spec*."""
    lines = ["Metadata-Version: 2.1", f"Name: {spec['name']}", f"Version: {spec['version']}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in spec.get("requires", ())]
    return ("\n".join(lines) + "\n").encode()


def wheel(spec: Mapping[str, Any], evaluate: Evaluate) -> bytes:
    """Return the wheel *spec*.

    Keys: ``name``, ``version``; ``label``, ``build``, ``tag``, ``requires``; ``variants``: the
    metadata of the release, of which ``variant.json`` gets the wheel's own label;
    ``variant-json``: content of ``variant.json`` instead; ``metadata``: content of ``METADATA``
    instead; ``files``: contents by path; ``record``: ``honest``, ``wrong-hash``, ``missing``;
    ``links``: targets of symbolic links by path; ``duplicates``: contents by path, written a
    second time at the end; ``dist-info``: name of that directory.
    """
    module = spec["name"].replace("-", "_")
    info = spec.get("dist-info", f"{module}-{spec['version']}.dist-info")
    label = spec.get("label")
    metadata = evaluate(spec["metadata"]) if "metadata" in spec else core_metadata(spec)
    tag = spec.get("tag", "py3-none-any")
    files = {
        f"{module}/__init__.py": f"LABEL = {label!r}\n".encode(),
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: hostile\nRoot-Is-Purelib: true\nTag: {tag}\n"
        ).encode(),
    }
    if "variant-json" in spec:
        files[f"{info}/variant.json"] = evaluate(spec["variant-json"])
    elif "variants" in spec and label:
        tree = {**spec["variants"], "variants": {label: spec["variants"]["variants"][label]}}
        files[f"{info}/variant.json"] = json.dumps(tree).encode()
    files |= {path: evaluate(content) for path, content in spec.get("files", {}).items()}
    links = spec.get("links", {})
    kind = spec.get("record", "honest")
    if kind != "missing":
        contents = {**files, **{path: target.encode() for path, target in links.items()}}
        files[f"{info}/RECORD"] = _record(contents, f"{info}/RECORD", lies=kind == "wrong-hash")
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # of names that occur twice
        for path, data in files.items():
            archive.writestr(_entry(path), data)
        for path, target in links.items():
            archive.writestr(_entry(path, stat.S_IFLNK | 0o777), target)
        for path, content in spec.get("duplicates", {}).items():
            archive.writestr(_entry(path.replace("{info}", info)), evaluate(content))
    return buffer.getvalue()


def _entry(path: str, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, _EPOCH)
    entry.external_attr = mode << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _record(files: Mapping[str, bytes], own: str, *, lies: bool) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for path, data in files.items():
        digest = hashlib.sha256(b"other" if lies else data).digest()
        encoded = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        rows.writerow([path, f"sha256={encoded}", len(data)])
    rows.writerow([own, "", ""])
    return text.getvalue().encode("utf-8", "surrogatepass")


def sdist(spec: Mapping[str, Any], evaluate: Evaluate) -> bytes:
    """Return the source distribution *spec*: gzip, tar, ``PKG-INFO`` and ``files`` by path.

    ``members`` adds that many empty files; ``links`` are targets of symbolic links by path;
    ``marked`` makes its build backend create the file at that path when it is imported.
    """
    root = f"{spec['name']}-{spec['version']}"
    metadata = evaluate(spec["metadata"]) if "metadata" in spec else core_metadata(spec)
    files = {"PKG-INFO": metadata.replace(b"Version: 2.1", b"Version: 2.2")}
    if "marked" in spec:
        files["backend.py"] = f"open({spec['marked']!r}, 'w').close()\n".encode()
        files["pyproject.toml"] = (
            b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        )
    files |= {path: evaluate(content) for path, content in spec.get("files", {}).items()}
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for path, data in files.items():
            entry = tarfile.TarInfo(f"{root}/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for path, target in spec.get("links", {}).items():
            entry = tarfile.TarInfo(f"{root}/{path}")
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
        for number in range(spec.get("members", 0)):
            archive.addfile(tarfile.TarInfo(f"{root}/{number}"))
    return buffer.getvalue()


def zip_directory(spec: Mapping[str, Any]) -> bytes:
    """Return a zip archive of ``entries`` empty files and names of ``name-length`` characters."""
    buffer = io.BytesIO()
    length = spec.get("name-length", 40)
    offset = 0
    directory = io.BytesIO()
    fixed = (0, 0, 0, 33, 0, 0, 0, length, 0)
    for number in range(spec["entries"]):
        name = str(number).rjust(length, "x").encode()
        buffer.write(struct.pack("<4s5H3I2H", b"PK\3\4", 20, *fixed) + name)
        directory.write(
            struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, *fixed, 0, 0, 0, 0, offset) + name
        )
        offset += 30 + length
    data = directory.getvalue()
    count = min(spec["entries"], 0xFFFF)
    if spec["entries"] > 0xFFFF:
        end = offset + len(data)
        tail = struct.pack(
            "<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0,
            spec["entries"], spec["entries"], len(data), offset,
        ) + struct.pack("<4sIQI", b"PK\6\7", 0, end, 1)  # fmt: skip
    else:
        tail = b""
    last = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(data), offset, 0)
    return buffer.getvalue() + data + tail + last
