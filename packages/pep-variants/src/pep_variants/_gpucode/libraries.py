"""GPU code of libraries, of wheels and of what is installed.

A library or code object that is damaged is no error: what can be read of it is read.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO

from .._files import open_regular
from .._wheelfile.wheel import open_wheel
from .._wheelfile.zip_reading import ARCHIVE_ERRORS, reason
from ..errors import InvalidWheel, printable
from ..limits import LIBRARIES_BYTES
from . import fat_binaries, offload_bundles
from .code import GpuCode, combined
from .sections import AMD_GPU, CUDA, ByteReader, ObjectFile, Section, read_object

_LIBRARY = re.compile(
    r"\.(?:so|dylib)(?:\.[0-9.]+)?$|\.(?:pyd|dll|co|hsaco|cubin|fatbin|ptx)$", re.IGNORECASE
)
_NAMED = re.compile(r"(gfx[0-9]+[0-9a-f]{2})[^/\\]*\.(?:co|hsaco|dat)$", re.IGNORECASE)
"""Kernels of ROCm's libraries in folders of their own, which have the architecture in the name."""
_FAT_BINARIES, _BUNDLES = re.compile("nv_(?:fatb|rel)"), re.compile("hip_fat(?!.*[Ss]egment)")
"""Names of sections, as far as PE keeps them; those of segments have tables."""
_DATA = ("rodata", "rdata")
"""Sections where frameworks with a compiler of their own keep fat binaries."""
_SYCL = re.compile(r"__CLANG_OFFLOAD_BUNDLE__sycl-(\w+)")
_PROPERTIES = ".note.gnu.property"
_ISA_NEEDED = 0xC0008002  # GNU_PROPERTY_X86_ISA_1_NEEDED
_BEGINNING = 1 << 12


def may_have_code(path: str) -> bool:
    """Return whether a file with the name *path* is read for GPU code."""
    return (_LIBRARY.search(path) or _NAMED.search(path)) is not None


def library_code(stream: IO[bytes], name: str = "", size: int | None = None) -> GpuCode:
    """Return the GPU code of a library, a code object or a file of kernels.

    Headers are read, not the code.

    Args:
        stream: the file, which has to be seekable.
        name: of the file, which tells the architecture of some.
        size: of the file, if it is known.

    Raises:
        OSError: *stream* cannot be read.
    """
    reader = ByteReader(stream, size)
    named = _NAMED.search(name)
    known = GpuCode(hip=frozenset([named[1].lower()] if named else ()))
    start = reader.at(0, len(offload_bundles.MAGIC))
    whole = Section("", 0, reader.size)
    if start.startswith(fat_binaries.MAGIC):
        return fat_binaries.sections_code(reader, [whole])
    if start.startswith((offload_bundles.MAGIC, offload_bundles.COMPRESSED)):
        return known | offload_bundles.section_code(reader, whole)
    if name.lower().endswith(".ptx"):
        return fat_binaries.ptx_code(reader.at(0, _BEGINNING))
    found = read_object(reader)
    if found is None:
        return known
    if found.machine == CUDA:
        return fat_binaries.cubin_code(found.abi, found.flags)
    if found.machine == AMD_GPU:
        return known or offload_bundles.object_code(reader, found)
    return combined((known, GpuCode(isa=found.isa), *_sections_code(reader, found)))


def wheel_code(
    file: str | os.PathLike[str] | IO[bytes],
    source: str,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, GpuCode]:
    """Return the code of each library in a wheel that has some, or declares its level, by path.

    Args:
        file: as in `open_wheel`.
        source: path or URL for messages.
        progress: called with the path of each library before it is read.

    Raises:
        InvalidWheel: as `open_wheel`, a library that is damaged or compressed with anything but
            deflate, or more to unpack than `LIBRARIES_BYTES`.
        OSError: the path cannot be opened.
    """
    found = {}
    with open_wheel(file, source) as contents:
        infos = [each for each in contents.archive.infolist() if may_have_code(each.filename)]
        if sum(each.file_size for each in infos) > LIBRARIES_BYTES:
            raise InvalidWheel(
                f"its libraries have more than {LIBRARIES_BYTES} bytes, which are read at most",
                source,
            )
        for info in infos:
            progress(printable(info.filename))
            try:
                with contents.archive.open(info) as stream:
                    code = library_code(stream, info.filename, info.file_size)
            except ARCHIVE_ERRORS as error:
                name = printable(info.filename[:200])
                raise InvalidWheel(f"{name} cannot be read: {reason(error)}", source) from None
            if code or code.isa:
                found[printable(info.filename)] = code
    return found


def file_code(path: str) -> GpuCode:
    """Return the code of the library or code object at *path*; nothing if it cannot be read."""
    with suppress(OSError), open_regular(path) as stream:
        return library_code(stream, path)
    return GpuCode()


def _sections_code(reader: ByteReader, found: ObjectFile) -> Iterator[GpuCode]:
    names = [section.name.lstrip("._") for section in found.sections]
    if any(map(_FAT_BINARIES.match, names)):
        sections = zip(names, found.sections, strict=True)
        yield fat_binaries.sections_code(
            reader,
            [each for name, each in sections if _FAT_BINARIES.match(name) or name in _DATA],
        )
    for name, section in zip(names, found.sections, strict=True):
        if _BUNDLES.match(name):
            yield offload_bundles.section_code(reader, section)
        if match := _SYCL.match(section.name):
            yield GpuCode(sycl=frozenset([match[1]]))
        if section.name == _PROPERTIES:
            yield GpuCode(isa=_isa(reader.at(section.start, min(section.size, _BEGINNING))))


def _isa(notes: bytes) -> str:
    """Return the level of x86-64 that a note says is needed (x86-64 psABI, 'Program Property')."""
    place = 16  # after the sizes, the type and the name of the first note
    while place + 12 <= len(notes):
        kind, size, value = struct.unpack_from("<3I", notes, place)
        if kind == _ISA_NEEDED:
            level = (value & 0xF).bit_length()
            return f"v{level}" if level > 1 else ""
        place += 8 + size + -size % 8
    return ""
