"""The assets of one release on GitHub, by its REST API.

Assets have names only, no folders, and cannot be replaced. An upload that breaks off may leave an
asset of the state ``starter``, which holds the name and nothing else; it is removed.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import httpx

from pep_variants.errors import redacted

from .github_api import TIMEOUT, TRIES, GithubApi
from .store import HashedStream, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from .store import Headers

LARGEST_ASSET = 2 * 1024**3 - 1
MOST_ASSETS = 1000

_PLACE = re.compile(r"(?P<owner>[\w.-]+)/(?P<repository>[\w.-]+)@(?P<tag>[^\s?#\x00-\x1f]+)")
_RENAMED = re.compile(r"[^A-Za-z0-9._+@-]")
"""GitHub writes a dot for these, and for dots at the ends of a name."""

_PER_PAGE = 100


class AssetConflict(StoreError):
    """The release has another asset of the same name."""


@dataclass(frozen=True)
class Asset:
    """An asset of the release.

    Attributes:
        identifier: of the asset, in the API.
        name: as GitHub has it.
        size: in bytes.
        sha256: hexadecimal, None if GitHub does not say it.
        url: where everyone gets it.
        complete: whether its upload has ended.
    """

    identifier: int
    name: str
    size: int
    sha256: str | None
    url: str
    complete: bool


class GithubReleases:
    """The release of a tag. Methods raise `StoreError`."""

    def __init__(
        self,
        place: str,
        environ: Mapping[str, str],
        client: Callable[[str], httpx.Client],
        *,
        pause: float = 1.0,
    ) -> None:
        """Use the release *place*; nothing is requested.

        Args:
            place: ``OWNER/REPOSITORY@TAG``.
            environ: environment variables: ``GH_TOKEN`` or ``GITHUB_TOKEN``, ``GITHUB_API_URL``.
            client: opens a client for requests to a URL.
            pause: seconds before the first repetition of a request.

        Raises:
            StoreError: *place* is not such a name, or there is no token.
        """
        found = _PLACE.fullmatch(place)
        if found is None:
            raise StoreError(
                f"github-releases:{place}: is not github-releases:OWNER/REPOSITORY@TAG"
            )
        self.name = f"github-releases:{place}"
        self._api = GithubApi(self.name, environ, client, pause)
        self._repository = f"{self._api.url}/repos/{found['owner']}/{found['repository']}"
        self._tag = found["tag"]
        self._release: dict[str, Any] | None = None
        self._assets: dict[str, Asset] | None = None

    def close(self) -> None:
        """Close all connections."""
        self._api.client.close()

    def check_name(self, name: str, size: int) -> None:
        """Check that GitHub takes an asset of this name and size.

        Raises:
            StoreError: it does not, or would rename it, and installers read the name.
        """
        if _RENAMED.search(name) or name.strip(".") != name:
            raise StoreError(
                f"{self.name}: GitHub renames {name}: it keeps letters, digits and . _ + @ - only: "
                "publish it to other storage"
            )
        if size > LARGEST_ASSET:
            raise StoreError(
                f"{self.name}: {name} has {size:,} bytes, GitHub takes up to {LARGEST_ASSET:,}: "
                "publish it to other storage"
            )

    def check(self) -> None:
        """Check that the release is there, or make it for a tag that is there.

        Raises:
            StoreError: neither is there, or it is a draft, or cannot be changed.
        """
        release = self._opened(create=True)
        if release.get("draft"):
            raise StoreError(f"{self.name}: the release is a draft: publish it first")
        if release.get("immutable"):
            raise StoreError(
                f"{self.name}: the release is immutable: add files before it is published, or "
                "use another tag"
            )

    def url(self, name: str) -> str:
        """Return where everyone gets the asset *name*, whether it is there or not."""
        known = (self._assets or {}).get(name)
        if known is not None:
            return known.url
        page = str(self._opened().get("html_url", ""))
        return f"{page.replace('/releases/tag/', '/releases/download/')}/{quote(name)}"

    def assets(self, *, refresh: bool = False) -> Mapping[str, Asset]:
        """Return the assets by name, as they were read before unless *refresh*."""
        if self._assets is None or refresh:
            release = self._opened(create=True)
            found: dict[str, Asset] = {}
            for number in range(1, MOST_ASSETS // _PER_PAGE + 2):
                entries = self._api.json(
                    "GET", f"{release['url']}/assets?per_page={_PER_PAGE}&page={number}"
                )
                found.update((asset.name, asset) for asset in map(_asset, entries))
                if len(entries) < _PER_PAGE:
                    break
            self._assets = found
        return self._assets

    def holds(self, name: str, size: int, sha256: str) -> bool:
        """Return whether the release has this asset, as it was read last.

        Raises:
            AssetConflict: it has another of the same name.
        """
        asset = self.assets().get(name)
        if asset is None or not asset.complete:
            return False
        digest = asset.sha256
        if digest is None and asset.size == size:
            digest = self._downloaded_digest(asset)
        if (asset.size, digest) != (size, sha256):
            raise AssetConflict(
                f"{asset.url} has {asset.size:,} bytes, SHA-256 {digest or 'not known'}; here "
                f"{name} has {size:,}, {sha256}: a published file cannot change: publish the new "
                "one as another version, or with a build tag"
            )
        return True

    def put(
        self,
        name: str,
        source: Path | bytes,
        size: int,
        sha256: str,
        headers: Headers,
        progress: Callable[[int], None],
    ) -> None:
        """Upload an asset, unless it is there.

        Args:
            name: of the asset.
            source: the file, or its contents.
            size: in bytes.
            sha256: what its content must have, hexadecimal.
            headers: of the asset; GitHub keeps its type only.
            progress: called with the number of bytes that were sent since the last call; negative
                when an upload starts again.

        Raises:
            AssetConflict: the release has another asset of the same name.
        """
        self.check_name(name, size)
        for number in range(TRIES):
            if number:
                self._api.wait(number)
            if self.assets(refresh=number > 0).get(name) is not None:
                if self.holds(name, size, sha256):
                    return
                self._delete(self.assets()[name])
            sent = [0]

            def count(length: int, sent: list[int] = sent) -> None:
                sent[0] += length
                progress(length)

            problem = self._upload(name, source, size, sha256, headers, count)
            if problem is None:
                return
            progress(-sent[0])
        raise StoreError(f"{self.name}: {name} could not be uploaded: {problem}: try again later")

    def _upload(
        self,
        name: str,
        source: Path | bytes,
        size: int,
        sha256: str,
        headers: Headers,
        progress: Callable[[int], None],
    ) -> str | None:
        """Return None after success, what went wrong if it is to be tried again."""
        url = f"{self._upload_url()}?name={quote(name, safe='')}"
        try:
            answer = self._api.client.post(
                url,
                content=_contents(source, sha256, progress),
                headers={
                    **self._api.headers(),
                    "Content-Type": headers.content_type,
                    "Content-Length": str(size),
                },
                timeout=TIMEOUT,
            )
        except httpx.HTTPError as error:
            return f"{type(error).__name__} {error}".strip()
        if answer.status_code >= 500 or answer.status_code in (408, 429):
            return f"status {answer.status_code}"
        if answer.status_code == 422 and "already_exists" in answer.text:
            return "an asset of this name is there"  # of another publisher, or of a lost answer
        if answer.status_code != 201:
            raise self._api.refused(f"{name} was not taken", answer)
        asset = _asset(answer.json())
        if asset.name != name:
            self._delete(asset)
            raise StoreError(f"{self.name}: GitHub renames {name} to {asset.name}")
        if not asset.complete or asset.size != size or asset.sha256 not in (None, sha256):
            return f"GitHub received {asset.size:,} of {size:,} bytes, or others"
        if self._assets is not None:
            self._assets[name] = asset
        return None

    def _upload_url(self) -> str:
        url = str(self._opened()["upload_url"]).partition("{")[0]
        there, api = urlsplit(url), urlsplit(self._api.url)
        domain = ".".join((api.hostname or "").split(".")[-2:])
        host = there.hostname or ""
        if there.scheme != api.scheme or not (host == api.hostname or host.endswith(f".{domain}")):
            raise StoreError(
                f"{self.name}: {redacted(self._api.url)} names {redacted(url)} for uploads, which "
                "is not below the same domain"
            )
        return url

    def _opened(self, *, create: bool = False) -> dict[str, Any]:
        if self._release is None:
            tag = quote(self._tag, safe="")
            found = self._api.json("GET", f"{self._repository}/releases/tags/{tag}", missing=True)
            if found is None and create:
                reference = f"{self._repository}/git/ref/tags/{quote(self._tag)}"
                if self._api.json("GET", reference, missing=True) is None:
                    raise StoreError(
                        f"{self.name}: there is no tag {self._tag}, or the token cannot read the "
                        "repository: push the tag first"
                    )
                found = self._api.json(
                    "POST",
                    f"{self._repository}/releases",
                    body={"tag_name": self._tag, "name": self._tag},
                )
            if found is None:
                raise StoreError(f"{self.name}: there is no release")
            self._release = found
        return self._release

    def _delete(self, asset: Asset) -> None:
        self._api.json(
            "DELETE", f"{self._repository}/releases/assets/{asset.identifier}", missing=True
        )
        if self._assets is not None:
            self._assets.pop(asset.name, None)

    def _downloaded_digest(self, asset: Asset) -> str:
        digest = hashlib.sha256()
        url = f"{self._repository}/releases/assets/{asset.identifier}"
        headers = {**self._api.headers(), "Accept": "application/octet-stream"}
        try:
            with self._api.client.stream(
                "GET", url, headers=headers, timeout=TIMEOUT, follow_redirects=True
            ) as answer:
                if answer.status_code != 200:
                    answer.read()
                    raise self._api.refused(f"{asset.name} cannot be read", answer)
                for chunk in answer.iter_bytes():
                    digest.update(chunk)
        except httpx.HTTPError as error:
            raise StoreError(f"{self.name}: {asset.name} cannot be read: {error}") from None
        return digest.hexdigest()


def _asset(entry: Any) -> Asset:  # noqa: ANN401 - JSON
    algorithm, _, digest = str(entry.get("digest") or "").partition(":")
    return Asset(
        int(entry["id"]),
        str(entry["name"]),
        int(entry["size"]),
        digest.lower() if algorithm == "sha256" else None,
        str(entry["browser_download_url"]),
        entry.get("state") == "uploaded",
    )


def _contents(
    source: Path | bytes, sha256: str, progress: Callable[[int], None]
) -> Iterator[bytes] | bytes:
    if isinstance(source, bytes):
        return source
    return _chunks(source, sha256, progress)


def _chunks(source: Path, sha256: str, progress: Callable[[int], None]) -> Iterator[bytes]:
    try:
        stream = source.open("rb")
    except OSError as error:
        raise StoreError(f"{source}: {error.strerror or error}") from None
    with stream:
        yield from HashedStream(stream, source, sha256, progress)
