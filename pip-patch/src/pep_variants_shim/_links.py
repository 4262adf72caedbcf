"""pip's links and candidate infos as files of projects, those of the catalogue among them.

Of a file that the catalogue describes pip sees what was published: its URL, hash and version, and
its filename unless the file is installed under another name. What chooses among variants sees the
labelled name and the public version.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pip._internal.models.link import Link
from pip._vendor.packaging.version import Version

from pep_variants import labels as wheel_labels

if TYPE_CHECKING:
    from variants_catalog.entries import CatalogProject, PublishedFile

Info = tuple[Any, Callable[[], Any]]
"""Version, and a partial of the factory's method that makes the candidate of a link."""


MetadataLinks = dict[tuple[str, Any], Any]
"""pip's links to metadata files by source, and project and version."""


class CatalogLink(Link):  # type: ignore[misc] # pip is not there for mypy
    """A link to a file that the catalogue describes.

    Attributes:
        published: pip's link to the same file.
        entry: of the project.
        file: the published file as a variant wheel.
        version: its public version, as pip compares versions.
        place: URL of the page, or what the file is required as, for messages.
        downloaded: path of the published file, once pip has it and its hash is checked.
    """

    def __init__(
        self,
        published: Any,
        entry: CatalogProject,
        file: PublishedFile,
        place: str = "",
        yanked: str | None = None,
    ) -> None:
        """Make the link; *place* is empty for a file of the user's own indexes."""
        start, _, fragment = published.url.partition("#")
        if not place:  # the file is listed as a plain one as well
            fragment = "&".join(filter(None, [fragment, f"variant={quote(file.label)}"]))
        super().__init__(
            f"{start}#{fragment}" if fragment else start,
            comes_from=published.comes_from,
            requires_python=published.requires_python,
            yanked_reason=yanked,
            metadata_file_data=published.metadata_file_data,
            cache_link_parsing=published.cache_link_parsing,
            hashes=published._hashes,
        )
        self.published = published
        self.entry = entry
        self.file = file
        self.version: Any = Version(str(file.version))
        self.place = place or file.origin or next(iter(file.requires), entry.name)
        self.downloaded = ""

    @property
    def filename(self) -> str:
        """The publisher's filename, or one of the project under whose name it is installed."""
        if self.file.origin:
            return wheel_labels.split_label(self.file.filename)[0]
        return str(self.published.filename)

    @property
    def origin(self) -> dict[str, str]:
        """Name and version that the publisher gave the file, if it is installed under another."""
        if not self.file.origin:
            return {}
        return {"name": self.file.origin, "version": self.file.published_version}

    @property
    def source(self) -> str:
        """The entry, as the one source of all files of the project."""
        return self.entry.source or self.entry.documentation


def catalog_link(link: Any) -> CatalogLink | None:
    """Return *link* if the catalogue describes its file, None for all others."""
    return link if isinstance(link, CatalogLink) else None


def rewritten_link(link: Any) -> CatalogLink | None:
    """Return *link* if its file is rewritten before it is installed, None for all others."""
    known = catalog_link(link)
    return known if known is not None and known.file.is_rewritten else None


def filename_of(link: Any) -> str:
    """Return the filename of *link*, the labelled one if the catalogue describes it."""
    known = catalog_link(link)
    return str(link.filename) if known is None else known.file.filename


class PlaceLink(Link):  # type: ignore[misc] # pip is not there for mypy
    """A link of a page of the catalogue, whose filename is read as everywhere else."""

    @property
    def filename(self) -> str:
        """The filename."""
        return wheel_labels.filename_of_url(self.url)


def placed(link: Any, at: Callable[[str], str]) -> Any:
    """Return *link* of a page of the catalogue, with the URL that *at* returns for its own."""
    url = at(link.url)
    if url == link.url and "%252" not in url:
        return link
    return PlaceLink(
        url,
        comes_from=link.comes_from,
        requires_python=link.requires_python,
        yanked_reason=link.yanked_reason,
        metadata_file_data=link.metadata_file_data,
        cache_link_parsing=link.cache_link_parsing,
        hashes=link._hashes,
    )


def label_of_link(link: Any) -> str | None:
    """Return the variant label of the file at *link*, None for a non-variant file."""
    known = catalog_link(link)
    return wheel_labels.split_label(link.filename)[1] if known is None else known.file.label


def catalog_first(infos: list[Any]) -> list[Any]:
    """Return pip's *infos* with those of the catalogue before others of their public version.

    Files of the user's own indexes that have a local version, and that the catalogue does not
    describe, stay in front: for pip they are the newer ones.
    """

    def place(info: Any) -> int:
        if _is_of_catalog(info):
            return 1
        return 0 if info[0].local else 2

    if not any(map(_is_of_catalog, infos)):
        return infos
    groups = itertools.groupby(infos, key=lambda info: str(info[0].public))
    return [info for _, group in groups for info in sorted(group, key=place)]


def null_last(infos: list[Any], urls: Sequence[str]) -> list[Any]:
    """Return pip's *infos* with null variants behind plain files of earlier indexes.

    Where all else is equal pip takes the file of the last index, and no earlier index may be
    replaced by adding ``-null`` to a filename.

    Args:
        infos: of one project, those of one version together.
        urls: of pip's indexes, in their order.
    """

    def position(info: Any) -> int:
        return index_position(source_of(link_of(info)), urls)

    found: list[Any] = []
    for _, items in itertools.groupby(infos, key=lambda info: str(info[0])):
        group = list(items)
        plain = min((position(info) for info in group if label_in(info) is None), default=len(urls))
        late = [
            info
            for info in group
            if label_in(info) == wheel_labels.NULL_LABEL and position(info) > plain
        ]
        found += [info for info in group if info not in late] + late
    return found


def index_position(page: str, urls: Sequence[str]) -> int:
    """Return the number of the index that has *page*, from 1; 0 for files of ``--find-links``."""
    places = ((len(url.rstrip("/")), -number, url) for number, url in enumerate(urls, 1))
    found = [place for place in places if page.startswith(f"{place[2].rstrip('/')}/")]
    return -max(found)[1] if found else 0  # one may be below another


def _is_of_catalog(info: Any) -> bool:
    return isinstance(link_of(info), CatalogLink)


class VariantVersion(Version):  # type: ignore[misc] # pip's packaging is not there for mypy
    """A version that differs from the same version with another label.

    pip takes one candidate of each version and skips what compares equal to one it has. Variants
    of one version are different candidates, so that the next is tried where one conflicts: they
    are ordered by label, before the plain version.

    With ``--upgrade`` pip offers what is installed before every version that is ``<=`` it. A
    version with *goes_first* is greater than all others.
    """

    def __init__(self, version: Any, label: str, *, goes_first: bool = False) -> None:
        super().__init__(str(version))
        self._place = (goes_first, Version(str(version)), False, label)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VariantVersion) and self._place == other._place

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Version) -> bool:
        return self._place < _place_of(other)

    def __le__(self, other: Version) -> bool:
        return self._place <= _place_of(other)

    def __gt__(self, other: Version) -> bool:
        return self._place > _place_of(other)

    def __ge__(self, other: Version) -> bool:
        return self._place >= _place_of(other)

    def __hash__(self) -> int:
        return hash(self._place)


def _place_of(version: Any) -> tuple[bool, Any, bool, str]:
    """Return what *version* is ordered by among versions, plain ones among them."""
    return getattr(version, "_place", (False, version, True, ""))


def link_of(info: Any) -> Any:
    """Return the link of an info or a candidate, None of an installed one."""
    if not isinstance(info, tuple):
        return info.source_link
    return info[1].keywords["link"]


def label_in(info: Any) -> str | None:
    """Return the label of the file of an info, None for a non-variant file."""
    return label_of_link(link_of(info))


def source_of(link: Any) -> str:
    """Return the URL of the page that lists *link*, or the folder of a local file.

    The entry for files that the catalogue describes.
    """
    known = catalog_link(link)
    if known is not None:
        return known.source
    page = link.comes_from
    if page is None:
        return str(link.url_without_fragment).rpartition("/")[0]
    return str(page)
