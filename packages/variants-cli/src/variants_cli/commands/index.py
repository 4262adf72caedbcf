"""`variants index`: a directory of wheels into a package index of static files."""

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

from ..atomic import write_if_changed
from ..console import counted, fail, note
from ..merged import write_merged
from ..pages import GENERATOR, IndexFile, project_html, project_json, root_html, root_json
from ..wheelhouse import Wheel, by_version, find_wheels, read_wheel
from .inspect import disagreements

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from packaging.utils import NormalizedName
    from packaging.version import Version

HTML_PAGE = "index.html"
JSON_PAGE = "index.v1_json"
CORE_METADATA_SUFFIX = ".metadata"


@dataclass(frozen=True)
class Release:
    """One version of one project.

    Attributes:
        project: normalized name.
        version: its version.
        wheels: by name.
        variants_json: its index-level metadata, None if there are no variant wheels.
    """

    project: NormalizedName
    version: Version
    wheels: Sequence[Wheel]
    variants_json: bytes | None

    @property
    def variants_name(self) -> str:
        """Name of the file that holds the index-level metadata."""
        return metadata_filename(self.project, self.version)


@click.command(short_help="Turn a directory of wheels into a package index.")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
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
def index(directory: Path, output: Path | None, base_url: str | None, core_metadata: bool) -> None:
    """Turn a directory of wheels into a package index.

    Writes {name}-{version}-variants.json for every version with variant wheels and a .metadata
    file beside every wheel; and pages for any static file server: HTML (index.html) and JSON
    (index.v1_json), one per project and one that lists them. Files that do not change are not
    touched. If the wheels contradict each other, nothing is written.

    Example: variants index dist && python -m http.server --directory dist
    """
    output = output or directory / "simple"
    releases = _read(directory, output)
    pages = _Pages(directory, output, base_url, core_metadata=core_metadata)
    changed = pages.write(releases)
    wheels = sum(len(release.wheels) for release in releases)
    projects = len({release.project for release in releases})
    click.echo(
        f"{output}: {counted(projects, 'project')}, {counted(wheels, 'wheel')}, "
        f"{counted(sum(release.variants_json is not None for release in releases), 'version')} "
        f"with variants; {counted(changed, 'file')} changed"
    )


def _read(directory: Path, output: Path) -> list[Release]:
    """Return all releases in *directory*, or fail with everything that is wrong with them."""
    paths = find_wheels(directory, leave_out=output)
    if not paths:
        raise click.ClickException(f"{directory}: there are no wheels")
    others = sorted(path.name for path in directory.glob("*") if _is_sdist(path.name))
    if others:
        note(f"only wheels are indexed, not {', '.join(others[:3])}{' …' * (len(others) > 3)}")

    wheels: dict[str, Wheel] = {}
    problems = []
    progress = (
        click.progressbar(paths, label="Reading wheels", file=sys.stderr)
        if sys.stderr.isatty()
        else nullcontext(paths)
    )
    with progress as steps:
        for path in steps:
            try:
                if path.name in wheels:
                    raise click.ClickException(
                        f"{wheels[path.name].path} and {path} have the same name"
                    )
                wheels[path.name] = wheel = read_wheel(path)
            except (VariantError, click.ClickException) as error:
                problems.append(str(error))
                continue
            metadata = wheel.variant.metadata if wheel.variant else None
            problems += [
                f"{path}: {problem}" for problem in disagreements(wheel.filename.label, metadata)
            ]
    releases = []
    for (project, version), group in by_version(wheels.values()).items():
        files = [wheel.variant for wheel in group if wheel.variant is not None]
        try:
            variants_json = write_merged(files) if files else None
        except VariantError as error:
            problems.append(str(error))
            continue
        releases.append(Release(project, version, group, variants_json))
    if problems:
        for problem in problems[:-1]:
            fail(problem)
        raise click.ClickException(problems[-1])
    return releases


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
        self._write(self._output / JSON_PAGE, root_json(list(projects)).encode())
        self._write(self._output / HTML_PAGE, root_html(list(projects)).encode())
        self._remove_others(projects)
        return self._changed

    def _write_project(self, project: str, releases: Sequence[Release]) -> None:
        files = [file for release in releases for file in self._release_files(release)]
        versions = [str(release.version) for release in releases]
        folder = self._output / project
        self._write(folder / JSON_PAGE, project_json(project, versions, files).encode())
        self._write(folder / HTML_PAGE, project_html(project, files).encode())

    def _release_files(self, release: Release) -> list[IndexFile]:
        files = []
        for wheel in release.wheels:
            core_metadata = None
            if self._core_metadata:
                path = wheel.path.with_name(wheel.path.name + CORE_METADATA_SUFFIX)
                self._write(path, wheel.core_metadata)
                core_metadata = hashlib.sha256(wheel.core_metadata).hexdigest()
            files.append(
                IndexFile(
                    wheel.path.name,
                    self._url(wheel.path, release.project),
                    wheel.sha256,
                    wheel.size,
                    wheel.requires_python,
                    core_metadata,
                )
            )
        if release.variants_json is not None:
            path = self._directory / release.variants_name
            self._write(path, release.variants_json)
            digest = hashlib.sha256(release.variants_json).hexdigest()
            files.append(
                IndexFile(
                    path.name,
                    self._url(path, release.project),
                    digest,
                    len(release.variants_json),
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
            if page.parent.name in kept or GENERATOR.encode() not in page.read_bytes():
                continue
            page.unlink()
            page.with_name(JSON_PAGE).unlink(missing_ok=True)
            if not any(page.parent.iterdir()):
                page.parent.rmdir()
            self._changed += 1


def _quoted(path: Path) -> str:
    return quote(path.as_posix())


def _is_sdist(name: str) -> bool:
    return name.endswith((".tar.gz", ".zip"))
