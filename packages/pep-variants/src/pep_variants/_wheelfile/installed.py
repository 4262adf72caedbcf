"""Installed distributions and their variant labels, from the dist-info folders."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version

from .._files import read_regular
from .._formats.reader import read_metadata
from .._model.filename import read_version
from ..errors import InvalidWheel, MetadataError
from ..labels import VARIANT_FILE
from ..limits import CORE_METADATA_BYTES, DOCUMENT_BYTES, RECORD_BYTES
from .core_metadata import METADATA_FILE, first_field, read_fields, requirements_of
from .record import RECORD_FILE, read_record

if TYPE_CHECKING:
    from importlib.metadata import Distribution

    from .._model.metadata import Metadata

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
        folder: its ``dist-info`` folder; empty for one that is not installed.
        metadata: of the variant, None for a non-variant.
    """

    project: str
    version: Version
    label: str | None
    problem: str = ""
    folder: str = field(default="", compare=False)
    metadata: Metadata | None = field(default=None, compare=False, repr=False)

    def is_variant(self, label: str | None) -> bool:
        """Return whether it is the variant *label*; older formats name the null variant twice."""
        metadata = self.metadata
        return self.label == (metadata.label_of(label) if metadata is not None and label else label)

    @cached_property
    def tags(self) -> frozenset[str]:
        """Tags of its wheel, as its WHEEL file has them; nothing if it does not tell."""
        with suppress(InvalidWheel):
            fields = read_fields(_read(self.folder, "WHEEL", DOCUMENT_BYTES))
            return frozenset(fields.get("tag", ()))
        return frozenset()

    @property
    def platforms(self) -> list[str]:
        """The platform tags of its wheel, ascending; none if it does not tell."""
        return sorted({tag.rpartition("-")[2] for tag in self.tags})

    @cached_property
    def requires(self) -> tuple[str, ...]:
        """Its ``Requires-Dist`` values; none if they are beyond the limits."""
        with suppress(InvalidWheel):
            return requirements_of(_read(self.folder, METADATA_FILE, CORE_METADATA_BYTES))
        return ()

    @property
    def is_requested(self) -> bool:
        """Whether a person asked for it; not known with uv, which says so of everything."""
        is_asked = os.path.exists(os.path.join(self.folder, "REQUESTED"))  # noqa: PTH110, PTH118
        return is_asked and _read(self.folder, "INSTALLER", 1 << 10).strip() != b"uv"


@dataclass(frozen=True)
class OwnershipProblem:
    """A file that several distributions own, or that its owner lacks.

    Attributes:
        path: of the file.
        owners: ``name==version`` of the distributions that list it in RECORD, ascending.
        missing: whether there is no such file.
        digests: of the contents, as the RECORD of each owner has it, see `record.Row`.
    """

    path: str
    owners: tuple[str, ...]
    missing: bool
    digests: tuple[str, ...] = field(default=(), compare=False)


def find_installed(paths: Iterable[str]) -> Iterator[Installed]:
    """Yield the distributions below *paths*, by project; the first one found of each project.

    Args:
        paths: directories as in ``sys.path``.
    """
    distributions: dict[str, Installed] = {}
    for path in paths:
        for item in _distributions(path):
            if item.project not in distributions:
                distributions[item.project] = _with_label(item)
    yield from (distributions[project] for project in sorted(distributions))


def installed_files(item: Installed) -> Iterator[str]:
    """Yield the paths of the files of *item*, as its RECORD has them; nothing without one."""
    folder = os.path.dirname(os.path.realpath(item.folder))  # noqa: PTH120
    with suppress(InvalidWheel):
        for row in read_record(_read(item.folder, RECORD_FILE, RECORD_BYTES), RECORD_FILE):
            yield os.path.normpath(os.path.join(folder, row.path))  # noqa: PTH118


def ownership_problems(
    paths: Iterable[str], projects: Container[str] | None = None
) -> list[OwnershipProblem]:
    """Return the files below *paths* that have several owners or are missing, by path.

    Installing or removing one of the owners overwrites or removes a file of the other. Empty files
    are shared without harm, such as the ``__init__.py`` of a namespace, and compiled files belong
    to their sources. Distributions without a valid RECORD own nothing.

    Args:
        paths: directories as in ``sys.path``.
        projects: whose files count, all by default. Where none is installed no RECORD is read.
    """
    owners: dict[str, dict[str, str]] = {}
    filled: set[str] = set()
    asked: set[str] = set()
    folders = [*dict.fromkeys(map(os.path.realpath, paths))]
    found = [(folder, item) for folder in folders for item in _distributions(folder)]
    counting = [item for _, item in found if projects is None or item.project in projects]
    for folder, item in found if counting else ():
        try:
            rows = read_record(_read(item.folder, RECORD_FILE, RECORD_BYTES), RECORD_FILE)
        except InvalidWheel:
            continue
        for row in rows:
            if not row.path or row.path.endswith(_COMPILED):
                continue
            path = os.path.normpath(os.path.join(folder, row.path))  # noqa: PTH118
            owners.setdefault(path, {})[f"{item.project}=={item.version}"] = row.digest
            if row.size != _EMPTY:
                filled.add(path)
            if projects is None or item.project in projects:
                asked.add(path)
    problems = []
    for path in sorted(asked):
        missing = not os.path.lexists(path)
        if missing or (len(owners[path]) > 1 and path in filled):
            listed, digests = zip(*sorted(owners[path].items()), strict=True)
            problems.append(OwnershipProblem(path, listed, missing, digests))
    return problems


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


def _distributions(path: str) -> Iterator[Installed]:
    """Yield the distributions in one directory, by name of their folders, without labels."""
    try:
        names = sorted(os.listdir(path or os.curdir))  # noqa: PTH208 - quicker
    except OSError:
        return
    for name in names:
        folder, suffix = os.path.join(path, name), os.path.splitext(name)[1]  # noqa: PTH118, PTH122
        if suffix not in (".dist-info", ".egg-info"):
            continue
        metadata = _read(folder, METADATA_FILE, CORE_METADATA_BYTES)
        if suffix == ".egg-info":
            metadata = _read(folder, "PKG-INFO", CORE_METADATA_BYTES) or _read(
                path, name, CORE_METADATA_BYTES
            )
        try:
            project, version = (first_field(metadata, field) for field in ("name", "version"))
        except InvalidWheel:
            continue
        parsed = read_version(version or "")
        if project and parsed is not None:
            yield Installed(canonicalize_name(project), parsed, None, folder=folder)


def _with_label(item: Installed) -> Installed:
    source = f"{VARIANT_FILE} of {item.project} {item.version}"
    try:
        path = os.path.join(item.folder, VARIANT_FILE)  # noqa: PTH118
        metadata = read_metadata(read_regular(path, DOCUMENT_BYTES).data, source)
        if len(metadata.variants) != 1:
            raise MetadataError(source, "variants", "does not describe exactly one variant")
    except (FileNotFoundError, NotADirectoryError):
        return item
    except OSError as error:
        return replace(item, problem=f"{source}: {error.strerror or error}")
    except MetadataError as error:
        return replace(item, problem=str(error))
    return replace(item, label=next(iter(metadata.variants)), metadata=metadata)


def _read(folder: str, name: str, limit: int) -> bytes:
    """Return the contents of a file, empty if it cannot be read."""
    try:
        return read_regular(os.path.join(folder, name), limit).data  # noqa: PTH118
    except (OSError, ValueError):
        return b""
