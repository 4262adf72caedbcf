"""HTTP session for package indexes: pages, metadata files, wheels and ranges of them.

Size and time of every response are limited, and so are redirects and retries. ``file:`` URLs are
read the same way. One session serves all threads of one command.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import TypeVar

import httpx

from pep_variants import limits
from pep_variants.digests import Digests
from pep_variants.errors import redacted
from pep_variants.sources import Sources
from pep_variants.urls import is_local
from pep_variants.wheelfile.lazy_file import REFUSED, Part, Range, RangeRefused, last_part

from ..cache.store import Store
from ..errors import BadResponse, NotFound, Unreachable, UntrustedServer
from ..pages import ACCEPT, Page, read_page
from .addresses import AddressPolicy, ForbiddenAddress
from .bodies import CHUNK, ENCODINGS, check_digests, raw_chunks, read_body, read_range
from .connections import TooSlow
from .credentials import split_credentials
from .failures import BUSY, certificate_error, check_status, describe, retry_after
from .local import open_local, read_local
from .responses import Response, max_age_of, validators_of
from .transport import (
    OWN_CREDENTIALS,
    AuthTransport,
    CountingTransport,
    RoutingTransport,
    Traffic,
)

MAX_REDIRECTS = 10
RETRIES = 4
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 30.0
TIMEOUT = 15.0

_RANGE_STATUSES = (206, *REFUSED)
_NOT_MODIFIED = 304

_T = TypeVar("_T")


class _NoCookies(httpx.Cookies):
    """Keeps none: looking at a response for them would take a tenth of the request."""

    def extract_cookies(self, response: httpx.Response) -> None:
        """Do nothing."""


class _CookielessClient(httpx.Client):
    """A client that neither keeps cookies nor sends any.

    Cookies know no ports: one that a file's host sets would reach the index.
    """

    _none = _NoCookies()

    @property  # type: ignore[misc] # it is not set
    def cookies(self) -> httpx.Cookies:
        """No cookies, whatever a response sets."""
        return self._none


class Session:
    """Fetches URLs; safe to use from several threads.

    Attributes:
        store: cache of responses, None without one.
        traffic: the requests sent so far.
        addresses: which hosts may be in the user's own network.
    """

    def __init__(
        self,
        sources: Sources,
        *,
        store: Store | None = None,
        environ: Mapping[str, str] | None = None,
        retries: int = RETRIES,
        first_pause: float = FIRST_PAUSE,
        keyring: bool = True,
    ) -> None:
        """Set up.

        Args:
            sources: the user's settings for indexes; credentials in their URLs are used for
                their hosts.
            store: caches responses between commands.
            environ: environment variables, those of this process by default.
            retries: how often a request is sent again.
            first_pause: seconds before the first retry; doubles with each.
            keyring: ask the keyring when an index answers 401.
        """
        environ = os.environ if environ is None else environ
        self.store = store
        self.traffic = Traffic()
        self._retries = retries
        self._first_pause = first_pause
        self._closed = threading.Event()
        self.addresses = AddressPolicy(sources.trusted_hosts)
        routes = RoutingTransport(sources, environ, self.addresses)
        self._auth = AuthTransport(
            CountingTransport(routes, self.traffic), environ, keyring=keyring
        )
        for url in (*sources.indexes, *sources.links):
            self.add_index(url)

        self._timeout = sources.timeout or TIMEOUT
        self._uncached = self._client(self._auth)
        self._lock = threading.Lock()
        self._with_cache = None if store is not None else self._uncached

    def _client(self, transport: httpx.BaseTransport) -> httpx.Client:
        return _CookielessClient(
            transport=transport,
            timeout=self._timeout,
            headers={"User-Agent": "pep-variants", "Accept-Encoding": ENCODINGS},
            trust_env=False,
        )

    @property
    def _cached(self) -> httpx.Client:
        """The client with the cache, made when it is wanted: it takes long to import."""
        with self._lock:
            if self._with_cache is None:
                assert self.store is not None
                from ..cache.http_cache import cache_transport

                self._with_cache = self._client(cache_transport(self._auth, self.store))
            return self._with_cache

    def add_index(self, url: str) -> str:
        """Add a URL that the user configured; return it without credentials.

        Its credentials are sent to its host, which may be at any address.
        """
        self.addresses.configure(url)
        return self._auth.add_index(url)

    def add_token(self, url: str, token: str) -> None:
        """Send a bearer token to the host of *url*."""
        self._auth.add_token(url, token)

    def is_authenticated(self, url: str) -> bool:
        """Return whether credentials are sent to the host of *url*: its responses are private.

        False before the first request to a host whose credentials are not in its URL.
        """
        return self._auth.is_authenticated(url)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections, and end waiting for retries."""
        self._closed.set()
        self._uncached.close()

    def fetch(
        self,
        url: str,
        *,
        limit: int,
        accept: str = "*/*",
        revalidate: bool = False,
        hashes: Mapping[str, str] | None = None,
        seconds: float = limits.ANSWER_SECONDS,
        grown: Callable[[int], None] | None = None,
        validators: Mapping[str, str] | None = None,
        same_host: bool = False,
    ) -> Response:
        """Return what is at *url*.

        Args:
            url: http, https or file.
            limit: the most bytes that are read.
            accept: media types.
            revalidate: ask the server whether a cached response is still valid, even if it is
                fresh.
            hashes: expected hexadecimal digests by algorithm; unknown algorithms are ignored.
            seconds: the most that it may take, with redirects and retries.
            grown: called with the number of bytes so far whenever there are more; may wait, to
                limit the memory of large responses, or raise.
            validators: `Response.validators` of a response that the caller has, empty if it has
                none; the cache is not used then. None to use it.
            same_host: a redirect to another host is not followed. Some indexes redirect to PyPI
                for projects that they do not have.

        Raises:
            NotFound: there is nothing at *url*, or with *same_host* a redirect to another host.
            PackageIndexError: it cannot be fetched, is too large, or a hash differs.
        """
        if is_local(url):
            kind = "text/html" if url.endswith(".html") else ""
            response = Response(url, kind, read_local(url, limit))
        else:
            headers = {"Accept": accept}
            if revalidate:
                headers["Cache-Control"] = "no-cache"
            headers.update(validators or {})
            until = time.monotonic() + seconds

            def whole(reply: httpx.Response) -> Response:
                kind = reply.headers.get("Content-Type", "")
                body = read_body(reply, url, limit, until, seconds, grown)
                unchanged = reply.status_code == _NOT_MODIFIED
                return Response(
                    str(reply.url), kind, body, validators_of(reply), unchanged, max_age_of(reply)
                )

            response = self._retrying(
                url,
                headers,
                whole,
                allowed=(_NOT_MODIFIED,) if validators else (),
                until=until,
                client=self._cached if validators is None else self._uncached,
                same_host=same_host,
            )
            if response.unchanged:
                return response
        check = Digests(hashes or {})
        check.update(response.body)
        check_digests(check, url)
        return response

    def fetch_page(
        self,
        url: str,
        project: str = "",
        *,
        content_type: str | None = None,
        seconds: float = limits.ANSWER_SECONDS,
        same_host: bool = False,
    ) -> Page:
        """Return the project page, or page of links, at *url*; a cached one is revalidated.

        Args:
            url: http, https or file.
            project: name of the project.
            content_type: in place of the header, which files do not have.
            seconds: the most that it may take, with redirects and retries.
            same_host: as of `fetch`.

        Raises:
            PackageIndexError: it cannot be fetched, or is not a page.
        """
        found = self.fetch(
            url,
            limit=limits.PAGE_BYTES,
            accept=ACCEPT,
            revalidate=True,
            seconds=seconds,
            same_host=same_host,
        )
        page = read_page(found.body, content_type or found.content_type, found.url, project)
        self.addresses.allow_links(found.url, (file.url for file in page.files))
        return page

    @contextmanager
    def stream(self, url: str) -> Iterator[Iterator[bytes]]:
        """Yield the file at *url* in chunks, without the cache: for whole wheels.

        Raises:
            PackageIndexError: it cannot be fetched, or the connection breaks while it is read.
        """
        if is_local(url):
            with open_local(url) as file:
                yield iter(lambda: file.read(CHUNK), b"")
            return
        # Uncompressed: the bytes of the file itself.
        headers = {"Accept-Encoding": "identity", "Cache-Control": "no-store"}
        response = self._retrying(url, headers, lambda response: response)
        with closing(response):
            yield _reported(raw_chunks(response, url), url)

    def fetch_range(self, url: str, start: int | None, length: int) -> Part | None:
        """Return a range of the file at *url*, None if the server does not serve ranges.

        Args:
            url: http or https.
            start: offset of the first byte, None for the last *length* bytes.
            length: number of bytes.

        Raises:
            PackageIndexError: it cannot be fetched.
        """
        if start is None:
            return last_part(partial(self._request_range, url), length)
        try:
            return self._request_range(url, Range(start, length))
        except RangeRefused:
            return None

    def _request_range(self, url: str, wanted: Range) -> Part | None:
        headers = {
            "Range": wanted.header,
            "Accept-Encoding": "identity",
            "Cache-Control": "no-store",
        }
        return self._retrying(
            url,
            headers,
            lambda response: read_range(response, url, wanted.length),
            allowed=_RANGE_STATUSES,
        )

    def _retrying(
        self,
        url: str,
        headers: Mapping[str, str],
        take: Callable[[httpx.Response], _T],
        *,
        allowed: tuple[int, ...] = (),
        until: float | None = None,
        client: httpx.Client | None = None,
        same_host: bool = False,
    ) -> _T:
        """Return what *take* makes of the response, which it closes; retry temporary failures."""
        for attempt in range(self._retries + 1):
            pause = self._first_pause * 2**attempt * (1 + random.random() / 4)  # noqa: S311
            try:
                response = self._send(client or self._uncached, url, headers, same_host=same_host)
                if response.status_code not in BUSY or response.status_code in allowed:
                    check_status(response, url, allowed)
                    return take(response)
                asked = retry_after(response)
                response.close()
                problem = Unreachable(
                    f"{redacted(url)}: the server cannot answer now "
                    f"(HTTP status {response.status_code}): try later",
                    response.status_code,
                )
                pause = max(pause, asked)
            except (httpx.TimeoutException, httpx.NetworkError, httpx.ProtocolError) as error:
                problem = Unreachable(f"{redacted(url)}: {describe(error)}")
                if certificate_error(error):
                    raise UntrustedServer(str(problem)) from None
                if isinstance(error.__cause__, TooSlow):
                    raise problem from None
            except ForbiddenAddress as error:
                raise BadResponse(f"{redacted(url)}: {error}") from None
            except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
                # ValueError: a URL that httpx or the system's resolver cannot encode.
                raise BadResponse(f"{redacted(url)}: {describe(error)}") from None
            if until is not None and time.monotonic() + pause > until:
                raise problem
            if attempt == self._retries or pause > LONGEST_PAUSE or self._closed.wait(pause):
                raise problem
        raise AssertionError("the last attempt returns or raises")

    def _send(
        self, client: httpx.Client, url: str, headers: Mapping[str, str], *, same_host: bool
    ) -> httpx.Response:
        plain, credentials = split_credentials(url)
        request = client.build_request("GET", plain, headers=headers)
        if credentials is not None:
            request.extensions[OWN_CREDENTIALS] = credentials
        for _ in range(MAX_REDIRECTS + 1):
            response = client.send(request, stream=True)
            following = response.next_request
            if following is None:
                return response
            response.close()
            if following.url.scheme not in ("http", "https"):
                raise BadResponse(f"{redacted(url)}: redirects to a URL that is not http or https")
            if request.url.scheme == "https" and following.url.scheme != "https":
                raise BadResponse(f"{redacted(url)}: redirects from https to http")
            if same_host and request.url.host != following.url.host:
                raise NotFound(f"{redacted(url)}: redirects to {following.url.host}")
            self.addresses.allow_links(str(request.url), (str(following.url),))
            request = following
            # Credentials come from the user, never from a redirect; they would be in messages.
            request.url = request.url.copy_with(userinfo=b"")
            request.extensions = {
                name: value for name, value in request.extensions.items() if name != OWN_CREDENTIALS
            }
        raise BadResponse(f"{redacted(url)}: redirects more than {MAX_REDIRECTS} times")


def _reported(chunks: Iterator[bytes], url: str) -> Iterator[bytes]:
    try:
        yield from chunks
    except httpx.HTTPError as error:
        raise Unreachable(f"{redacted(url)}: {describe(error)}") from None
