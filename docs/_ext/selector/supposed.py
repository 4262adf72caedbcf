"""What an entry of the catalogue says is on a page that could not be read.

It is no more than the entry: of each release of the public index that a variant is about, one wheel
for each Python and system that the release has, with the local version that marks such builds.
Where builds are of a release of another project, nothing tells which there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from packaging.version import Version

from pep_variants import machines
from variants_catalog.entries import PLACEHOLDER, CatalogProject, CatalogVariant, platform_kind
from variants_catalog.listings import PlacePage

from .record import SDIST, Release

ELSEWHERE = "10.0.0"
"""Stands for the version of what a publisher's index alone has, and no page tells."""
_LINUX = "linux_x86_64"


def supposed(
    entry: CatalogProject, page: PlacePage, public: Mapping[str, Release]
) -> dict[str, Release]:
    """Return the releases of *page* by version as published.

    Args:
        entry: of the project.
        page: one of its pages.
        public: releases of the project on the public index.
    """
    if entry.is_elsewhere:
        return {ELSEWHERE: Release(("py3-none-any",))}
    found: dict[str, Release] = {}
    for item in entry.variants:
        if item.place != page.place or PLACEHOLDER.search("".join(item.local or ())):
            continue
        for text, release in {**public, **_pinned(item, public)}.items():
            if not item.admits(Version(text)):
                continue
            for version, tags in _files(item, text, release.tags):
                known = found.get(version, replace(release, tags=()))
                extras = tuple(f"Provides-Extra: {name}" for name in _extras(item))
                every = dict.fromkeys((*known.tags, *tags))
                requires = dict.fromkeys((*known.requires, *extras))
                found[version] = replace(known, tags=tuple(every), requires=tuple(requires))
    return {version: release for version, release in found.items() if release.tags}


def _pinned(item: CatalogVariant, public: Mapping[str, Release]) -> dict[str, Release]:
    """Return releases that a variant names and the public index has not, as the ones before."""
    names = {each.version for each in item.versions if each.operator == "=="}
    older = {
        name: max((text for text in public if Version(text) < Version(name)), key=Version)
        for name in names - public.keys()
        if not name.endswith(".*") and any(Version(text) < Version(name) for text in public)
    }
    return {name: public[before] for name, before in older.items()}


def _files(
    item: CatalogVariant, version: str, public: Iterable[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield versions as published, each with the tags of its wheels."""
    public = [tag for tag in public if tag != SDIST]
    pythons = dict.fromkeys(tag.rpartition("-")[0] for tag in public)
    here = {platform_kind(each) for tag in public for each in tag.rpartition("-")[2].split(".")}
    if item.platforms:
        kinds = {platform_kind(each): each for each in item.platforms}
    elif item.properties and machines.ACCELERATORS.keys() & item.known_namespaces:
        kinds = {_LINUX: f"many{_LINUX}"}
        if "intel" in item.known_namespaces and "win_amd64" in here:
            kinds["win_amd64"] = "win_amd64"
    else:
        kinds = {
            platform_kind(each): each
            for tag in public
            for each in tag.rpartition("-")[2].split(".")
        }
    marks = item.local or ("",)
    for kind, platform in kinds.items():
        tag = platform.replace("manylinux_2_17_", "manylinux_2_28_").replace(
            "manylinux_x", "manylinux_2_28_x"
        )
        mark = "" if "" in marks and kind.startswith("macosx") else marks[0]
        yield f"{version}+{mark}" if mark else version, [f"{python}-{tag}" for python in pythons]


def _extras(item: CatalogVariant) -> Iterator[str]:
    for text in item.requires[:1]:
        yield from filter(None, text.partition("[")[2].partition("]")[0].split(","))
