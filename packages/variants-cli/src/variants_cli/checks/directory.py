"""Checks of a directory: its wheels, metadata, and the pages that list them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from pep_variants.errors import VariantError
from pep_variants.model.filename import parse_metadata_filename
from pep_variants.model.label import METADATA_SUFFIX
from pep_variants.urls import is_local, local_path
from variants_index.errors import InvalidPage
from variants_index.pages import HTML, JSON, read_page

from ..console import tracked
from ..indexing.wheelhouse import CORE_METADATA_SUFFIX, digest_of
from ..processes import mapped
from .document import check_index_metadata
from .finding import Finding, Report
from .release import CheckedWheel, check_releases, check_wheel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pep_variants.model.metadata import Metadata
    from variants_index.pages import PageFile

    from .release import Release

    Digests = dict[str, tuple[int, str]]
    """Size and SHA-256 of files by real path."""

PAGES = {"index.html": HTML, "index.v1_json": JSON}
"""Names of project pages, and how they are read."""

_STRAY = "delete it, or add the wheels of its variants: no wheel here has one"


def check_directory(
    directory: Path, *, jobs: int | None = None, leave_out: Collection[Path] = ()
) -> tuple[int, list[Finding]]:
    """Check everything in *directory* and below.

    Args:
        directory: of wheels, metadata and pages.
        jobs: number of processes, None for one per core.
        leave_out: wheels and metadata that are not checked.

    Returns:
        The number of checked files, and the findings: first those of single files, then
        contradictions between files.

    Raises:
        OSError: a file cannot be read.
    """

    def files(pattern: str) -> list[Path]:
        found = (path for path in directory.rglob(pattern) if path.is_file())
        return sorted(path for path in found if path not in leave_out)

    report = Report(str(directory), again=f"write it again: variants index --fresh {directory}")
    # Pages that list no wheels are not those of projects.
    pages = [path for name in PAGES for path in files(name) if b".whl" in path.read_bytes()]
    wheels, digests = _check_wheels(files("*.whl"), jobs)
    for wheel in wheels:
        report.findings += wheel.findings
    documents: dict[Release, list[tuple[str, Metadata]]] = {}
    paths = files(f"*{METADATA_SUFFIX}")
    for path in paths:
        metadata, found = check_index_metadata(path)
        report.findings += found
        release = parse_metadata_filename(path.name)
        if release is not None and metadata is not None:
            documents.setdefault(release, []).append((str(path), metadata))
    listed: dict[Release, set[str | None]] = {}
    for wheel in wheels:
        if wheel.release is not None:
            listed.setdefault(wheel.release, set()).add(wheel.label)
    check_releases(report, wheels, documents, listed)
    with_variants = {release for release, labels in listed.items() if labels - {None}}
    everything = [*(wheel.path for wheel in wheels), *paths]
    _check_pages(report, pages, everything, digests, with_variants)
    return len(wheels) + len(paths) + len(pages), report.findings


def _check_wheels(paths: Sequence[Path], jobs: int | None) -> tuple[list[CheckedWheel], Digests]:
    digests: Digests = {}
    wheels = []
    requirements: dict[tuple[str, ...], tuple[str, ...]] = {}
    results = mapped(_check_one, paths, len(paths), jobs=jobs)
    for result in tracked(results, len(paths), "checking wheels"):
        if isinstance(result, str):
            raise VariantError(result)
        wheel, known = result
        # Thousands of wheels have the same few.
        wheel.requirements = requirements.setdefault(wheel.requirements, wheel.requirements)
        digests |= known
        wheels.append(wheel)
    return wheels, digests


def _check_one(path: Path) -> tuple[CheckedWheel, Digests] | str:
    """Return a wheel without what only takes memory, and digests of it and its METADATA file."""
    beside = path.with_name(f"{path.name}{CORE_METADATA_SUFFIX}")
    try:
        with path.open("rb") as stream:
            wheel = check_wheel(path, stream)
            known = {os.path.realpath(path): digest_of(stream)}
        if beside.exists():
            data = beside.read_bytes()
            known[os.path.realpath(beside)] = (len(data), hashlib.sha256(data).hexdigest())
            if wheel.core_metadata not in (None, data):
                report = Report(
                    str(beside), again=f"write it again: variants index --fresh {path.parent}"
                )
                message = f"differs from METADATA in {path.name}: resolvers see other "
                message += "dependencies than are installed"
                report.add("core-metadata-mismatch", "", message)
                wheel.findings += report.findings
    except OSError as problem:
        return f"{problem.filename or path}: {problem.strerror or problem}"
    wheel.core_metadata = None
    if wheel.filename is not None:
        wheel.filename = replace(wheel.filename, tags=frozenset())
    return wheel, known


def _check_pages(
    report: Report,
    pages: Sequence[Path],
    files: Iterable[Path],
    digests: Digests,
    releases: Collection[Release],
) -> None:
    """Report contradictions between *pages* and files.

    Args:
        report: gets the findings.
        pages: of projects.
        files: wheels and metadata documents, which have to be listed.
        digests: of files that were read.
        releases: versions with variant wheels.
    """
    listed: dict[str, set[str]] = {}
    unreadable = set()
    for path in tracked(pages, len(pages), "checking pages"):
        try:
            page = read_page(path.read_bytes(), PAGES[path.name], path.absolute().as_uri())
        except InvalidPage as problem:
            report.add("invalid-page", "", str(problem), file=str(path))
            unreadable.add((path.name, path.parent.name))
            continue
        for file in page.files:
            if is_local(file.url):
                target = local_path(file.url)
                _check_listed(report, str(path), file, target, digests)
                listed.setdefault(path.name, set()).add(os.path.realpath(target))
    # Pages of files that are elsewhere say nothing about those here.
    for name, targets in sorted(listed.items()):
        for each in files:
            project = canonicalize_name(each.name.partition("-")[0])
            if os.path.realpath(each) in targets or (name, project) in unreadable:
                continue
            release = parse_metadata_filename(each.name)
            stray = release is not None and release not in releases
            message = f"no {name} lists it, so installers do not find it"
            remedy = _STRAY if stray else report.again
            report.add("not-listed", "", message, file=str(each), remedy=remedy)


def _check_listed(report: Report, page: str, file: PageFile, path: Path, digests: Digests) -> None:
    """Report where a page contradicts the file at *path*, or its METADATA file."""
    claims = [(os.fspath(path), file.size, file.hashes.get("sha256"))]
    if file.core_metadata is not None:
        beside = os.fspath(path) + CORE_METADATA_SUFFIX
        claims.append((beside, None, file.core_metadata.get("sha256")))
    for each, size, sha256 in claims:
        found = _digest(each, digests)
        if found is None:
            message = f"{each} does not exist"
            report.add("page-file-missing", file.filename, message, file=page)
            return
        if size not in (None, found[0]):
            message = f"lists size {size}, {each} has {found[0]} bytes"
        elif sha256 not in (None, found[1]):
            message = f"lists SHA-256 {sha256}, {each} has {found[1]}"
        else:
            continue
        report.add("page-mismatch", file.filename, message, file=page)


def _digest(path: str, digests: Digests) -> tuple[int, str] | None:
    """Return size and SHA-256 of a file, None if it is not there."""
    real = os.path.realpath(path)
    if real not in digests:
        if not Path(real).is_file():
            return None
        with open(real, "rb") as stream:  # noqa: PTH123
            digests[real] = digest_of(stream)
    return digests[real]
