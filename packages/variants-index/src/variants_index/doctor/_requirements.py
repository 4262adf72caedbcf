"""Which installed distributions require which: unmet requirements, and what nobody requires."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pep_variants import selection as wheel_selection

if TYPE_CHECKING:
    from packaging.version import Version

    from pep_variants.wheel_files import Installed

_LIBRARY = re.compile(r"(?:^|-)cu(?:da)?1\d(?:-|$)")
"""In names of projects with libraries for one version of CUDA."""


class Requirers:
    """What installed distributions require of each other.

    Attributes:
        items: what is installed, by normalized name.
    """

    def __init__(self, items: Iterable[Installed], environment: Mapping[str, str]) -> None:
        """Set up.

        Args:
            items: what is installed.
            environment: values of marker variables of the environment (PEP 508).
        """
        self.items = {item.project: item for item in items}
        self._environment = dict(environment)
        self._requires: dict[str, list[Requirement]] = {}

    def of(self, name: str) -> Iterator[Requirement]:
        """Yield what the distribution *name* requires here, without what extras add."""
        if name not in self._requires:
            self._requires[name] = list(_parsed(self.items[name]))
        for requirement in self._requires[name]:
            marker = requirement.marker
            if marker is None or marker.evaluate({**self._environment, "extra": ""}):
                yield requirement

    def admit(self, name: str, version: Version, besides: Collection[str]) -> bool:
        """Return whether *version* of *name* will do for all that require it but *besides*."""
        return all(
            requirement.specifier.contains(version, prereleases=True)
            for other in self.items
            if other not in besides
            for requirement in self.of(other)
            if canonicalize_name(requirement.name) == name
        )

    def unmet(self, names: Collection[str]) -> Iterator[tuple[Installed, Requirement, Installed]]:
        """Yield who requires what of projects in *names* that is installed otherwise."""
        for other, item in self.items.items():
            for requirement in self.of(other):
                name = canonicalize_name(requirement.name)
                found = self.items.get(name) if name in names else None
                if found is not None and not requirement.specifier.contains(
                    found.version, prereleases=True
                ):
                    yield item, requirement, found

    def required(self, without: Iterable[str] = ()) -> set[str]:
        """Return the names that what is installed requires, but for what is in *without*."""
        return wheel_selection.required_by(self.items, self.items.keys() - set(without))

    def orphans(self) -> list[str]:
        """Return the projects with libraries for one version of CUDA that nothing requires."""
        gone = {
            name
            for name, item in self.items.items()
            if _LIBRARY.search(name) and not item.is_requested
        }
        return sorted(gone - self.required(gone)) if gone else []


def _parsed(item: Installed) -> Iterator[Requirement]:
    for text in item.requires:
        try:
            yield Requirement(text)
        except InvalidRequirement:  # one with a variant marker, of an installer without variants
            continue
