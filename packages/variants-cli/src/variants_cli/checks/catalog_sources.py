"""The sources that entries of a catalogue name, visited several at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pep_variants.errors import redacted
from pep_variants.model.label import split_label
from variants_index.errors import (
    AccessDenied,
    InvalidPage,
    NotFound,
    PackageIndexError,
    Unreachable,
)
from variants_index.finder import PackageFinder
from variants_index.pages import PageFile
from variants_index.prefetch import Prefetcher

from .finding import Finding, error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pep_variants.sources import Sources
    from variants_index.http.session import Session

_THREADS = 8

UNREACHABLE = "source-unreachable"
"""Code of the finding for a host that does not answer."""


@dataclass(frozen=True)
class Listing:
    """What a source has of a project.

    Attributes:
        url: of the page, without credentials.
        files: non-variant wheels; empty after a failure.
        others: number of other files, such as source distributions and variant wheels.
        failure: code, message and remedy if there is no page; None if there is one.
        unknown: not visited, because the user did not want it or the host does not answer.
    """

    url: str
    files: tuple[PageFile, ...] = ()
    others: int = 0
    failure: tuple[str, str, str] | None = None
    unknown: bool = False

    def finding(self, source: str, place: str) -> Finding | None:
        """Return what is wrong with the source, None if it has a page.

        Args:
            source: file of the entry.
            place: where in it the source is named.
        """
        if self.failure is None:
            return None
        code, message, remedy = self.failure
        return error(code, source, place, message, remedy)


@dataclass
class CatalogSources:
    """Fetches what the sources have; each once, whatever entries name it.

    Attributes:
        session: fetches the pages.
        sources: the user's indexes, which have the projects that entries name.
        only: beginnings of the URLs that are visited; empty for all.
        skipped: URLs that `only` leaves out.
        unreachable: by host that does not answer, the reason and the URLs that were not fetched.
    """

    session: Session
    sources: Sources
    only: tuple[str, ...] = ()
    skipped: set[str] = field(default_factory=set)
    unreachable: dict[str, tuple[str, set[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._prefetcher = Prefetcher(_THREADS)
        self._finder = PackageFinder(self.session, self.sources, self._prefetcher)

    def close(self) -> None:
        """End the threads."""
        self._prefetcher.close()

    def start_page(self, url: str, name: str) -> None:
        """Begin to fetch the page *url* of the project *name*."""
        if self._wanted(url):
            self._prefetcher.start(("page", url, name), partial(self._page, url, name))

    def start_project(self, name: str) -> None:
        """Begin to find the project *name* on the user's indexes."""
        if any(map(self._wanted, self._places(name))):
            self._finder.start(name)

    def page(self, url: str, name: str) -> Listing:
        """Return what the page *url* has of the project *name*."""
        if not self._wanted(url):
            self.skipped.add(url)
            return Listing(redacted(url), unknown=True)
        found = self._prefetcher.result(("page", url, name), partial(self._page, url, name))
        return self._answered(found)

    def project(self, name: str) -> Listing:
        """Return what the user's indexes have of the project *name*."""
        places = self._places(name)
        if not any(map(self._wanted, places)):
            self.skipped.update(places[-1:])
            return Listing(places[-1] if places else name, unknown=True)
        try:
            found = self._finder.project(name)
        except PackageIndexError as problem:
            return self._answered(
                Listing(places[-1] if places else name, failure=_failure(problem))
            )
        files = [item.file for group in found.versions.values() for item in group]
        if not files:
            failure = (
                "project-missing",
                f"{name} is not on {', '.join(places) or 'any index'}",
                "correct the name, or remove the variant",
            )
            return Listing(places[-1] if places else name, failure=failure)
        return _listing(found.places[0], files)

    def has_name(self, name: str) -> bool:
        """Return whether the user's indexes know the project *name*, with or without files."""
        try:
            return bool(self._finder.project(name).places)
        except PackageIndexError:
            return True  # not known to be free

    def _answered(self, listing: Listing) -> Listing:
        """Return *listing*, noting a host that does not answer: it is reported once."""
        if listing.failure is None or listing.failure[0] != UNREACHABLE:
            return listing
        host = urlsplit(listing.url).netloc
        reason = listing.failure[1].removeprefix(f"{listing.url}: ")
        self.unreachable.setdefault(host, (reason, set()))[1].add(listing.url)
        return Listing(listing.url, unknown=True)

    def _places(self, name: str) -> list[str]:
        """Return where the user's settings look for the project *name*, the main index last."""
        links = set(self.sources.links)
        return [place if place in links else f"{place}{name}/" for place in self._finder.places]

    def _wanted(self, url: str) -> bool:
        return not self.only or any(
            f"{url.rstrip('/')}/".startswith(f"{start.rstrip('/')}/") for start in self.only
        )

    def _page(self, url: str, name: str) -> Listing:
        self.session.add_index(url)
        try:
            page = self.session.fetch_page(url, name)
        except PackageIndexError as problem:
            return Listing(redacted(url), failure=_failure(problem))
        if not page.files:
            failure = (
                "source-empty",
                f"{redacted(url)} lists no files; a page that asks to log in looks like that",
                "look at it in a browser; correct the URL, or remove the variant",
            )
            return Listing(redacted(url), failure=failure)
        return _listing(redacted(url), page.files)


def _listing(url: str, files: list[PageFile] | tuple[PageFile, ...]) -> Listing:
    wheels = tuple(_wheels(files))
    return Listing(url, wheels, len(files) - len(wheels))


def _wheels(files: list[PageFile] | tuple[PageFile, ...]) -> Iterator[PageFile]:
    for file in files:
        if file.filename.endswith(".whl") and split_label(file.filename)[1] is None:
            yield file


def _failure(problem: PackageIndexError) -> tuple[str, str, str]:
    """Return code, message and remedy for a source without a page."""
    message = str(problem)
    if isinstance(problem, NotFound):
        return "source-missing", message, "correct the URL, or remove the variant"
    if isinstance(problem, AccessDenied):
        return "source-login", message, "name a source that everyone can read"
    if isinstance(problem, InvalidPage):
        return "source-invalid", message, "name a page of the simple API, or of links"
    if isinstance(problem, Unreachable):
        return UNREACHABLE, message, "try again later; --only URL leaves other hosts out"
    return "source-unusable", message, "name a source that installers can read"
