"""Offload bundles of Clang, which have HIP's code objects, and code objects by themselves.

A bundle has a table of its entries at its start, with the target of each. It may be compressed as
a whole; then its beginning is unpacked.
"""

from __future__ import annotations

import re
import struct
import zlib
from contextlib import suppress
from importlib import import_module

from .code import GpuCode
from .sections import ByteReader, ObjectFile, Section

MAGIC, COMPRESSED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"

_TARGET = re.compile(rb"amdgcn-amd-amdhsa--(gfx[0-9a-z-]{1,20})")
_START = 1 << 14
"""Bytes at the start of a bundle that are read for its table, and that of a compressed one are
unpacked."""
_BLOCK = 1 << 18
"""More than the first block of Zstandard, of which nothing can be unpacked without its end."""
_ALIGNMENT = 1 << 12
"""Of bundles in a section, as HIP's runtime wants it."""
_HEADERS = {1: "<4x2HI8x", 2: "<4x2HII8x", 3: "<4x2HQQ8x"}
"""Headers of compressed bundles by version: version, method, size of the file but in the first
one, size of what is in it."""
_ZLIB, _ZSTD = 0, 1


def section_code(reader: ByteReader, section: Section) -> GpuCode:
    """Return the code of all bundles in *section*."""
    targets: set[str] = set()
    packed = False
    place, end = section.start, section.start + section.size
    while place < end and (start := reader.at(place, len(MAGIC))):
        size = 0
        if start.startswith((MAGIC, COMPRESSED)):
            start = reader.at(place, min(_START, end - place))
            if start.startswith(COMPRESSED):
                start, size = _unpacked(start)
                if not start and size > _START:
                    start, _ = _unpacked(reader.at(place, min(size, _BLOCK, end - place)))
                packed |= not start
            else:
                size = _size(start)
            targets |= _targets(start)
        place += max(_ALIGNMENT, size + -size % _ALIGNMENT)
    return GpuCode(hip=frozenset(targets), packed=packed)


def object_code(reader: ByteReader, found: ObjectFile) -> GpuCode:
    """Return the code of a code object, whose target is in its notes (AMDGPU code object V3)."""
    notes = [section for section in found.sections if section.name == ".note"]
    # The target is at the end of the metadata, after all kernels.
    tails = (
        reader.at(max(each.start, each.start + each.size - _START), min(_START, each.size))
        for each in notes
    )
    return GpuCode(hip=frozenset().union(*map(_targets, tails)))


def _targets(data: bytes) -> set[str]:
    return {match.decode().rstrip("-") for match in _TARGET.findall(data)}


def _size(start: bytes) -> int:
    """Return the size of the bundle that begins with *start*, as far as its table tells."""
    place, size = len(MAGIC) + 8, len(MAGIC)
    while place + 24 <= len(start):
        offset, length, name = struct.unpack_from("<3Q", start, place)
        if start[place + 24 : place + 24 + name].find(b"--") < 0:
            break
        size = max(size, offset + length)
        place += 24 + name
    return size


def _unpacked(start: bytes) -> tuple[bytes, int]:
    """Return the beginning of a compressed bundle, empty if it cannot be unpacked, and its size."""
    version, method = struct.unpack_from("<2H", start.ljust(8, b"\0"), 4)
    layout = _HEADERS.get(version)
    if layout is None or len(start) < struct.calcsize(layout):
        return b"", 0
    size = struct.unpack_from(layout, start)[2] if version > 1 else 0
    data = start[struct.calcsize(layout) :]
    with suppress(Exception):  # damaged; each library has errors of its own
        if method == _ZLIB:
            return zlib.decompressobj().decompress(data, _START), size
        if method == _ZSTD:
            return _decompressed(data), size
    return b"", size


def _decompressed(data: bytes) -> bytes:
    """Return the beginning of what is in *data*; empty without a library for Zstandard."""
    for name in ("compression.zstd", "backports.zstd"):  # of Python 3.14, and before
        try:
            library = import_module(name)
        except ImportError:
            continue
        found: bytes = library.ZstdDecompressor().decompress(data, max_length=_START)
        return found
    return b""
