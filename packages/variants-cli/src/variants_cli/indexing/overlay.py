"""Index-level metadata for a project on an index that does not provide it.

The wheels stay on that index: a generated page lists them with their URLs, and beside it is the
metadata that was read from the wheels.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from packaging.utils import canonicalize_name

from pep_variants.errors import InvalidWheel, InvalidWheelFilename, VariantError, redacted
from pep_variants.model.filename import metadata_filename, parse_filename
from pep_variants.model.label import METADATA_SUFFIX, split_label
from pep_variants.wheelfile.wheel import VARIANT_FILE, open_wheel
from variants_index.errors import PackageIndexError
from variants_index.http.ranges import opened
from variants_index.pages import Page, PageFile

from .merged import write_merged
from .wheelhouse import VariantFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from variants_index.http.session import Session

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
    url: str, session: Session, progress: Callable[[str], None] | None = None
) -> Overlay:
    """Return the overlay for the project page at *url*.

    Fetches the metadata of every variant wheel, with range requests if the server supports them.

    Args:
        url: of a project page.
        session: HTTP session.
        progress: called with the name of each file.

    Raises:
        OverlayError: *url* does not name a project.
        PackageIndexError: a file cannot be fetched.
        VariantError: a wheel is not valid, or two contradict each other.
    """
    parts = [part for part in urlsplit(url).path.split("/") if part]
    if not parts:
        raise OverlayError(f"{redacted(url)}: not a project page such as …/simple/torch/")
    session.add_index(url)
    page = session.fetch_page(url, canonicalize_name(parts[-1]))
    files = [file for file in page.files if not file.filename.endswith(METADATA_SUFFIX)]
    releases: dict[tuple[NormalizedName, Version], list[PageFile]] = {}
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

    documents: dict[str, bytes] = {}
    entries = list(files)
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            for release, group in sorted(releases.items()):
                data = write_merged(list(pool.map(read, group)))
                filename = metadata_filename(*release)
                documents[filename] = data
                digest = hashlib.sha256(data).hexdigest()
                entry = PageFile(filename, quote(filename), {"sha256": digest}, size=len(data))
                entries.append(entry)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    wheels = sum(file.filename.endswith(".whl") for file in files)
    return Overlay(replace(page, files=tuple(entries)), documents, wheels)


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
