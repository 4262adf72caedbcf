"""Wheels with other variant metadata, METADATA or name; every other byte is copied as it is."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from types import MappingProxyType
from typing import IO, TYPE_CHECKING

from packaging.utils import canonicalize_name

from ..errors import InvalidWheel
from ..labels import VARIANT_FILE
from ..limits import CORE_METADATA_BYTES, RECORD_BYTES
from .core_metadata import METADATA_FILE, iter_fields
from .record import (
    RECORD_FILE,
    SIGNATURE_FILES,
    Row,
    read_record,
    with_contents,
    with_file,
    with_paths,
    without_files,
    write_record,
)
from .wheel import DIST_INFO_SUFFIX, WheelContents, open_wheel
from .zip_rewriting import (
    Directory,
    Rewrite,
    Rewriter,
    read_directory,
    replace_files,
    with_local_headers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True)
class Edits:
    """Changes of a wheel apart from its variant metadata. False if there are none.

    Attributes:
        name: new name of the project, None to keep it.
        drop_local: remove the local part of the version, as in ``2.9.0+cu126``.
        remove: dependencies to remove: names or patterns such as ``nvidia-*-cu12``.
        add: dependencies to add: ``Requires-Dist`` values, which may use variant markers.
    """

    name: str | None = None
    drop_local: bool = False
    remove: tuple[str, ...] = ()
    add: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.name or self.drop_local or self.remove or self.add)

    def renamed(self, name: str, version: str) -> tuple[str, str]:
        """Return the first two components of a wheel's filename or dist-info folder, edited."""
        if self.name is not None and canonicalize_name(self.name) != canonicalize_name(name):
            name = re.sub(r"[-_.]+", "_", self.name).lower()
        if self.drop_local:
            version = version.partition("+")[0]
        return name, version

    def edited(self, metadata: bytes, source: str) -> bytes:
        """Return *metadata* with the edits made.

        Args:
            metadata: contents of METADATA.
            source: path or URL of the wheel for messages.

        Raises:
            InvalidWheel: *metadata* is not UTF-8, or has no name or no version.
        """
        try:
            metadata.decode()
        except UnicodeDecodeError as error:
            raise InvalidWheel(f"{METADATA_FILE} is not valid: {error}", source) from None
        ending = b"\n"
        kept: list[bytes] = []
        place = -1  # after the last dependency
        names = set()
        body = 0
        for field in iter_fields(metadata):
            if not body and metadata.endswith(b"\r\n", field.start, field.end):
                ending = b"\r\n"
            body = field.end
            names.add(field.name)
            line = metadata[field.start : field.end]
            if not line.endswith((b"\n", b"\r")):
                line += ending
            if field.name == "requires-dist":
                place = len(kept)
                if self._removes(field.value):
                    continue
                place += 1
            elif field.name == "name" and self.name is not None:
                line = f"Name: {self.name}".encode() + ending
            elif field.name == "version" and self.drop_local:
                line = f"Version: {field.value.partition('+')[0]}".encode() + ending
            kept.append(line)
        if missing := {"name", "version"} - names:
            raise InvalidWheel(f"{METADATA_FILE} has no {' and no '.join(missing)}", source)
        place = len(kept) if place < 0 else place
        kept[place:place] = [f"Requires-Dist: {item}".encode() + ending for item in self.add]
        return b"".join(kept) + metadata[body:]

    def _removes(self, requirement: str) -> bool:
        match = _NAME.match(requirement)
        if match is None:
            return False
        name = canonicalize_name(match[1])
        return any(fnmatchcase(name, canonicalize_name(pattern)) for pattern in self.remove)


_NO_EDITS = Edits()
_NOTHING: Mapping[str, bytes] = MappingProxyType({})


@dataclass(frozen=True)
class SourceWheel:
    """An open wheel that can be copied with changes.

    Attributes:
        contents: its dist-info folder.
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
        """Whether it has variant metadata."""
        return self._path(VARIANT_FILE) in self._names

    @cached_property
    def signatures(self) -> tuple[str, ...]:
        """Its signatures over RECORD, which copies do not have: their RECORD differs."""
        return tuple(name for name in SIGNATURE_FILES if self._path(name) in self._names)

    def write(
        self, target: IO[bytes], variant_json: bytes | None, edits: Edits = _NO_EDITS
    ) -> None:
        """Write the wheel to *target*, changed as by `rewrite`.

        Raises:
            InvalidWheel: see `rewrite`.
            OSError: reading or writing failed.
        """
        self.rewrite(variant_json, edits).write(self.stream, target)

    def rewrite(self, variant_json: bytes | None, edits: Edits = _NO_EDITS) -> Rewrite:
        """Return the wheel with this ``variant.json``, or without one.

        The bytes depend on the wheel, on the other arguments and on the zlib that compresses
        what changes, on nothing else.

        Raises:
            InvalidWheel: *edits* change METADATA, which is missing or not valid.
        """
        record, variant = self._path(RECORD_FILE), self._path(VARIANT_FILE)
        left_out = {variant, *map(self._path, SIGNATURE_FILES)}
        contents = self._edited(edits)
        renamed = _renaming(self.contents.dist_info, edits)
        rows = with_paths(without_files(self.rows, left_out), renamed, contents)
        if variant_json is not None:
            rows = with_file(rows, renamed(variant), variant_json, before=renamed(record))
        rewriter = Rewriter(self.directory)
        for entry in self.directory.entries:
            if entry.name == record:
                # Directly before RECORD, the last file of a wheel (PEP 427, "Archiver features").
                if variant_json is not None:
                    rewriter.add(renamed(variant), variant_json, like=entry, compress=True)
                rewriter.add(renamed(record), write_record(rows), like=entry, compress=True)
            elif entry.name in contents:
                rewriter.add(renamed(entry.name), contents[entry.name], like=entry, compress=True)
            elif entry.name not in left_out:
                rewriter.keep(entry, renamed(entry.name))
        return rewriter.finish()

    def _edited(self, edits: Edits) -> dict[str, bytes]:
        """Return the new contents of the files that *edits* change, by path."""
        if not edits:
            return {}
        source, path = self.contents.source, self._path(METADATA_FILE)
        data = self.contents.read(METADATA_FILE, CORE_METADATA_BYTES)
        if data is None:
            raise InvalidWheel(f"has no {path}", source)
        edited = edits.edited(data, source)
        return {path: edited} if edited != data else {}

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(entry.name for entry in self.directory.entries)

    def _path(self, name: str) -> str:
        return f"{self.contents.dist_info}/{name}"


@contextmanager
def open_source(path: Path) -> Iterator[SourceWheel]:
    """Open the wheel *path* for copying.

    Raises:
        InvalidWheel: it is not a usable wheel, or has no valid RECORD.
        OSError: it cannot be read.
    """
    source = str(path)
    with path.open("rb") as stream, open_wheel(stream, source, filename=path.name) as contents:
        rows = read_rows(contents)
        directory = with_local_headers(read_directory(stream, source), stream, source)
        # `zipfile` cuts names at a NUL, and has them from the Unicode Path field on some versions.
        if [entry.name for entry in directory.entries] != contents.archive.namelist():
            raise InvalidWheel("damaged zip archive: readers disagree about a name in it", source)
        yield SourceWheel(contents, directory, rows, stream)


def read_rows(contents: WheelContents) -> list[Row]:
    """Return the rows of a wheel's RECORD.

    Raises:
        InvalidWheel: it has no valid RECORD.
    """
    record = contents.read(RECORD_FILE, RECORD_BYTES)
    if record is None:
        raise InvalidWheel(f"has no {contents.dist_info}/{RECORD_FILE}", contents.source)
    return read_record(record, contents.source)


def with_metadata(
    contents: WheelContents,
    stream: IO[bytes],
    metadata: bytes,
    added: Mapping[str, bytes] = _NOTHING,
    edits: Edits = _NO_EDITS,
) -> Rewrite:
    """Return the wheel with other METADATA, and a RECORD that lists it, in place.

    The bytes depend on the wheel and the other arguments alone, not on the machine.

    Args:
        contents: the wheel, opened from *stream*.
        stream: its bytes; only parts are read.
        metadata: the new METADATA.
        added: contents of files to add to the dist-info folder, by name.
        edits: that *metadata* is made with; with another name or version, the dist-info and data
            folders are renamed.

    Raises:
        InvalidWheel: the wheel has no valid RECORD, one of the files already, or its archive is
            damaged.
    """
    folder = contents.dist_info
    path, record = f"{folder}/{METADATA_FILE}", f"{folder}/{RECORD_FILE}"
    renamed = _renaming(folder, edits)
    rows = with_paths(with_contents(read_rows(contents), path, metadata), renamed, {})
    new = {f"{folder}/{name}": data for name, data in added.items()}
    for name, data in new.items():
        rows = with_file(rows, renamed(name), data, before=renamed(record))
    files = {path: metadata, record: write_record(rows)}
    return replace_files(stream, files, contents.source, new, renamed)


def _renaming(dist_info: str, edits: Edits) -> Callable[[str], str]:
    """Return the mapping of old paths to new ones: two folders carry name and version."""
    old = dist_info.removesuffix(DIST_INFO_SUFFIX)
    name, _, version = old.partition("-")
    new = "-".join(edits.renamed(name, version))
    if new == old:
        return str
    folders = {f"{old}{suffix}": f"{new}{suffix}" for suffix in (DIST_INFO_SUFFIX, ".data")}

    def renamed(path: str) -> str:
        folder, slash, rest = path.partition("/")
        return f"{folders.get(folder, folder)}{slash}{rest}"

    return renamed
