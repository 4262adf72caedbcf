"""A package index of static files: pages in HTML and JSON, and metadata files (PEP 503, 691)."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pep_variants.errors import VariantError
from pep_variants.files import write_if_changed
from variants_index.errors import InvalidPage
from variants_index.pages import (
    GENERATOR,
    JSON,
    Page,
    html_page,
    html_projects,
    json_page,
    json_projects,
    read_page,
)

from ..processes import mapped
from ..progress import tracked
from .scanning import CORE_METADATA_SUFFIX, FileState, state_of
from .update import PROVENANCE_SUFFIX
from .wheelhouse import read_core_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .update import Update
    from .wheelhouse import Distribution

HTML_PAGE = "index.html"
JSON_PAGE = "index.v1_json"

_GENERATED = f'content="{GENERATOR}"'.encode()
"""Marks generated pages; others are not removed."""


class UnreadablePage(VariantError):
    """A page of an earlier run that cannot be read, so that its upload times are not known."""


def read_own_page(folder: Path, project: str) -> Page | None:
    """Return the page that an earlier run wrote into *folder*, None if there is none.

    Raises:
        UnreadablePage: it is damaged.
    """
    path = folder / JSON_PAGE
    try:
        return read_page(path.read_bytes(), JSON, path.absolute().as_uri(), project)
    except FileNotFoundError:
        return None
    except InvalidPage as error:
        raise UnreadablePage(
            f"{error}: upload times and what was yanked are kept in it: restore it, or delete it "
            "to start again"
        ) from None


def page_html(page: Page, documents: Mapping[str, bytes], *, plain: bool) -> bytes:
    """Return *page* in HTML: for people as well, or with links alone."""
    if plain:
        return html_page(page)
    from ..project_pages import render

    return render(page, documents)


class IndexFiles:
    """Writes and removes the files of an index, each atomically.

    Files are written before those that link to them, and removed after.

    Attributes:
        changed: paths of the files that were written or removed.
    """

    def __init__(
        self,
        directory: Path,
        output: Path,
        base_url: str | None,
        *,
        plain_pages: bool = False,
    ) -> None:
        """Prepare to write.

        Args:
            directory: of the distributions.
            output: directory for the pages.
            base_url: URL where *directory* is served, None for relative links.
            plain_pages: HTML pages have links alone, and nothing for people.
        """
        self._plain_pages = plain_pages
        self._directory = directory
        self._output = output
        self._base_url = base_url
        self.changed: list[Path] = []

    def urls(self, project: str, paths: Mapping[str, str]) -> Callable[[str, str], str]:
        """Return the function that gives URLs on the page of *project*.

        Args:
            project: normalized name.
            paths: of its distributions relative to the directory, with slashes, by filename.
        """
        if self._base_url is not None:
            base = f"{self._base_url.rstrip('/')}/"
        else:
            relative = os.path.relpath(self._directory, self._output / project)
            base = f"{quote(Path(relative).as_posix())}/"

        def url_of(filename: str, _sha256: str) -> str:
            owner = filename.removesuffix(PROVENANCE_SUFFIX)
            if owner in paths:
                return f"{base}{quote(paths[owner] + filename[len(owner) :])}"
            return f"{base}{quote(filename)}"

        return url_of

    def write_metadata(self, wheels: Sequence[Distribution], jobs: int | None) -> None:
        """Write METADATA of *wheels* beside them (PEP 658).

        Raises:
            VariantError: one cannot be read any more, or not written.
        """
        kept: list[Distribution] = []
        dropped: list[Distribution] = []
        for wheel in wheels:
            known = wheel.core_metadata
            (dropped if known is None or known.data is None else kept).append(wheel)
        results = chain(
            map(write_core_metadata, kept),
            mapped(write_core_metadata, dropped, len(dropped), jobs=jobs),
        )
        shown = tracked(results, len(wheels), "writing metadata")
        for wheel, result in zip((*kept, *dropped), shown, strict=True):
            if isinstance(result, str):
                raise VariantError(result)
            if result:
                self.changed.append(metadata_path(wheel.path))

    def write_project(
        self, update: Update, distributions: Iterable[Distribution]
    ) -> dict[str, FileState]:
        """Write provenance, documents and pages of a project.

        Returns:
            The states of documents and pages, by path relative to the output directory.
        """
        for item in distributions:
            if item.provenance is not None:
                self._write(_beside(item.path, PROVENANCE_SUFFIX), item.provenance)
        written = []
        for name, data in sorted(update.documents.items()):
            written.append(self._directory / name)
            self._write(written[-1], data)
        folder = self._output / update.page.project
        for name, data in (
            (JSON_PAGE, json_page(update.page)),
            (HTML_PAGE, page_html(update.page, update.documents, plain=self._plain_pages)),
        ):
            written.append(folder / name)
            self._write(written[-1], data)
        return {_relative(path, self._output): state_of(path) for path in written}

    def write_projects(self, names: Sequence[str]) -> None:
        """Write the pages that list all projects."""
        self._write(self._output / JSON_PAGE, json_projects(names))
        self._write(self._output / HTML_PAGE, html_projects(names))

    def remove_document(self, name: str) -> None:
        """Remove a metadata document that no page lists any more."""
        self._remove(self._directory / name)

    def remove_beside(self, path: str) -> None:
        """Remove what was written beside a distribution that is gone.

        Args:
            path: of the distribution, relative to the directory.
        """
        gone = self._directory / path
        if not gone.exists():
            self._remove(_beside(gone, CORE_METADATA_SUFFIX))
            self._remove(_beside(gone, PROVENANCE_SUFFIX))

    def others(self, projects: Iterable[str]) -> list[str]:
        """Return the names of projects with a page that this command wrote, besides *projects*."""
        kept = set(projects)
        return sorted(
            page.parent.name
            for page in self._output.glob(f"*/{HTML_PAGE}")
            if page.parent.name not in kept and _GENERATED in page.read_bytes()
        )

    def remove_project(self, name: str) -> None:
        """Remove the pages of a project without files."""
        folder = self._output / name
        self._remove(folder / HTML_PAGE)
        self._remove(folder / JSON_PAGE)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()

    def _write(self, path: Path, data: bytes) -> None:
        if write_if_changed(path, data):
            self.changed.append(path)

    def _remove(self, path: Path) -> None:
        try:
            path.unlink()
        except FileNotFoundError:
            return
        self.changed.append(path)


def write_core_metadata(wheel: Distribution) -> bool | str:
    """Write METADATA beside *wheel*; return whether it changed, or what is wrong."""
    try:
        return write_if_changed(metadata_path(wheel.path), read_core_metadata(wheel))
    except VariantError as error:
        return str(error)
    except OSError as error:
        return f"{error.filename or wheel.path}: {error.strerror or error}"


def metadata_path(wheel: Path) -> Path:
    """Return the path of the METADATA file beside *wheel* (PEP 658)."""
    return _beside(wheel, CORE_METADATA_SUFFIX)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _relative(path: Path, start: Path) -> str:
    try:
        return os.path.relpath(path, start)
    except ValueError:  # on another drive of Windows
        return os.fspath(path.absolute())
