"""Variant markers in core metadata, reduced before pip's own `packaging` sees them.

While pip prepares a file they are evaluated with the values of its selection. What comes of it is
what `patches.install` writes, so that installed distributions have no variant markers: no other
machine, and no pip without the shim, judges them in another way. Those of other installers are
evaluated with their own ``variant.json``. The engine is only imported where metadata has variant
markers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any

from pep_variants import labels as wheel_labels

from ._distributions import context_of
from ._errors import logger

if TYPE_CHECKING:
    import email.message

    from pep_variants.markers import VariantContext

_HINT = "variant_"  # without it there is nothing to reduce, and no need to import the engine
_VALUES = "variant_properties"

_prepared: dict[int, list[Any]] = {}
"""Links of the files that each thread of pip prepares, the innermost one last."""


@contextmanager
def preparing(link: Any) -> Iterator[None]:
    """Set that pip prepares the file at *link* in this thread, None for no file."""
    links = _prepared.setdefault(thread := get_ident(), [])
    links.append(link)
    try:
        yield
    finally:
        links.pop()
        if not links:
            del _prepared[thread]


def prepared_link() -> Any:
    """Return the link of the file that pip prepares, None outside of that.

    Raises:
        LookupError: another thread reads for one of several that prepare files.
    """
    own = _prepared.get(get_ident())
    if own:
        return own[-1]
    others = [links[-1] for links in [*_prepared.values()]]
    if len(others) > 1:
        raise LookupError("pip reads metadata in a thread that prepares no file")
    return others[0] if others else None


def reduce_contents(contents: bytes, variant_json: bytes | None) -> bytes:
    """Return core metadata with the variant markers of its ``Requires-Dist`` reduced.

    Everything else stays byte for byte; without variant markers the same object is returned.

    Args:
        contents: ``METADATA``.
        variant_json: contents of that file in the same dist-info folder, None without one.

    Raises:
        VariantError: the markers are beyond the limits, or the settings are invalid.
    """
    if _HINT.encode() not in contents:
        return contents
    from ._session import last_session  # with pip's links; commands that only list need neither

    session, link = last_session(), prepared_link()
    if session is not None and link is None and (contents, variant_json) in session.decided:
        return session.decided[contents, variant_json]
    from pep_variants import markers
    from pep_variants.errors import InvalidWheel, redacted

    try:
        terms = markers.metadata_terms(contents)
    except InvalidWheel as error:
        raise InvalidWheel(error.problem, redacted(str(link or "a wheel"))) from None
    if not terms:
        return contents
    reduced = markers.reduce_metadata(contents, _context(variant_json, values=_VALUES in terms))
    if session is not None and link is not None:
        session.get_ordering().note_conditional(link, markers.conditional_dependencies(contents))
        session.decided[contents, variant_json] = reduced
    return reduced


def reduce_message(message: email.message.Message, read_text: Callable[[str], str | None]) -> None:
    """Reduce the variant markers of parsed core metadata, in place.

    For installed distributions, which have to be listed whatever is wrong with them.

    Args:
        message: the metadata.
        read_text: reads a file of the dist-info folder, None if there is no such file.
    """
    requirements = [str(value) for value in message.get_all("Requires-Dist") or ()]
    if not any(_HINT in requirement for requirement in requirements):
        return
    try:
        from pep_variants import markers
        from pep_variants.errors import VariantError
    except (
        ImportError
    ):  # pip 26 refuses imports while it installs; dependencies are not needed then
        return
    try:
        values = any(_VALUES in requirement for requirement in requirements)
        text = read_text(wheel_labels.VARIANT_FILE)
        context = _context(None if text is None else text.encode(), values=values)
        reduced = markers.reduce_requirements(requirements, context)
    except (ImportError, VariantError):
        logger.debug("variant markers cannot be reduced", exc_info=True)
        return
    del message["Requires-Dist"]
    for requirement in reduced:
        message["Requires-Dist"] = requirement


def _context(variant_json: bytes | None, *, values: bool) -> VariantContext:
    """Return the values that the variant markers of the metadata at hand are evaluated with.

    Args:
        variant_json: contents of that file, None without one.
        values: a marker has ``variant_properties``. Only then detection is needed: some value of
            every feature of what is installed is supported.

    Raises:
        PreferenceError: the settings are invalid.
    """
    from ._session import last_session

    session, link = last_session(), prepared_link()
    if session is not None and link is not None:
        return session.get_ordering().context(link, variant_json, values=values)
    detect = None if session is None else session.get_ordering().detect
    return context_of(variant_json, detect, values=values)
