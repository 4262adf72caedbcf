"""Lock files (PEP 751): written from resolutions, and the files that a target installs from one.

`packaging.pylock` has the format and selects everything but variant wheels; the engine's
`lock_selection` has the table of variant metadata, and chooses among variant wheels. Equal
resolutions give equal bytes. Nothing is fetched.

Builds of the catalogue are listed as published, for other installers to read: under the name of
their publisher, with its version, URL and hashes, and without variant metadata, which no installer
needs to take the one build that is there.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import tomli_w
from packaging.markers import Marker
from packaging.pylock import (
    Package,
    PackageArchive,
    PackageSdist,
    PackageWheel,
    Pylock,
    PylockSelectError,
    PylockValidationError,
)
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants import limits, lock_entries, markers, safe_files
from pep_variants import metadata as variant_metadata
from pep_variants.errors import LockError, without_userinfo
from pep_variants.lock_entries import GroupChoice, LockChoice, Machine
from pep_variants.machines import Platform
from pep_variants.metadata import Metadata, Properties
from pep_variants.preferences import Preferences

from ._candidate import Candidate
from ._lock_groups import LockGroups, ResolvedPackage, ResolvedPackages
from .target import Target

logger = logging.getLogger(__name__)

LOCK_VERSION = Version("1.0")
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
Names = Mapping[str, str]
"""Publishers' names by project, where they differ."""


@dataclass(frozen=True)
class LockFile:
    """A lock file that has been read.

    Attributes:
        tree: its contents, parsed.
        path: where it is: paths in it are relative to its directory.
    """

    tree: Mapping[str, Any] = field(repr=False)
    path: Path


@dataclass(frozen=True)
class Locked:
    """A package to install.

    Attributes:
        name: normalized project name.
        version: as the lock file spells it, None without one.
        filename: empty for a directory or version control.
        url: of the file, a ``file:`` URL for a path; None for a directory or version control.
        hashes: hexadecimal digests by algorithm, which are verified on download.
        size: in bytes, None if unknown.
        properties: of the variant; None for a non-variant file.
        why: why this variant was chosen.
        metadata: variant metadata of the package, None for a non-variant file.
    """

    name: str
    version: str | None
    filename: str
    url: str | None
    hashes: Mapping[str, str]
    size: int | None = None
    properties: Properties | None = None
    why: str = ""
    metadata: Metadata | None = field(default=None, repr=False)

    @property
    def label(self) -> str | None:
        """Variant label, None for a non-variant file."""
        return wheel_labels.split_label(self.filename)[1]

    def to_tree(self) -> dict[str, Any]:
        """Return it as JSON data."""
        properties = self.properties
        return {
            "name": self.name,
            "version": self.version,
            "filename": self.filename or None,
            "url": self.url,
            "hashes": dict(sorted(self.hashes.items())),
            "size": self.size,
            "label": self.label,
            "properties": None
            if properties is None
            else variant_metadata.properties_tree(properties, ascending=True),
            "why": self.why,
        }


def read_lock(path: Path) -> LockFile:
    """Read a lock file and check it.

    Raises:
        LockError: it cannot be read, or breaks the format.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(limits.LOCK_BYTES + 1)
        if len(data) > limits.LOCK_BYTES:
            raise LockError(
                f"{path}: is larger than {limits.LOCK_BYTES} bytes, the most that is read"
            )
        tree = safe_files.read_toml(data.decode())
    except OSError as error:
        raise LockError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise LockError(f"{path}: not valid TOML: {error}") from None
    _check_parts(str(path), tree)
    _validated(str(path), tree)
    return LockFile(tree, path)


def _check_parts(source: str, tree: Mapping[str, Any]) -> None:
    """Check what `packaging` takes long for; the rest of *tree* may be anything."""

    def tables(found: object) -> list[dict[str, Any]]:
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    packages = tables(tree.get("packages"))
    environments = tree.get("environments")
    texts = [each.get(key) for each in (tree, *packages) for key in ("marker", "requires-python")]
    texts += environments if isinstance(environments, list) else []
    count = sum(len(text) for text in texts if isinstance(text, str))
    if count > limits.LOCK_MARKER_CHARACTERS:
        raise LockError(
            f"{source}: markers and requires-python of {count} characters, at most "
            f"{limits.LOCK_MARKER_CHARACTERS} are read"
        )
    wheels = (wheel for package in packages for wheel in tables(package.get("wheels")))
    tags = sum(wheel_labels.tag_count(lock_entries.filename_of(wheel)) for wheel in wheels)
    if tags > limits.LOCK_TAGS:
        raise LockError(
            f"{source}: filenames that stand for {tags} platform tags, at most {limits.LOCK_TAGS} "
            "are read"
        )


def select_locked(
    lock: LockFile,
    target: Target,
    platform: Callable[[Metadata], Platform],
    preferences: Preferences | None = None,
    *,
    extras: Collection[str] = (),
    groups: Collection[str] | None = None,
    decided: Callable[[LockChoice], None] = lambda _: None,
    grouped: Callable[[GroupChoice], None] = lambda _: None,
) -> tuple[Locked, ...]:
    """Return the packages that *target* installs from *lock*, by name.

    Args:
        lock: the file.
        target: the machine.
        platform: supported values for metadata, e.g. `Detector.platform`.
        preferences: what the user asked for about variants.
        extras: extras of the lock file to install.
        groups: dependency groups to install, those that the file says by default.
        decided: called with each choice among variant wheels, and its problems.
        grouped: called with the group that is for the target, where the file has such groups.

    Raises:
        LockError: the file is not for this target; names the package.
        VariantError: a forced label does not exist or does not fit.
    """
    extras = frozenset(map(canonicalize_name, extras))

    def select(
        tree: Mapping[str, Any], groups: Collection[str] | None = None
    ) -> list[tuple[Package, Any]]:
        pylock = _validated(str(lock.path), tree)
        try:
            return list(
                pylock.select(
                    environment=dict(target.environment),  # type: ignore[arg-type]
                    tags=list(target.tags),
                    extras=extras,
                    dependency_groups=groups,
                )
            )
        except (PylockSelectError, ValueError) as error:  # the latter of thousands of digits
            raise LockError(f"{lock.path}: {error}") from None

    try:
        select({**lock.tree, "packages": []})  # is the file for this target at all?
    except LockError as error:
        others = lock.tree.get("environments")
        if not others:
            raise
        raise LockError(
            f"{lock.path}: it is for other environments ({' or '.join(map(str, others))}), not "
            f"for Python {target.environment['python_full_version']} on "
            f"{target.environment['sys_platform']}: resolve for that with -o, into a lock file of "
            "its own"
        ) from error
    selection = lock_entries.select_packages(
        lock.tree,
        str(lock.path),
        Machine(target.environment, target.tags, target.name),
        platform,
        preferences,
        extras=extras,
        groups=groups,
    )
    if selection.group is not None:
        grouped(selection.group)
    choices = {choice.name: choice for choice in selection.choices.values()}
    for choice in choices.values():
        decided(choice)
    locked = [
        _locked(lock, package, file, choices.get(package.name))
        for package, file in select(selection.tree, selection.groups)
    ]
    for item in locked:
        logger.debug("Package %s of %s: %s", item.name, lock.path, item.filename or "a folder")
    return tuple(sorted(locked, key=lambda item: item.name))


def _locked(
    lock: LockFile,
    package: Package,
    file: Any,  # noqa: ANN401 - one of five classes of `packaging`
    choice: LockChoice | None,
) -> Locked:
    version = None if package.version is None else str(package.version)
    if not isinstance(file, (PackageWheel, PackageSdist, PackageArchive)):
        return Locked(package.name, version, "", None, {})
    filename = (
        wheel_labels.filename_of_url(file.url or file.path or "")
        if isinstance(file, PackageArchive)
        else file.filename
    )
    properties = metadata = None
    why = ""
    if choice is not None and choice.wheel is not None:
        filename, why, metadata = choice.filename, choice.why, choice.metadata
        if metadata is not None and choice.label is not None:
            properties = metadata.properties_of(metadata.label_of(choice.label))
    folder = lock.path.absolute().parent
    url = (
        (folder / file.path).absolute().as_uri()
        if file.path is not None
        else urljoin(folder.as_uri(), file.url or "")
    )
    return Locked(
        package.name, version, filename, url, file.hashes, file.size, properties, why, metadata
    )


def _validated(source: str, tree: Mapping[str, Any]) -> Pylock:
    """Validate *tree* with `packaging`, which does not know the labels of variant wheels."""
    try:
        return Pylock.from_dict(lock_entries.without_labels(tree))
    except (PylockValidationError, ValueError) as error:  # the latter of thousands of digits
        raise LockError(f"{source}: {error}") from None


@dataclass(frozen=True)
class _Entry:
    """One version of a package, as one or more targets have it: one ``[[packages]]`` table.

    Attributes:
        name: as published.
        version: as published.
        packages: of each target.
        names: publishers' names, by target.
    """

    name: str
    version: Version
    packages: Sequence[tuple[Target, ResolvedPackage]]
    names: Mapping[str, Names]

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
        """Requirements by variant label, by the published names of any target."""
        used = [self.names[target.name] for target, _ in self.packages]
        return {
            package.candidate.label or "": list(
                dict.fromkeys(
                    _renamed(text, names) for text in package.requires_dist for names in used
                )
            )
            for _, package in self.packages
        }

    @property
    def all_requires(self) -> Iterable[str]:
        """Requirements of all labels."""
        return itertools.chain(*self.requires_dist.values())

    @property
    def files(self) -> list[Candidate]:
        """Every file that is listed, by name."""
        found = {package.candidate.published: package.candidate for _, package in self.packages}
        return [found[name] for name in sorted(found)]

    @property
    def labels(self) -> set[str]:
        """Variant labels of the files, as far as these are published under them."""
        return {
            item.label for item in self.files if item.label is not None and item.catalog is None
        }


def write_lock(
    resolutions: Sequence[ResolvedPackages],
    *,
    created_by: str,
    folder: Path,
    documents: Callable[[Any], Sequence[Mapping[str, Any]]],
    digests: Callable[[Candidate], Mapping[str, str]],
) -> bytes:
    """Return the contents of a ``pylock.toml`` with all *resolutions*.

    Args:
        resolutions: one per target.
        created_by: name of the tool.
        folder: of the lock file; paths of local files are relative to it.
        documents: returns the variant metadata of a `ResolvedPackage` as its source has it: the
            index file, or without one the ``variant.json`` of each wheel.
        digests: returns hashes of a file for which the index has none.

    Raises:
        LockError: something cannot be written to a lock file.
    """
    groups = LockGroups.of(resolutions)
    names = {
        item.target.name: {
            **{
                package.candidate.project: package.candidate.published_name
                for package in item.packages
                if package.candidate.published_name != package.candidate.project
            },
            **item.provided,
        }
        for item in resolutions
    }
    entries = _entries(resolutions, names, groups)
    by_need = any(
        markers.uses_variant_terms(text) for entry in entries for text in entry.all_requires
    )
    packages = []
    for entry in entries:
        conditional = by_need and _is_conditional(entry)
        packages.append(
            Package(
                name=canonicalize_name(entry.name),
                version=entry.version,
                marker=groups.marker(target for target, _ in entry.packages),
                requires_python=_requires_python(entry),
                dependencies=[
                    item for name in entry.depends for item in _dependencies(name, entry, entries)
                ]
                or None,
                **_files(entry, folder, digests),
                tool={lock_entries.TOOL: {lock_entries.REQUIRES_DIST: _requires_dist(entry)}}
                if conditional
                else None,
            )
        )
    own = {lock_entries.REQUIREMENTS: _requested(resolutions, names)} if by_need else {}
    if groups.names:
        own |= groups.table(resolutions, documents)
    pylock = Pylock(
        lock_version=LOCK_VERSION,
        environments=list(map(Marker, groups.environments)),
        dependency_groups=[*groups.names.values()] or None,
        default_groups=[] if groups.names else None,
        created_by=created_by,
        packages=packages,
        tool={lock_entries.TOOL: own} if own else None,
    )
    tree = dict(pylock.to_dict())
    for entry, table in zip(entries, tree["packages"], strict=True):
        if entry.labels:
            table[lock_entries.KEY] = _variants(entry, documents)
    if groups.names:
        tree["packages"] = [*tree["packages"], groups.guard]
    try:
        Pylock.from_dict(lock_entries.without_labels(tree))
    except (PylockValidationError, ValueError) as error:
        raise LockError(f"the lock file cannot be written: {error}") from None
    return tomli_w.dumps(tree).encode()


def _renamed(requirement: str, names: Names) -> str:
    """Return *requirement* of what the lock file lists."""
    found = _NAME.match(requirement)
    other = None if found is None else names.get(canonicalize_name(found[1]))
    return requirement if found is None or other is None else f"{other}{requirement[found.end() :]}"


def _entries(
    resolutions: Sequence[ResolvedPackages], names: Mapping[str, Names], groups: LockGroups
) -> list[_Entry]:
    """Return the versions that targets have; with each file apart that some group alone has."""
    found: dict[tuple[str, Version], list[tuple[Target, ResolvedPackage]]] = {}
    for resolution in resolutions:
        for package in resolution.packages:
            item = package.candidate
            key = item.published_name, item.published_version
            found.setdefault(key, []).append((resolution.target, package))
    entries = []
    for key in sorted(found):
        parts: dict[str, list[tuple[Target, ResolvedPackage]]] = {}
        grouped: dict[str, set[str]] = {}
        for target, package in found[key]:
            if groups.of_target(target) is not None:
                grouped.setdefault(target.marker, set()).add(package.candidate.published)
        is_split = any(len(files) > 1 for files in grouped.values())
        for target, package in found[key]:
            file = package.candidate.published if is_split else ""
            parts.setdefault(file, []).append((target, package))
        entries += [_Entry(*key, parts[file], names) for file in sorted(parts)]
    return entries


def _files(
    entry: _Entry, folder: Path, digests: Callable[[Candidate], Mapping[str, str]]
) -> dict[str, Any]:
    """Return the arguments of `Package` for the files of *entry*, and where they are listed."""
    package = entry.packages[0][1]
    candidate = package.candidate
    # Of what is named directly, only wheels that are listed as such have a variant to select.
    if candidate.direct and candidate.label is None:
        arguments = _file(candidate, folder, digests)
        del arguments["name"]
        return {"archive": PackageArchive(**arguments)}
    base, _, last = candidate.place.rstrip("/").rpartition("/")
    listed = not candidate.direct and last == candidate.published_name
    sdists = [item for item in entry.files if not item.is_wheel]
    wheels = [item for item in entry.files if item.is_wheel]
    return {
        "index": f"{base}/" if listed else None,
        "sdist": PackageSdist(**_file(sdists[-1], folder, digests)) if sdists else None,
        "wheels": [PackageWheel(**_file(item, folder, digests)) for item in wheels] or None,
    }


def _file(
    candidate: Candidate, folder: Path, digests: Callable[[Candidate], Mapping[str, str]]
) -> dict[str, Any]:
    """Return the arguments that all classes of files in `packaging.pylock` take."""
    file = candidate.file
    local = safe_files.is_local(file.url)
    named = wheel_labels.filename_of_url(file.url) == candidate.published
    return {
        "name": None if named else candidate.published,
        "upload_time": None if file.upload_time is None else _time(file.upload_time),
        "url": None if local else without_userinfo(file.url),
        "path": _relative(safe_files.local_path(file.url), folder) if local else None,
        "size": file.size,
        "hashes": dict(sorted((dict(file.hashes) or digests(candidate)).items())),
    }


def _requires_python(entry: _Entry) -> SpecifierSet | None:
    """Return what all files require, None for an invalid one, which was ignored."""
    texts = {item.file.requires_python for item in entry.files}
    text = texts.pop() if len(texts) == 1 else None
    try:
        return None if text is None else SpecifierSet(text)
    except ValueError:
        return None


def _dependencies(name: str, entry: _Entry, entries: Sequence[_Entry]) -> list[dict[str, str]]:
    """Return references to the entries of *name* that *entry* depends on.

    They have a version only where several versions are locked.
    """
    found = [other for other in entries if other.name == name]
    if len(found) < 2:
        return [{"name": name}]
    own = {target.name for target, _ in entry.packages}
    versions = [
        str(other.version) for other in found if own & {target.name for target, _ in other.packages}
    ]
    return [{"name": name, "version": version} for version in dict.fromkeys(versions)]


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
    entry: _Entry, documents: Callable[[Any], Sequence[Mapping[str, Any]]]
) -> dict[str, Any]:
    """Return the variant metadata of the labels that are listed."""
    found: dict[str, Any] | None = None
    for _, package in entry.packages:
        if package.metadata is None:
            continue
        table = lock_entries.write_table(documents(package), entry.labels)
        if found is None:
            found = table
        elif found != table:
            raise LockError(
                f"{package.name} {package.version}: its sources have different variant metadata, "
                "and a lock file holds one of them: write one lock file for each target"
            )
    if found is None:
        raise LockError(
            f"{entry.name} {entry.version}: there is no variant metadata of "
            f"{', '.join(sorted(entry.labels))}"
        )
    return found


def _requested(resolutions: Sequence[ResolvedPackages], names: Mapping[str, Names]) -> list[str]:
    """Return the names, with extras, of what the user asked for."""
    found: dict[str, set[str]] = {}
    for resolution in resolutions:
        published = names[resolution.target.name]
        for name, extras in resolution.requested.items():
            found.setdefault(published.get(name, name), set()).update(extras)
    return [_named(name, extras - {""}) for name, extras in sorted(found.items())]


def _named(name: str, extras: set[str]) -> str:
    return f"{name}[{','.join(sorted(extras))}]" if extras else name


def _is_conditional(entry: _Entry) -> bool:
    """Return whether the dependencies depend on extras or variants: names are not enough."""
    if any(package.extras for _, package in entry.packages):
        return True
    return any(markers.uses_variant_terms(text) or "[" in text for text in entry.all_requires)


def _requires_dist(entry: _Entry) -> list[str] | dict[str, list[str]]:
    by_label = entry.requires_dist
    every = list(by_label.values())
    if all(texts == every[0] for texts in every):
        return every[0]
    return dict(sorted(by_label.items()))
