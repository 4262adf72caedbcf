"""Which GPUs the CUDA code of a library is for.

nvcc leaves it in "fat binaries": a header, then entries that are either a cubin (machine code of
one compute capability) or PTX. NVIDIA does not document the layout; only the headers are read, and
those of CUDA 13.0 were compared with the options of nvcc. ``90a`` is ``90`` there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

_MAGIC = 0xBA55ED50
_HEADER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHI")
_PTX, _CUBIN = 1, 2
_MOST_ENTRIES = 1_000_000


def gpu_code(sections: Iterable[bytes]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the compute capabilities of the cubins and of the PTX, such as ``90``, sorted.

    Entries that cannot be read end the section that they are in.
    """
    found: dict[int, set[int]] = {_PTX: set(), _CUBIN: set()}
    for data in sections:
        for kind, architecture in _entries(data):
            if kind in found:
                found[kind].add(architecture)
    return tuple(map(str, sorted(found[_CUBIN]))), tuple(map(str, sorted(found[_PTX])))


def _entries(data: bytes) -> Iterator[tuple[int, int]]:
    place = number = 0
    while place + _HEADER.size <= len(data) and number < _MOST_ENTRIES:
        magic, _, header, size = _HEADER.unpack_from(data, place)
        if magic != _MAGIC:
            place += 8  # fat binaries are aligned, with zeros between them
            number += 1
            continue
        end = min(place + header + size, len(data))
        place += max(header, _HEADER.size)
        while place + _ENTRY.size <= end and number < _MOST_ENTRIES:
            kind, _, header, size, _, _, _, _, architecture = _ENTRY.unpack_from(data, place)
            yield kind, architecture
            number += 1
            place += max(header, _ENTRY.size) + size
        place = max(end, place)
