"""Fat binaries of CUDA: which architectures they are for.

A fat binary is a header and entries one after the other, each a header and its code. The code may
be compressed, the headers are not, so that nothing is unpacked and little is read. The suffix of
an architecture is in the flags: ``sm_90a`` differs from ``sm_90`` there alone since CUDA 13.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from .code import GpuCode
from .sections import ByteReader, Section

MAGIC = b"\x50\xed\x55\xba"

_HEADER = struct.Struct("<4sHHQ")  # magic number, version, size of the header, size of the entries
_ENTRY = struct.Struct("<HHIQ8xHHI8xQ")
"""Kind, version, size of the header, size of the code, minor and major version, architecture,
flags; the version is that of PTX for PTX."""
_PTX, _CUBIN = 1, 2
_EXACT, _FAMILY = 0x100000, 0x200000
_ALIGNMENT = 8
_CHUNK = 1 << 16
_LONGEST_HEADER = 1 << 16

_CUBIN_ABI = 8
"""Version of the ABI since which cubins have the architecture in the second byte of the flags."""
_TARGET = re.compile(rb"^\s*\.version\s+([0-9]+\.[0-9]+)\s+\.target\s+sm_([0-9]+[af]?)", re.M)


def section_code(reader: ByteReader, section: Section) -> GpuCode:
    """Return the code of all fat binaries in *section*."""
    cuda: set[str] = set()
    ptx: dict[str, tuple[int, int]] = {}
    for kind, version, architecture in _entries(reader, section):
        if kind == _CUBIN:
            cuda.add(architecture)
        elif kind == _PTX:
            ptx[architecture] = max(version, ptx.get(architecture, version))
    newest = max(ptx.values(), default=None)
    return GpuCode(
        frozenset(cuda), frozenset(ptx), f"{newest[0]}.{newest[1]}" if newest is not None else ""
    )


def cubin_code(abi: int, flags: int) -> GpuCode:
    """Return the code of a file that is machine code itself, from its ELF header."""
    number = (flags >> 8 if abi >= _CUBIN_ABI else flags) & 0xFF
    # Since CUDA 13 the header does not tell code for one GPU alone.
    exact = flags & (0x8 if abi >= _CUBIN_ABI else 0x800)
    return GpuCode(frozenset([f"{number}a" if exact else str(number)]) if number else frozenset())


def ptx_code(text: bytes) -> GpuCode:
    """Return the code of a file of PTX, from its beginning."""
    match = _TARGET.search(text)
    if match is None:
        return GpuCode()
    return GpuCode(ptx=frozenset([match[2].decode()]), ptx_version=match[1].decode())


def _entries(reader: ByteReader, section: Section) -> Iterator[tuple[int, tuple[int, int], str]]:
    """Yield kind, version and architecture of each entry of the fat binaries in *section*."""
    place, end = section.start, section.start + section.size
    while place + _HEADER.size <= end:
        magic, version, header, size = _HEADER.unpack(
            reader.at(place, _HEADER.size).ljust(_HEADER.size, b"\0")
        )
        last = place + header + size
        if magic != MAGIC or version != 1 or header < _HEADER.size or last > end:
            place = _next(reader, place + _ALIGNMENT, end)
            continue
        entry = place + header
        while entry + _ENTRY.size <= last:
            kind, _, length, payload, minor, major, number, flags = _ENTRY.unpack(
                reader.at(entry, _ENTRY.size).ljust(_ENTRY.size, b"\0")
            )
            if not _ENTRY.size <= length <= _LONGEST_HEADER:
                break
            suffix = "a" if flags & _EXACT else "f" if flags & _FAMILY else ""
            if 0 < number < 1000:
                yield kind, (major, minor), f"{number}{suffix}"
            entry += length + payload
        place = last + -(last - section.start) % _ALIGNMENT


def _next(reader: ByteReader, place: int, end: int) -> int:
    """Return where the magic number is next from *place* on, or the *end*."""
    while place < end:
        chunk = reader.at(place, min(_CHUNK, end - place))
        position = chunk.find(MAGIC)
        if position >= 0:
            return place + position
        if len(chunk) <= len(MAGIC):
            break
        place += len(chunk) - len(MAGIC) + 1
    return end
