"""Checks of a project page on a live index, and of what it lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from packaging.utils import canonicalize_name

from pep_variants.errors import InvalidWheelFilename, redacted
from pep_variants.limits import DOCUMENT_BYTES
from pep_variants.model.filename import metadata_filename, parse_filename, parse_metadata_filename
from pep_variants.model.label import METADATA_SUFFIX, split_label
from variants_index.errors import BadResponse, InvalidPage, PackageIndexError
from variants_index.http.ranges import opened
from variants_index.pages import PageFile

from ..indexing.update import release_of
from .directory import check_each_other, check_fallbacks, check_index, check_release_markers
from .document import check_document
from .finding import Finding, error, warning
from .wheel_file import CheckedWheel, check_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from pep_variants.model.metadata import Metadata
    from variants_index.http.session import Session

    Release = tuple[NormalizedName, Version]

_REMEDY = "publish it again: see variants index and variants publish"


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
    place = redacted(url)
    try:
        page = session.fetch_page(url, _project(url))
    except InvalidPage as problem:
        return 1, [error("invalid-page", place, "", str(problem), _REMEDY)]
    files = [
        file
        for file in page.files
        if releases is None or ((found := release_of(file.filename)) and found[0] in releases)
    ]
    return _Live(files, place, session, progress or (lambda _: None)).check(every_wheel=every_wheel)


def _project(url: str) -> str:
    parts = [part for part in urlsplit(url).path.split("/") if part]
    return canonicalize_name(parts[-1]) if parts else ""


class _Live:
    """One look at one page."""

    def __init__(
        self,
        files: Iterable[PageFile],
        place: str,
        session: Session,
        progress: Callable[[str], None],
    ) -> None:
        self._files = tuple(files)
        self._place = place
        self._session = session
        self._progress = progress
        self._checked = 1

    def check(self, *, every_wheel: bool) -> tuple[int, list[Finding]]:
        findings = list(self._check_entries())
        documents: dict[Release, tuple[PageFile, Metadata]] = {}
        for file in self._files:
            if file.filename.endswith(METADATA_SUFFIX):
                metadata, found = self._check_metadata(file)
                findings += found
                release = parse_metadata_filename(file.filename)
                if metadata is not None and release is not None:
                    documents[release] = (file, metadata)
        listed: dict[Release, set[str]] = {}
        wheels: dict[Release, list[CheckedWheel]] = {}
        for release, label, file in self._variant_wheels():
            labels = listed.setdefault(release, set())
            if every_wheel or label not in labels:
                wheel = self._check_wheel(file)
                findings += wheel.findings
                wheels.setdefault(release, []).append(wheel)
            labels.add(label)
        findings += check_fallbacks(self._place, self._labels(listed))
        for release in sorted(listed):
            group = wheels[release]
            findings += check_each_other(group)
            document = documents.get(release)
            if document is None:
                findings.append(self._no_metadata(release))
                continue
            file, metadata = document
            findings += check_index(
                redacted(file.url), metadata, group, listed[release], remedy=_REMEDY
            )
            findings += check_release_markers(group, metadata, listed[release])
        for release, (file, metadata) in sorted(documents.items(), key=lambda item: item[0]):
            if release not in listed:
                findings += check_index(redacted(file.url), metadata, [], set(), remedy=_REMEDY)
        return self._checked, findings

    def _check_entries(self) -> Iterator[Finding]:
        seen: dict[str, PageFile] = {}
        for file in self._files:
            name = file.filename
            other = seen.setdefault(name, file)
            if other is not file and (other.url, other.hashes) != (file.url, file.hashes):
                yield error(
                    "listed-twice",
                    self._place,
                    name,
                    "is listed twice, with different hashes or URLs",
                    "list every file once",
                )
            if not file.hashes and name.endswith((".whl", METADATA_SUFFIX)):
                yield warning(
                    "hash-missing",
                    self._place,
                    name,
                    "has no hash: installers cannot verify that it is the published file",
                    "publish hashes, as variants index does",
                )
            if name.endswith(".whl"):
                try:
                    parse_filename(name)
                except InvalidWheelFilename as problem:
                    yield error(
                        "invalid-filename",
                        self._place,
                        name,
                        str(problem),
                        "correct the name of the file",
                    )

    def _labels(self, releases: Mapping[Release, set[str]]) -> dict[Release, set[str | None]]:
        """Return the labels of the wheels of each version, None for a non-variant wheel."""
        labels: dict[Release, set[str | None]] = {
            release: {*found} for release, found in releases.items()
        }
        for file in self._files:
            if file.filename.endswith(".whl") and split_label(file.filename)[1] is None:
                found = release_of(file.filename)
                if found is not None:
                    labels.setdefault(found[0], set()).add(None)
        return labels

    def _variant_wheels(self) -> Iterator[tuple[Release, str, PageFile]]:
        for file in self._files:
            label = split_label(file.filename)[1]
            if label is None:
                continue
            try:
                name = parse_filename(file.filename)
            except InvalidWheelFilename:
                continue  # reported elsewhere
            yield (name.name, name.version), label, file

    def _check_metadata(self, file: PageFile) -> tuple[Metadata | None, list[Finding]]:
        self._progress(file.filename)
        self._checked += 1
        place = redacted(file.url)
        try:
            answer = self._session.fetch(file.url, limit=DOCUMENT_BYTES, hashes=file.hashes)
        except BadResponse as problem:
            return None, [error("page-mismatch", place, "", str(problem), _REMEDY)]
        except PackageIndexError as problem:
            return None, [error("page-file-missing", place, "", str(problem), _REMEDY)]
        metadata, findings = check_document(answer.body, place)
        parsed = parse_metadata_filename(file.filename)
        expected = metadata_filename(*parsed) if parsed else "{name}-{version}-variants.json"
        if file.filename != expected:
            findings.append(
                error(
                    "index-filename",
                    place,
                    "",
                    "installers do not look for metadata under this name",
                    f"publish it as {expected}",
                )
            )
        return metadata, findings

    def _check_wheel(self, file: PageFile) -> CheckedWheel:
        self._progress(file.filename)
        self._checked += 1
        path, place = Path(file.filename), redacted(file.url)
        try:
            with opened(self._session, file.url, file.hashes) as stream:
                return check_wheel(path, stream, place)
        except BadResponse as problem:
            found = error("page-mismatch", place, "", str(problem), _REMEDY)
        except (PackageIndexError, OSError) as problem:
            found = error("page-file-missing", place, "", str(problem), _REMEDY)
        return CheckedWheel(path, findings=[found])

    def _no_metadata(self, release: Release) -> Finding:
        return warning(
            "index-metadata-missing",
            self._place,
            "",
            f"no {metadata_filename(*release)} for the variant wheels of "
            f"{release[0]} {release[1]}: installers that do not read wheels ignore them",
            _REMEDY,
        )
