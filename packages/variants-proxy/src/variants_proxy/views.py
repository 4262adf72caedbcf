"""A client, and its view of a project."""

from __future__ import annotations

from dataclasses import dataclass

from .choice import Choice
from .key import Machine
from .settings import Upstream
from .upstream_pages import FetchedPage


@dataclass(frozen=True)
class Client:
    """The client of a request.

    Attributes:
        machine: described by the platform key of the URL.
        key: the platform key; for a floating name its present key.
        floating: whether the URL has a floating name.
    """

    machine: Machine
    key: str
    floating: bool = False


@dataclass(frozen=True)
class ProjectView:
    """One project of one upstream, as a client sees it.

    Attributes:
        upstream: of the page.
        project: normalized name.
        found: the upstream's page.
        choice: of its files; None for the whole page, unchanged.
        sure: whether everything that the choice depends on could be read.
    """

    upstream: Upstream
    project: str
    found: FetchedPage
    choice: Choice | None
    sure: bool
