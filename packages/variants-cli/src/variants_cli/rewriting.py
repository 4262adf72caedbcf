"""Adding variant metadata to a wheel, editing METADATA; everything else copied as it is."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import IO, TYPE_CHECKING

from pep_variants.errors import InvalidWheel
from pep_variants.wheel import DIST_INFO_SUFFIX, VARIANT_FILE, WheelContents, open_wheel

from .archive import ArchiveWriter, Directory, read_directory
from .core_metadata import METADATA_FILE, Edits
from .record import (
    MAX_RECORD_BYTES,
    RECORD_FILE,
    SIGNATURE_FILES,
    Row,
    read_record,
    with_file,
    with_paths,
    without_files,
    write_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_NO_EDITS = Edits()


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

    def write(
        self, target: IO[bytes], variant_json: bytes | None, edits: Edits = _NO_EDITS
    ) -> None:
        """Write the wheel to *target*, with this ``variant.json`` or with none.

        The bytes depend on the wheel, on the other arguments and on the zlib that compresses
        what changes, on nothing else.

        Raises:
            InvalidWheel: *edits* change METADATA, and there is none or it cannot be understood.
        """
        record, variant = self._path(RECORD_FILE), self._path(VARIANT_FILE)
        left_out = {variant, *map(self._path, SIGNATURE_FILES)}
        contents = self._edited(edits)
        renamed = self._renaming(edits)
        rows = with_paths(without_files(self.rows, left_out), renamed, contents)
        if variant_json is not None:
            rows = with_file(rows, renamed(variant), variant_json, before=renamed(record))
        writer = ArchiveWriter(target)
        for entry in self.directory.entries:
            if entry.name == record:
                # Right before RECORD, which closes a wheel (PEP 427, "Archiver features").
                if variant_json is not None:
                    writer.add(renamed(variant), variant_json, like=entry)
                writer.add(renamed(record), write_record(rows), like=entry)
            elif entry.name in contents:
                writer.add(renamed(entry.name), contents[entry.name], like=entry)
            elif entry.name not in left_out:
                writer.copy(entry, self.stream, renamed(entry.name))
        writer.finish(self.directory.comment, zip64=self.directory.zip64)

    def _edited(self, edits: Edits) -> dict[str, bytes]:
        """Return the contents of the files that *edits* change, by path."""
        if not edits.of_metadata:
            return {}
        source, path = self.contents.source, self._path(METADATA_FILE)
        data = self.contents.read(METADATA_FILE)
        if data is None:
            raise InvalidWheel(f"{source}: has no {path}")
        edited = edits.edited(data, source)
        return {path: edited} if edited != data else {}

    def _renaming(self, edits: Edits) -> Callable[[str], str]:
        """Return what gives the new path of an old one: two folders have name and version in it."""
        old = self.contents.dist_info.removesuffix(DIST_INFO_SUFFIX)
        name, _, version = old.partition("-")
        new = "-".join(edits.renamed(name, version))
        if new == old:
            return lambda path: path
        folders = {f"{old}{suffix}": f"{new}{suffix}" for suffix in (DIST_INFO_SUFFIX, ".data")}

        def renamed(path: str) -> str:
            folder, slash, rest = path.partition("/")
            return f"{folders.get(folder, folder)}{slash}{rest}"

        return renamed

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(entry.name for entry in self.directory.entries)

    def _path(self, name: str) -> str:
        return f"{self.contents.dist_info}/{name}"


ATTESTATION_SUFFIXES = (
    ".asc",
    ".provenance",
    ".publish.attestation",
    ".sigstore",
    ".sigstore.json",
)
"""Of files beside a wheel that vouch for its bytes (PEP 740, Sigstore, OpenPGP)."""


def attestations_of(path: Path) -> list[Path]:
    """Return the files beside the wheel *path* that vouch for it, and for nothing else."""
    return [
        place
        for suffix in ATTESTATION_SUFFIXES
        if (place := path.with_name(path.name + suffix)).exists()
    ]


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
