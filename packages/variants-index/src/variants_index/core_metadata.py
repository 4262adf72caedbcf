"""Core metadata of distributions: the part that resolving needs.

Sources: the core metadata specification; PEP 643 for ``Dynamic``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants.errors import redacted, shortened
from pep_variants.limits import (
    CORE_METADATA_LINES,
    CORE_REQUIREMENTS,
    CORE_REQUIREMENTS_CHARACTERS,
    REQUIREMENT_LENGTH,
)
from pep_variants.model.filename import read_version
from pep_variants.wheelfile.core_metadata import read_fields

from .errors import UnusableDistribution

_NEEDED = ("requires-dist", "provides-extra", "requires-python")
_STATIC_SINCE = (2, 2)

_Headers = dict[str, list[str]]


@dataclass(frozen=True)
class CoreMetadata:
    """Core metadata of a distribution.

    Attributes:
        requires: ``Requires-Dist`` values as they are.
        extras: normalized ``Provides-Extra`` values.
        requires_python: version specifier, None if there is none.
    """

    requires: tuple[str, ...]
    extras: frozenset[str]
    requires_python: str | None


def read_core_metadata(data: bytes, project: str, version: Version, source: str) -> CoreMetadata:
    """Read the ``METADATA`` of a wheel.

    Args:
        data: contents of the file.
        project: normalized name of the project that it belongs to.
        version: of the project.
        source: URL, for messages.

    Raises:
        UnusableDistribution: it is of another project or version, or exceeds the limits.
    """
    return _parsed(_headers(data, source), project, version, source)


def read_sdist_metadata(
    data: bytes, project: str, version: Version, source: str
) -> tuple[CoreMetadata | None, str]:
    """Read the ``PKG-INFO`` of a source distribution.

    Args:
        data: contents of the file.
        project: normalized name of the project that it belongs to.
        version: of the project.
        source: URL, for messages.

    Returns:
        The metadata; or None, and the reason why it is known only after a build: before metadata
        version 2.2, or with ``Dynamic`` fields, it may differ in the wheel (PEP 643).

    Raises:
        UnusableDistribution: it is of another project or version, or exceeds the limits.
    """
    headers = _headers(data, source)
    found = _first(headers, "metadata-version")
    try:
        final = tuple(map(int, found.split("."))) >= _STATIC_SINCE
    except ValueError:  # no numbers, or more digits than `int` reads
        final = False
    if not final:
        return None, f"its metadata (version {found or 'unknown'}) is not final"
    dynamic = sorted({item.lower() for item in headers.get("dynamic", ())} & set(_NEEDED))
    if dynamic:
        return None, f"it leaves {', '.join(dynamic)} to its build"
    return _parsed(headers, project, version, source), ""


def without_description(data: bytes) -> bytes:
    """Return the fields of *data*, without the description after them."""
    for end in (b"\n\n", b"\r\n\r\n"):
        data = data.partition(end)[0]
    return data + b"\n"


def _headers(data: bytes, source: str) -> _Headers:
    head = without_description(data)
    if head.count(b"\n") + head.count(b"\r") > CORE_METADATA_LINES:
        raise UnusableDistribution(
            f"{redacted(source)}: its metadata has more than {CORE_METADATA_LINES} lines before "
            "the description"
        )
    return read_fields(head)


def _parsed(headers: _Headers, project: str, version: Version, source: str) -> CoreMetadata:
    name, text = _first(headers, "name"), _first(headers, "version")
    if canonicalize_name(name[:REQUIREMENT_LENGTH]) != project or read_version(text) != version:
        raise UnusableDistribution(
            f"{redacted(source)}: its metadata is of {shortened(name)} {shortened(text)}, "
            f"not of {project} {version}"
        )
    requires = tuple(headers.get("requires-dist", ()))
    python = _first(headers, "requires-python")
    _check_size(requires, python, source)
    return CoreMetadata(
        requires,
        frozenset(map(canonicalize_name, headers.get("provides-extra", ()))),
        python or None,
    )


def _check_size(requires: Sequence[str], python: str, source: str) -> None:
    """Check the limits of values that are parsed later, some microseconds per character."""
    longest, total = max(map(len, (*requires, python))), sum(map(len, requires))
    if len(requires) > CORE_REQUIREMENTS or total > CORE_REQUIREMENTS_CHARACTERS:
        raise UnusableDistribution(
            f"{redacted(source)}: {len(requires)} requirements of {total} characters, at most "
            f"{CORE_REQUIREMENTS} of {CORE_REQUIREMENTS_CHARACTERS} are read"
        )
    if longest > REQUIREMENT_LENGTH:
        raise UnusableDistribution(
            f"{redacted(source)}: a requirement of {longest} characters, at most "
            f"{REQUIREMENT_LENGTH} are read"
        )


def _first(headers: _Headers, key: str) -> str:
    return headers.get(key, [""])[0]
