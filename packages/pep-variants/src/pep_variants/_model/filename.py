"""Wheel filenames with variant labels (PEP 825, "Variant label").

Only what the label changes is done here; the rest of a name is `packaging`'s business. A build
tag starts with a digit and a python tag never does, which tells the two six-part forms apart.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from packaging.tags import Tag
from packaging.utils import (
    BuildTag,
    InvalidName,
    NormalizedName,
    canonicalize_name,
    parse_wheel_filename,
)
from packaging.utils import InvalidWheelFilename as _PackagingInvalidWheelFilename
from packaging.version import Version

from ..errors import InvalidWheelFilename, shortened
from ..labels import LABEL, METADATA_SUFFIX, split_label, tag_count
from ..limits import FILENAME_CHARACTERS, FILENAME_TAGS


class WheelFilename(NamedTuple):
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


@lru_cache(maxsize=64)  # one step after the other wants the parts of the same name
def parse_filename(filename: str) -> WheelFilename:
    """Parse a wheel filename, with or without a label.

    Raises:
        InvalidWheelFilename: it is not one, or beyond `limits`; the message says why.

    >>> from pep_variants.wheel_files import parse_filename
    >>> wheel = parse_filename("torch-2.8.0-cp313-cp313-linux_x86_64-cu128.whl")
    >>> wheel.name, str(wheel.version), wheel.label
    ('torch', '2.8.0', 'cu128')
    """
    if len(filename) > FILENAME_CHARACTERS:
        raise InvalidWheelFilename(
            f"{shortened(filename, 200)}: {len(filename)} characters, "
            f"a filename has at most {FILENAME_CHARACTERS}"
        )
    plain, label = split_label(filename)
    if label is None and filename.endswith(".whl") and filename.count("-") in (5, 6):
        third, last = filename.split("-", 3)[2], filename[:-4].rpartition("-")[2]
        if third[:1].isdigit() is (filename.count("-") == 6):
            raise InvalidWheelFilename(
                f"{shortened(filename, 200)}: {shortened(last)} is not a valid variant label: "
                f"it must match {LABEL.pattern}"
            )
    if (count := tag_count(filename)) > FILENAME_TAGS:
        raise InvalidWheelFilename(
            f"{shortened(filename, 200)}: {count} compatibility tags, "
            f"at most {FILENAME_TAGS} are read"
        )
    try:
        name, version, build, tags = parse_wheel_filename(plain)
    except (_PackagingInvalidWheelFilename, ValueError) as error:
        raise InvalidWheelFilename(str(error)) from None
    if label is not None and any(tag.interpreter[:1].isdigit() for tag in tags):
        raise InvalidWheelFilename(
            f"{shortened(filename, 200)}: a python tag must not start with a digit"
        )
    return WheelFilename(name, version, build, tags, label)


def read_version(text: str) -> Version | None:
    """Return the version that *text* spells, None if it is none or too long for a filename.

    `Version` itself raises another error than `InvalidVersion` beyond the digits that `int` reads.

    >>> from pep_variants.wheel_files import read_version
    >>> read_version("2.8.0"), read_version("newest")
    (<Version('2.8.0')>, None)
    """
    return None if len(text) > FILENAME_CHARACTERS else _version(text)


@lru_cache(maxsize=4096)  # an index has few versions of many files
def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except ValueError:
        return None


def metadata_filename(name: str, version: Version | str) -> str:
    """Return the name of the index-level metadata file: ``{name}-{version}-variants.json``.

    Name and version are normalized and escaped as in wheel filenames.

    >>> from pep_variants.wheel_files import metadata_filename
    >>> metadata_filename("flash-attn", "2.8.3")
    'flash_attn-2.8.3-variants.json'
    """
    escaped = re.sub(r"[-_.]+", "_", name).lower()
    normalized = read_version(str(version)) or version  # old releases have other ones
    return f"{escaped}-{str(normalized).replace('-', '_')}{METADATA_SUFFIX}"


def parse_metadata_filename(filename: str) -> tuple[NormalizedName, Version] | None:
    """Return project and version of an index-level metadata file, None for any other filename.

    >>> from pep_variants.wheel_files import parse_metadata_filename
    >>> parse_metadata_filename("flash_attn-2.8.3-variants.json")
    ('flash-attn', <Version('2.8.3')>)
    """
    if not filename.endswith(METADATA_SUFFIX):
        return None
    if len(filename) > FILENAME_CHARACTERS:
        return None
    name, dash, text = filename[: -len(METADATA_SUFFIX)].partition("-")
    version = read_version(text.replace("_", "-")) if dash else None
    if version is None:
        return None
    try:
        return canonicalize_name(name, validate=True), version
    except InvalidName:
        return None
