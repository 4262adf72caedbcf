"""Libraries with GPU code, crafted: what compilers write, without the code itself."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping

CUDA_MACHINE, AMD_MACHINE, X86_64 = 190, 224, 62
FLAGS = {"": 0, "a": 0x100000, "f": 0x200000}


def fat_binary(
    cuda: Iterable[str] = (), ptx: Iterable[str] = (), *, version: str = "8.7", code: bytes = b"\1"
) -> bytes:
    """Return a fat binary of CUDA with an entry for each architecture, such as ``90a``."""
    major, minor = map(int, version.split("."))
    entries = b""
    for kind, names in ((2, cuda), (1, ptx)):
        for name in names:
            number = name.rstrip("af")
            payload = code + bytes(-len(code) % 8)
            entries += struct.pack(
                "<HHIQ8xHHI8xQ16x", kind, 257, 64, len(payload), minor, major, int(number),
                FLAGS[name[len(number) :]] | 1,
            )  # fmt: skip
            entries += payload
    return struct.pack("<4sHHQ", b"\x50\xed\x55\xba", 1, 16, len(entries)) + entries


def bundle(targets: Iterable[str], *, version: int = 0) -> bytes:
    """Return an offload bundle of Clang; compressed with zlib for a *version* of its header."""
    names = ["host-x86_64-unknown-linux-gnu-", *(f"hipv4-amdgcn-amd-amdhsa--{t}" for t in targets)]
    table = sum(24 + len(name) for name in names)
    place, rows = 32 + table, b""
    for name in names:
        size = 0 if name.startswith("host") else 64
        rows += struct.pack("<3Q", place, size, len(name)) + name.encode()
        place += size
    data = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names)) + rows
    data += bytes(place - len(data))
    if not version:
        return data
    packed = zlib.compress(data)
    layout = {1: "<4sHHI8x", 2: "<4sHHII8x", 3: "<4sHHQQ8x"}[version]
    sizes = (len(data),) if version == 1 else (struct.calcsize(layout) + len(packed), len(data))
    return struct.pack(layout, b"CCOB", version, 0, *sizes) + packed


def isa_note(bits: int) -> bytes:
    """Return the note that says which levels of x86-64 are needed, a bit each from v1."""
    return struct.pack("<3I4s3I4x", 4, 16, 5, b"GNU\0", 0xC0008002, 4, bits)


def elf(
    sections: Mapping[str, bytes], *, machine: int = X86_64, abi: int = 0, flags: int = 0
) -> bytes:
    """Return a 64-bit ELF file, with the table of sections at its end as linkers write it."""
    names, rows, data = b"\0", [], b""
    for name, content in {**sections, ".shstrtab": b""}.items():
        start = len(names)
        names += name.encode() + b"\0"
        rows.append((start, content))
    body = bytearray(64)
    table = bytes(64)
    for start, content in rows:
        data = content or names
        body += bytes(-len(body) % 4096)
        table += struct.pack("<IIQQQQIIQQ", start, 1, 0, 0, len(body), len(data), 0, 0, 1, 0)
        body += data
    body += bytes(-len(body) % 8)
    header = struct.pack(
        "<4sBBBBB7xHHIQQQI6H", b"\x7fELF", 2, 1, 1, 0, abi, 3, machine, 1, 0, 0, len(body), flags,
        64, 56, 0, 64, len(rows) + 1, len(rows),
    )  # fmt: skip
    return header + bytes(body[64:]) + table


def pe(sections: Mapping[str, bytes]) -> bytes:
    """Return a PE file."""
    head = b"MZ".ljust(60, b"\0") + struct.pack("<I", 64) + b"PE\0\0"
    head += struct.pack("<HHIIIHH", 0x8664, len(sections), 0, 0, 0, 0, 0)
    place, rows, data = 4096, b"", b""
    for name, content in sections.items():
        size = len(content) + -len(content) % 512
        rows += struct.pack("<8sIIII16x", name.encode(), len(content), 0, size, place + len(data))
        data += content.ljust(size, b"\0")
    return (head + rows).ljust(4096, b"\0") + data


def mach(sections: Mapping[str, bytes], *, subtype: int = 3) -> bytes:
    """Return a 64-bit Mach-O file for x86-64."""
    rows, data, place = b"", b"", 4096
    for name, content in sections.items():
        rows += struct.pack(
            "<16s16sQQI28x", name.encode(), b"__DATA", 0, len(content), place + len(data)
        )
        data += content.ljust(len(content) + -len(content) % 16, b"\0")
    segment = struct.pack(
        "<II16s4QIIII", 0x19, 72 + len(rows), b"__DATA", 0, 0, 0, 0, 0, 0, len(sections), 0
    )
    header = struct.pack(
        "<4s7I", b"\xcf\xfa\xed\xfe", 0x01000007, subtype, 6, 1, len(segment + rows), 0, 0
    )
    return (header + segment + rows).ljust(4096, b"\0") + data


def library(
    *,
    cuda: Iterable[str] = (),
    ptx: Iterable[str] = (),
    hip: Iterable[str] = (),
    isa: int = 0,
    version: str = "8.7",
) -> bytes:
    """Return a Linux library with the code."""
    cuda, ptx, hip = tuple(cuda), tuple(ptx), tuple(hip)
    sections = {".text": b"\x90" * 64}
    if isa:
        sections[".note.gnu.property"] = isa_note(isa)
    if cuda or ptx:
        sections[".nv_fatbin"] = fat_binary(cuda, ptx, version=version)
    if hip:
        sections[".hip_fatbin"] = bundle(hip)
    return elf(sections)


def wheel_of(libraries: Mapping[str, bytes], *, name: str = "app", version: str = "1.0") -> bytes:
    """Return a wheel with *libraries* by path."""
    buffer = io.BytesIO()
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in libraries.items():
            archive.writestr(path, data)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return buffer.getvalue()
