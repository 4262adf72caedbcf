"""The file that pip prepares: its variant markers are evaluated for the chosen variant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pip._vendor.packaging.utils import canonicalize_name

from .catalog_links import catalog_link
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


def with_added(metadata: bytes) -> bytes:
    """Return METADATA of the file that pip prepares with the dependencies of the catalogue.

    Raises:
        VariantError: *metadata* is not valid.
    """
    known = catalog_link(_prepared.get())
    if known is None or known.file.redirect or not known.file.requires:
        return metadata
    from variants_catalog.redirect import with_requirements

    return with_requirements(metadata, known.entry.name, known.file)


def note_conditional(requires: Callable[[], tuple[str, ...]]) -> None:
    """Keep the dependencies with variant markers of the file that pip prepares, if any."""
    session, link = last_session(), _prepared.get()
    if session is not None and link is not None:
        session.get_ordering().note_conditional(link, requires())
