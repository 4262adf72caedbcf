"""A client, and its view of a project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from packaging.version import Version

from ..client.key import Machine
from ..settings import Upstream
from ..upstream.upstream_pages import FetchedPage
from .offers import Choice


@dataclass(frozen=True)
class Client:
    """The client of a request.

    Attributes:
        machine: described by the platform key of the URL.
        key: the platform key.
        floating: whether files with variants are selected at the time of the request.
        in_place: whether pages stand in for the index's own, see `urls`.
        locked: what a lock file has of a project's versions, by project and version: labels, or
            URLs of wheels, which stand for their tags only.
        hashes: whether wheels with variant markers are read to know their hash: only lock files
            need it.
        merges: whether it takes the METADATA of one wheel for all wheels of a version, see
            `served_metadata`.
        shared: whether in-place pages are at URLs of the proxy, see `keyed_index`.
    """

    machine: Machine
    key: str
    floating: bool = False
    in_place: bool = False
    locked: Mapping[str, Mapping[Version, tuple[str, ...]]] = field(default_factory=dict)
    hashes: bool = True
    merges: bool = False
    shared: bool = False

    @property
    def is_at_index(self) -> bool:
        """Whether the client gets pages at the index's own URLs, and has its own credentials."""
        return self.in_place and not self.shared

    @property
    def is_portable(self) -> bool:
        """Whether what a URL has must be the same for every machine: it may go into a lock file."""
        return self.in_place and self.hashes


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
