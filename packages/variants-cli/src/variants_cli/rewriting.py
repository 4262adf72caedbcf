"""Adding variant metadata to a wheel and taking it out again, everything else copied as it is."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import IO, TYPE_CHECKING

from pep_variants.errors import InvalidWheel
from pep_variants.wheel import VARIANT_FILE, WheelContents, open_wheel

from .archive import ArchiveWriter, Directory, read_directory
from .record import (
    MAX_RECORD_BYTES,
    RECORD_FILE,
    SIGNATURE_FILES,
    Row,
    read_record,
    with_file,
    without_files,
    write_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class SourceWheel:
    """An open wheel that can be copied with changed variant metadata.

    Attributes:
        contents: its dist-info.
        directory: its entries.
        rows: its RECORD.
        stream: its bytes.
    """

    contents: WheelContents
    directory: Directory
    rows: list[Row]
    stream: IO[bytes]

    @cached_property
    def is_variant(self) -> bool:
        """Whether there is variant metadata in it."""
        return self._path(VARIANT_FILE) in self._names

    @cached_property
    def signatures(self) -> tuple[str, ...]:
        """The signatures over RECORD in it. No copy has them: its RECORD is another one."""
        return tuple(name for name in SIGNATURE_FILES if self._path(name) in self._names)

    def write(self, target: IO[bytes], variant_json: bytes | None) -> None:
        """Write the wheel to *target*, with this ``variant.json`` or with none.

        The bytes depend on the wheel, on *variant_json* and on the zlib that compresses these
        two and RECORD, on nothing else.
        """
        record, variant = self._path(RECORD_FILE), self._path(VARIANT_FILE)
        left_out = {variant, *map(self._path, SIGNATURE_FILES)}
        rows = without_files(self.rows, left_out)
        if variant_json is not None:
            rows = with_file(rows, variant, variant_json, before=record)
        writer = ArchiveWriter(target)
        for entry in self.directory.entries:
            if entry.name == record:
                # Right before RECORD, which closes a wheel (PEP 427, "Archiver features").
                if variant_json is not None:
                    writer.add(variant, variant_json, like=entry)
                writer.add(record, write_record(rows), like=entry)
            elif entry.name not in left_out:
                writer.copy(entry, self.stream)
        writer.finish(self.directory.comment, zip64=self.directory.zip64)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(entry.name for entry in self.directory.entries)

    def _path(self, name: str) -> str:
        return f"{self.contents.dist_info}/{name}"


@contextmanager
def open_source(path: Path) -> Iterator[SourceWheel]:
    """Open the wheel *path* for copying.

    Raises:
        InvalidWheel: no usable wheel, or one without a valid RECORD.
        OSError: it cannot be read.
    """
    source = str(path)
    with open_wheel(path, source) as contents:
        record = contents.read(RECORD_FILE, MAX_RECORD_BYTES)
        if record is None:
            raise InvalidWheel(f"{source}: has no {contents.dist_info}/{RECORD_FILE}")
        stream = contents.archive.fp
        assert stream is not None
        directory = read_directory(contents.archive, stream, source)
        yield SourceWheel(contents, directory, read_record(record, source), stream)
