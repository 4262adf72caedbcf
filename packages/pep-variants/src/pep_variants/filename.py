"""Wheel filenames with variant labels (PEP 825, "Variant label").

Only what the label changes is done here; the rest of a name is `packaging`'s business. A build
tag starts with a digit and a python tag never does, which tells the two six-part forms apart.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

from packaging.tags import Tag
from packaging.utils import (
    BuildTag,
    InvalidName,
    NormalizedName,
    canonicalize_name,
    parse_wheel_filename,
)
from packaging.utils import InvalidWheelFilename as _PackagingInvalidWheelFilename
from packaging.version import InvalidVersion, Version

from .errors import InvalidWheelFilename, shortened
from .label import LABEL, METADATA_SUFFIX, split_label


@dataclass(frozen=True)
class WheelFilename:
    """A parsed wheel filename.

    Attributes:
        name: normalized project name.
        version: version of the release.
        build: build tag, ``()`` when there is none.
        tags: platform compatibility tags, compressed sets expanded.
        label: variant label, None for a non-variant wheel.
    """

    name: NormalizedName
    version: Version
    build: BuildTag
    tags: frozenset[Tag]
    label: str | None


def parse_filename(filename: str) -> WheelFilename:
    """Parse a wheel filename, with or without a label.

    Raises:
        InvalidWheelFilename: it is not one; the message says why.
    """
    plain, label = split_label(filename)
    if label is None and filename.endswith(".whl") and filename.count("-") in (5, 6):
        third, last = filename.split("-", 3)[2], filename[:-4].rpartition("-")[2]
        if third[:1].isdigit() is (filename.count("-") == 6):
            raise InvalidWheelFilename(
                f"{shortened(filename, 200)}: {shortened(last)} is no variant label: "
                f"it must match {LABEL.pattern}"
            )
    try:
        name, version, build, tags = parse_wheel_filename(plain)
    except _PackagingInvalidWheelFilename as error:
        raise InvalidWheelFilename(str(error)) from None
    if label is not None and any(tag.interpreter[:1].isdigit() for tag in tags):
        raise InvalidWheelFilename(
            f"{shortened(filename, 200)}: a python tag must not start with a digit"
        )
    return WheelFilename(name, version, build, tags, label)


def metadata_filename(name: str, version: Version | str) -> str:
    """Return the name of the index-level metadata file: ``{name}-{version}-variants.json``.

    Name and version are normalized and escaped as in wheel filenames.
    """
    escaped = re.sub(r"[-_.]+", "_", name).lower()
    with suppress(InvalidVersion):  # old releases have such versions
        version = Version(str(version))
    return f"{escaped}-{str(version).replace('-', '_')}{METADATA_SUFFIX}"


def parse_metadata_filename(filename: str) -> tuple[NormalizedName, Version] | None:
    """Return project and version of an index-level metadata file, None for any other filename."""
    if not filename.endswith(METADATA_SUFFIX):
        return None
    name, dash, version = filename[: -len(METADATA_SUFFIX)].partition("-")
    if not dash:
        return None
    try:
        return canonicalize_name(name, validate=True), Version(version.replace("_", "-"))
    except (InvalidName, InvalidVersion):
        return None
