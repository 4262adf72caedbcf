"""The wheels of a directory, read once: all that pages and metadata are made from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.metadata import parse_email

from pep_variants.errors import InvalidWheel
from pep_variants.filename import WheelFilename, parse_filename
from pep_variants.reader import read_metadata
from pep_variants.wheel import VARIANT_FILE, open_wheel

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from pep_variants.metadata import Metadata

_CHUNK = 1024 * 1024


@dataclass(frozen=True)
class VariantFile:
    """The ``variant.json`` of a wheel.

    Attributes:
        data: the file as it is.
        metadata: what it says.
    """

    data: bytes
    metadata: Metadata


@dataclass(frozen=True)
class Wheel:
    """One wheel of the directory.

    Attributes:
        path: where it is.
        filename: its name, parsed.
        size: in bytes.
        sha256: hexadecimal.
        core_metadata: its METADATA file.
        requires_python: from METADATA, None if it does not say.
        variant: its variant metadata, None for a non-variant wheel.
    """

    path: Path
    filename: WheelFilename
    size: int
    sha256: str
    core_metadata: bytes
    requires_python: str | None
    variant: VariantFile | None


def find_wheels(directory: Path, leave_out: Path) -> list[Path]:
    """Return the wheels in *directory* and below, but not in *leave_out*, by name."""
    leave_out = leave_out.resolve()
    found = (path for path in directory.rglob("*.whl") if leave_out not in path.resolve().parents)
    return sorted(found, key=lambda path: (path.name, path))


def read_wheel(path: Path) -> Wheel:
    """Read the wheel *path*, all of it, for its hash.

    Raises:
        InvalidWheelFilename: its name is no wheel filename.
        InvalidWheel: it is no usable wheel or has no METADATA.
        MetadataError: its variant metadata breaks the format.
        OSError: it cannot be read.
    """
    filename = parse_filename(path.name)
    with open_wheel(path, str(path)) as contents:
        core_metadata = contents.read("METADATA")
        if core_metadata is None:
            raise InvalidWheel(f"{path}: has no {contents.dist_info}/METADATA")
        data = contents.read(VARIANT_FILE)
        source = f"{path}: {contents.dist_info}/{VARIANT_FILE}"
    variant = None if data is None else VariantFile(data, read_metadata(data, source))
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
        size = stream.tell()
    requires_python = parse_email(core_metadata)[0].get("requires_python")
    return Wheel(path, filename, size, digest.hexdigest(), core_metadata, requires_python, variant)


def by_version(wheels: Iterable[Wheel]) -> dict[tuple[NormalizedName, Version], list[Wheel]]:
    """Return *wheels* grouped by project and version, both ascending."""
    groups: dict[tuple[NormalizedName, Version], list[Wheel]] = {}
    for wheel in wheels:
        groups.setdefault((wheel.filename.name, wheel.filename.version), []).append(wheel)
    return dict(sorted(groups.items()))
