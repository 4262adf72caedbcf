"""Dependency groups of a lock file (PEP 751), where no environment marker tells targets apart.

Each target of such an environment has a group, named after it; what all of them have is in none.
No group is a default: an installer that is told none has to fail, and not to take the builds of
another machine, or none. Some take two versions of a project without a word, or do without it, so
the guard is a package that nothing can install, for where no group is named.

What another tool has locked for each group by itself is merged here into one such file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import tomli_w
from packaging.markers import Marker
from packaging.pylock import Pylock, PylockValidationError
from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import lock_entries
from pep_variants.errors import LockError
from pep_variants.metadata import Metadata

from ._candidate import Candidate
from .target import Target

GUARD = "name-a-dependency-group"
"""What installers name as the package that they cannot install."""

_NO_WHEEL = f"{GUARD.replace('-', '_')}-0-py3-none-without_group.whl"


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
        """The chosen file."""

    @property
    def extras(self) -> Sequence[str]:
        """Normalized names of the extras that are installed."""

    @property
    def requires_dist(self) -> Sequence[str]:
        """Its ``Requires-Dist`` values."""

    @property
    def depends(self) -> Sequence[str]:
        """Names of the packages of the resolution that it depends on."""

    @property
    def metadata(self) -> Metadata | None:
        """The variant metadata, None for a non-variant file."""


class ResolvedPackages(Protocol):
    """The packages for one target."""

    @property
    def target(self) -> Target:
        """What they are for."""

    @property
    def packages(self) -> Sequence[ResolvedPackage]:
        """The packages, by name."""

    @property
    def requested(self) -> Mapping[str, frozenset[str]]:
        """Extras by name of what the user asked for; the project itself is the empty one."""

    @property
    def provided(self) -> Mapping[str, str]:
        """Which package stands for a project that is not installed itself."""


def marker_of(target: Target) -> str:
    """Return the marker of a target, as `packaging` writes it."""
    return str(Marker(target.marker))


@dataclass(frozen=True)
class LockGroups:
    """The groups of a lock file.

    Attributes:
        environments: all targets by their markers, ascending.
        names: of the groups, by name and marker of the target; normalized.
    """

    environments: Mapping[str, Sequence[Target]]
    names: Mapping[tuple[str, str], str]

    @classmethod
    def of(cls, resolutions: Sequence[ResolvedPackages]) -> LockGroups:
        """Return the groups of targets that need different files in one environment."""
        environments: dict[str, list[Target]] = {}
        seen: dict[tuple[str, str, str], Candidate] = {}
        apart = set()
        for resolution in resolutions:
            marker = marker_of(resolution.target)
            environments.setdefault(marker, []).append(resolution.target)
            for item in (package.candidate for package in resolution.packages):
                same = seen.setdefault((marker, item.published_name, ""), item)
                other = seen.setdefault((marker, "", item.project), item)
                described = item.catalog is not None or other.catalog is not None
                if same.published_version != item.published_version or (
                    described and item.label != other.label
                ):
                    apart.add(marker)
        names: dict[tuple[str, str], str] = {}
        for target in (resolution.target for resolution in resolutions):
            marker = marker_of(target)
            if marker in apart and (target.name, marker) not in names:
                names[target.name, marker] = _free(group_name(target.name), names.values())
        return cls({marker: environments[marker] for marker in sorted(environments)}, names)

    def of_target(self, target: Target) -> str | None:
        """Return the name of a target's group, None in an environment without groups."""
        return self.names.get((target.name, marker_of(target)))

    def marker(self, targets: Iterable[Target]) -> Marker | None:
        """Return the marker of what *targets* have, None if all of the file do."""
        having: dict[str, set[str]] = {}
        for target in targets:
            having.setdefault(marker_of(target), set()).add(target.name)
        parts = [self._marker(marker, having[marker]) for marker in sorted(having)]
        if parts == [f"({marker})" for marker in self.environments]:
            return None
        return Marker(" or ".join(parts))

    def _marker(self, marker: str, having: set[str]) -> str:
        groups = {self.names.get((name, marker), "") for name in having}
        if {each.name for each in self.environments[marker]} == having or "" in groups:
            return f"({marker})"
        terms = _in_groups(sorted(groups))
        return f"({terms})" if len(self.environments) == 1 else f"({marker}) and ({terms})"

    @property
    def guard(self) -> dict[str, Any]:
        """The table of the guard."""
        parts = []
        for marker, targets in self.environments.items():
            names = dict.fromkeys(filter(None, map(self.of_target, targets)))
            if names:
                terms = _in_none(names)
                parts.append(f"({marker}) and {terms}" if len(self.environments) > 1 else terms)
        return _guard(" or ".join(parts))

    def table(
        self,
        resolutions: Sequence[ResolvedPackages],
        documents: Callable[[Any], Sequence[Mapping[str, Any]]],
    ) -> dict[str, Any]:
        """Return what tells our clients which group is for which machine."""
        asked = {name for resolution in resolutions for name in resolution.requested}
        return lock_entries.write_groups(
            (
                name,
                marker_of(resolution.target),
                {
                    package.name: (package.candidate.label, _metadata(package, documents))
                    # What was asked for decides first which group is for a machine.
                    for package in sorted(
                        resolution.packages, key=lambda each: each.name not in asked
                    )
                    if package.candidate.label is not None and package.metadata is not None
                },
            )
            for resolution in resolutions
            for name in [self.of_target(resolution.target)]
            if name is not None
        )


def group_name(target: str) -> str:
    """Return the name of a target as the normalized name of a group.

    >>> group_name("cuda=12.8,sm=9.0")
    'cuda12-8-sm9-0'
    """
    return re.sub(r"[^a-z0-9]+", "-", target.lower().replace("=", "")).strip("-") or "group"


def merge_locks(
    locks: Mapping[str, Mapping[str, Any]],
    builds: Mapping[str, Mapping[str, Mapping[str, tuple[str, Metadata]]]],
    created_by: str,
) -> bytes:
    """Return the contents of one lock file with what each group has by itself.

    Packages that are equal but for their markers become one. All else is as in the first lock.

    Args:
        locks: lock files without groups, as parsed from TOML, by name of the group.
        builds: by the marker of an environment, by name of the group, and by project: label and
            variant metadata of its build.
        created_by: name of the tool.

    Raises:
        LockError: one is not valid, or has groups.
    """
    found: dict[str, list[tuple[dict[str, Any], dict[str, list[str]]]]] = {}
    for name, lock in locks.items():
        try:
            Pylock.from_dict(lock)
        except (PylockValidationError, ValueError) as error:
            raise LockError(f"the lock file of group {name} is not valid: {error}") from None
        if lock.get("dependency-groups"):
            raise LockError(f"the lock file of group {name} has dependency groups of its own")
        for package in lock["packages"]:
            entry = {key: value for key, value in package.items() if key != "marker"}
            alike = found.setdefault(package["name"], [])
            having = next((having for other, having in alike if other == entry), None)
            if having is None:
                having = {}
                alike.append((entry, having))
            having.setdefault(package.get("marker", ""), []).append(canonicalize_name(name))
    names = [canonicalize_name(name) for name in locks]
    packages = []
    for _, alike in sorted(found.items()):
        for entry, having in alike:
            marker = _merged(having, names)
            packages.append({**entry, **({"marker": str(Marker(marker))} if marker else {})})
    is_same = all(table == next(iter(builds.values())) for table in builds.values())
    own = lock_entries.write_groups(
        (
            canonicalize_name(name),
            "" if is_same else marker,
            {
                project: (label, lock_entries.build_table(metadata, label))
                for project, (label, metadata) in table.get(name, {}).items()
            },
        )
        for marker, table in islice(builds.items(), 1 if is_same else None)
        for name in locks
    )
    first = next(iter(locks.values()))
    tree = {
        **{key: value for key, value in first.items() if key not in ("packages", "tool")},
        "created-by": created_by,
        "dependency-groups": names,
        "default-groups": [],
        "packages": [*packages, _guard(_in_none(names))],
        "tool": {**first.get("tool", {}), lock_entries.TOOL: own},
    }
    return tomli_w.dumps(tree).encode()


def _merged(having: Mapping[str, Sequence[str]], names: Sequence[str]) -> str:
    """Return the marker of a package that groups have, by its marker there; empty for none."""
    if [*having.values()] == [names]:
        return next(iter(having))
    return " or ".join(
        f"({_in_groups(groups)})" + (f" and ({marker})" if marker else "")
        for marker, groups in having.items()
    )


def _in_groups(names: Iterable[str]) -> str:
    return " or ".join(f"'{name}' in dependency_groups" for name in names)


def _in_none(names: Iterable[str]) -> str:
    return " and ".join(f"'{name}' not in dependency_groups" for name in names)


def _guard(marker: str) -> dict[str, Any]:
    """Return the package that is needed where *marker* holds, with no file for any machine."""
    wheel = {"name": _NO_WHEEL, "path": _NO_WHEEL, "hashes": {"sha256": "0" * 64}}
    return {"name": GUARD, "marker": str(Marker(marker)), "wheels": [wheel]}


def _free(name: str, taken: Iterable[str]) -> str:
    own, number = name, 1
    while own in taken:
        number += 1
        own = f"{name}-{number}"
    return own


def _metadata(
    package: ResolvedPackage, documents: Callable[[Any], Sequence[Mapping[str, Any]]]
) -> dict[str, Any]:
    label = package.candidate.label or ""
    found = documents(package)  # nothing for a build of the catalogue
    if not found and package.metadata is not None:
        return lock_entries.build_table(package.metadata, label)
    return lock_entries.write_table(found, [label])
