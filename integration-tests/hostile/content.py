"""Contents of answers and files, described as data.

A string stands for its UTF-8 bytes; an object with one of the keys of `GENERATORS` for what that
generator makes. Descriptions nest.
"""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from .archives import sdist, wheel, zip_directory

Spec = Any
"""JSON: a string or an object with the key of a generator."""


def evaluate(spec: Spec) -> bytes:
    """Return the bytes that *spec* stands for.

    Raises:
        ValueError: *spec* is no description of a content.
    """
    if isinstance(spec, str):
        data: bytes = spec.encode("utf-8", "surrogatepass")
        return data
    if isinstance(spec, Mapping):
        for key, generate in GENERATORS.items():
            if key in spec:
                return generate(spec)
    raise ValueError(f"not a content: {json.dumps(spec)[:200]}")


def _numbered(spec: Mapping[str, Any]) -> bytes:
    separator = spec.get("separator", "")
    template = spec["numbered"]
    texts = (template.replace("{n}", str(number)) for number in range(spec["count"]))
    data: bytes = separator.join(texts).encode()
    return data


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
    """Return gzip's form of *unit* repeated, without making the whole."""
    per_block = max(1, min(times, (1 << 20) // len(unit)))
    blocks, rest = divmod(times, per_block)
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    plain = unit * per_block
    block = compressor.compress(plain) + compressor.flush(zlib.Z_FULL_FLUSH)
    last = zlib.compressobj(9, zlib.DEFLATED, -15)
    tail = last.compress(unit * rest) + last.flush()
    check = 0
    for _ in range(blocks):
        check = zlib.crc32(plain, check)
    check = zlib.crc32(unit * rest, check)
    size = len(unit) * times & 0xFFFFFFFF
    head = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    return head + block * blocks + tail + check.to_bytes(4, "little") + size.to_bytes(4, "little")


GENERATORS: dict[str, Callable[[Mapping[str, Any]], bytes]] = {
    "base64": lambda spec: base64.b64decode(spec["base64"]),
    "concat": lambda spec: b"".join(map(evaluate, spec["concat"])),
    "deflate": lambda spec: zlib.compress(evaluate(spec["deflate"])),
    "gzip": _gzip,
    "json": lambda spec: json.dumps(spec["json"]).encode(),
    "numbered": _numbered,
    "repeat": lambda spec: evaluate(spec["repeat"]) * spec["times"],
    "sdist": lambda spec: sdist(spec["sdist"], evaluate),
    "text": lambda spec: spec["text"].encode(spec.get("encoding", "utf-8"), "surrogatepass"),
    "wheel": lambda spec: wheel(spec["wheel"], evaluate),
    "zip-directory": lambda spec: zip_directory(spec["zip-directory"]),
}
"""What each generator makes of the object that has its key:

- ``base64``: the decoded bytes
- ``concat``: a list of contents, one after the other
- ``deflate``: a content, compressed by zlib
- ``gzip``: a content, compressed ``layers`` times
- ``json``: a JSON tree as text
- ``numbered``: the text once for each number below ``count``, which replaces ``{n}``; between them
  ``separator``
- ``repeat``: a content ``times`` times
- ``sdist``, ``wheel``, ``zip-directory``: an archive, see `archives`
- ``text``: the text in ``encoding``
"""
