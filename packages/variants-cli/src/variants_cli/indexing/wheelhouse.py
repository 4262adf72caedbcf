"""The distributions of a directory, read once, for pages and metadata."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.utils import parse_sdist_filename

from pep_variants.errors import InvalidWheel, redacted
from pep_variants.formats.reader import read_metadata
from pep_variants.model.filename import parse_filename
from pep_variants.wheelfile.core_metadata import METADATA_FILE, first_field
from pep_variants.wheelfile.sdist import read_pkg_info
from pep_variants.wheelfile.wheel import VARIANT_FILE, open_wheel

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from pep_variants.model.metadata import Metadata

SDIST_SUFFIXES = (".tar.gz", ".zip")

_CHUNK = 1024 * 1024
_SMALL = 64 * 1024
_KEPT = 1000


@dataclass(frozen=True)
class VariantFile:
    """The ``variant.json`` of a wheel.

    Attributes:
        data: the file as it is.
        source: its place, for messages.
    """

    data: bytes
    source: str

    @property
    def metadata(self) -> Metadata:
        """The parsed metadata.

        Raises:
            MetadataError: it is not valid.
        """
        if len(self.data) > _SMALL:
            return read_metadata(self.data, self.source)
        return replace(_parsed(self.data, self.source), source=redacted(self.source))


class _Parsed:
    """Documents that were read, by their bytes: thousands of wheels have the same few."""

    def __init__(self) -> None:
        self._known: dict[bytes, Metadata] = {}

    def __call__(self, data: bytes, source: str) -> Metadata:
        found = self._known.get(data)
        if found is None:
            found = read_metadata(data, source)
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[data] = found
        return found


_parsed = _Parsed()


@dataclass(frozen=True)
class CoreMetadata:
    """The METADATA file of a wheel.

    Attributes:
        sha256: hexadecimal.
        size: in bytes.
        data: the file; None if it was not kept, see `read_core_metadata`.
    """

    sha256: str
    size: int
    data: bytes | None


@dataclass(frozen=True)
class Distribution:
    """One wheel or source distribution of the directory.

    Attributes:
        path: of the file.
        project: its normalized name.
        version: its version.
        label: variant label, None for anything but a variant wheel.
        size: in bytes.
        sha256: hexadecimal.
        requires_python: from its metadata, None if missing.
        core_metadata: METADATA of a wheel, None for a source distribution.
        variant: variant metadata in a wheel, None without it.
        provenance: attestations as an index publishes them (PEP 740), None without any.
    """

    path: Path
    project: NormalizedName
    version: Version
    label: str | None
    size: int
    sha256: str
    requires_python: str | None
    core_metadata: CoreMetadata | None
    variant: VariantFile | None
    provenance: bytes | None = None

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel."""
        return self.core_metadata is not None


def sdist_name(filename: str) -> tuple[NormalizedName, Version] | None:
    """Return project and version of a source distribution, None for any other filename."""
    try:
        return parse_sdist_filename(filename)
    except ValueError:  # InvalidSdistFilename; `int` of thousands of digits
        return None


def identified(filename: str) -> tuple[NormalizedName, Version, str | None]:
    """Return project, version and label from the name of a distribution.

    Raises:
        InvalidWheelFilename: it is neither a wheel filename nor that of a source distribution.
    """
    if filename.endswith(SDIST_SUFFIXES) and (found := sdist_name(filename)) is not None:
        return (*found, None)
    parsed = parse_filename(filename)
    return parsed.name, parsed.version, parsed.label


def read_distribution(path: Path) -> Distribution:
    """Read the distribution *path* completely, to hash it.

    Raises:
        InvalidWheelFilename: its name is not a wheel filename.
        InvalidWheel: the wheel is not usable, has no METADATA, or another label inside.
        InvalidSdist: the archive is not usable.
        MetadataError: its variant metadata breaks the format.
        OSError: it cannot be read.
    """
    project, version, label = identified(path.name)
    core_metadata = variant = None
    with path.open("rb") as stream:
        if path.name.endswith(".whl"):
            data = None
            with open_wheel(stream, str(path)) as contents:
                metadata = contents.read(METADATA_FILE)
                if metadata is None:
                    raise InvalidWheel(f"{path}: has no {contents.dist_info}/{METADATA_FILE}")
                data = contents.read(VARIANT_FILE)
                source = f"{path}: {contents.dist_info}/{VARIANT_FILE}"
            if data is not None:
                variant = VariantFile(data, source)
            problem = label_problem(label, variant.metadata if variant else None)
            if problem is not None:
                raise InvalidWheel(f"{path}: {problem}")
            digest = hashlib.sha256(metadata).hexdigest()
            core_metadata = CoreMetadata(digest, len(metadata), metadata)
        else:
            metadata = read_pkg_info(stream, path.name, str(path)) or b""
        requires_python = first_field(metadata, "requires-python")
        stream.seek(0)
        digest_of_all = hashlib.sha256()
        while chunk := stream.read(_CHUNK):
            digest_of_all.update(chunk)
        size = stream.tell()
    return Distribution(
        path,
        project,
        version,
        label,
        size,
        digest_of_all.hexdigest(),
        requires_python,
        core_metadata,
        variant,
    )


def read_core_metadata(wheel: Distribution) -> bytes:
    """Return METADATA of *wheel*.

    Raises:
        InvalidWheel: it is not that of `Distribution.core_metadata`: the file was changed.
        OSError: the file cannot be read.
    """
    known = wheel.core_metadata
    if known is not None and known.data is not None:
        return known.data
    with open_wheel(wheel.path, str(wheel.path)) as contents:
        data = contents.read(METADATA_FILE) or b""
    if known is None or hashlib.sha256(data).hexdigest() != known.sha256:
        raise InvalidWheel(f"{wheel.path}: was changed meanwhile: run this command again")
    return data


def label_problem(label: str | None, metadata: Metadata | None) -> str | None:
    """Return in which way the label in a filename is not that of the contents, None if it is.

    Args:
        label: from the filename of a wheel.
        metadata: from inside the wheel, None if it has none.
    """
    if metadata is None:
        if label is None:
            return None
        return f"the filename has label {label!r}, but the wheel has no {VARIANT_FILE}"
    found = ", ".join(map(repr, sorted(metadata.variants))) or "no label at all"
    if label is None:
        return f"the filename has no label, but {VARIANT_FILE} describes {found}"
    if not metadata.lists_only(label):
        return f"the filename has label {label!r}, but {VARIANT_FILE} describes {found}"
    return None


def by_version(
    distributions: Iterable[Distribution],
) -> dict[tuple[NormalizedName, Version], list[Distribution]]:
    """Return *distributions* grouped by project and version, both ascending."""
    groups: dict[tuple[NormalizedName, Version], list[Distribution]] = {}
    for distribution in distributions:
        groups.setdefault((distribution.project, distribution.version), []).append(distribution)
    return dict(sorted(groups.items()))
