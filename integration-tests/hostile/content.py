"""Contents of answers and files, described as data.

A string stands for its UTF-8 bytes; an object with one of the keys of `GENERATORS` for what that
generator makes. Descriptions nest.
"""

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
import zlib
from collections.abc import Callable, Mapping
from typing import Any

Spec = Any
"""JSON: a string or an object with the key of a generator."""
_BLOCKS = 1000


def evaluate(spec: Spec) -> bytes:
    """Return the bytes that *spec* stands for."""
    if isinstance(spec, str):
        return spec.encode("utf-8", "surrogatepass")
    (generate,) = (generate for key, generate in GENERATORS.items() if key in spec)
    return generate(spec)


def _numbered(spec: Mapping[str, Any]) -> bytes:
    texts = (spec["numbered"].replace("{n}", str(number)) for number in range(spec["count"]))
    return evaluate(spec.get("separator", "").join(texts))


def _gzip(spec: Mapping[str, Any]) -> bytes:
    inner, layers = spec["gzip"], spec.get("layers", 1)
    if isinstance(inner, Mapping) and "repeat" in inner:
        data = _gzip_repeated(evaluate(inner["repeat"]), inner["times"])
        layers -= 1
    else:
        data = evaluate(inner)
    for _ in range(layers):
        data = gzip.compress(data, mtime=0)
    return data


def _gzip_repeated(unit: bytes, times: int) -> bytes:
    """Return gzip's form of *unit* repeated, one member, without making the whole."""
    plain = unit * (times // _BLOCKS)
    if len(plain) * _BLOCKS != len(unit) * times:
        raise ValueError(f"{times} is no multiple of {_BLOCKS}")
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(plain) + packer.flush(zlib.Z_FULL_FLUSH)
    check = 0
    for _ in range(_BLOCKS):
        check = zlib.crc32(plain, check)
    tail = struct.pack("<2I", check, len(plain) * _BLOCKS & 0xFFFFFFFF)
    return b"\x1f\x8b\x08" + bytes(6) + b"\xff" + block * _BLOCKS + packer.flush() + tail


def wheel_filename(spec: Mapping[str, Any]) -> str:
    """Return the filename of the wheel *spec*."""
    tag, label = spec.get("tag", "py3-none-any"), spec.get("label")
    parts = [spec["name"].replace("-", "_"), spec["version"], tag, *([label] if label else [])]
    return "-".join(parts) + ".whl"


def _core_metadata(spec: Mapping[str, Any], version: str = "2.1") -> bytes:
    lines = [f"Metadata-Version: {version}", f"Name: {spec['name']}", f"Version: {spec['version']}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in spec.get("requires", ())]
    return ("\n".join(lines) + "\n").encode()


def _wheel(spec: Mapping[str, Any]) -> bytes:
    module = spec["name"].replace("-", "_")
    info = spec.get("dist-info", f"{module}-{spec['version']}.dist-info")
    label, tag = spec.get("label"), spec.get("tag", "py3-none-any")
    metadata = evaluate(spec["metadata"]) if "metadata" in spec else _core_metadata(spec)
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
    links = {path: target.encode() for path, target in spec.get("links", {}).items()}
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for path, data in {**files, **links}.items():
        lies = spec.get("record") == "wrong-hash"
        digest = hashlib.sha256(b"other" if lies else data).digest()
        encoded = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        rows.writerow([path, f"sha256={encoded}", len(data)])
    rows.writerow([f"{info}/RECORD", "", ""])
    files[f"{info}/RECORD"] = text.getvalue().encode("utf-8", "surrogatepass")
    again = [
        (path.replace("{info}", info), evaluate(content))
        for path, content in spec.get("duplicates", {}).items()
    ]
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # of names that occur twice
        for path, data in [*files.items(), *links.items(), *again]:
            entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
            mode = stat.S_IFLNK | 0o777 if path in links else stat.S_IFREG | 0o644
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return buffer.getvalue()


def _sdist(spec: Mapping[str, Any]) -> bytes:
    files = {"PKG-INFO": _core_metadata(spec, "2.2")}
    if "marked" in spec:
        files["backend.py"] = f"open({spec['marked']!r}, 'w').close()\n".encode()
        files["pyproject.toml"] = (
            b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        )
    files |= {path: evaluate(content) for path, content in spec.get("files", {}).items()}
    files |= {str(number): b"" for number in range(spec.get("members", 0))}
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for path, data in files.items():
            entry = tarfile.TarInfo(f"{spec['name']}-{spec['version']}/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _zip_directory(spec: Mapping[str, Any]) -> bytes:
    entries, length = spec["entries"], spec["name-length"]
    fixed = (0, 0, 0, 33, 0, 0, 0, length, 0)
    files, directory = io.BytesIO(), io.BytesIO()
    for number in range(entries):
        name = str(number).rjust(length, "x").encode()
        place = (0, 0, 0, 0, files.tell())
        directory.write(struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, *fixed, *place) + name)
        files.write(struct.pack("<4s5H3I2H", b"PK\3\4", 20, *fixed) + name)
    start, size = files.tell(), directory.tell()
    end64 = (44, 45, 45, 0, 0, entries, entries, size, start)
    count = min(entries, 0xFFFF)
    return b"".join(
        (
            files.getvalue(),
            directory.getvalue(),
            struct.pack("<4sQ2H2I4Q", b"PK\6\6", *end64),
            struct.pack("<4sIQI", b"PK\6\7", 0, start + size, 1),
            struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, size, start, 0),
        )
    )


GENERATORS: dict[str, Callable[[Mapping[str, Any]], bytes]] = {
    "base64": lambda spec: base64.b64decode(spec["base64"]),
    "concat": lambda spec: b"".join(map(evaluate, spec["concat"])),
    "gzip": _gzip,
    "json": lambda spec: json.dumps(spec["json"]).encode(),
    "numbered": _numbered,
    "repeat": lambda spec: evaluate(spec["repeat"]) * spec["times"],
    "sdist": lambda spec: _sdist(spec["sdist"]),
    "text": lambda spec: spec["text"].encode(spec.get("encoding", "utf-8"), "surrogatepass"),
    "wheel": lambda spec: _wheel(spec["wheel"]),
    "zip-directory": lambda spec: _zip_directory(spec["zip-directory"]),
}
"""What each generator makes of the object that has its key:

- ``base64``: the decoded bytes
- ``concat``: a list of contents, one after the other
- ``gzip``: a content, compressed ``layers`` times
- ``json``: a JSON tree as text
- ``numbered``: the text once for each number below ``count``, which replaces ``{n}``; between them
  ``separator``
- ``repeat``: a content ``times`` times
- ``text``: the text in ``encoding``
- ``sdist``: an archive of ``name`` and ``version`` with ``PKG-INFO`` and ``files`` by
  path; ``members`` adds that many empty files; ``marked`` makes its build backend create the file
  at that path when imported
- ``wheel``: ``name``, ``version``; ``label``, ``tag``, ``requires``; ``variants``: the metadata of
  the release, of which ``variant.json`` gets the wheel's own label; ``variant-json`` and
  ``metadata``: contents of these files instead; ``files``: contents by path; ``links``: targets of
  symbolic links by path; ``record``: ``wrong-hash``; ``duplicates``: contents by path, written a
  second time at the end; ``dist-info``: name of that directory
- ``zip-directory``: a zip archive of ``entries`` empty files with names of ``name-length``
  characters
"""
