"""A session that reads pages and METADATA out of a record, in place of indexes."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from packaging.tags import parse_tag
from packaging.utils import canonicalize_name

from pep_variants.preferences import Preferences, Sources
from variants_catalog.catalogs import shipped_catalog
from variants_catalog.listings import pages_of
from variants_index.finder import Response, Session
from variants_index.http import NotFound
from variants_index.pages import Page, PageFile
from variants_index.target import Target

from .record import PUBLIC, SDIST, Pages, Record, Release
from .supposed import supposed

SOURCES = Sources(index_url=f"{PUBLIC}/")
PREFERENCES = Preferences(catalog="default")


def every_page(record: Record) -> tuple[Pages, frozenset[str]]:
    """Return the releases of all pages by URL, and which of these pages were not read."""
    found = {
        page if "://" in page else f"{PUBLIC}/{page}/": releases
        for page, releases in record.pages.items()
    }
    unread = set()
    catalog = shipped_catalog()
    for name in catalog.names():
        entry = catalog.project(name)
        for page in pages_of(entry) if entry is not None else ():
            if entry is not None and page.place and page.url not in found:
                own = record.pages.get(name, {})
                found[page.url] = supposed(entry, page, own)
                unread.add(page.url)
    return {url: releases for url, releases in found.items() if releases}, frozenset(unread)


def for_target(pages: Pages, target: Target) -> Pages:
    """Return *pages* with the files that *target* can use; of a release without any, one."""
    tags = frozenset(target.tags)
    every = {tag for releases in pages.values() for held in releases.values() for tag in held.tags}
    usable = {SDIST, *(tag for tag in every - {SDIST} if not tags.isdisjoint(parse_tag(tag)))}
    return {
        url: {
            version: replace(
                release, tags=tuple(filter(usable.__contains__, release.tags)) or release.tags[:1]
            )
            for version, release in releases.items()
        }
        for url, releases in pages.items()
    }


class RecordSession(Session):
    """Answers as the indexes of a record would."""

    def __init__(self, pages: Pages) -> None:
        """Set up with the releases of all *pages* by URL."""
        super().__init__(SOURCES, environ={}, keyring=False, offline=True)
        self._pages = pages
        self._known: dict[str, tuple[str, str, Release]] = {}

    def fetch_page(self, url: str, project: str = "", **_: Any) -> Page:  # noqa: ANN401
        """Return the page at *url*."""
        releases = self._pages.get(url)
        if releases is None:
            raise NotFound("not found", url=url)
        files = []
        for version, release in releases.items():
            for name in filenames(project, version, release):
                at = f"{url}{name}"
                self._known[at] = project, version, release
                files.append(page_file(name, at, release))
        return Page(canonicalize_name(project), tuple(files))

    def fetch(self, url: str, **_: Any) -> Response:  # noqa: ANN401
        """Return METADATA of a wheel."""
        known = self._known.get(url.removesuffix(".metadata"))
        if known is None:
            raise NotFound("not found", url=url)
        return Response(url, "text/plain", metadata(*known))

    @contextmanager
    def stream(self, url: str) -> Iterator[Iterator[bytes]]:
        """Yield a source distribution, whose metadata is known after a build alone."""
        yield iter([sdist(*self._known[url][:2])])


def filenames(project: str, version: str, release: Release) -> list[str]:
    """Return the names of the files of a release."""
    stem = f"{project.replace('-', '_')}-{version}"
    return [f"{stem}.tar.gz" if tag == SDIST else f"{stem}-{tag}.whl" for tag in release.tags]


def page_file(name: str, url: str, release: Release) -> PageFile:
    """Return a file of *release* as its page lists it."""
    # The same wheel on two pages has the same name.
    is_wheel = name.endswith(".whl")
    hashes = {"sha256": hashlib.sha256(name.encode()).hexdigest()} if is_wheel else {}
    yanked = "" if release.yanked else None
    beside: dict[str, str] | None = {} if is_wheel else None
    python = release.python or None
    return PageFile(name, url, hashes, python, yanked, core_metadata=beside)


def metadata(project: str, version: str, release: Release) -> bytes:
    """Return METADATA of a wheel of *release*."""
    lines = ("Metadata-Version: 2.1", f"Name: {project}", f"Version: {version}", *release.requires)
    return "\n".join((*lines, "")).encode()


def sdist(project: str, version: str) -> bytes:
    """Return a source distribution that has to be built for its metadata."""
    found = io.BytesIO()
    text = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n".encode()
    with tarfile.open(fileobj=found, mode="w:gz") as archive:
        member = tarfile.TarInfo(f"{project.replace('-', '_')}-{version}/PKG-INFO")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    return found.getvalue()
