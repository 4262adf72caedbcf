"""A package index of static files: HTML and JSON pages (PEP 503, 691) and metadata files."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pep_variants.errors import VariantError
from pep_variants.files import write_if_changed
from pep_variants.model.filename import metadata_filename
from variants_index.pages import (
    GENERATOR,
    Page,
    PageFile,
    html_page,
    html_projects,
    json_page,
    json_projects,
)

from .merged import write_merged
from .wheelhouse import by_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from .wheelhouse import Distribution

HTML_PAGE = "index.html"
JSON_PAGE = "index.v1_json"
CORE_METADATA_SUFFIX = ".metadata"

_GENERATED = f'content="{GENERATOR}"'.encode()
"""Marks generated pages; others are not removed."""


@dataclass(frozen=True)
class Release:
    """One version of one project.

    Attributes:
        project: normalized name.
        version: its version.
        files: wheels and source distributions, by name.
        variants_json: its index-level metadata, None without variant wheels.
    """

    project: NormalizedName
    version: Version
    files: Sequence[Distribution]
    variants_json: bytes | None

    @property
    def variants_name(self) -> str:
        """Filename of the index-level metadata."""
        return metadata_filename(self.project, self.version)


def group_releases(distributions: Iterable[Distribution]) -> tuple[list[Release], list[str]]:
    """Return *distributions* by release, and messages about releases with contradicting wheels."""
    releases = []
    problems = []
    for (project, version), group in by_version(distributions).items():
        files = [item.variant for item in group if item.variant is not None]
        try:
            variants_json = write_merged(files) if files else None
        except VariantError as error:
            problems.append(str(error))
            continue
        releases.append(Release(project, version, group, variants_json))
    return releases, problems


def metadata_path(wheel: Path) -> Path:
    """Return the path of the METADATA file beside *wheel* (PEP 658)."""
    return wheel.with_name(wheel.name + CORE_METADATA_SUFFIX)


class IndexWriter:
    """Writes the files of an index; those that others link to are written first."""

    def __init__(
        self, directory: Path, output: Path, base_url: str | None, *, core_metadata: bool
    ) -> None:
        """Prepare to write.

        Args:
            directory: of the distributions.
            output: directory for the pages.
            base_url: URL where *directory* is served, None for relative links.
            core_metadata: write METADATA files beside wheels.
        """
        self._directory = directory
        self._output = output
        self._base_url = base_url
        self._core_metadata = core_metadata
        self._changed = 0

    def write(self, releases: Iterable[Release]) -> int:
        """Write all files; return the number of files that changed."""
        projects: dict[str, list[Release]] = {}
        for release in releases:
            projects.setdefault(release.project, []).append(release)
        for project, its_releases in projects.items():
            self._write_project(project, its_releases)
        self._write(self._output / JSON_PAGE, json_projects(list(projects)))
        self._write(self._output / HTML_PAGE, html_projects(list(projects)))
        self._remove_others(projects)
        return self._changed

    def _write_project(self, project: str, releases: Sequence[Release]) -> None:
        files = tuple(file for release in releases for file in self._release_files(release))
        versions = tuple(str(release.version) for release in releases)
        page = Page(project, files, versions)
        folder = self._output / project
        self._write(folder / JSON_PAGE, json_page(page))
        self._write(folder / HTML_PAGE, html_page(page))

    def _release_files(self, release: Release) -> list[PageFile]:
        files = []
        for item in release.files:
            core_metadata = None
            if self._core_metadata and item.core_metadata is not None:
                if item.core_metadata.data is not None:
                    self._write(metadata_path(item.path), item.core_metadata.data)
                core_metadata = {"sha256": item.core_metadata.sha256}
            files.append(
                PageFile(
                    item.path.name,
                    self._url(item.path, release.project),
                    {"sha256": item.sha256},
                    item.requires_python,
                    size=item.size,
                    core_metadata=core_metadata,
                )
            )
        if release.variants_json is not None:
            path = self._directory / release.variants_name
            self._write(path, release.variants_json)
            digest = hashlib.sha256(release.variants_json).hexdigest()
            files.append(
                PageFile(
                    path.name,
                    self._url(path, release.project),
                    {"sha256": digest},
                    size=len(release.variants_json),
                )
            )
        return files

    def _url(self, path: Path, project: str) -> str:
        if self._base_url is not None:
            return f"{self._base_url.rstrip('/')}/{_quoted(path.relative_to(self._directory))}"
        return _quoted(Path(os.path.relpath(path, self._output / project)))

    def _write(self, path: Path, data: bytes) -> None:
        self._changed += write_if_changed(path, data)

    def _remove_others(self, projects: Iterable[str]) -> None:
        """Remove pages that we generated for projects without distributions."""
        kept = set(projects)
        for page in sorted(self._output.glob(f"*/{HTML_PAGE}")):
            if page.parent.name in kept or _GENERATED not in page.read_bytes():
                continue
            page.unlink()
            page.with_name(JSON_PAGE).unlink(missing_ok=True)
            if not any(page.parent.iterdir()):
                page.parent.rmdir()
            self._changed += 1


def _quoted(path: Path) -> str:
    return quote(path.as_posix())
