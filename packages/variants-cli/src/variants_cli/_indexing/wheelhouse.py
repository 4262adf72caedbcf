"""The distributions of a directory: found, and read once, for pages and metadata."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import IO, TYPE_CHECKING

from packaging.utils import parse_sdist_filename

from pep_variants import labels as wheel_labels
from pep_variants import metadata as variant_metadata
from pep_variants import wheel_files
from pep_variants.errors import InvalidSdist, InvalidWheel, MetadataError, redacted
from variants_index import finder as package_finder
from variants_index.http import PackageIndexError

if TYPE_CHECKING:
    from pathlib import Path

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from pep_variants.metadata import Metadata
    from variants_index.finder import Session
    from variants_index.pages import PageFile

SDIST_SUFFIXES = (".tar.gz", ".zip")

CORE_METADATA_SUFFIX = ".metadata"

FileState = tuple[int, int]
"""Size in bytes and time of the last modification in nanoseconds: what shows that a file was not
changed."""

_CHUNK = 1024 * 1024


@dataclass(frozen=True)
class VariantFile:
    """The ``variant.json`` of a wheel.

    Attributes:
        data: the file as it is.
        source: its place, for messages.
    """

    data: bytes
    source: str = field(compare=False)

    @property
    def metadata(self) -> Metadata:
        """The parsed metadata.

        Raises:
            MetadataError: it is not valid.
        """
        try:
            return replace(_parsed(self.data), source=redacted(self.source))
        except MetadataError:
            return variant_metadata.read_metadata(
                self.data, self.source
            )  # the same error, with the file's name


@lru_cache(maxsize=1000)
def _parsed(data: bytes) -> Metadata:
    """Return metadata without its source: thousands of wheels have the same few documents."""
    return variant_metadata.read_metadata(data, "")


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
        metadata_sha256: of METADATA in a wheel (hexadecimal), None for a source distribution.
        variant: variant metadata in a wheel, None without it.
    """

    path: Path
    project: NormalizedName
    version: Version
    label: str | None
    size: int
    sha256: str
    requires_python: str | None
    metadata_sha256: str | None
    variant: VariantFile | None

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel."""
        return self.metadata_sha256 is not None


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
    parsed = wheel_files.parse_filename(filename)
    return parsed.name, parsed.version, parsed.label


def read_distribution(path: Path, sha256: str | None = None) -> Distribution:
    """Read the distribution *path*.

    Args:
        path: of the file.
        sha256: of the file, if it is known (hexadecimal); otherwise all of it is read.

    Raises:
        InvalidWheelFilename: its name is not a wheel filename.
        InvalidWheel: the wheel is not usable, has no METADATA, or another label inside.
        InvalidSdist: the archive is not usable.
        MetadataError: its variant metadata breaks the format.
        OSError: it cannot be read.
    """
    project, version, label = identified(path.name)
    metadata_sha256 = variant = None
    with path.open("rb") as stream:
        if path.name.endswith(".whl"):
            with wheel_files.open_wheel(stream, str(path)) as contents:
                metadata = contents.read(wheel_files.METADATA_FILE)
                if metadata is None:
                    raise InvalidWheel(
                        f"has no {contents.dist_info}/{wheel_files.METADATA_FILE}", path
                    )
                data = contents.read(wheel_labels.VARIANT_FILE)
                if data is not None:
                    variant = VariantFile(
                        data, f"{path}: {contents.dist_info}/{wheel_labels.VARIANT_FILE}"
                    )
            problem = label_problem(label, variant.metadata if variant else None)
            if problem is not None:
                raise InvalidWheel(problem, path)
            metadata_sha256 = hashlib.sha256(metadata).hexdigest()
        else:
            metadata = wheel_files.read_pkg_info(stream, path.name, str(path)) or b""
        sha256 = sha256 or digest_of(stream)[1]
        size = os.fstat(stream.fileno()).st_size
    requires_python = wheel_files.first_field(metadata, "requires-python")
    return Distribution(
        path, project, version, label, size, sha256, requires_python, metadata_sha256, variant
    )


def read_variant_file(file: PageFile, session: Session) -> VariantFile:
    """Return the variant metadata inside the wheel *file*, of which only parts are fetched.

    Raises:
        PackageIndexError: it cannot be fetched.
        InvalidWheel: it is not usable, or has none.
        MetadataError: the metadata is not valid, when it is looked at.
    """
    place = redacted(file.url)
    try:
        with (
            package_finder.opened(session, file.url, file.hashes) as stream,
            wheel_files.open_wheel(stream, place) as wheel,
        ):
            data = wheel.read(wheel_labels.VARIANT_FILE)
    except OSError as error:
        raise PackageIndexError(f"{place}: {error.strerror or error}") from None
    if data is None:
        raise InvalidWheel(
            f"the wheel has no {wheel_labels.VARIANT_FILE}, but its name has a label", place
        )
    return VariantFile(data, f"{place}: {wheel_labels.VARIANT_FILE}")


def digest_of(stream: IO[bytes]) -> tuple[int, str]:
    """Return size and SHA-256 (hexadecimal) of a file, which is read from its start.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    stream.seek(0)
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
    return stream.tell(), digest.hexdigest()


def read_core_metadata(distribution: Distribution) -> bytes:
    """Return METADATA of a wheel, PKG-INFO of a source distribution.

    Raises:
        InvalidWheel, InvalidSdist: it was changed since it was read, or has no such file.
        OSError: it cannot be read.
    """
    path = distribution.path
    if not distribution.is_wheel:
        with path.open("rb") as stream:
            data = wheel_files.read_pkg_info(stream, path.name, str(path))
        if data is None:
            raise InvalidSdist(
                f"{path}: has no PKG-INFO: build it again with a PEP 517 build backend"
            )
        return data
    with wheel_files.open_wheel(path, str(path)) as contents:
        data = contents.read(wheel_files.METADATA_FILE) or b""
    if hashlib.sha256(data).hexdigest() != distribution.metadata_sha256:
        raise InvalidWheel("was changed meanwhile: run this command again", path)
    return data


def label_problem(label: str | None, metadata: Metadata | None) -> str | None:
    """Return in which way the label in a filename is not that of the contents, None if it is.

    Args:
        label: from the filename of a wheel.
        metadata: from inside the wheel, None if it has none.
    """
    name = wheel_labels.VARIANT_FILE
    if metadata is None:
        if label is None:
            return None
        return f"the filename has label {label!r}, but the wheel has no {name}"
    found = ", ".join(map(repr, sorted(metadata.variants)[:5])) or "no label at all"
    if label is None:
        return f"the filename has no label, but {name} describes {found}"
    if not metadata.lists_only(label):
        return f"the filename has label {label!r}, but {name} describes {found}"
    return None


def is_distribution(filename: str) -> bool:
    """Return whether *filename* is that of a wheel, or of a source distribution."""
    if filename.endswith(".whl"):
        return True
    return filename.endswith(SDIST_SUFFIXES) and sdist_name(filename) is not None


def scan(directory: Path, leave_out: Path) -> dict[str, FileState]:
    """Return the states of all files in *directory* and below, except in *leave_out*.

    Nothing is opened. Files are named by path relative to the directory, with slashes.

    Raises:
        OSError: a folder cannot be read.
    """
    left_out = os.fspath(leave_out.resolve())
    folders = [(os.fspath(directory.resolve()), "")]
    found = {}
    for folder, prefix in folders:  # grows meanwhile
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    found[prefix + entry.name] = state_of(entry)
                elif entry.path != left_out:
                    folders.append((entry.path, f"{prefix}{entry.name}/"))
    return found


def state_of(entry: os.DirEntry[str] | Path) -> FileState:
    """Return size and time of a file, a size of -1 if it is not there (a broken link)."""
    try:
        status = entry.stat()
    except OSError:
        return (-1, 0)
    return (status.st_size, status.st_mtime_ns)
