"""Installed distributions and their variant labels, from the dist-info folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions

from packaging.utils import canonicalize_name
from packaging.version import Version

from ..errors import InvalidWheel, MetadataError
from ..formats.reader import read_metadata
from ..model.filename import read_version
from ..model.label import VARIANT_FILE
from .record import RECORD_FILE, read_record

_COMPILED = ".pyc"
_EMPTY = "0"


@dataclass(frozen=True)
class Installed:
    """One installed distribution.

    Attributes:
        project: normalized name.
        version: its version.
        label: its variant label, None for a non-variant.
        problem: why the label cannot be read, empty if it can.
    """

    project: str
    version: Version
    label: str | None
    problem: str = ""


@dataclass(frozen=True)
class OwnershipProblem:
    """A file that several distributions own, or that its owner lacks.

    Attributes:
        path: of the file.
        owners: ``name==version`` of the distributions that list it in RECORD, ascending.
        missing: whether there is no such file.
    """

    path: str
    owners: tuple[str, ...]
    missing: bool


def find_installed(paths: Iterable[str]) -> Iterator[Installed]:
    """Yield the distributions below *paths*, by project; the first one found of each project.

    Args:
        paths: directories as in ``sys.path``.
    """
    found: dict[str, Installed] = {}
    for distribution in distributions(path=list(paths)):
        item = _installed(distribution)
        if item is not None:
            found.setdefault(item.project, item)
    yield from (found[project] for project in sorted(found))


def ownership_problems(paths: Iterable[str]) -> list[OwnershipProblem]:
    """Return the files below *paths* that have several owners or are missing, by path.

    Installing or removing one of the owners overwrites or removes a file of the other. Empty files
    are shared without harm, such as the ``__init__.py`` of a namespace, and compiled files belong
    to their sources. Distributions without a valid RECORD own nothing.

    Args:
        paths: directories as in ``sys.path``.
    """
    owners: dict[str, set[str]] = {}
    filled: set[str] = set()
    for folder in dict.fromkeys(map(os.path.realpath, paths)):
        for distribution in distributions(path=[folder]):
            name, version = (metadata_field(distribution, key) for key in ("Name", "Version"))
            try:
                record = (distribution.read_text(RECORD_FILE) or "").encode()
                rows = read_record(record, RECORD_FILE)
            except (InvalidWheel, UnicodeError):
                continue
            if name is None or version is None:
                continue
            for row in rows:
                if not row.path or row.path.endswith(_COMPILED):
                    continue
                path = os.path.normpath(os.path.join(folder, row.path))  # noqa: PTH118
                owners.setdefault(path, set()).add(f"{canonicalize_name(name)}=={version}")
                if row.size != _EMPTY:
                    filled.add(path)
    found = []
    for path in sorted(owners):
        missing = not os.path.lexists(path)
        if missing or (len(owners[path]) > 1 and path in filled):
            found.append(OwnershipProblem(path, tuple(sorted(owners[path])), missing))
    return found


def metadata_field(distribution: Distribution, name: str) -> str | None:
    """Return the first field *name* of the metadata of *distribution*, None if there is none.

    Interrupted installations leave folders without metadata, or with a part of it, for which
    `importlib.metadata` raises since Python 3.15.
    """
    try:
        fields = distribution.metadata
    except FileNotFoundError:
        return None
    return fields[name] if name in fields else None  # noqa: SIM401 - PackageMetadata has no get()


def _installed(distribution: Distribution) -> Installed | None:
    name, text = metadata_field(distribution, "Name"), metadata_field(distribution, "Version")
    if name is None or text is None:
        return None
    project, version = canonicalize_name(name), read_version(text)
    if version is None:
        return None
    variant = distribution.read_text(VARIANT_FILE)
    if variant is None:
        return Installed(project, version, None)
    source = f"{VARIANT_FILE} of {project} {version}"
    try:
        metadata = read_metadata(variant, source)
        if len(metadata.variants) != 1:
            raise MetadataError(source, "variants", "does not describe exactly one variant")
    except MetadataError as error:
        return Installed(project, version, None, str(error))
    return Installed(project, version, next(iter(metadata.variants)))
