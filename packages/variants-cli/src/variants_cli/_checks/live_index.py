"""Checks of a project page on a live index, and of what it lists."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from packaging.utils import canonicalize_name

from pep_variants import labels as wheel_labels
from pep_variants import limits, wheel_files
from pep_variants.errors import InvalidWheelFilename, redacted
from variants_catalog.catalogs import Finding
from variants_index import finder as package_finder
from variants_index.http import BadResponse, InvalidPage, PackageIndexError

from .._indexing.update import release_of
from .document import check_document, check_name
from .finding import Report
from .release_checks import CheckedWheel, ReleaseFiles, check_releases, check_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from pep_variants.metadata import Metadata
    from variants_index.finder import Session
    from variants_index.pages import PageFile

    from .release_checks import Release


def check_live(
    url: str,
    session: Session,
    *,
    every_wheel: bool = False,
    releases: Collection[Release] | None = None,
    progress: Callable[[str], None] | None = None,
) -> tuple[int, list[Finding]]:
    """Check the project page at *url*, the metadata that it lists, and wheels.

    Of wheels, only the parts with metadata are fetched if the server supports range requests.

    Args:
        url: of a project page.
        session: HTTP session.
        every_wheel: check all variant wheels, not only one of each label of a version.
        releases: check files of these alone; None for all that the page lists.
        progress: called with the name of each file.

    Returns:
        The number of checked files, and the findings.

    Raises:
        PackageIndexError: the page cannot be fetched.
    """
    session.add_index(url)
    report = Report(
        redacted(url), again="publish it again: see variants index and variants publish"
    )
    parts = [part for part in urlsplit(url).path.split("/") if part]
    try:
        page = session.fetch_page(url, canonicalize_name(parts[-1]) if parts else "")
    except InvalidPage as problem:
        report.add("invalid-page", "", str(problem))
        return 1, report.findings
    files = [(file, release_of(file.filename) or (None, None)) for file in page.files]
    if releases is not None:
        files = [(file, found) for file, found in files if found[0] in releases]
    _check_entries(report, [file for file, _ in files])
    held: dict[Release, ReleaseFiles] = defaultdict(ReleaseFiles)
    checked = 1
    for file, (release, label) in files:
        is_document = file.filename.endswith(wheel_labels.METADATA_SUFFIX)
        is_first = release is not None and label not in held[release].labels
        if release is not None and file.filename.endswith(".whl"):
            held[release].labels.add(label)
        if not is_document and (label is None or not (is_first or every_wheel)):
            continue
        checked += 1
        if progress is not None:
            progress(file.filename)
        if is_document:
            metadata = _check_document(report, session, file)
            if metadata is not None and release is not None:
                held[release].documents = [metadata]
        elif release is not None:
            held[release].wheels.append(_check_wheel(report, session, file))
    check_releases(report, held)
    return checked, report.findings


def _check_entries(report: Report, files: Iterable[PageFile]) -> None:
    seen: dict[str, PageFile] = {}
    for file in files:
        name = file.filename
        other = seen.setdefault(name, file)
        if (other.url, other.hashes) != (file.url, file.hashes):
            report.add("listed-twice", name, "is listed twice, with different hashes or URLs")
        if not file.hashes and name.endswith((".whl", wheel_labels.METADATA_SUFFIX)):
            message = "has no hash: installers cannot verify that it is the published file"
            report.add("hash-missing", name, message)
        if name.endswith(".whl"):
            try:
                wheel_files.parse_filename(name)
            except InvalidWheelFilename as problem:
                report.add("invalid-filename", name, str(problem))


def _check_document(report: Report, session: Session, file: PageFile) -> Metadata | None:
    url = redacted(file.url)
    try:
        data = session.fetch(file.url, limit=limits.DOCUMENT_BYTES, hashes=file.hashes).body
    except PackageIndexError as problem:
        _add_unfetched(report, url, problem)
        return None
    metadata, findings = check_document(data, url)
    report.findings += [*findings, *check_name(file.filename, url)]
    return metadata


def _check_wheel(report: Report, session: Session, file: PageFile) -> CheckedWheel:
    path, url = Path(file.filename), redacted(file.url)
    try:
        with package_finder.opened(session, file.url, file.hashes) as stream:
            wheel = check_wheel(path, stream, url)
    except (PackageIndexError, OSError) as problem:
        _add_unfetched(report, url, problem)
        return CheckedWheel(path)
    report.findings += wheel.findings
    return wheel


def _add_unfetched(report: Report, url: str, problem: Exception) -> None:
    code = "page-mismatch" if isinstance(problem, BadResponse) else "page-file-missing"
    report.add(code, "", str(problem), file=url)
