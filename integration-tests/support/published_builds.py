"""A stand-in for the places that a catalogue names, with tiny wheels for what its entries say.

The pages are laid out as those places have them: HTML with percent-encoded ``+`` in links, files on
another host, and no local version in what is for macOS. Clients reach them
by ``--variant-catalog-mirror``, so the entries themselves are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.version import Version

import variants_catalog
from variants_catalog._catalogs import DirectoryCatalog
from variants_catalog.entries import PLACEHOLDER, CatalogProject, target

from .index import Index, served
from .wheels import PURE, Wheel

LINUX = "py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64"
ARM = "py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64"
WINDOWS = "py3-none-win_amd64"
MAC = "py3-none-macosx_11_0_arm64"
PLATFORMS = (LINUX, ARM, WINDOWS, MAC)
BUILT_AGAINST = "2.11"
"""What stands for a placeholder, such as the release of torch that a build is for."""
TORCH = ("2.5.1", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.13.0", "2.14.0")
"""Releases of torch: every place of its entry has at least one of them."""


@dataclass
class Builds(Index):
    """Pages of all places but PyPI."""

    api: str = "html"

    def put(self, page: str, wheel: Wheel) -> None:
        """Put a wheel on the page at the URL *page*."""
        self.add(page_path(page), wheel.filename, wheel.build())

    @property
    def mirrors(self) -> dict[str, str]:
        """What replaces the hosts of the places, for ``--variant-catalog-mirror``."""
        hosts = {path.split("/")[2] for path in self.files}
        return {f"https://{host}": f"{self.root}/hosts/{host}" for host in sorted(hosts)}


def page_path(page: str) -> str:
    """Return the path under which the page at the URL *page* is served."""
    parts = urlsplit(page)
    return f"/hosts/{parts.netloc}{parts.path}"


@dataclass
class Field:
    """All there is for the projects of a catalogue.

    Attributes:
        index: stands for PyPI.
        builds: the other places.
        files: the files of the places, while they are served.
    """

    index: Index
    builds: Builds
    files: Builds = field(default_factory=Builds)

    @property
    def sent(self) -> int:
        """How many bytes all have sent so far."""
        return sum(each.sent for each in (self.index, self.files, self.builds))

    @property
    def options(self) -> list[str]:
        """Options that send a client here, but for the catalogue itself."""
        return [f"--variant-catalog-mirror={item}" for item in self.mirrors]

    @property
    def mirrors(self) -> list[str]:
        """Values of ``--variant-catalog-mirror``."""
        return [f"{start}={place}" for start, place in self.builds.mirrors.items()]


def field_of(
    entries: Iterable[CatalogProject],
    versions: Mapping[str, Iterable[str]],
) -> Field:
    """Return the stand-in for *entries*, with the *versions* of each project.

    Args:
        entries: of the catalogue.
        versions: public versions by normalized name.
    """
    found = Field(Index(), Builds())
    for entry in entries:
        for place in entry.places:
            # Every page has files of other versions.
            found.builds.put(entry.page(place), Wheel(entry.name, "0.0.1+old", tag=LINUX))
        for text in versions[entry.name]:
            version = Version(text)
            extras: dict[str, str] = {}
            for item in entry.variants:
                if not item.admits(version):
                    continue
                if item.place is not None:
                    for wheel in _wheels(entry, item.local, text, item.place):
                        found.builds.put(entry.page(item.place), wheel)
                elif item.requires and target(item) == entry.name:
                    extra = item.requires[0].partition("[")[2].partition("]")[0]
                    extras[extra] = f"{entry.name}-{extra}-plugin"
                elif item.requires:
                    asked = Requirement(item.requires[0].replace("{version}", text)).extras
                    for tag in (LINUX, ARM, WINDOWS):
                        wheel = Wheel(target(item), text, tag=tag, extras=tuple(sorted(asked)))
                        found.index.add_wheel(wheel)
            for plugin in extras.values():
                found.index.add_wheel(Wheel(plugin, text, tag=LINUX))
            requires = tuple(
                f"{plugin}=={text}; extra == '{extra}'" for extra, plugin in extras.items()
            )
            for tag in (PURE,) if extras else PLATFORMS:
                plain = Wheel(entry.name, text, tag=tag, requires=requires, extras=tuple(extras))
                found.index.add_wheel(plain, metadata_file=True)
    return found


def _wheels(
    entry: CatalogProject, local: tuple[str, ...] | None, version: str, place: str
) -> Iterator[Wheel]:
    """Yield the wheels of one version at *place*: of every platform that has such builds."""
    marks = [PLACEHOLDER.sub(BUILT_AGAINST, text) for text in local or ("",)]
    only_mac = place.endswith("metal")
    everywhere = place.endswith("cpu")
    for tag in PLATFORMS:
        is_mac = tag == MAC
        if is_mac is not only_mac and not everywhere:
            continue
        mark = "" if is_mac and "" in marks else marks[0]
        text = f"{version}+{mark}" if mark else version
        yield Wheel(entry.name, text, tag=tag, files={f"{entry.name}-place.txt": place})


def published(**versions: Iterable[str]) -> Field:
    """Return the stand-in for the default catalogue's entries, with these versions of each."""
    catalog = DirectoryCatalog(variants_catalog.projects())
    entries = [entry for name in versions if (entry := catalog.project(name)) is not None]
    return field_of(entries, versions)


@contextmanager
def standing_in(found: Field) -> Iterator[Field]:
    """Serve *found*: the index, the places, and a host for files of the places."""
    files = found.files = Builds(found.builds.files, requests=found.builds.requests)
    with served(found.index), served(files), served(found.builds):
        found.builds.files_url = files.root
        yield found
