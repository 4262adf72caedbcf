"""The file that pip prepares: its variant markers, and what the catalogue changes in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pip._vendor.packaging.utils import canonicalize_name

from .catalog_links import rewritten_link
from .errors import Fault
from .session import last_session

if TYPE_CHECKING:
    from pep_variants.choose.markers import VariantContext

_prepared: ContextVar[Any] = ContextVar("prepared", default=None)


@contextmanager
def preparing(link: Any) -> Iterator[None]:
    """Set that pip prepares the file at *link*, None for no file."""
    token = _prepared.set(link)
    try:
        yield
    finally:
        _prepared.reset(token)


def marker_context(
    variant_json: bytes | None, *, values: bool, decided: bytes | None = None
) -> VariantContext:
    """Return the values that the variant markers of the metadata at hand are evaluated with.

    While a file is prepared they are those of its selection. Otherwise, as for files that are
    prepared later and for installed distributions, those of their own ``variant.json``, which was
    checked when the file was prepared.

    Args:
        variant_json: contents of that file, None without one.
        values: a marker has ``variant_properties``. Only then detection is needed: some value of
            every feature of what is installed is supported.
        decided: contents of the `choice_record` of an installed distribution, None without one.

    Raises:
        InstallationError: the settings are invalid.
    """
    from .variant_context import context_of

    session, link = last_session(), _prepared.get()
    if session is not None and link is not None:
        context = session.get_ordering().context(link, variant_json, values=values)
        if values:
            from .choice_record import choice_text

            text = choice_text(variant_json, context)
            if text is not None:
                session.choice_records[canonicalize_name(link.filename.partition("-")[0])] = text
        return context
    if decided is not None:
        return context_of(decided, None, values=False)
    try:
        detect = None if session is None else session.get_ordering().detect
    except Fault:  # installed distributions need no settings
        detect = None
    return context_of(variant_json, detect, values=values)


def as_installed(metadata: bytes) -> bytes:
    """Return METADATA that the index has of the file that pip prepares as it will be installed.

    Raises:
        VariantError: *metadata* is not valid.
    """
    known = rewritten_link(_prepared.get())
    if known is None:
        return metadata
    from variants_catalog.rewriting import installed_metadata

    return installed_metadata(metadata, known.entry, known.file)


def rewrite(requirement: Any) -> None:
    """Have pip read and install the rewritten wheel, if that of *requirement* is rewritten.

    pip has just checked the hash of the published file.

    Raises:
        VariantError: the wheel is not valid, or of another project or version than its filename.
    """
    known = rewritten_link(requirement.link)
    if known is None:
        return
    from pip._internal.utils.misc import hash_file
    from pip._internal.utils.temp_dir import TempDirectory

    from pep_variants.wheelfile.wheel import open_wheel
    from variants_catalog.rewriting import added_files, rewritten

    known.downloaded = path = requirement.local_file_path
    url = str(known.url_without_fragment)
    is_known = known.hash_name == "sha256"
    hashes = {"sha256": known.hash if is_known else hash_file(path)[0].hexdigest()}
    folder = TempDirectory(kind="variant", globally_managed=True).path
    requirement.local_file_path = os.path.join(folder, known.filename)  # noqa: PTH118
    with (
        open(path, "rb") as stream,  # noqa: PTH123 - pip gives text
        open_wheel(stream, url, filename=known.file.published) as contents,
        open(requirement.local_file_path, "wb") as target,  # noqa: PTH123
    ):
        added = added_files(known.entry, known.file, url, hashes)
        rewritten(contents, stream, known.entry, known.file, added).write(stream, target)


@contextmanager
def as_published(requirement: Any) -> Iterator[None]:
    """Give *requirement* the publisher's file, to be saved under its own name."""
    known, path = rewritten_link(requirement.link), requirement.local_file_path
    if known is None:
        yield
        return
    requirement.link, requirement.local_file_path = known.published, known.downloaded
    try:
        yield
    finally:
        requirement.link, requirement.local_file_path = known, path


def note_conditional(requires: Callable[[], tuple[str, ...]]) -> None:
    """Keep the dependencies with variant markers of the file that pip prepares, if any."""
    session, link = last_session(), _prepared.get()
    if session is not None and link is not None:
        session.get_ordering().note_conditional(link, requires())
