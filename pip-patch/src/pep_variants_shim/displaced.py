"""Lines about older versions with a build for the accelerator, where the chosen one has none."""

from __future__ import annotations

import contextvars
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pep_variants.limits import ADVICE_SECONDS
from pep_variants.timeouts import within

from .errors import logger
from .patience import impatient

if TYPE_CHECKING:
    from .session import Session


def report_displaced(_original: object, session: Session, links: Mapping[str, Any]) -> None:
    """Print a line for each project of which an older version would use the accelerator.

    pip alone would send no request for older versions. So all of them together may take
    `ADVICE_SECONDS`, and errors are logged as debug messages only.

    Args:
        session: of the command.
        links: of what is going to be installed, by normalized project name.
    """
    ordering = session.ordering
    if ordering is None:
        return
    links = {name: link for name, link in links.items() if ordering.admits_several(name)}
    if not links:  # no thread, and nothing to import
        return
    lines: list[str] = []

    def look() -> None:
        lines.extend(ordering.older_build(project, link) for project, link in links.items())

    run = contextvars.copy_context().run
    try:
        with impatient(session.network, seconds=ADVICE_SECONDS):
            within(ADVICE_SECONDS, lambda: run(look))
    except Exception:
        logger.debug("No advice about older versions", exc_info=True)
    for line in filter(None, lines):
        logger.info("%s", line)
