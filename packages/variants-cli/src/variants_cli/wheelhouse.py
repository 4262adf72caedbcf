"""The distributions of a directory, read once: all that pages and metadata are made from."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import IO, TYPE_CHECKING

from packaging.metadata import parse_email
from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename

from pep_variants.errors import InvalidWheel, VariantError
from pep_variants.filename import parse_filename
from pep_variants.reader import read_metadata
from pep_variants.wheel import VARIANT_FILE, open_wheel

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from pep_variants.metadata import Metadata

SDIST_SUFFIXES = (".tar.gz", ".zip")

_CHUNK = 1024 * 1024
_MAX_PKG_INFO_BYTES = 16 * 1024 * 1024


class InvalidSdist(VariantError):
    """A source distribution that cannot be used."""


@dataclass(frozen=True)
class VariantFile:
    """The ``variant.json`` of a wheel.

    Attributes:
        data: the file as it is.
        source: where it is, for messages.
    """

    data: bytes
    source: str

    @cached_property
    def metadata(self) -> Metadata:
        """What it says.

        Raises:
            MetadataError: it breaks the format.
        """
        return read_metadata(self.data, self.source)


@dataclass(frozen=True)
class CoreMetadata:
    """The METADATA file of a wheel.

    Attributes:
        sha256: hexadecimal.
        size: in bytes.
        data: the file, None if it need not be written: it lies beside the wheel already.
    """

    sha256: str
    size: int
    data: bytes | None


@dataclass(frozen=True)
class Distribution:
    """One wheel or source distribution of the directory.

    Attributes:
        path: where it is.
        project: its normalized name.
        version: its version.
        label: variant label, None for everything that is no variant wheel.
        size: in bytes.
        sha256: hexadecimal.
        requires_python: from its metadata, None if that does not say.
        core_metadata: METADATA of a wheel, None for a source distribution.
        variant: variant metadata in a wheel, None if there is none.
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

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel."""
        return self.core_metadata is not None


def find_distributions(directory: Path, leave_out: Path) -> list[Path]:
    """Return what is to be read in *directory* and below, but not in *leave_out*, by name.

    Archives that are no distributions are left alone.
    """
    leave_out = leave_out.resolve()
    found = [
        path
        for path in directory.rglob("*")
        if path.name.endswith(".whl")
        or (path.name.endswith(SDIST_SUFFIXES) and sdist_name(path.name) is not None)
    ]
    folders = {path.parent for path in found}
    left_out = {
        folder
        for folder in folders
        if folder.resolve() == leave_out or leave_out in folder.resolve().parents
    }
    return sorted(
        (path for path in found if path.parent not in left_out), key=lambda path: (path.name, path)
    )


def sdist_name(filename: str) -> tuple[NormalizedName, Version] | None:
    """Return project and version of a source distribution, None for any other filename."""
    try:
        return parse_sdist_filename(filename)
    except InvalidSdistFilename:
        return None


def identified(path: Path) -> tuple[NormalizedName, Version, str | None]:
    """Return project, version and label, from the filename alone.

    Raises:
        InvalidWheelFilename: it is no wheel filename.
    """
    if path.name.endswith(SDIST_SUFFIXES):
        found = sdist_name(path.name)
        assert found is not None, "find_distributions finds no others"
        return (*found, None)
    filename = parse_filename(path.name)
    return canonicalize_name(filename.name), filename.version, filename.label


def read_distribution(path: Path) -> Distribution:
    """Read the distribution *path*, all of it, for its hash.

    Raises:
        InvalidWheelFilename: its name is no wheel filename.
        InvalidWheel: it is no usable wheel or has no METADATA.
        InvalidSdist: it is no usable archive.
        MetadataError: its variant metadata breaks the format.
        OSError: it cannot be read.
    """
    project, version, label = identified(path)
    core_metadata = variant = None
    with path.open("rb") as stream:
        if path.name.endswith(".whl"):
            data = None
            with open_wheel(stream, str(path)) as contents:
                metadata = contents.read("METADATA")
                if metadata is None:
                    raise InvalidWheel(f"{path}: has no {contents.dist_info}/METADATA")
                data = contents.read(VARIANT_FILE)
                source = f"{path}: {contents.dist_info}/{VARIANT_FILE}"
            if data is not None:
                variant = VariantFile(data, source)
                _ = variant.metadata  # a broken one is an error now
            digest = hashlib.sha256(metadata).hexdigest()
            core_metadata = CoreMetadata(digest, len(metadata), metadata)
        else:
            metadata = _read_pkg_info(stream, path)
        requires_python = parse_email(metadata)[0].get("requires_python")
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


def _read_pkg_info(stream: IO[bytes], path: Path) -> bytes:
    """Return the metadata of a source distribution, empty if there is none."""
    try:
        if path.name.endswith(".zip"):
            with zipfile.ZipFile(stream) as archive:
                for info in archive.infolist():
                    if _is_pkg_info(info.filename) and info.file_size <= _MAX_PKG_INFO_BYTES:
                        return archive.read(info)[:_MAX_PKG_INFO_BYTES]
            return b""
        with tarfile.open(fileobj=stream, mode="r:gz") as tar:
            for member in tar:
                if _is_pkg_info(member.name) and member.size <= _MAX_PKG_INFO_BYTES:
                    file = tar.extractfile(member)
                    return b"" if file is None else file.read(_MAX_PKG_INFO_BYTES)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError) as error:
        raise InvalidSdist(f"{path}: is no usable archive: {error}") from None
    return b""


def _is_pkg_info(name: str) -> bool:
    return name.count("/") == 1 and name.endswith("/PKG-INFO")


def by_version(
    distributions: Iterable[Distribution],
) -> dict[tuple[NormalizedName, Version], list[Distribution]]:
    """Return *distributions* grouped by project and version, both ascending."""
    groups: dict[tuple[NormalizedName, Version], list[Distribution]] = {}
    for distribution in distributions:
        groups.setdefault((distribution.project, distribution.version), []).append(distribution)
    return dict(sorted(groups.items()))
