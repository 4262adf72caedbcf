"""Checks of a directory: its wheels, metadata, and the pages that list them."""

from __future__ import annotations

import os
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from pep_variants import labels as wheel_labels
from pep_variants import safe_files, wheel_files
from variants_catalog.catalogs import Finding
from variants_index import pages as index_pages
from variants_index.http import InvalidPage

from .._console import tracked
from .._indexing.static_index import is_document, is_listed_document
from .._indexing.wheelhouse import CORE_METADATA_SUFFIX, digest_of
from .document import check_index_metadata
from .finding import Report
from .release_checks import ReleaseFiles, check_releases, check_wheel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from .release_checks import Release

PAGES = {"index.html": index_pages.HTML, "index.v1_json": index_pages.JSON}
"""Names of project pages, and how they are read."""

_STRAY = "delete it, or add the wheels of its variants: no wheel here has one"


def check_directory(directory: Path) -> tuple[int, list[Finding]]:
    """Check everything in *directory* and below.

    Args:
        directory: of wheels, metadata and pages.

    Returns:
        The number of checked files, and the findings: first those of single files, then
        contradictions between files.

    Raises:
        OSError: a file cannot be read.
    """

    def files(pattern: str) -> list[Path]:
        return sorted(path for path in directory.rglob(pattern) if path.is_file())

    report = Report(str(directory), again=f"write it again: variants index --fresh {directory}")
    # Pages that list no wheels are not those of projects.
    pages = [path for name in PAGES for path in files(name) if b".whl" in path.read_bytes()]
    releases: dict[Release, ReleaseFiles] = defaultdict(ReleaseFiles)
    wheels = files("*.whl")
    for path in tracked(wheels, len(wheels), "checking wheels"):
        wheel = check_wheel(path)
        report.findings += wheel.findings
        beside = path.with_name(f"{path.name}{CORE_METADATA_SUFFIX}")
        if beside.exists() and wheel.core_metadata not in (None, beside.read_bytes()):
            message = f"differs from METADATA in {path.name}: resolvers see other "
            message += "dependencies than are installed"
            report.add("core-metadata-mismatch", "", message, file=str(beside))
        wheel.core_metadata = None  # of thousands of wheels it takes much memory
        if wheel.release is not None:
            releases[wheel.release].wheels.append(wheel)
            releases[wheel.release].labels.add(wheel.label)
    documents = files(f"*{wheel_labels.METADATA_SUFFIX}")
    # What pages list is checked there; for some time there are those of pages before, too.
    documents = [path for path in documents if not is_listed_document(path)]
    for path in documents:
        metadata, found = check_index_metadata(path)
        report.findings += found
        release = wheel_files.parse_metadata_filename(path.name)
        if release is not None and metadata is not None:
            releases[release].documents.append(metadata)
    check_releases(report, releases)
    with_variants = {release for release, held in releases.items() if held.labels - {None}}
    _check_pages(report, pages, [*wheels, *documents], with_variants)
    return len(wheels) + len(documents) + len(pages), report.findings


def _check_pages(
    report: Report, pages: Sequence[Path], files: Iterable[Path], releases: Collection[Release]
) -> None:
    """Report contradictions between *pages* and files.

    Args:
        report: gets the findings.
        pages: of projects.
        files: wheels and metadata documents, which have to be listed.
        releases: versions with variant wheels.
    """
    listed: dict[str, set[str]] = {}
    names = set()
    unreadable = set()
    digest = cache(_digest)  # HTML and JSON list the same files
    for path in tracked(pages, len(pages), "checking pages"):
        try:
            page = index_pages.read_page(
                path.read_bytes(), PAGES[path.name], path.absolute().as_uri()
            )
        except InvalidPage as problem:
            report.add("invalid-page", "", str(problem), file=str(path))
            unreadable.add((path.name, path.parent.name))
            continue
        for file in page.files:
            if not safe_files.is_local(file.url):
                continue
            target = os.fspath(safe_files.local_path(file.url))
            listed.setdefault(path.name, set()).add(os.path.realpath(target))
            names.add(file.filename)
            claims = [(target, file.size, file.hashes.get("sha256"))]
            if file.core_metadata is not None:
                beside = target + CORE_METADATA_SUFFIX
                claims.append((beside, None, file.core_metadata.get("sha256")))
            for each, size, sha256 in claims:
                found = digest(os.path.realpath(each))
                if found is None:
                    message = f"{each} does not exist"
                    report.add("page-file-missing", file.filename, message, file=str(path))
                    break
                if size not in (None, found[0]):
                    message = f"lists size {size}, {each} has {found[0]} bytes"
                elif sha256 not in (None, found[1]):
                    message = f"lists SHA-256 {sha256}, {each} has {found[1]}"
                else:
                    continue
                report.add("page-mismatch", file.filename, message, file=str(path))
    # Pages of files that are elsewhere say nothing about those here.
    for name, targets in sorted(listed.items()):
        for own in files:
            project = canonicalize_name(own.name.partition("-")[0])
            is_copied = is_document(own.name) and own.name in names
            if is_copied or os.path.realpath(own) in targets or (name, project) in unreadable:
                continue
            release = wheel_files.parse_metadata_filename(own.name)
            stray = release is not None and release not in releases
            message = f"no {name} lists it, so installers do not find it"
            remedy = _STRAY if stray else report.again
            report.add("not-listed", "", message, file=str(own), remedy=remedy)


def _digest(path: str) -> tuple[int, str] | None:
    """Return size and SHA-256 of a file, None if it is not there."""
    if not Path(path).is_file():
        return None
    with open(path, "rb") as stream:  # noqa: PTH123
        return digest_of(stream)
