"""What a target installs from a lock file: the files, chosen anew where there are variants.

The specification's own rules are `packaging.pylock`'s to apply; wheels with labels, which it does
not know, are settled before it gets to see the file. Nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

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
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pep_variants import toml
from pep_variants.abi import abi_dependencies, supporting
from pep_variants.errors import InvalidMarker, VariantError, shortened
from pep_variants.explanation import why_not
from pep_variants.label import split_label
from pep_variants.markers import NON_VARIANT, VariantContext, reduce_requirement
from pep_variants.metadata import Metadata
from pep_variants.platform import Platform
from pep_variants.preferences import Preferences, unique
from pep_variants.property import Properties
from pep_variants.reader import metadata_from_tree
from pep_variants.selection import File, Selection, missing_variant, select

from ..resolution.target import Target
from . import tool
from .errors import LockError

MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class LockFile:
    """A lock file that has been read.

    Attributes:
        tree: its contents.
        source: its path, for messages.
        folder: what paths in it are relative to.
    """

    tree: Mapping[str, Any] = field(repr=False)
    source: str
    folder: Path


@dataclass(frozen=True)
class Locked:
    """One thing that is to be installed.

    Attributes:
        name: normalized project name.
        version: as the file has it, None if it does not say.
        filename: of the file; empty for what is no file.
        url: where it is, a ``file:`` URL for a path; None for what is no file.
        hashes: hexadecimal digests by algorithm; whoever gets the file has to verify them.
        size: in bytes, None if unknown.
        properties: of the variant; None for what is no variant wheel.
        why: why this variant, in a few words.
        metadata: what is known of the variants, None for what is no variant wheel.
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
        """Variant label, None for what is no variant wheel."""
        return split_label(self.filename)[1]

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
            else {
                namespace: {feature: list(values) for feature, values in sorted(features.items())}
                for namespace, features in sorted(properties.items())
            },
            "why": self.why,
        }


def read_lock(path: Path) -> LockFile:
    """Read a lock file and check it.

    Raises:
        LockError: it cannot be read, or breaks the format.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise LockError(f"{path}: is larger than {MAX_BYTES} bytes, the most that is read")
        tree = toml.loads(data.decode())
    except OSError as error:
        raise LockError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise LockError(f"{path}: not valid TOML: {error}") from None
    lock = LockFile(tree, str(path), path.absolute().parent)
    _validated(lock, tree)
    return lock


def select_locked(
    lock: LockFile,
    target: Target,
    platform: Callable[[Metadata], Platform],
    preferences: Preferences | None = None,
    *,
    extras: Collection[str] = (),
    groups: Collection[str] | None = None,
) -> tuple[Locked, ...]:
    """Return what *target* installs from *lock*, by name.

    Args:
        lock: the file.
        target: the machine.
        platform: supported values for metadata, e.g. `Detector.platform`.
        preferences: what the user asked for about variants.
        extras: extras of the lock file to install.
        groups: dependency groups to install, those that the file says by default.

    Raises:
        LockError: the file is not for this target; names the package.
        VariantError: a forced label does not exist or does not fit.
    """
    selector = _Selector(lock, target, platform, preferences or Preferences(), extras, groups)
    return selector.select()


@dataclass
class _Choice:
    """What was chosen of a package with variant wheels."""

    wheel: Mapping[str, Any] | None
    selection: Selection[Mapping[str, Any]]
    metadata: Metadata | None
    context: VariantContext
    why: str


class _Selector:
    def __init__(
        self,
        lock: LockFile,
        target: Target,
        platform: Callable[[Metadata], Platform],
        preferences: Preferences,
        extras: Collection[str],
        groups: Collection[str] | None,
    ) -> None:
        self._lock = lock
        self._target = target
        self._platform = platform
        self._preferences = preferences
        self._extras = frozenset(map(canonicalize_name, extras))
        self._groups = groups
        self._packages: Sequence[Mapping[str, Any]] = lock.tree["packages"]
        self._choices: dict[int, _Choice] = {}

    def select(self) -> tuple[Locked, ...]:
        # Whether it is for this target at all goes before everything else.
        self._selected(_validated(self._lock, {**self._lock.tree, "packages": []}))
        present = [number for number in range(len(self._packages)) if self._applies(number)]
        needed = sorted(self._needed(present))
        for number in needed:
            self._choose(number)
        # What is left is for those who know nothing of variants.
        tree = {**self._lock.tree, "packages": [self._settled(number) for number in needed]}
        pylock = _validated(self._lock, tree)
        numbers = dict(zip(map(id, pylock.packages), needed, strict=True))
        chosen = self._selected(pylock)
        locked = [self._locked(numbers[id(package)], package, file) for package, file in chosen]
        return tuple(sorted(locked, key=lambda item: item.name))

    def _selected(self, pylock: Pylock) -> list[tuple[Package, Any]]:
        try:
            return list(
                pylock.select(
                    environment=dict(self._target.environment),  # type: ignore[arg-type]
                    tags=list(self._target.tags),
                    extras=self._extras,
                    dependency_groups=self._groups,
                )
            )
        except PylockSelectError as error:
            raise LockError(f"{self._lock.source}: {error}") from None

    def _applies(self, number: int) -> bool:
        marker = self._packages[number].get("marker")
        if marker is None:
            return True
        groups = self._lock.tree.get("default-groups", []) if self._groups is None else self._groups
        return Marker(marker).evaluate(
            {
                **self._target.environment,
                "extras": self._extras,
                "dependency_groups": frozenset(groups),
            },
            context="lock_file",
        )

    def _needed(self, present: Sequence[int]) -> set[int]:
        """Return the packages that the selected variants need; all, if the file does not say."""
        asked = _own(self._lock.tree).get(tool.REQUIREMENTS)
        if not isinstance(asked, list):
            return set(present)
        by_name: dict[str, list[int]] = {}
        for number in present:
            by_name.setdefault(self._packages[number]["name"], []).append(number)
        waiting = [need for text in asked for need in self._needs(str(text), self._lock.source)]
        found: set[tuple[int, str]] = set()
        while waiting:
            name, extra = waiting.pop()
            for number in by_name.get(name, ()):
                if (number, extra) not in found:
                    found.add((number, extra))
                    waiting += self._depends(number, extra)
        return {number for number, _ in found}

    def _depends(self, number: int, extra: str) -> list[tuple[str, str]]:
        """Return project and extra of what a package, or an extra of it, depends on."""
        package = self._packages[number]
        requires = _own(package).get(tool.REQUIRES_DIST)
        if requires is None:
            return [(str(item.get("name")), "") for item in package.get("dependencies", ())]
        choice = self._choose(number)
        context = NON_VARIANT if choice is None else choice.context
        if isinstance(requires, Mapping):
            requires = requires.get(context.label, [])
        found = []
        for text in requires if isinstance(requires, list) else ():
            try:
                reduced = reduce_requirement(str(text), context)
            except InvalidMarker as error:
                raise LockError(f"{self._place(number)}: {error}") from None
            if reduced is not None:
                found += self._needs(reduced, self._place(number), extra)
        return found

    def _needs(self, text: str, place: str, extra: str = "") -> list[tuple[str, str]]:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise LockError(f"{place}: {' '.join(str(error).split())}") from None
        marker = requirement.marker
        if marker is not None and not marker.evaluate({**self._target.environment, "extra": extra}):
            return []
        name = canonicalize_name(requirement.name)
        return [(name, item) for item in ("", *map(canonicalize_name, requirement.extras))]

    def _choose(self, number: int) -> _Choice | None:
        """Return what is chosen of a package that has variant wheels, None for any other."""
        package = self._packages[number]
        wheels = package.get("wheels", ())
        if not any(split_label(filename_of(wheel))[1] for wheel in wheels):
            return None
        if number not in self._choices:
            self._choices[number] = self._chosen(number, package, wheels)
        return self._choices[number]

    def _chosen(
        self, number: int, package: Mapping[str, Any], wheels: Sequence[Mapping[str, Any]]
    ) -> _Choice:
        name, place = package["name"], self._place(number)

        def metadata(source: str) -> Metadata:
            return metadata_from_tree(package.get("variants-json"), source)

        source = f"{place}.variants-json"
        files = [File(filename_of(wheel), source, wheel) for wheel in wheels]
        selection = select(
            files,
            metadata=metadata,
            platform=lambda found: supporting(self._platform(found), found, self._version),
            preferences=self._preferences,
            project=name,
            tags=self._target.tags,
        )
        problem = next(iter(selection.problems.values()), None)
        file = next((item for item in selection.files if self._goes_with(item, selection)), None)
        if file is None:
            if name in self._preferences.forced:
                considered = [(str(package.get("version")), selection, files)]
                missing = missing_variant(name, considered)
                if missing is not None:
                    raise missing
            if "sdist" not in package:
                raise LockError(
                    str(problem)
                    if problem is not None
                    else f"{place}: none of its wheels fits {self._target.name}: "
                    f"{_reasons(selection) or 'they are for other platforms'}"
                )
            return _Choice(None, selection, None, NON_VARIANT, "")
        ranking = selection.rankings.get(file.source)
        return _Choice(
            file.item,
            selection,
            ranking.metadata if ranking is not None and file.label is not None else None,
            selection.context(file),
            selection.why(file) or ("no other variant fits" if file.label else "no variant fits"),
        )

    def _version(self, project: str) -> str | None:
        """Return the version of a project that the lock has for the target, None without one."""
        for number, package in enumerate(self._packages):
            if package["name"] == project and self._applies(number):
                version = package.get("version")
                return None if version is None else str(version)
        return None

    def _goes_with(
        self, file: File[Mapping[str, Any]], selection: Selection[Mapping[str, Any]]
    ) -> bool:
        """Return whether what a wheel is built against is what the lock has."""
        ranking = selection.rankings.get(file.source)
        if file.label is None or ranking is None:
            return True
        label = ranking.metadata.label_of(file.label)
        return all(
            version is None or item.allows(version)
            for item in abi_dependencies(ranking.metadata.properties_of(label) or {})
            for version in [self._version(item.project)]
        )

    def _settled(self, number: int) -> dict[str, Any]:
        """Return a package with, of its variant wheels, the chosen one alone and no label."""
        package = dict(self._packages[number])
        package.pop("variants-json", None)
        choice = self._choices.get(number)
        if choice is not None:
            package.pop("wheels")
            if choice.wheel is not None:
                package["wheels"] = [_plain(choice.wheel)]
        return package

    def _locked(
        self,
        number: int,
        package: Package,
        file: Any,  # noqa: ANN401 - one of five classes of `packaging`
    ) -> Locked:
        version = None if package.version is None else str(package.version)
        if not isinstance(file, (PackageWheel, PackageSdist, PackageArchive)):
            return Locked(package.name, version, "", None, {})
        choice = self._choices.get(number)
        filename = (
            unquote(urlsplit(file.url or file.path or "").path.rpartition("/")[2])
            if isinstance(file, PackageArchive)
            else file.filename
        )
        properties = metadata = None
        why = ""
        if choice is not None and choice.wheel is not None:
            filename, why = filename_of(choice.wheel), choice.why
            metadata = choice.metadata
            label = split_label(filename)[1]
            if metadata is not None and label is not None:
                properties = metadata.properties_of(metadata.label_of(label))
        url = (
            (self._lock.folder / file.path).absolute().as_uri()
            if file.path is not None
            else urljoin(self._lock.folder.as_uri(), file.url or "")
        )
        return Locked(
            package.name, version, filename, url, file.hashes, file.size, properties, why, metadata
        )

    def _place(self, number: int) -> str:
        return f"{self._lock.source}: packages[{number}] ({self._packages[number]['name']})"


def filename_of(wheel: Mapping[str, Any]) -> str:
    """Return the name of a wheel of a lock file: ``name``, or the end of ``path`` or ``url``."""
    for key in ("name", "path", "url"):
        value = wheel.get(key)
        if isinstance(value, str) and value:
            path = unquote(urlsplit(value).path) if key == "url" else value
            return path.replace("\\", "/").rpartition("/")[2]
    return ""


def _plain(wheel: Mapping[str, Any]) -> dict[str, Any]:
    return {**wheel, "name": split_label(filename_of(wheel))[0]}


def _validated(lock: LockFile, tree: Mapping[str, Any]) -> Pylock:
    """Have `packaging` check *tree*, to which wheels with labels are shown without these."""
    packages = tree.get("packages")
    if isinstance(packages, list):
        packages = [_checked(lock, number, item) for number, item in enumerate(packages)]
        tree = {**tree, "packages": packages}
    try:
        return Pylock.from_dict(tree)
    except PylockValidationError as error:
        raise LockError(f"{lock.source}: {error}") from None


def _checked(lock: LockFile, number: int, package: Any) -> Any:  # noqa: ANN401
    if not isinstance(package, dict) or not isinstance(package.get("wheels"), list):
        return package
    labelled = [
        split_label(filename_of(wheel))[1] is not None
        for wheel in package["wheels"]
        if isinstance(wheel, dict)
    ]
    if not any(labelled):
        return package
    place = f"{lock.source}: packages[{number}] ({shortened(package.get('name'))})"
    try:
        metadata_from_tree(package.get("variants-json"), f"{place}.variants-json")
    except VariantError as error:
        if "variants-json" not in package:
            raise LockError(f"{place}: has variant wheels, but no variants-json") from None
        raise LockError(str(error)) from None
    wheels = [
        _plain(wheel) if isinstance(wheel, dict) and split_label(filename_of(wheel))[1] else wheel
        for wheel in package["wheels"]
    ]
    return {**package, "wheels": wheels}


def _own(table: Mapping[str, Any]) -> Mapping[str, Any]:
    tools = table.get("tool")
    own = tools.get(tool.KEY) if isinstance(tools, Mapping) else None
    return own if isinstance(own, Mapping) else {}


def _reasons(selection: Selection[Any]) -> str:
    built = (
        f"{file.label} is built against {item}"
        for file in selection.files
        if file.label is not None
        for ranking in [selection.rankings[file.source]]
        for item in abi_dependencies(ranking.metadata.properties_of(file.label) or {})
    )
    rejected = (
        f"{label} {reason}"
        for ranking in selection.rankings.values()
        for label in ranking.rejected_labels
        for reason in why_not(ranking, label)
    )
    return "; ".join(unique((*built, *rejected)))
