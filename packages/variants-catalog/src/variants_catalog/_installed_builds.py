"""Changes in the wheel of a published file before it is installed.

The publisher's file is fetched and its hash checked before. Then the dependencies that the entry
adds are written into METADATA, and a build that its publisher has under another name gets the name
of the project: its dist-info folder is renamed, so that one distribution owns its files whichever
build it is. ``variant.json`` and a record of the origin stand beside METADATA.

The bytes depend on the published file, the entry and the URL alone, not on the machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import IO

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pep_variants import labels as wheel_labels
from pep_variants import markers, wheel_files
from pep_variants import metadata as variant_metadata
from pep_variants.errors import CatalogError, InvalidMarker, InvalidWheel, without_userinfo
from pep_variants.wheel_files import Edits, Rewrite, WheelContents

from .entries import CatalogProject, PublishedFile

_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


@dataclass(frozen=True)
class Origin:
    """Publisher's file of a distribution that got the name of its project.

    Attributes:
        name: normalized name that the publisher gave it.
        version: as published.
        url: of the published file, without credentials.
        hashes: hexadecimal digests of that file by algorithm.
    """

    name: str
    version: str
    url: str
    hashes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_file(cls, file: PublishedFile, url: str, hashes: Mapping[str, str]) -> Origin:
        """Return the origin of *file*, which is at *url*."""
        return cls(file.origin, file.published_version, without_userinfo(url), dict(hashes))

    @property
    def requirement(self) -> str:
        """Requirement of the published file under its own name: ``cupy-cuda12x==14.2.0``."""
        return f"{self.name}=={self.version}"


def write_origin(origin: Origin) -> bytes:
    """Return the contents of `ORIGIN_FILE`."""
    return f"{json.dumps(asdict(origin), indent=2, sort_keys=True)}\n".encode()


def read_origin(data: str | bytes, source: str) -> Origin:
    """Read `ORIGIN_FILE` of an installed distribution.

    Args:
        data: its contents.
        source: path for messages.

    Raises:
        CatalogError: it is not such a record.

    >>> import json
    >>> from variants_catalog.installed_builds import read_origin
    >>> url = "https://host.example/cupy_cuda12x-13.6.0-py3-none-any.whl"
    >>> tree = {"name": "cupy-cuda12x", "version": "13.6.0", "url": url, "hashes": {}}
    >>> read_origin(json.dumps(tree), "variant_origin.json").name
    'cupy-cuda12x'
    """
    try:
        tree = json.loads(data)
        hashes = {str(name): str(digest) for name, digest in tree["hashes"].items()}
        name, version, url = (tree[key] for key in ("name", "version", "url"))
        if (
            canonicalize_name(name, validate=True) != name
            or wheel_files.read_version(version) is None
        ):
            raise ValueError("name or version is not valid")
        return Origin(name, version, str(url), hashes)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CatalogError(source, "", f"is not a record of origin: {error}") from None


def installed_metadata(metadata: bytes, entry: CatalogProject, file: PublishedFile) -> bytes:
    """Return METADATA of *file* as it is installed.

    Args:
        metadata: contents of the publisher's METADATA.
        entry: of the project.
        file: one of its files.

    Raises:
        InvalidWheel: *metadata* is not valid, or of another project or version than the file.
    """
    edits = _edits(metadata, entry, file)
    return edits.edited(metadata, file.published) if edits else metadata


def added_files(
    entry: CatalogProject, file: PublishedFile, url: str, hashes: Mapping[str, str]
) -> dict[str, bytes]:
    """Return the files that the dist-info folder of *file* gets; none if it is not rewritten.

    Args:
        entry: of the project.
        file: one of its files.
        url: of the published file.
        hashes: of the published file, hexadecimal by algorithm.
    """
    if not file.is_rewritten:
        return {}
    added = {
        wheel_labels.VARIANT_FILE: variant_metadata.write_metadata(entry.metadata([file])).encode()
    }
    if file.origin:
        added[wheel_labels.ORIGIN_FILE] = write_origin(Origin.of_file(file, url, hashes))
    return added


def rewritten(
    contents: WheelContents,
    stream: IO[bytes],
    entry: CatalogProject,
    file: PublishedFile,
    added: Mapping[str, bytes],
    metadata: bytes | None = None,
) -> Rewrite:
    """Return the wheel as it is installed.

    Args:
        contents: the published wheel, opened from *stream*.
        stream: its bytes; only parts are read.
        entry: of the project.
        file: what it is, `PublishedFile.is_rewritten`.
        added: from `added_files`.
        metadata: METADATA to be installed; None for `installed_metadata`.

    Raises:
        InvalidWheel: the wheel is damaged, or of another project or version than its filename.
    """
    published = contents.core_metadata()
    edits = _edits(published, entry, file)
    if metadata is None:
        metadata = edits.edited(published, contents.source)
    return wheel_files.with_metadata(contents, stream, metadata, added, edits)


def _edits(metadata: bytes, entry: CatalogProject, file: PublishedFile) -> Edits:
    """Return the name of the project, and the dependencies that the entry adds.

    Of an extra these are its dependencies: not every installer accepts a project that requires
    itself, and the publisher's name is not to be installed beside the project's.
    """
    published = file.origin or entry.name
    given: list[str] = []
    own: list[str] = []  # of other extras of the same wheel
    for item in wheel_files.iter_fields(metadata):
        if item.name == "requires-dist":
            given.append(item.value)
            found = _NAME.match(item.value) if file.origin else None
            if found is not None and canonicalize_name(found[1]) == published:
                own.append(f"{entry.name}{item.value[found.end() :]}")
        elif file.origin and item.name == "name" and canonicalize_name(item.value) != published:
            raise InvalidWheel(
                f"{wheel_files.METADATA_FILE} is of {item.value[:100]!r}", file.published
            )
    added = added_requirements(given, published, file)
    if not file.origin:
        return Edits(add=tuple(added))
    has_local = "+" in file.published_version
    removed = (published,) if own else ()
    return Edits(entry.name, has_local, removed, (*own, *added))


def added_requirements(given: Sequence[str], published: str, file: PublishedFile) -> list[str]:
    """Return what *file* requires besides *given*, the ``Requires-Dist`` values of its wheel.

    Args:
        given: those of the wheel.
        published: normalized name that its publisher gave it.
        file: the wheel as a variant.
    """
    added: list[str] = []
    extras: set[str] = set()
    for text in file.requires:
        requirement = Requirement(text)
        if canonicalize_name(requirement.name) == published:
            extras.update(map(canonicalize_name, requirement.extras))
        else:
            added.append(text)
    return added + (of_extras(given, published, extras) if extras else [])


def of_extras(given: Sequence[str], project: str, extras: set[str]) -> list[str]:
    """Return the dependencies of *extras*, with those of extras that they name.

    Args:
        given: ``Requires-Dist`` values.
        project: normalized name of the project that has them.
        extras: normalized names; those that they name are added.
    """
    while True:
        added: list[str] = []
        known = len(extras)
        for text in given:
            try:
                asked = markers.require_extras(text, extras)
                requirement = Requirement(asked)
            except (InvalidMarker, ValueError):
                continue  # an installer reports it
            if asked == text:
                continue
            if canonicalize_name(requirement.name) == project:
                extras.update(map(canonicalize_name, requirement.extras))
            else:
                added.append(asked)
        if len(extras) == known:
            return list(dict.fromkeys(added))
