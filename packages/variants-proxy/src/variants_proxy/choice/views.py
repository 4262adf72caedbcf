"""A client, and its view of a project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.version import Version

from ..client.key import Machine

if TYPE_CHECKING:
    from ..settings import Upstream
    from ..upstream.upstream_pages import FetchedPage
    from .offers import Choice


@dataclass(frozen=True)
class Client:
    """The client of a request.

    Attributes:
        machine: described by the platform key of the URL.
        key: the platform key.
        at_index: whether pages stand in for the index's own: the client asks for them at its URLs,
            and has its own credentials.
        locked: what a lock file has of a project's versions, by project and version: labels, or
            URLs of wheels, which stand for their tags only.
        hashes: whether wheels with variant markers are read to know their hash: only lock files
            need it.
        portable: whether what a URL has must be the same for every machine: it may go into a lock
            file without the machine's key.
        merges: whether it takes the METADATA of one wheel for all wheels of a version, see
            `served_metadata`.
        reads_any: whether that may be any of these wheels, not the one with the highest build tag.
    """

    machine: Machine
    key: str
    at_index: bool = False
    locked: Mapping[str, Mapping[Version, tuple[str, ...]]] = field(default_factory=dict)
    hashes: bool = True
    portable: bool = False
    merges: bool = False
    reads_any: bool = False


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
