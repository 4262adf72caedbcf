"""The variant metadata of one version in one source: its file on the index, else its wheels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pep_variants.errors import InvalidWheel, MetadataError, VariantError
from pep_variants.filename import metadata_filename
from pep_variants.label import VARIANT_FILE
from pep_variants.merging import check_promise, merge_all
from pep_variants.metadata import Metadata
from pep_variants.reader import MAX_METADATA_BYTES, read_metadata
from pep_variants.wheel import read_wheel_metadata

from ..index.errors import IndexProblem
from ..index.pages import PageFile
from ..index.ranges import opened
from ..index.session import Session
from .ahead import Ahead
from .candidate import Candidate

MAX_WHEELS = 32
"""So many wheels of a version are looked into when its source has no metadata file."""


def fetch_variant_metadata(
    session: Session, ahead: Ahead, candidate: Candidate, wheels: Sequence[Candidate]
) -> Metadata:
    """Return the variant metadata beside *candidate*.

    Args:
        session: what fetches.
        ahead: lets several wheels be looked into at once.
        candidate: any variant wheel of the version and source.
        wheels: all of them, of which one for each label is looked into if there is no file.

    Raises:
        VariantError: there is none, it cannot be had, or it is broken.
    """
    if candidate.direct:
        return _inside(session, candidate)
    if candidate.metadata is not None:
        return read_metadata(
            fetch_document(session, ahead, candidate.metadata), candidate.metadata.url
        )
    by_label = {wheel.label: wheel for wheel in reversed(wheels)}
    filename = metadata_filename(candidate.project, str(candidate.version))
    missing = f"lists variant wheels, but no {filename}"
    if len(by_label) > MAX_WHEELS:
        raise MetadataError(
            candidate.source, "", f"{missing}, and {len(by_label)} labels are too many"
        )
    inspected = sorted(by_label.values(), key=lambda wheel: wheel.filename)

    def inside(wheel: Candidate) -> Metadata:
        return ahead.result(("inside", wheel), partial(_inside, session, wheel))

    for wheel in inspected:
        ahead.start(("inside", wheel), partial(_inside, session, wheel))
    try:
        return merge_all(map(inside, inspected))
    except VariantError as error:
        raise MetadataError(candidate.source, "", f"{missing}; {error}") from None


def fetch_document(session: Session, ahead: Ahead, file: PageFile) -> bytes:
    """Return the contents of a ``*-variants.json``, once fetched and verified.

    Raises:
        MetadataError: it cannot be had, or its hash differs.
    """

    def fetch() -> bytes:
        return session.fetch(
            file.url, limit=MAX_METADATA_BYTES, hashes=file.hashes, revalidate=True
        ).body

    try:
        return ahead.result(("document", file.url), fetch)
    except IndexProblem as error:
        raise MetadataError("", "", str(error)) from None


def _inside(session: Session, wheel: Candidate) -> Metadata:
    """Return the metadata inside *wheel*."""
    url = wheel.file.url
    try:
        with opened(session, url, wheel.file.hashes) as stream:
            metadata = read_wheel_metadata(stream, url)
    except IndexProblem as error:
        raise MetadataError("", "", str(error)) from None
    except OSError as error:
        raise InvalidWheel(f"{url}: {error.strerror or error}") from None
    if metadata is None or wheel.label is None:
        raise MetadataError(url, "", f"is named a variant wheel, but has no {VARIANT_FILE}")
    check_promise(metadata, metadata, wheel.label)
    return metadata
