"""Reading the machines of Mach-O and PE libraries; their code is not looked at."""

from __future__ import annotations

import struct
from typing import IO

from .library import Library

_PE_MACHINES = {0x8664: "AMD64", 0xAA64: "ARM64", 0x14C: "x86", 0x1C4: "ARM"}
_MACH_MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64", 0x7: "i386", 0xC: "arm"}
_MACH_MAGICS = {b"\xcf\xfa\xed\xfe": "<I", b"\xce\xfa\xed\xfe": "<I", b"\xfe\xed\xfa\xcf": ">I"}
_FAT_MAGICS = {b"\xca\xfe\xba\xbe": 20, b"\xca\xfe\xba\xbf": 32}
"""Universal binaries, and the size of an entry of their table."""
_MOST_MACHINES = 16

_NOT_LOOKED_AT = "only ELF libraries are disassembled"


def read_other(head: bytes, stream: IO[bytes], path: str) -> Library | None:
    """Return what a library that is not ELF is for, None if it is none.

    Args:
        head: its first bytes.
        stream: the file, seekable.
        path: of the library in the wheel.
    """
    if head[:2] == b"MZ":
        return _pe(stream, path)
    if head[:4] in _MACH_MAGICS:
        (machine,) = struct.unpack_from(_MACH_MAGICS[head[:4]], head, 4)
        return _mach([machine], path)
    if head[:4] in _FAT_MAGICS and len(head) >= 8:
        (count,) = struct.unpack_from(">I", head, 4)
        if count > _MOST_MACHINES:  # a class file of Java has the same magic
            return None
        size = _FAT_MAGICS[head[:4]]
        places = (8 + size * number for number in range(count))
        return _mach(
            [struct.unpack_from(">I", head, p)[0] for p in places if p + 4 <= len(head)], path
        )
    return None


def _mach(machines: list[int], path: str) -> Library:
    names = tuple(_MACH_MACHINES.get(machine, hex(machine)) for machine in machines)
    return Library(path, "Mach-O", names, problem=_NOT_LOOKED_AT)


def _pe(stream: IO[bytes], path: str) -> Library | None:
    stream.seek(0x3C)
    raw = stream.read(4)
    if len(raw) < 4:
        return None
    stream.seek(struct.unpack("<I", raw)[0])
    header = stream.read(6)
    if header[:4] != b"PE\0\0" or len(header) < 6:
        return None
    (machine,) = struct.unpack_from("<H", header, 4)
    return Library(path, "PE", (_PE_MACHINES.get(machine, hex(machine)),), problem=_NOT_LOOKED_AT)
