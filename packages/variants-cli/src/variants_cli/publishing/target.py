"""Where distributions are published, as a protocol: an upload API, or storage of static files.

`transaction` drives every target the same way:

1. `Target.listed`: files that are there with the same hash are not uploaded again; another hash
   ends it.
2. `Target.probe`: everything that can be refused is refused now, before an upload.
3. `Target.upload` for every file. On a target that shows files at once (an upload API,
   `Target.commits_last` is false) the variant wheels, then step 4, then the fallbacks in the order
   of `steps`. On storage in any order, several at a time: no page lists them yet.
4. `Target.commit`: merges the variant metadata of the releases with what is there and makes it
   visible; on storage, everything else with it, by one conditional write.

Each of these can be repeated after a kill at any point, with the same result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from variants_index.http.session import Session

    from ..indexing.wheelhouse import Distribution

    Progress = Callable[[int], None]
    """Called with the number of bytes that were sent since the last call; negative when an upload
    starts again."""


@dataclass(frozen=True)
class ReleaseFile:
    """One distribution to publish.

    Attributes:
        distribution: the file, as it was read and hashed.
        attestations: attestation objects (PEP 740), each the JSON text of one.
    """

    distribution: Distribution
    attestations: tuple[str, ...] = ()

    @property
    def filename(self) -> str:
        """Its name on the target."""
        return self.distribution.path.name


@dataclass(frozen=True)
class Release:
    """What is published of one version of a project.

    Attributes:
        project: normalized name.
        version: its version.
        files: the distributions, by filename.
        document: the ``*-variants.json`` of these files alone, as a local file has it or as it is
            merged from the wheels; None without variant wheels, and where the target gets none.
    """

    project: NormalizedName
    version: Version
    files: tuple[ReleaseFile, ...]
    document: bytes | None


@dataclass(frozen=True)
class Committed:
    """What `Target.commit` made visible.

    Attributes:
        documents: SHA-256 of the ``*-variants.json`` that is now on the target, by its filename.
        merged: names of those documents that have more than the release brought: what another
            batch, or another publisher, had published before.
    """

    documents: Mapping[str, str]
    merged: frozenset[str] = frozenset()


class Target(Protocol):
    """A place to publish to. Methods raise `PublishError`; messages never contain secrets."""

    @property
    def place(self) -> str:
        """What messages and the journal call it: a URL or path, without credentials."""

    @property
    def commits_last(self) -> bool:
        """Whether nothing is visible before `commit`, so that the order of uploads is free."""

    @property
    def parallel(self) -> int:
        """How many uploads may run at a time; `upload` is then called from several threads."""

    def listed(self, project: NormalizedName) -> Mapping[str, Mapping[str, str]]:
        """Return the files that the target has of *project*: filename to hexadecimal digests.

        Digests are by algorithm, as on a page of the simple API; empty where the target gives none.
        """

    def probe(self, releases: Sequence[Release], *, dry: bool = False) -> None:
        """Raise what can be known before the first upload.

        Credentials that are refused, metadata that is not accepted or cannot be replaced, metadata
        that contradicts what is there.

        Args:
            releases: all that will be published.
            dry: leave the target as it is, and find out what can be found out that way.
        """

    def upload(self, file: ReleaseFile, progress: Progress) -> None:
        """Upload *file*, with retries; succeeds as well if the same file is there already.

        Raises:
            Exists: a file of that name is there, which cannot be compared.
            Conflict: a file of that name is there with other contents.
        """

    def commit(self, releases: Sequence[Release]) -> Committed:
        """Make the variant metadata of *releases* visible, and on storage their files.

        Metadata that is there is merged with, never replaced. Called at least once when a release
        has no metadata, too.
        """

    def page_url(self, project: NormalizedName) -> str | None:
        """Return the URL of the page of *project*, None if no page is known."""

    def session(self) -> Session | None:
        """Return the session that reads its pages, None if it has no pages to read."""

    def close(self) -> None:
        """Close all connections."""
