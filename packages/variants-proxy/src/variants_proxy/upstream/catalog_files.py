"""Files of the catalogue on a page: published wheels under the names of variant wheels.

`CatalogPages` adds them to the page of an upstream, so whatever chooses among variant wheels
chooses among them as well. There are three kinds of them:

- *published*: the publisher's file, which pages list with its own name, URL and hash;
- *rewritten*: one that gets dependencies of the catalogue, or the name of the project, before it is
  installed, see `variants_catalog.installed_builds`;
- variant wheels of the index that the catalogue names for a project.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final

from variants_index import PageFile

from ..settings import Upstream
from .upstream_pages import FetchedPage

if TYPE_CHECKING:  # a proxy without a catalogue does not import `variants_catalog`
    from pep_variants import Metadata
    from variants_catalog.internal import CatalogProject, PublishedFile, Unavailable


@dataclass(kw_only=True)
class CatalogFile(PageFile):
    """A file that the catalogue adds to a page, or that it knows by another name.

    Attributes:
        upstream: that the file is fetched from; it is not the page's.
        original: as the page that lists it has it.
        known: what the catalogue says of it; None for a file of an index of variants.
        entry: of the project.
        metadata: variant metadata of its version, one object for equal ones; None for a file of an
            index of variants.
    """

    upstream: Final[Upstream] = field(compare=False)
    original: Final[PageFile] = field(compare=False)
    entry: Final[CatalogProject] = field(compare=False, repr=False)
    known: Final[PublishedFile | None] = field(default=None, compare=False)
    metadata: Final[Metadata | None] = field(default=None, compare=False, repr=False)

    @property
    def label(self) -> str | None:
        """Variant label that the catalogue gives it."""
        return None if self.known is None else self.known.label


@dataclass(frozen=True)
class CatalogPage(FetchedPage):
    """The page of an upstream with what the catalogue adds to it.

    Attributes:
        entry: of the project.
        problem: why the catalogue cannot be read, empty if it was.
        unavailable: builds that cannot be had for now.
        excluded: whether builds are left out because of hashes that are given.
    """

    entry: CatalogProject | None = None
    problem: str = ""
    unavailable: tuple[Unavailable, ...] = ()
    excluded: bool = False


def listed_as(
    file: PageFile,
    name: str,
    upstream: Upstream,
    entry: CatalogProject,
    known: PublishedFile | None = None,
    metadata: Metadata | None = None,
) -> CatalogFile:
    """Return *file* of *upstream* under the name *name*; see `CatalogFile` for the others."""
    listed = {item.name: getattr(file, item.name) for item in fields(PageFile)}
    listed["filename"] = name
    return CatalogFile(
        **listed, upstream=upstream, original=file, entry=entry, known=known, metadata=metadata
    )


def published(file: PageFile) -> CatalogFile | None:
    """Return *file* if it is the publisher's, which clients get under its own name."""
    if isinstance(file, CatalogFile) and file.known is not None:
        return None if file.known.is_rewritten else file
    return None


def published_as(file: PageFile) -> str:
    """Return what installs *file* under its publisher's own name, empty if that is the project's.

    For example ``cupy-cuda12x==14.2.0``.
    """
    if not isinstance(file, CatalogFile) or file.known is None or not file.known.origin:
        return ""
    from variants_catalog.internal import Origin

    return Origin.of_file(file.known, file.url, {}).requirement


def is_rewritten(file: PageFile) -> bool:
    """Return whether the wheel *file* is changed before it is installed."""
    return isinstance(file, CatalogFile) and file.known is not None and file.known.is_rewritten


def installed(file: PageFile, metadata: bytes) -> bytes:
    """Return *metadata*, that of *file*, as it is installed, variant markers aside.

    Raises:
        InvalidWheel: *metadata* is not valid, or of another project.
    """
    if isinstance(file, CatalogFile) and file.known is not None:
        from variants_catalog.internal import installed_metadata

        return installed_metadata(metadata, file.entry, file.known)
    return metadata


def added(file: PageFile) -> dict[str, bytes]:
    """Return what *file* gets in its dist-info folder, by name; nothing if it is not rewritten."""
    if isinstance(file, CatalogFile) and file.known is not None:
        from variants_catalog.internal import added_files

        return added_files(file.entry, file.known, file.url, file.hashes)
    return {}


def origin(upstream: Upstream, file: PageFile) -> Upstream:
    """Return the upstream that *file*, on a page of *upstream*, is fetched from."""
    return file.upstream if isinstance(file, CatalogFile) else upstream


def release_origin(upstream: Upstream, wheels: Iterable[PageFile]) -> Upstream:
    """Return the upstream of the variants among *wheels*, those of one version."""
    found = (file.upstream for file in wheels if isinstance(file, CatalogFile))
    return next(found, upstream)


def known_variants(wheels: Iterable[PageFile]) -> Metadata | None:
    """Return the variant metadata of a version whose variants the catalogue describes."""
    found = (file.metadata for file in wheels if isinstance(file, CatalogFile))
    return next((item for item in found if item is not None), None)
