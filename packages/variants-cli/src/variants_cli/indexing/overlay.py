"""Index-level metadata for a project on an index that does not provide it.

The wheels stay on that index: a generated page lists them with their URLs, and beside it is the
metadata that was read from the wheels.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from packaging.utils import canonicalize_name

from pep_variants.errors import InvalidWheel, InvalidWheelFilename, VariantError, redacted
from pep_variants.files import read_regular
from pep_variants.limits import DOCUMENT_BYTES
from pep_variants.model.filename import metadata_filename, parse_filename
from pep_variants.model.label import METADATA_SUFFIX, split_label
from pep_variants.wheelfile.wheel import VARIANT_FILE, open_wheel
from variants_index.errors import PackageIndexError
from variants_index.http.ranges import opened
from variants_index.pages import Page, PageFile

from .merged import without_labels, write_merged
from .update import timestamp
from .wheelhouse import VariantFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from variants_index.http.session import Session

    Release = tuple[NormalizedName, Version]

THREADS = 8


@dataclass(frozen=True)
class Overlay:
    """The files to serve instead of a project's page.

    Attributes:
        page: the project's files at their URLs, and the metadata beside the page.
        documents: the metadata by filename.
        wheels: number of wheels.
    """

    page: Page
    documents: dict[str, bytes]
    wheels: int


class OverlayError(VariantError):
    """A page that is not a project page."""


def read_overlay(
    url: str,
    session: Session,
    progress: Callable[[str], None] | None = None,
    before: Overlay | None = None,
) -> Overlay:
    """Return the overlay for the project page at *url*.

    Fetches the metadata of variant wheels, with range requests if the server supports them: of
    those that were not in the overlay *before*, with the same hash.

    Args:
        url: of a project page.
        session: HTTP session.
        progress: called with the name of each file.
        before: of an earlier run, None to read all wheels.

    Raises:
        OverlayError: *url* does not name a project.
        PackageIndexError: a file cannot be fetched.
        VariantError: a wheel is not valid, or two contradict each other.
    """
    project = project_of(url)
    session.add_index(url)
    page = session.fetch_page(url, project)
    files = [file for file in page.files if not file.filename.endswith(METADATA_SUFFIX)]
    releases: dict[Release, list[PageFile]] = {}
    for file in files:
        if split_label(file.filename)[1] is None:
            continue
        try:
            name = parse_filename(file.filename)
        except InvalidWheelFilename:
            continue  # installers ignore it
        releases.setdefault((name.name, name.version), []).append(file)

    def read(file: PageFile) -> VariantFile:
        if progress is not None:
            progress(file.filename)
        return read_variant_file(file, session)

    now = timestamp(datetime.now(timezone.utc))
    documents: dict[str, bytes] = {}
    entries = list(files)
    listed = {file.filename: file for file in before.page.files} if before else {}
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            for release, group in sorted(releases.items()):
                filename = metadata_filename(*release)
                old = before.documents.get(filename) if before else None
                kept, unread = _known(group, listed, filename, old)
                data = write_merged([*kept, *pool.map(read, unread)])
                documents[filename] = data
                digest = hashlib.sha256(data).hexdigest()
                time = (listed[filename].upload_time if filename in listed else None) or now
                entry = PageFile(
                    filename,
                    quote(filename),
                    {"sha256": digest},
                    size=len(data),
                    upload_time=time,
                )
                entries.append(entry)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    wheels = sum(file.filename.endswith(".whl") for file in files)
    return Overlay(replace(page, files=tuple(entries)), documents, wheels)


def project_of(url: str) -> NormalizedName:
    """Return the project whose page is at *url*.

    Raises:
        OverlayError: *url* does not name one.
    """
    parts = [part for part in urlsplit(url).path.split("/") if part]
    if not parts:
        raise OverlayError(f"{redacted(url)}: not a project page such as …/simple/torch/")
    return canonicalize_name(parts[-1])


def written_overlay(folder: Path, page: Page) -> Overlay:
    """Return the overlay that an earlier run wrote into *folder*.

    Documents that were changed since are left out.

    Args:
        folder: of the pages and documents.
        page: the project's page in it.
    """
    documents = {}
    for file in page.files:
        if not file.filename.endswith(METADATA_SUFFIX):
            continue
        try:
            data = read_regular(folder / file.filename, DOCUMENT_BYTES).data
        except OSError:
            continue
        if file.hashes.get("sha256") == hashlib.sha256(data).hexdigest():
            documents[file.filename] = data
    return Overlay(page, documents, 0)


def _known(
    group: list[PageFile], listed: Mapping[str, PageFile], filename: str, old: bytes | None
) -> tuple[list[VariantFile], list[PageFile]]:
    """Return what the document of an earlier run says of *group*, and the wheels to read.

    Args:
        group: the variant wheels of a version.
        listed: files on the page of the earlier run.
        filename: of the document.
        old: the document, None without one.
    """
    if old is None:
        return [], group
    document = VariantFile(old, filename)
    known: set[str] = set()
    unread = []
    for file in group:
        label = document.metadata.label_of(split_label(file.filename)[1] or "")
        before = listed.get(file.filename)
        is_same = before is not None and bool(before.hashes.items() & file.hashes.items())
        if is_same and label in document.metadata.variants:
            known.add(label)
        else:
            unread.append(file)
    kept = without_labels(document, document.metadata.variants.keys() - known)
    return ([kept] if kept else []), unread


def read_variant_file(file: PageFile, session: Session) -> VariantFile:
    """Return the variant metadata inside the wheel *file*, of which only parts are fetched.

    Raises:
        PackageIndexError: it cannot be fetched.
        InvalidWheel: it is not usable, or has none.
        MetadataError: the metadata is not valid, when it is looked at.
    """
    place = redacted(file.url)
    try:
        with opened(session, file.url, file.hashes) as stream, open_wheel(stream, place) as wheel:
            data = wheel.read(VARIANT_FILE)
    except OSError as error:
        raise PackageIndexError(f"{place}: {error.strerror or error}") from None
    if data is None:
        raise InvalidWheel(f"{place}: the wheel has no {VARIANT_FILE}, but its name has a label")
    return VariantFile(data, f"{place}: {VARIANT_FILE}")
