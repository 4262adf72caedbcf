"""pip's candidates as files, and the variant metadata beside them.

What is fetched, and what is made of it, is decided by `pep_variants._release`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pip._internal.models.link import Link
from pip._internal.resolution.resolvelib.base import Requirement
from pip._internal.utils.urls import path_to_url
from pip._vendor.packaging.utils import canonicalize_name

from pep_variants import safe_files, wheel_files
from pep_variants.errors import MetadataError
from pep_variants.metadata import Metadata, ReleaseFile, ReleaseReader
from resolvelib_variants.abi_requirements import AbiRequirement

from ._errors import is_no_file
from ._fetching import answer, time_limit
from ._links import (
    CatalogLink,
    Info,
    MetadataLinks,
    catalog_link,
    filename_of,
    label_of_link,
    link_of,
    source_of,
)

if TYPE_CHECKING:
    from variants_catalog.entries import PublishedFile


class InfoFiles:
    """`ProviderFiles` over pip's infos, and over the candidates that pip makes of them."""

    def __init__(
        self, links: MetadataLinks, network: Any, is_own_build: Callable[[Any], bool]
    ) -> None:
        """Set up.

        Args:
            links: links to metadata files, as they become known.
            network: pip's network session.
            is_own_build: tells of a link what `is_build` does.
        """
        self._is_own_build = is_own_build
        self._links = links
        self._network = network
        self._given: dict[str, Sequence[Info]] = {}
        self._slow: set[tuple[str, str]] = set()

    def note(self, project: str, candidates: Sequence[Info]) -> None:
        """Take note of all there is of *project*."""
        self._given[project] = candidates

    def version(self, candidate: Any) -> Hashable:
        """Return the version of the info, or of the candidate made of one.

        The public one for files that the catalogue describes.
        """
        known = catalog_link(link_of(candidate))
        if known is not None:
            return known.version  # type: ignore[no-any-return]
        version: Hashable = candidate[0] if isinstance(candidate, tuple) else candidate.version
        return version

    def filename(self, candidate: Any) -> str | None:
        """Return the filename that the link ends in, or the labelled name of the catalogue."""
        link = link_of(candidate)
        return None if link is None else filename_of(link)

    def is_build(self, candidate: Any) -> bool:
        """Return whether a wheel without label is a variant all the same."""
        return self._is_own_build(link_of(candidate))

    def project(self, identifier: str) -> str:
        """Return the normalized project name."""
        return str(canonicalize_name(identifier.partition("[")[0]))

    def has_variants(self, identifier: str) -> bool:
        """Not called: candidates are ordered already when the provider finds them."""
        raise NotImplementedError

    def dependencies(self, candidate: Any, reduce: object) -> Iterable[Any] | None:  # noqa: ARG002
        """Return None: pip reads metadata whose markers are reduced already."""
        return None

    def abi_requirement(self, condition: AbiRequirement[str]) -> Any:
        """Return the requirement for pip's resolver."""
        return PipAbiRequirement(condition)

    def metadata_hash(self, candidate: Info) -> Hashable | None:
        """Return the hashes of METADATA that its page gives, None if it gives none.

        None for files that the catalogue describes: it may add dependencies.
        """
        link = link_of(candidate)
        if catalog_link(link) is not None:
            return None
        promised = getattr(link, "metadata_file_data", None)
        hashes = getattr(promised, "hashes", None)
        return tuple(sorted(hashes.items())) if hashes else None

    def source(self, candidate: Info) -> str:
        """Return the page or directory that the link is from."""
        return source_of(link_of(candidate))

    def metadata(self, project: str, candidate: Info) -> Metadata:
        """Return the variant metadata of the candidate's version, from the same source.

        A source that took too long for one version of the project is not asked for others: pip
        may want the metadata of a hundred versions.

        Raises:
            VariantError: it cannot be fetched, or is broken.
        """
        link = link_of(candidate)
        known = catalog_link(link)
        if known is not None:
            unread = known.entry.unread_builds(known.file.version)
            return known.entry.metadata([*unread, *self._published(project, known)])
        source = source_of(link)
        if (project, source) in self._slow:
            problem = "took too long for another version, not asked again"
            raise MetadataError(source, "", problem, may_pass=True)
        index_file = self._metadata_link(project, candidate)
        reader = _reader(self._wheels(project, candidate[0], source), index_file, source)
        try:
            safe_files.within(
                time_limit(self._network.timeout),
                lambda: self._fetch_all(reader),
                "it takes longer than",
            )
        except TimeoutError as error:
            self._slow.add((project, source))
            place = source if index_file is None else str(index_file.url_without_fragment)
            problem = f"cannot be fetched: {error}"
            raise MetadataError(place, "", problem, may_pass=True) from None
        return reader.result()

    def document(self, project: str, candidate: Info) -> bytes:
        """Return the metadata file of the index, or without one the wheel's ``variant.json``.

        Raises:
            VariantError: it cannot be fetched, or is broken.
        """
        link = link_of(candidate)
        reader = _reader([link], self._metadata_link(project, candidate), source_of(link))
        self._fetch_all(reader)
        reader.result()
        (document,) = reader.documents.values()
        return document

    def _fetch_all(self, reader: ReleaseReader) -> None:
        while fetches := reader.wanted():
            reader.receive(fetches[0], answer(self._network, fetches[0]))

    def _metadata_link(self, project: str, candidate: Info) -> Any:
        link = link_of(candidate)
        filename = wheel_files.metadata_filename(project, str(candidate[0]))
        found = self._links.get((source_of(link), wheel_files.parse_metadata_filename(filename)))
        if found is None and link.is_file and link.comes_from is None:
            return _beside(link.file_path, filename)
        return found

    def _published(self, project: str, known: CatalogLink) -> list[PublishedFile]:
        """Return the catalogue's files of the version of *known*."""
        others = (catalog_link(link_of(info)) for info in self._given.get(project, ()))
        return [
            other.file for other in others if other is not None and other.version == known.version
        ]

    def _wheels(self, project: str, version: Hashable, source: str) -> list[Any]:
        """Return the links of the variant wheels of *version* in *source*."""
        links = [link_of(info) for info in self._given.get(project, ()) if info[0] == version]
        return [
            link for link in links if source_of(link) == source and label_of_link(link) is not None
        ]


def _beside(path: str, filename: str) -> Any:
    """Return the link to metadata file *filename* beside the file at *path*, None without one.

    pip lists only wheels and source distributions of a ``--find-links`` directory.
    """
    wanted = wheel_files.parse_metadata_filename(filename)
    folder = os.path.dirname(path)  # noqa: PTH120 - pip gives text
    for name in sorted(os.listdir(folder)):  # noqa: PTH208
        path = os.path.join(folder, name)  # noqa: PTH118
        if wheel_files.parse_metadata_filename(name) == wanted and not is_no_file(path):
            return Link(path_to_url(path))
    return None


def _reader(wheels: Sequence[Any], index_file: Any, source: str) -> ReleaseReader:
    return ReleaseReader(
        map(_release_file, wheels),
        None if index_file is None else _release_file(index_file),
        source=source,
    )


def _release_file(link: Any) -> ReleaseFile:
    return ReleaseFile(link.filename, str(link.url_without_fragment), link._hashes, link)


class PipAbiRequirement(Requirement):  # type: ignore[misc] # pip is not there for mypy
    """An `AbiRequirement` as a requirement of pip's resolver."""

    def __init__(self, requirement: AbiRequirement[str]) -> None:
        self._requirement = requirement

    def __str__(self) -> str:
        return str(self._requirement)

    @property
    def refusal(self) -> bool:
        """Whether it only rejects a provisional candidate."""
        return self._requirement.refusal

    @property
    def project_name(self) -> Any:
        """The normalized project name."""
        return canonicalize_name(self._requirement.name)

    @property
    def name(self) -> str:
        """The identifier of the required project."""
        return self._requirement.identifier

    def format_for_error(self) -> str:
        """Return it as text."""
        return str(self._requirement)

    def get_candidate_lookup(self) -> Any:
        """Return that it brings no candidates."""
        return None, None

    def is_satisfied_by(self, candidate: Any) -> bool:
        """Return whether *candidate* is of one of the allowed releases."""
        return self._requirement.allows(candidate.version)
