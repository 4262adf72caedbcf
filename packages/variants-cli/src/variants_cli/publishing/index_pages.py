"""What an index has: its project pages, the metadata that they list, and parts of wheels.

Read anew every time: other publishers may be at work.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

from pep_variants.digests import Digests
from pep_variants.errors import redacted
from pep_variants.limits import DOCUMENT_BYTES
from pep_variants.model.filename import metadata_filename
from variants_index.errors import AccessDenied, NotFound, PackageIndexError
from variants_index.http.session import Session

from .errors import PublishError, Unavailable
from .pypirc import is_pypi

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from pep_variants.sources import Sources
    from variants_index.http.credentials import Credentials
    from variants_index.pages import Page, PageFile

    from .credentials import Login

_CHUNK = 1024 * 1024


class Presence(Enum):
    """Whether a target has a file."""

    ABSENT = "absent"
    SAME = "same"
    OTHER = "other"
    UNKNOWN = "unknown"
    """It has one of that name, and gives no hash to compare."""


def presence_of(path: Path, sha256: str, hashes: Mapping[str, str] | None) -> Presence:
    """Return whether the file of which a target gives *hashes* is the one at *path*.

    Args:
        path: of the file.
        sha256: of the file.
        hashes: hexadecimal digests by algorithm, None if the target has no such file.

    Raises:
        OSError: it cannot be read.
    """
    if hashes is None:
        return Presence.ABSENT
    if "sha256" in hashes:
        same = hashes["sha256"].lower() == sha256
        return Presence.SAME if same else Presence.OTHER
    check = Digests.of(hashes)
    if not check.found:
        return Presence.UNKNOWN
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            check.update(chunk)
    same = all(hashes[name].lower() == digest for name, digest in check.found.items())
    return Presence.SAME if same else Presence.OTHER


@dataclass(frozen=True)
class Document:
    """A ``*-variants.json`` on the index.

    Attributes:
        data: its contents.
        source: its URL, for messages.
    """

    data: bytes
    source: str


class IndexPages:
    """The simple API of the index that is published to.

    Attributes:
        session: HTTP session, with the credentials for the index.
        url: base URL of the simple API, with a slash at its end, without credentials.
    """

    def __init__(
        self,
        url: str,
        upload_url: str,
        login: Login,
        sources: Sources,
        environ: Mapping[str, str],
    ) -> None:
        """Set up.

        Args:
            url: base URL of the simple API; may have credentials of its own.
            upload_url: of uploads, without credentials.
            login: for uploads; used for the pages as well if they are on the same host. Others
                are looked for where installers look.
            sources: the user's settings for indexes.
            environ: environment variables.
        """
        self.session = Session(sources, environ=environ)
        # The pages of PyPI are public, and an API token is refused there.
        shared = same_host(url, upload_url) and not is_pypi(upload_url)
        credentials = login.credentials() if shared else None
        if credentials is not None:
            self.session.add_index(_with_credentials(url, credentials))
        self.url = self.session.add_index(url)

    def close(self) -> None:
        """Close all connections."""
        self.session.close()

    def page_url(self, project: NormalizedName) -> str:
        """Return the URL of the page of *project*."""
        return f"{self.url}{project}/"

    def check_root(self) -> None:
        """Check that there is a simple API.

        Raises:
            PublishError: there is not.
        """
        try:
            with self.session.stream(self.url):
                pass
        except AccessDenied as problem:
            raise PublishError(f"{problem}, or name the pages with --index-url") from None
        except PackageIndexError as problem:
            raise PublishError(
                f"{problem}: the pages of the index are read to see which files it has: give the "
                "URL of its simple API with --index-url"
            ) from None

    def page(self, project: NormalizedName) -> Page | None:
        """Return the page of *project*, None if the index does not have the project.

        Raises:
            PublishError: it cannot be read.
        """
        try:
            return self.session.fetch_page(self.page_url(project), project, same_host=True)
        except NotFound:
            return None
        except AccessDenied as problem:
            raise PublishError(f"{problem}, or name the pages with --index-url") from None
        except PackageIndexError as problem:
            raise Unavailable(f"{problem}: nothing can be compared with the index") from None

    def document(self, page: Page | None, project: str, version: Version) -> Document | None:
        """Return the metadata of *version* that *page* lists, None if it lists none.

        Raises:
            PublishError: it cannot be read.
        """
        entry = document_entry(page, project, version)
        if entry is None:
            return None
        try:
            answer = self.session.fetch(
                entry.url, limit=DOCUMENT_BYTES, hashes=entry.hashes, revalidate=True
            )
        except PackageIndexError as problem:
            raise Unavailable(
                f"{problem}: the metadata of the variants that are there cannot be merged with"
            ) from None
        return Document(answer.body, redacted(entry.url))


def document_entry(page: Page | None, project: str, version: Version) -> PageFile | None:
    """Return the entry of the ``*-variants.json`` of *version*, None without one."""
    name = metadata_filename(project, version)
    files = page.files if page is not None else ()
    return next((file for file in files if file.filename == name), None)


def _with_credentials(url: str, credentials: Credentials) -> str:
    parts = urlsplit(url)
    if "@" in parts.netloc:
        return url  # those in the URL count
    user = f"{quote(credentials.username, safe='')}:{quote(credentials.password, safe='')}"
    return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc}"))


def same_host(first: str, second: str) -> bool:
    """Return whether two URLs have the same scheme, host and port: they share credentials."""
    with suppress(ValueError):
        one, other = urlsplit(first), urlsplit(second)
        return (one.scheme, one.hostname, one.port) == (other.scheme, other.hostname, other.port)
    return False
