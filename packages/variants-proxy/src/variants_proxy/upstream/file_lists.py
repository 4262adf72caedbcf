"""Files of directories and find-links pages, as project pages."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from packaging.utils import canonicalize_name, parse_sdist_filename

from pep_variants.model.filename import parse_metadata_filename
from pep_variants.model.label import METADATA_SUFFIX
from variants_index.pages import Page, PageFile

_SDISTS = (".tar.gz", ".zip")


def project_folders(root: Path) -> list[str]:
    """Return the names of the folders in *root*, one for each project."""
    return [path.name for path in root.iterdir() if path.is_dir()]


def pages_by_project(page: Page) -> dict[str, tuple[Page, str]]:
    """Return the page of each project on a find-links *page*, with a digest."""
    by_project: dict[str, list[PageFile]] = {}
    for file in page.files:
        project = project_of(file.filename)
        if project:
            by_project.setdefault(project, []).append(file)
    return {
        project: (Page(project, tuple(files)), sha256(repr(files).encode()).hexdigest())
        for project, files in by_project.items()
    }


def directory_files(folder: Path) -> tuple[PageFile, ...]:
    """Return the wheels, sdists and variant metadata files of *folder*, by name ascending."""
    files = []
    names = {path.name: path for path in folder.iterdir()}
    for name, path in sorted(names.items()):
        if name.endswith((".whl", METADATA_SUFFIX, *_SDISTS)):
            stat = path.stat()
            beside: dict[str, str] | None = {} if f"{name}.metadata" in names else None
            files.append(
                PageFile(
                    name,
                    path.as_uri(),
                    size=stat.st_size,
                    # Unknown; size and URL identify the file.
                    upload_time=None,
                    core_metadata=beside,
                )
            )
    return tuple(files)


def project_of(filename: str) -> str | None:
    """Return the normalized project name in *filename*, None for other files."""
    if filename.endswith(".whl"):
        return canonicalize_name(filename.partition("-")[0])
    if filename.endswith(METADATA_SUFFIX):
        known = parse_metadata_filename(filename)
        return known[0] if known else None
    try:
        return parse_sdist_filename(filename)[0]
    except ValueError:  # InvalidSdistFilename; `int` of thousands of digits
        return None
