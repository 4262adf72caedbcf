"""Fat binaries of CUDA: which architectures they are for.

A fat binary is a header and entries one after the other, each a header and its code. The code may
be compressed, the headers are not, so that nothing is unpacked and little is read. The suffix of
an architecture is in the flags: ``sm_90a`` differs from ``sm_90`` there alone since CUDA 13.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator

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
_TEXT = 128
"""Bytes at the start of PTX that are read."""

_CUBIN_ABI = 8
"""Version of the ABI since which cubins have the architecture in the second byte of the flags."""
_TARGET = re.compile(rb"^\s*\.version\s+([0-9]+\.[0-9]+)\s+\.target\s+sm_([0-9]+[af]?)", re.M)


def sections_code(reader: ByteReader, sections: Iterable[Section]) -> GpuCode:
    """Return the code of all fat binaries in *sections*.

    PTX that fewer than half of the fat binaries with PTX have is left out: most kernels of the
    library cannot be compiled from it.
    """
    cuda: set[str] = set()
    ptx: Counter[str] = Counter()
    with_ptx: set[int] = set()
    newest = (0, 0)
    for section in sections:
        for place, kind, version, architecture in _entries(reader, section):
            if kind == _CUBIN:
                cuda.add(architecture)
            elif kind == _PTX:
                ptx[architecture] += 1
                with_ptx.add(place)
                newest = max(newest, version)
    common = frozenset(each for each, count in ptx.items() if 2 * count >= len(with_ptx))
    return GpuCode(frozenset(cuda), common, "{}.{}".format(*newest) if common else "")


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


def _entries(
    reader: ByteReader, section: Section
) -> Iterator[tuple[int, int, tuple[int, int], str]]:
    """Yield place of its fat binary, kind, version and architecture of each entry in *section*."""
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
            if kind == _PTX and not suffix:
                suffix = _suffix(reader.at(entry + length, min(payload, _TEXT)))
            if 0 < number < 1000:
                yield place, kind, (major, minor), f"{number}{suffix}"
            entry += length + payload
        place = last + -(last - section.start) % _ALIGNMENT


def _suffix(text: bytes) -> str:
    """Return the suffix of PTX whose flags tell none, as those that Clang writes.

    The target stands at the beginning, which LZ4 leaves as it is.
    """
    match = re.search(rb"\.target\s+sm_[0-9]+([af])\b", text)
    return match[1].decode() if match is not None else ""


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
