"""Requests to the legacy upload API: one POST for each file, streamed from disk.

The body is a multipart form (RFC 7578) whose last part is the file. It is never in memory, and it
is hashed while it is sent: a file that changes meanwhile breaks the request off before its end, so
that no server stores it.
"""

from __future__ import annotations

import hashlib
import io
from base64 import b64encode
from contextlib import closing
from typing import IO, TYPE_CHECKING, cast
from urllib.parse import urljoin

import httpx

from pep_variants.errors import redacted
from variants_index.errors import InvalidUrl
from variants_index.http.addresses import AddressPolicy, ForbiddenAddress
from variants_index.http.credentials import split_credentials
from variants_index.http.failures import describe
from variants_index.http.transport import RoutingTransport, origin_of

from .answers import BODY_BYTES, Answer, read_answer
from .errors import Changed, PublishError, Refused
from .retries import Temporary

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pep_variants.sources import Sources
    from variants_index.http.credentials import Credentials

    from .credentials import Login
    from .form_fields import Fields
    from .target import Progress

CONNECT_SECONDS = 15.0
ANSWER_SECONDS = 600.0
"""How long a server may take to answer after the last byte: it copies gigabytes meanwhile."""

_REDIRECTS = (307, 308)
_MOVED = (300, 301, 302, 303)
_MAX_REDIRECTS = 3
_ACCEPT = "application/json;q=0.9, text/plain;q=0.8, text/html;q=0.7"


class UploadClient:
    """Sends uploads to one URL; safe to use from several threads.

    Attributes:
        url: of the upload API, without credentials.
        place: the same for messages.
    """

    def __init__(
        self,
        url: str,
        login: Login,
        sources: Sources,
        environ: Mapping[str, str],
    ) -> None:
        """Set up.

        Args:
            url: of the upload API; credentials in it are ignored.
            login: the credentials, asked for before each request.
            sources: proxy, certificates and trusted hosts of the user.
            environ: environment variables, for the proxy and certificates.

        Raises:
            PublishError: *url* is not an http or https URL.
        """
        try:
            self.url = split_credentials(url)[0]
        except InvalidUrl as error:
            raise PublishError(str(error)) from None
        self.place = redacted(self.url)
        if not self.url.startswith(("http://", "https://")):
            raise PublishError(f"{self.place}: is not an http or https URL of an upload API")
        policy = AddressPolicy(sources.trusted_hosts)
        policy.configure(self.url)
        self._login = login
        self._client = httpx.Client(
            transport=RoutingTransport(sources, environ, policy),
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
            headers={
                "User-Agent": "pep-variants",
                "Accept": _ACCEPT,
                "Accept-Encoding": "identity",
            },
            trust_env=False,
        )

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def post(
        self,
        fields: Fields,
        filename: str | None = None,
        content: FileContent | bytes | None = None,
        kind: str = "application/octet-stream",
    ) -> Answer:
        """Send one form; redirects within the same host are followed.

        Args:
            fields: form fields.
            filename: name of the file, None to send a form without a file.
            content: of the file.
            kind: its media type.

        Raises:
            PublishError: the credentials have ended.
            Temporary: no answer, or one that asks to try again.
            Refused: the server redirects to elsewhere.
            Changed: the file changes while it is read.
        """
        url = self.url
        headers, secrets = _authorization(self._login.credentials())
        where = f"{self.place}: {filename}" if filename else self.place
        for _ in range(_MAX_REDIRECTS + 1):
            files: list[tuple[str, tuple[str | None, IO[bytes] | str, str | None]]]
            if filename is None or content is None:
                # A part without a filename: what makes httpx send the form as multipart.
                files = [("filename", (None, "", None))]
            else:
                files = [("content", (filename, cast("IO[bytes]", content), kind))]
            try:
                request = self._client.build_request(
                    "POST", url, data=fields, files=files, headers=headers
                )
                with closing(self._client.send(request, stream=True)) as response:
                    if response.status_code not in (*_REDIRECTS, *_MOVED):
                        return read_answer(response, _beginning(response), secrets)
                    url = self._following(url, response)
            except Temporary as problem:
                raise Temporary(f"{where}: {problem}", problem.asked) from None
            except (httpx.TimeoutException, httpx.NetworkError, httpx.ProtocolError) as error:
                raise Temporary(f"{where}: {describe(error)}") from None
            except ForbiddenAddress as error:
                raise Refused(f"{self.place}: {error}") from None
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
                raise Refused(f"{self.place}: {describe(error)}") from None
        raise Refused(f"{self.place}: redirects more than {_MAX_REDIRECTS} times")

    def _following(self, url: str, response: httpx.Response) -> str:
        """Return where a redirect leads, if the file and the credentials may be sent there."""
        target: str = urljoin(url, str(response.headers.get("Location", "")))
        same = origin_of(httpx.URL(target)) == origin_of(httpx.URL(url))
        if response.status_code in _REDIRECTS and same and target != url:
            return target
        raise Refused(
            f"{self.place}: redirects to {redacted(target)}: if that is the upload URL of the "
            "index, publish to it"
        )


class FileContent(io.RawIOBase):
    """The file that is sent, hashed while it is read."""

    def __init__(self, path: Path, size: int, sha256: str, progress: Progress) -> None:
        """Open *path*.

        Args:
            path: of the file.
            size: in bytes.
            sha256: that it has to have, hexadecimal.
            progress: called with the number of bytes that are read.

        Raises:
            OSError: it cannot be opened.
        """
        self._path, self._size, self._sha256, self._progress = path, size, sha256, progress
        self._stream = path.open("rb")
        self._digest = hashlib.sha256()
        self._sent = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes.

        Raises:
            Changed: before the last ones, if the file is not what it was.
        """
        left = self._size - self._sent
        chunk = self._stream.read(left if size < 0 else min(size, left))
        self._digest.update(chunk)
        self._sent += len(chunk)
        if (left and not chunk) or (
            chunk and self._sent == self._size and self._digest.hexdigest() != self._sha256
        ):
            raise Changed(
                f"{self._path}: was changed while it was uploaded, and the upload broken off: "
                "restore it, or publish it under a new version"
            )
        self._progress(len(chunk))
        return chunk

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to the start, or to the end to ask for the size; an upload starts again then."""
        if whence == io.SEEK_END:
            return self._size
        if self._sent:
            self._progress(-self._sent)
        self._stream.seek(0)
        self._digest, self._sent = hashlib.sha256(), 0
        return offset

    def tell(self) -> int:
        """Return how much was read."""
        return self._sent

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        super().close()


def _beginning(response: httpx.Response) -> bytes:
    found = b""
    for chunk in response.iter_raw(BODY_BYTES):
        found += chunk
        if len(found) >= BODY_BYTES:
            break
    return found[:BODY_BYTES]


def _authorization(credentials: Credentials | None) -> tuple[dict[str, str], list[str]]:
    if credentials is None:
        return {}, []
    pair = f"{credentials.username}:{credentials.password}"
    token = b64encode(pair.encode()).decode()
    return {"Authorization": f"Basic {token}"}, [token, *filter(None, [credentials.password])]
