"""The files that a target installs from a lock file (PEP 751).

`pep_variants.lock` chooses among variant wheels, `packaging.pylock` selects everything else.
Nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from packaging.pylock import (
    Package,
    PackageArchive,
    PackageSdist,
    PackageWheel,
    Pylock,
    PylockSelectError,
    PylockValidationError,
)
from packaging.utils import canonicalize_name

from pep_variants import Metadata, Platform, Preferences, split_label
from pep_variants.internal import (
    LOCK_BYTES,
    LockChoice,
    LockError,
    Machine,
    Properties,
    filename_of_url,
    properties_tree,
    select_packages,
    toml,
    without_labels,
)

from ..target import Target


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
            else properties_tree(properties, ascending=True),
            "why": self.why,
        }


def read_lock(path: Path) -> LockFile:
    """Read a lock file and check it.

    Raises:
        LockError: it cannot be read, or breaks the format.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(LOCK_BYTES + 1)
        if len(data) > LOCK_BYTES:
            raise LockError(f"{path}: is larger than {LOCK_BYTES} bytes, the most that is read")
        tree = toml.loads(data.decode())
    except OSError as error:
        raise LockError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise LockError(f"{path}: not valid TOML: {error}") from None
    _validated(str(path), tree)
    return LockFile(tree, path)


def select_locked(
    lock: LockFile,
    target: Target,
    platform: Callable[[Metadata], Platform],
    preferences: Preferences | None = None,
    *,
    extras: Collection[str] = (),
    groups: Collection[str] | None = None,
    decided: Callable[[LockChoice], None] = lambda _: None,
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

    Raises:
        LockError: the file is not for this target; names the package.
        VariantError: a forced label does not exist or does not fit.
    """
    extras = frozenset(map(canonicalize_name, extras))

    def select(tree: Mapping[str, Any]) -> list[tuple[Package, Any]]:
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
    selection = select_packages(
        lock.tree,
        str(lock.path),
        Machine(target.environment, target.tags, target.name),
        platform,
        preferences,
        extras=extras,
        groups=groups,
    )
    choices = {choice.name: choice for choice in selection.choices.values()}
    for choice in choices.values():
        decided(choice)
    locked = [
        _locked(lock, package, file, choices.get(package.name))
        for package, file in select(selection.tree)
    ]
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
        filename_of_url(file.url or file.path or "")
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
        return Pylock.from_dict(without_labels(tree))
    except (PylockValidationError, ValueError) as error:  # the latter of thousands of digits
        raise LockError(f"{source}: {error}") from None
