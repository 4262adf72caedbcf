"""Links of pip to files that the catalogue describes, and what they are as variant wheels.

pip sees what was published: its filename, URL, hash and version. What chooses among variants sees
the labelled name and the public version.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from pip._vendor.packaging.version import Version

from pep_variants.model.label import split_label

if TYPE_CHECKING:
    from variants_catalog.model import CatalogProject, PublishedFile


class CatalogLink:  # no dataclass: pip imports this with every command
    """What the catalogue says of one link.

    Attributes:
        entry: of the project.
        file: the published file as a variant wheel.
        version: its public version, as pip compares versions.
        place: URL of the index or find-links page, or the requirement, that it is from.
    """

    __slots__ = ("entry", "file", "place", "version")

    def __init__(self, entry: CatalogProject, file: PublishedFile, place: str) -> None:
        self.entry = entry
        self.file = file
        self.version: Any = Version(str(file.version))
        self.place = place

    @property
    def source(self) -> str:
        """The entry, as the one source of all files of the project."""
        return self.entry.source or self.entry.documentation


_links: dict[str, CatalogLink] = {}
"""By URL, the fragment included. pip makes links anew, so they cannot have attributes of ours."""


def note_link(link: Any, entry: CatalogProject, file: PublishedFile, place: str) -> None:
    """Keep what the file at *link* is."""
    _links[link.url] = CatalogLink(entry, file, place)


def catalog_link(link: Any) -> CatalogLink | None:
    """Return what the catalogue says of *link*, None for all others."""
    return _links.get(link.url) if _links and link is not None else None


def filename_of(link: Any) -> str:
    """Return the filename of *link*, the labelled one if the catalogue describes it."""
    known = catalog_link(link)
    return str(link.filename) if known is None else known.file.filename


def label_of_link(link: Any) -> str | None:
    """Return the variant label of the file at *link*, None for a non-variant file."""
    known = catalog_link(link)
    return split_label(link.filename)[1] if known is None else known.file.label


def catalog_first(infos: list[Any]) -> list[Any]:
    """Return pip's *infos* with those of the catalogue before others of their public version.

    Files of the user's own indexes that have a local version, and that the catalogue does not
    describe, stay in front: for pip they are the newer ones.
    """
    if not _links or not any(map(_of_info, infos)):
        return infos

    def place(info: Any) -> int:
        if _of_info(info) is not None:
            return 1
        return 0 if info[0].local else 2

    groups = itertools.groupby(infos, key=lambda info: str(info[0].public))
    return [info for _, group in groups for info in sorted(group, key=place)]


def _of_info(info: Any) -> CatalogLink | None:
    return catalog_link(info[1].keywords["link"])
