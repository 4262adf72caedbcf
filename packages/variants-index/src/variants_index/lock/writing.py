"""Writing resolutions for one or more targets as one lock file (PEP 751).

`packaging.pylock` has the format, `pep_variants.lock.table` the table of variant metadata. Equal
resolutions give equal bytes.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import tomli_w
from packaging.markers import Marker
from packaging.pylock import (
    Package,
    PackageArchive,
    PackageDirectory,
    PackageSdist,
    PackageWheel,
    Pylock,
    PylockValidationError,
)
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants.choose.markers import uses_variant_terms
from pep_variants.errors import LockError, without_userinfo
from pep_variants.lock.selection import REQUIREMENTS, REQUIRES_DIST, TOOL
from pep_variants.lock.table import write_table
from pep_variants.lock.wheels import KEY, without_labels
from pep_variants.model.metadata import Metadata
from pep_variants.urls import filename_of_url, is_local, local_path

from ..candidate import Candidate
from ..target import Target
from .builds import Names, published_names, renamed

LOCK_VERSION = Version("1.0")


class ResolvedPackage(Protocol):
    """What is written of one package of a resolution."""

    @property
    def name(self) -> str:
        """Normalized project name."""

    @property
    def version(self) -> Version:
        """Version of the release."""

    @property
    def candidate(self) -> Candidate:
        """The chosen file or directory."""

    @property
    def alternatives(self) -> Sequence[Candidate]:
        """The files that are listed: the chosen one, or every one that the target can use."""

    @property
    def extras(self) -> Sequence[str]:
        """Normalized names of the extras that are installed."""

    @property
    def requires_dist(self) -> Mapping[str, tuple[str, ...]]:
        """``Requires-Dist`` values by variant label, empty for non-variant files."""

    @property
    def depends(self) -> Sequence[str]:
        """Names of the packages of the resolution that it depends on."""

    @property
    def metadata(self) -> Metadata | None:
        """The variant metadata, None for a non-variant file."""

    @property
    def editable(self) -> bool:
        """Whether it is a directory that is installed in place."""


P = TypeVar("P", bound=ResolvedPackage)
P_co = TypeVar("P_co", bound=ResolvedPackage, covariant=True)


class Resolution(Protocol[P_co]):
    """The packages for one target."""

    @property
    def target(self) -> Target:
        """What they are for."""

    @property
    def packages(self) -> Sequence[P_co]:
        """The packages, by name."""

    @property
    def requested(self) -> Mapping[str, frozenset[str]]:
        """Extras by name of what the user asked for; the project itself is the empty one."""

    @property
    def provided(self) -> Mapping[str, str]:
        """Which package stands for a project that is not installed itself."""


@dataclass(frozen=True)
class _Entry(Generic[P]):
    """One version of a package, as one or more targets have it: one ``[[packages]]`` table."""

    packages: Sequence[tuple[Target, P]]
    names: Mapping[str, Names]
    """By target."""

    @property
    def name(self) -> str:
        """As published."""
        return self.first.candidate.published_name

    @property
    def depends(self) -> list[str]:
        """Published names of the projects that it depends on."""
        found = {
            self.names[at.name].get(name, name)
            for at, item in self.packages
            for name in item.depends
        }
        return sorted(found - {self.name})

    @property
    def requires_dist(self) -> dict[str, list[str]]:
        """Requirements by variant label, as what they require is published."""
        used = [self.names[target.name] for target, _ in self.packages]
        return {
            label: renamed(requires, used)
            for _, package in self.packages
            for label, requires in package.requires_dist.items()
        }

    @property
    def first(self) -> P:
        return self.packages[0][1]

    @property
    def files(self) -> list[Candidate]:
        """Every file that is listed, by name."""
        found = {
            candidate.published: candidate
            for _, package in self.packages
            for candidate in package.alternatives
        }
        return [found[name] for name in sorted(found)]

    @property
    def labels(self) -> set[str]:
        """Variant labels of the files, as far as these are published under them."""
        return {
            item.label for item in self.files if item.label is not None and item.catalog is None
        }


def write_lock(
    resolutions: Sequence[Resolution[P]],
    *,
    created_by: str,
    folder: Path,
    documents: Callable[[P], Sequence[Mapping[str, Any]]],
    digests: Callable[[Candidate], Mapping[str, str]],
) -> bytes:
    """Return the contents of a ``pylock.toml`` with all *resolutions*.

    Args:
        resolutions: one per target.
        created_by: name of the tool.
        folder: of the lock file; paths of local files are relative to it.
        documents: returns the variant metadata of a package as its source has it: the index file,
            or without one the ``variant.json`` of each wheel.
        digests: returns hashes of a file for which the index has none.

    Raises:
        LockError: the targets need different versions of a package, and no marker distinguishes
            them; or something cannot be written to a lock file.
    """
    targets = [resolution.target for resolution in resolutions]
    chosen = [
        (item.target, [package.candidate for package in item.packages]) for item in resolutions
    ]
    provided = {item.target.name: item.provided for item in resolutions}
    names = {
        target: {**found, **provided[target]} for target, found in published_names(chosen).items()
    }
    entries = _entries(resolutions, names)
    by_need = any(map(uses_variant_terms, itertools.chain(*map(_all_requires, entries))))
    pylock = Pylock(
        lock_version=LOCK_VERSION,
        environments=[Marker(text) for text in sorted({_marker(target) for target in targets})],
        created_by=created_by,
        packages=[
            _package(entry, targets, entries, folder, digests, by_need=by_need) for entry in entries
        ],
        tool={TOOL: {REQUIREMENTS: _requested(resolutions, names)}} if by_need else None,
    )
    tree = dict(pylock.to_dict())
    for entry, table in zip(entries, tree["packages"], strict=True):
        if entry.labels:
            table[KEY] = _variants(entry, documents)
    try:
        Pylock.from_dict(without_labels(tree))
    except (PylockValidationError, ValueError) as error:
        raise LockError(f"the lock file cannot be written: {error}") from None
    return tomli_w.dumps(tree).encode()


def _entries(resolutions: Sequence[Resolution[P]], names: Mapping[str, Names]) -> list[_Entry[P]]:
    found: dict[tuple[str, Version], list[tuple[Target, P]]] = {}
    for resolution in resolutions:
        for package in resolution.packages:
            item = package.candidate
            key = item.published_name, item.published_version
            found.setdefault(key, []).append((resolution.target, package))
    entries = [_Entry(found[key], names) for key in sorted(found)]
    for _, group in itertools.groupby(entries, key=lambda entry: entry.name):
        for one, other in itertools.combinations(group, 2):
            _check_apart(one, other)
    return entries


def _check_apart(one: _Entry[P], other: _Entry[P]) -> None:
    for target, package in one.packages:
        for rival, different in other.packages:
            if _marker(target) == _marker(rival):
                raise LockError(
                    f"{target.name} needs {package.name} {package.version} and {rival.name} needs "
                    f"{different.version}, but no marker distinguishes the two targets: write "
                    "one lock file for each, or constrain the version with -c"
                )


def _marker(target: Target) -> str:
    return str(Marker(target.marker))


def _package(
    entry: _Entry[P],
    targets: Sequence[Target],
    entries: Sequence[_Entry[P]],
    folder: Path,
    digests: Callable[[Candidate], Mapping[str, str]],
    *,
    by_need: bool,
) -> Package:
    package = entry.first
    candidate = package.candidate
    markers = sorted({_marker(target) for target, _ in entry.packages})
    everywhere = set(markers) == {_marker(target) for target in targets}
    pythons = {item.file.requires_python for item in entry.files}
    directory = archive = sdist = index = wheels = None
    # Of what is named directly, only wheels that are listed as such have a variant to select.
    if candidate.is_directory:
        directory = PackageDirectory(
            path=_relative(local_path(candidate.file.url), folder),
            editable=True if package.editable else None,
        )
    elif candidate.direct and candidate.label is None:
        place = _place(candidate, folder, digests)
        archive = PackageArchive(**{key: value for key, value in place.items() if key != "name"})
    else:
        index = None if candidate.direct else _index(package)
        for item in entry.files:
            if not item.is_wheel:
                sdist = PackageSdist(**_place(item, folder, digests))
        wheels = [
            PackageWheel(**_place(item, folder, digests)) for item in entry.files if item.is_wheel
        ]
    return Package(
        name=canonicalize_name(entry.name),
        version=candidate.published_version,
        marker=None if everywhere else Marker(" or ".join(f"({item})" for item in markers)),
        requires_python=_specifier(pythons.pop()) if len(pythons) == 1 else None,
        dependencies=[
            item for name in entry.depends for item in _dependencies(name, entry, entries)
        ]
        or None,
        directory=directory,
        archive=archive,
        index=index,
        sdist=sdist,
        wheels=wheels or None,
        tool={TOOL: {REQUIRES_DIST: _requires_dist(entry)}}
        if by_need and _is_conditional(entry)
        else None,
    )


def _place(
    candidate: Candidate, folder: Path, digests: Callable[[Candidate], Mapping[str, str]]
) -> dict[str, Any]:
    """Return the arguments that all classes of files in `packaging.pylock` take."""
    file = candidate.file
    local = is_local(file.url)
    named = filename_of_url(file.url) == candidate.published
    return {
        "name": None if named else candidate.published,
        "upload_time": None if file.upload_time is None else _time(file.upload_time),
        "url": None if local else without_userinfo(file.url),
        "path": _relative(local_path(file.url), folder) if local else None,
        "size": file.size,
        "hashes": dict(sorted((dict(file.hashes) or digests(candidate)).items())),
    }


def _specifier(text: str | None) -> SpecifierSet | None:
    """Return ``Requires-Python``, None for an invalid one, which was ignored."""
    try:
        return None if text is None else SpecifierSet(text)
    except ValueError:
        return None


def _dependencies(
    name: str, entry: _Entry[P], entries: Sequence[_Entry[P]]
) -> list[dict[str, str]]:
    """Return references to the entries of *name* that *entry* depends on.

    They have a version only where several versions are locked.
    """
    found = [other for other in entries if other.name == name]
    if len(found) < 2:
        return [{"name": name}]
    own = {target.name for target, _ in entry.packages}
    return [
        {"name": name, "version": str(other.first.candidate.published_version)}
        for other in found
        if own & {target.name for target, _ in other.packages}
    ]


def _index(package: ResolvedPackage) -> str | None:
    source = package.candidate.place
    base, _, last = source.rstrip("/").rpartition("/")
    return f"{base}/" if last == package.candidate.published_name else None


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return path.as_posix()


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _variants(
    entry: _Entry[P], documents: Callable[[P], Sequence[Mapping[str, Any]]]
) -> dict[str, Any]:
    """Return the variant metadata of the labels that are listed."""
    found: dict[str, Any] | None = None
    for _, package in entry.packages:
        if package.metadata is None:
            continue
        table = write_table(documents(package), entry.labels)
        if found is None:
            found = table
        elif found != table:
            raise LockError(
                f"{package.name} {package.version}: its sources have different variant metadata, "
                "and a lock file holds one of them: write one lock file for each target"
            )
    if found is None:
        raise LockError(
            f"{entry.first.name} {entry.first.version}: there is no variant metadata of "
            f"{', '.join(sorted(entry.labels))}"
        )
    return found


def _requested(resolutions: Sequence[Resolution[P]], names: Mapping[str, Names]) -> list[str]:
    """Return the names, with extras, of what the user asked for."""
    found: dict[str, set[str]] = {}
    for resolution in resolutions:
        published = names[resolution.target.name]
        for name, extras in resolution.requested.items():
            found.setdefault(published.get(name, name), set()).update(extras)
    return [_named(name, extras - {""}) for name, extras in sorted(found.items())]


def _named(name: str, extras: set[str]) -> str:
    return f"{name}[{','.join(sorted(extras))}]" if extras else name


def _all_requires(entry: _Entry[Any]) -> Iterable[str]:
    return itertools.chain(*entry.requires_dist.values())


def _is_conditional(entry: _Entry[Any]) -> bool:
    """Return whether the dependencies depend on extras or variants: names are not enough."""
    if any(package.extras for _, package in entry.packages):
        return True
    return any(uses_variant_terms(text) or "[" in text for text in _all_requires(entry))


def _requires_dist(entry: _Entry[Any]) -> list[str] | dict[str, list[str]]:
    by_label = entry.requires_dist
    every = list(by_label.values())
    if all(texts == every[0] for texts in every):
        return every[0]
    return dict(sorted(by_label.items()))
