"""`variants index`: a directory of distributions into a package index of static files."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from pep_variants.errors import VariantError
from pep_variants.filename import metadata_filename
from resolvelib_variants.index.pages import (
    GENERATOR,
    Page,
    PageFile,
    html_page,
    html_projects,
    json_page,
    json_projects,
)

from ..atomic import write_if_changed
from ..console import counted, fail
from ..inventory import FILENAME, Inventory
from ..merged import write_merged
from ..wheelhouse import Distribution, by_version, find_distributions, read_distribution
from .arguments import PathOrURL
from .inspect import disagreements

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from packaging.utils import NormalizedName
    from packaging.version import Version

HTML_PAGE = "index.html"
JSON_PAGE = "index.v1_json"
CORE_METADATA_SUFFIX = ".metadata"

_OURS = f'content="{GENERATOR}"'.encode()
"""In pages of ours; others are not removed."""


@dataclass(frozen=True)
class Release:
    """One version of one project.

    Attributes:
        project: normalized name.
        version: its version.
        files: wheels and source distributions, by name.
        variants_json: its index-level metadata, None if there are no variant wheels.
    """

    project: NormalizedName
    version: Version
    files: Sequence[Distribution]
    variants_json: bytes | None

    @property
    def variants_name(self) -> str:
        """Name of the file that holds the index-level metadata."""
        return metadata_filename(self.project, self.version)


@click.command(short_help="Turn a directory of wheels into a package index.")
@click.argument("place", metavar="DIR|URL", type=PathOrURL(file_okay=False))
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write the pages. Default: 'simple' in the directory.",
)
@click.option(
    "--base-url",
    metavar="URL",
    help="Where the directory will be found. Default: links are relative.",
)
@click.option(
    "--core-metadata/--no-core-metadata",
    default=True,
    show_default=True,
    help="Offer every wheel's METADATA as a file of its own (PEP 658).",
)
@click.option("--fresh", is_flag=True, help="Read all files again, also those that did not change.")
def index(
    place: Path | str,
    output: Path | None,
    base_url: str | None,
    core_metadata: bool,
    fresh: bool,
) -> None:
    """Turn a directory of wheels into a package index.

    Writes {name}-{version}-variants.json for every version with variant wheels and a .metadata
    file beside every wheel; and pages for any static file server: HTML (index.html) and JSON
    (index.v1_json), one per project and one that lists them. Source distributions are listed,
    too. Files that do not change are not touched, and distributions that did not change since
    the last run are not read again. If the wheels contradict each other, nothing is written.

    Of the URL of a project's page on another index, writes a page that lists the files where they
    are, and beside it the metadata that is read from them: for indexes that do not take any.

    Example: variants index dist && python -m http.server --directory dist
    """
    if not isinstance(place, Path):
        if output is None:
            raise click.UsageError("say with -o where to write what is made of a URL")
        _index_url(place, output)
        return
    directory = place
    output = output or directory / "simple"
    inventory = Inventory(output / FILENAME, directory)
    distributions, read, problems = _read(
        directory, output, None if fresh else inventory, core_metadata=core_metadata
    )
    releases, contradictions = _releases(distributions)
    problems += contradictions
    if problems:
        for problem in problems[:-1]:
            fail(problem)
        raise click.ClickException(problems[-1])
    pages = _Pages(directory, output, base_url, core_metadata=core_metadata)
    changed = pages.write(releases)
    if read or not (output / FILENAME).exists():
        inventory.write(distributions)
    wheels = sum(item.is_wheel for item in distributions)
    sdists = len(distributions) - wheels
    click.echo(
        f"{output}: {counted(len({release.project for release in releases}), 'project')}, "
        f"{counted(wheels, 'wheel')}, "
        + (f"{counted(sdists, 'source distribution')}, " if sdists else "")
        + f"{counted(sum(release.variants_json is not None for release in releases), 'version')} "
        f"with variants; {counted(changed, 'file')} changed"
    )


def _index_url(url: str, output: Path) -> None:
    from pep_variants.plugins.sources import Sources
    from resolvelib_variants.index.errors import IndexProblem
    from resolvelib_variants.index.session import Session

    from ..overlay import read_overlay
    from .index_options import progress

    session = Session(Sources.from_environ(os.environ))
    try:
        with progress() as show:
            overlay = read_overlay(url, session, show)
    except IndexProblem as problem:
        raise click.ClickException(str(problem)) from None
    finally:
        session.close()
    page = overlay.page
    folder = output / page.project
    changed = sum(
        write_if_changed(folder / name, data)
        for name, data in (
            *overlay.documents.items(),
            (JSON_PAGE, json_page(page)),
            (HTML_PAGE, html_page(page)),
        )
    )
    names = sorted({path.parent.name for path in output.glob(f"*/{HTML_PAGE}")})
    changed += write_if_changed(output / JSON_PAGE, json_projects(names))
    changed += write_if_changed(output / HTML_PAGE, html_projects(names))
    click.echo(
        f"{folder}: {counted(overlay.wheels, 'wheel')}, "
        f"{counted(len(overlay.documents), 'version')} with variants; "
        f"{counted(changed, 'file')} changed"
    )


def _read(
    directory: Path, output: Path, inventory: Inventory | None, *, core_metadata: bool
) -> tuple[list[Distribution], int, list[str]]:
    """Return everything in *directory*, how much of it was read just now, and what is wrong."""
    paths = find_distributions(directory, leave_out=output)
    if not paths:
        raise click.ClickException(f"{directory}: there are no wheels")
    found: dict[str, Distribution] = {}
    problems = []
    read = 0
    progress = (
        click.progressbar(paths, label="Reading wheels", file=sys.stderr)
        if sys.stderr.isatty()
        else nullcontext(paths)
    )
    with progress as steps:
        for path in steps:
            try:
                if path.name in found:
                    raise click.ClickException(
                        f"{found[path.name].path} and {path} have the same name"
                    )
                metadata_path = _metadata_path(path) if core_metadata else None
                item = inventory.find(path, metadata_path) if inventory else None
                found_before = item is not None
                if item is None:
                    item = read_distribution(path)
                    read += 1
                found[path.name] = item
            except (VariantError, click.ClickException) as error:
                problems.append(str(error))
                continue
            if item.is_wheel and not found_before:  # what is in the inventory was checked then
                metadata = item.variant.metadata if item.variant else None
                problems += [
                    f"{path}: {problem}" for problem in disagreements(item.label, metadata)
                ]
    return list(found.values()), read, problems


def _releases(distributions: Iterable[Distribution]) -> tuple[list[Release], list[str]]:
    """Return *distributions* by release, and what contradicts itself in them."""
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


def _metadata_path(path: Path) -> Path:
    return path.with_name(path.name + CORE_METADATA_SUFFIX)


class _Pages:
    """Writes the files of an index, those first that others point to."""

    def __init__(
        self, directory: Path, output: Path, base_url: str | None, *, core_metadata: bool
    ) -> None:
        self._directory = directory
        self._output = output
        self._base_url = base_url
        self._core_metadata = core_metadata
        self._changed = 0

    def write(self, releases: Iterable[Release]) -> int:
        """Write everything and return how many files changed."""
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
                    self._write(_metadata_path(item.path), item.core_metadata.data)
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
        """Remove pages of ours whose project has no wheels any more."""
        kept = set(projects)
        for page in sorted(self._output.glob(f"*/{HTML_PAGE}")):
            if page.parent.name in kept or _OURS not in page.read_bytes():
                continue
            page.unlink()
            page.with_name(JSON_PAGE).unlink(missing_ok=True)
            if not any(page.parent.iterdir()):
                page.parent.rmdir()
            self._changed += 1


def _quoted(path: Path) -> str:
    return quote(path.as_posix())
