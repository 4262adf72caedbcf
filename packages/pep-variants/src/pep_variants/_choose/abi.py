"""`abi_dependency`: what a variant asks of other packages of the same resolution (PEP 825).

A feature of that namespace is a project, its name normalized and with ``_``; the values are
releases of one to three components, any of which will do: ``abi_dependency :: torch :: 2.9`` goes
with ``torch==2.9.*``. It is a condition, no requirement: where the project is not installed
anyway, it asks for nothing. No machine supports it or does not, so ranking takes every value for
supported (see `supporting`), and the resolver sees to it that candidates go together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from .._model.filename import read_version
from .._model.platform import Support
from .._model.property import ABI_DEPENDENCY
from .preferences import unique

if TYPE_CHECKING:
    from .._model.metadata import Metadata
    from .._model.platform import Platform
    from .._model.property import Properties
    from .._wheelfile.installed import Installed

_RELEASE = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,2}")


class AbiDependency(NamedTuple):
    """One project that a variant is built against.

    Attributes:
        project: normalized project name.
        releases: any of them will do, each one to three release components; newest first.
    """

    project: str
    releases: tuple[str, ...]

    def allows(self, version: object) -> bool:
        """Return whether *version*, or its text form, is of one of the releases.

        As ``==X.Y.*`` matches it: the local part does not count, and pre-releases of a release
        belong to it. A value that is not a version belongs to no release.
        """
        return _matches(self.releases, str(version))

    def __str__(self) -> str:
        return f"{self.project} {' or '.join(f'{release}.*' for release in self.releases)}"


def abi_dependencies(properties: Properties) -> tuple[AbiDependency, ...]:
    """Return the projects that a variant with *properties* is built against, ascending.

    Values that are not releases match nothing and are left out.

    >>> from pep_variants.selection import abi_dependencies
    >>> abi_dependencies({"abi_dependency": {"torch": ("2.8", "2.9")}})
    (AbiDependency(project='torch', releases=('2.9', '2.8')),)
    """
    return tuple(
        AbiDependency(canonicalize_name(feature), _newest_first(values))
        for feature, values in sorted(properties.get(ABI_DEPENDENCY, {}).items())
    )


class AbiMismatch(NamedTuple):
    """An installed variant that does not go with what is installed of another project.

    Attributes:
        installed: the variant.
        dependency: what it is built against.
        other: what is installed of that project.
    """

    installed: Installed
    dependency: AbiDependency
    other: Installed

    def __str__(self) -> str:
        own, other = self.installed, self.other
        return (
            f"{own.project} {own.version} (variant {own.label}) is built against "
            f"{self.dependency}, and {other.project} {other.version} is installed"
        )


def abi_mismatches(found: Mapping[str, Installed]) -> Iterator[AbiMismatch]:
    """Yield where installed variants do not go with what they are built against; *found* by name.

    Installers without variants do not compare them.
    """
    for own in found.values():
        properties = own.metadata.properties_of(str(own.label)) if own.metadata else None
        for dependency in abi_dependencies(properties or {}):
            other = found.get(dependency.project)
            if other is not None and not dependency.allows(other.version):
                yield AbiMismatch(own, dependency, other)


def covers(one: Iterable[AbiDependency], other: Iterable[AbiDependency]) -> bool:
    """Return whether what is built against *one* goes with whatever goes with *other*.

    True if *one* is empty. Releases are compared as text: ``2`` covers ``2.9``, ``2.0`` only itself
    and ``2.0.1``.
    """
    releases = {item.project: item.releases for item in other}
    return all(
        item.project in releases
        and all(
            any(f"{release}.".startswith(f"{known}.") for known in item.releases)
            for release in releases[item.project]
        )
        for item in one
    )


def is_release(value: str) -> bool:
    """Return whether *value* is a release that can match: one to three numbers with dots."""
    return _RELEASE.fullmatch(value) is not None


def supporting(
    platform: Platform, metadata: Metadata, installed: Callable[[str], object] | None = None
) -> Platform:
    """Return *platform* with every abi dependency that variants of *metadata* have supported.

    Releases that fit what is installed come first, then the newest ones; projects ascending. That
    order decides only between variants that are equal in everything else, see `ranking`.
    The very same object comes back where there are none, or where the platform has its own answer.

    Args:
        platform: the platform.
        metadata: what is going to be ranked.
        installed: gives the version of an installed project by its normalized name, or None.
    """
    if ABI_DEPENDENCY in platform.namespaces:
        return platform
    used = metadata.used_values(ABI_DEPENDENCY)
    if not used:
        return platform
    features: dict[str, tuple[str, ...]] = {}
    for feature, values in sorted(used.items()):
        project = canonicalize_name(feature)
        version = installed(project) if installed is not None else None
        releases = _newest_first(values)
        if version is not None:
            fitting = tuple(r for r in releases if AbiDependency(project, (r,)).allows(version))
            releases = unique((*fitting, *releases))
        if releases:
            features[feature] = releases
    return replace(platform, namespaces={**platform.namespaces, ABI_DEPENDENCY: Support(features)})


def abi_projects(platform: Platform) -> frozenset[str]:
    """Return the projects that `supporting` found variants to be built against, normalized."""
    return frozenset(map(canonicalize_name, platform.support(ABI_DEPENDENCY).features))


def _newest_first(values: tuple[str, ...]) -> tuple[str, ...]:
    releases = (value for value in values if is_release(value))
    # 2.9 and 2.9.0 are equal as versions: the longer one, which says more, first.
    return tuple(sorted(releases, key=lambda r: (Version(r), len(r), r), reverse=True))


@lru_cache(maxsize=1024)
def _matches(releases: tuple[str, ...], version: str) -> bool:
    parsed = read_version(version)
    if parsed is None:
        return False
    return any(
        SpecifierSet(f"=={release}.*").contains(parsed, prereleases=True) for release in releases
    )
