"""Reports for clients: files that were not delivered, and projects with notices.

A server around the application names who asks in the scope of a request, as
``scope["state"]["observer"]``. It sees a response that is an error itself; of a transfer that
breaks off it cannot see why, so that goes to the observer and to the log. Notices belong to a
choice, which many requests share: `NotedProjects` has them, by client.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ..upstream.lru import LRUCache

if TYPE_CHECKING:
    from ..choice.views import Client

logger = logging.getLogger(__name__)

MOST_NOTED = 20_000
"""Projects with notices that are remembered, of all clients together."""


class Observer(Protocol):
    """Who asked for something."""

    def refused(self, text: str) -> None:
        """Note that a file was not served; *text* names it and says why."""


def report_abort(scope: Mapping[str, Any], text: str) -> None:
    """Log that a transfer broke off, and note it for the observer of the request.

    Args:
        scope: of the request.
        text: names the file and says why.
    """
    logger.warning("file not served: %s", text)
    observer: Observer | None = scope.get("state", {}).get("observer")
    if observer is not None:
        observer.refused(text)


class NotedProjects:
    """The projects whose decision report has notices for the user of a client."""

    def __init__(self) -> None:
        self._projects: LRUCache[tuple[str, str], bool] = LRUCache(MOST_NOTED)

    def add(self, client: Client, project: str) -> None:
        """Note *project*, a normalized name."""
        self._projects.put((client.key, project), True)

    def has(self, client: Client, project: str) -> bool:
        """Return whether there are notices about *project*."""
        return self._projects.get((client.key, project)) is not None
