"""Index-level metadata for a project on an index that has none, without touching that index.

The wheels stay where they are: a page of ours lists them with their URLs there, and beside it the
metadata that was read from them.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from packaging.utils import canonicalize_name

from pep_variants.errors import InvalidWheel, InvalidWheelFilename, VariantError, redacted
from pep_variants.filename import metadata_filename, parse_filename
from pep_variants.label import METADATA_SUFFIX, split_label
from pep_variants.wheel import VARIANT_FILE, open_wheel
from resolvelib_variants.index.errors import IndexProblem
from resolvelib_variants.index.pages import ACCEPT, Page, PageFile, read_page
from resolvelib_variants.index.ranges import opened

from .merged import write_merged
from .wheelhouse import VariantFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from resolvelib_variants.index.session import Session

MAX_PAGE_BYTES = 128 * 1024 * 1024
THREADS = 8


@dataclass(frozen=True)
class Overlay:
    """What is to be served in place of a project's page.

    Attributes:
        page: the project's files where they are, and the metadata beside the page.
        documents: the metadata by filename.
        wheels: how many wheels there are.
    """

    page: Page
    documents: dict[str, bytes]
    wheels: int


class OverlayError(VariantError):
    """A page for which no metadata can be made."""


def read_overlay(
    url: str, session: Session, progress: Callable[[str], None] | None = None
) -> Overlay:
    """Return the overlay for the project page at *url*.

    Of every variant wheel its metadata is fetched, as a part of the file where the server can.

    Args:
        url: of a project page.
        session: what fetches.
        progress: is told the names of files.

    Raises:
        OverlayError: the page names no project.
        IndexProblem: something cannot be had.
        VariantError: a wheel is broken, or two contradict each other.
    """
    parts = [part for part in urlsplit(url).path.split("/") if part]
    if not parts:
        raise OverlayError(f"{redacted(url)}: is no page of a project, like …/simple/torch/")
    answer = session.fetch(url, limit=MAX_PAGE_BYTES, accept=ACCEPT, revalidate=True)
    page = read_page(answer.body, answer.content_type, answer.url, canonicalize_name(parts[-1]))
    files = [file for file in page.files if not file.filename.endswith(METADATA_SUFFIX)]
    releases: dict[tuple[NormalizedName, Version], list[PageFile]] = {}
    for file in files:
        if split_label(file.filename)[1] is None:
            continue
        try:
            name = parse_filename(file.filename)
        except InvalidWheelFilename:
            continue  # no installer looks at it
        releases.setdefault((name.name, name.version), []).append(file)

    def read(file: PageFile) -> VariantFile:
        if progress is not None:
            progress(file.filename)
        return _read(file, session)

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


def _read(file: PageFile, session: Session) -> VariantFile:
    place = redacted(file.url)
    try:
        with opened(session, file.url, file.hashes) as stream, open_wheel(stream, place) as wheel:
            data = wheel.read(VARIANT_FILE)
    except OSError as error:
        raise IndexProblem(f"{place}: {error.strerror or error}") from None
    if data is None:
        raise InvalidWheel(f"{place}: the filename has a label, but there is no {VARIANT_FILE}")
    return VariantFile(data, f"{place}: {VARIANT_FILE}")
