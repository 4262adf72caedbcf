"""Packages of an export that stand for another project: cupy, which is cupy-cuda13x here.

Their wheels are made on the spot from the catalogue, so other installers cannot get them. The
project that they require is in the export as well, with its own files; without the wheels the
export installs the same. uv gives that project a marker for the platforms of the wheels. Elsewhere
the package itself is meant: it stays where that marker does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from .marker_complement import outside


@dataclass(frozen=True)
class Redirect:
    """A version with wheels that require another project.

    Attributes:
        name: normalized name.
        version: as the export has it.
        instead: normalized names of the projects that have the files, most often one; platforms
            may differ.
        here: those of them that this machine gets, empty if only other platforms do.
        wheels: label and plain filename of the wheels.
        has_others: whether there are wheels of the package itself, for other platforms.
    """

    name: str
    version: str
    instead: tuple[str, ...]
    here: tuple[str, ...]
    wheels: frozenset[tuple[str | None, str]]
    has_others: bool

    def __str__(self) -> str:
        names = " or ".join(self.here or self.instead)
        where = "here" if self.here else "on other platforms"
        return f"{self.name} {self.version} is {names} {where}"


@dataclass(frozen=True)
class Redirects:
    """What an export says of such packages.

    Attributes:
        find: returns the redirect that a package (normalized name, version) is, None for others.
        say: prints a line, once.
    """

    find: Callable[[str, str], Redirect | None]
    say: Callable[[str], None]

    def remaining(
        self,
        redirect: Redirect,
        marker: str,
        exported: Mapping[str, Sequence[str]],
        *,
        has_others: bool,
    ) -> str | None:
        """Return the marker with which a package stays in the export, None if it does not.

        It is empty for a package that had none, and whose redirects are of no use here.

        Args:
            redirect: the package.
            marker: that it has, empty for none.
            exported: markers of all packages by normalized name.
            has_others: whether the export can install it without its redirects.
        """
        markers = [each for name in redirect.instead for each in exported.get(name, ())]
        if exported.keys().isdisjoint(redirect.here or redirect.instead):
            if has_others and not redirect.here:
                return marker
            self.say(f"{redirect}, which is not exported")
            return None
        self.say(f"{redirect}, which is exported in its place")
        return outside(marker, markers) if has_others else None


def markers_of(packages: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the markers of *packages* (normalized name, marker) by name."""
    found: dict[str, list[str]] = {}
    for name, marker in packages:
        found.setdefault(name, []).append(marker)
    return found
