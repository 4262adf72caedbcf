"""HTTP session for package indexes: pages, metadata files, wheels and ranges of them.

Size and time of every response are limited, and so are redirects and retries. ``file:`` URLs are
read the same way. One session serves all threads of one command.

Responses are cached with their validators (RFC 9110, section 13), and the server is asked each time
whether they changed, unless a known hash says that they cannot have. Responses that the server
forbids to store and those of URLs with a query, which may be signed, are not cached.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import IO, TypeVar
from urllib.parse import urlsplit

import httpx

from pep_variants import limits, safe_files, wheel_files
from pep_variants.errors import redacted
from pep_variants.metadata import Digests
from pep_variants.preferences import Sources
from pep_variants.wheel_files import Part, Range, RangeRefused

from .._cache import Store
from .._errors import BadResponse, NotFound, Unreachable, UntrustedServer
from ..pages import ACCEPT, Page, read_page
from .credentials import split_credentials
from .logins import OWN_CREDENTIALS, AuthTransport
from .places import FailedPlaces
from .responses import (
    BUSY,
    CHUNK,
    ENCODINGS,
    Response,
    certificate_error,
    check_digests,
    check_status,
    describe,
    max_age_of,
    may_be_stored,
    raw_chunks,
    read_body,
    read_range,
    read_response,
    retry_after,
    revalidated,
    validators_of,
)
from .transports import AddressPolicy, ForbiddenAddress, RoutingTransport, TooSlow

logger = logging.getLogger(__name__)

MAX_REDIRECTS = 10
RETRIES = 4
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 30.0
_HELD_SECONDS = 3.0
_UNREACHED: dict[str, tuple[float, str]] = {}
"""Hosts that could not be reached after all retries, with the reason, and until when they are not
asked: a catalogue names many pages of one host."""
TIMEOUT = 15.0

_RANGE_STATUSES = (206, *wheel_files.REFUSED)
_NOT_MODIFIED = 304
_KIND = "http"

_T = TypeVar("_T")


class Session:
    """Fetches URLs; safe to use from several threads.

    Attributes:
        store: cache of responses, None without one.
        addresses: which hosts may be in the user's own network.
    """

    def __init__(
        self,
        sources: Sources,
        *,
        store: Store | None = None,
        environ: Mapping[str, str] | None = None,
        retries: int = RETRIES,
        patient: bool = True,
        first_pause: float = FIRST_PAUSE,
        keyring: bool = True,
        offline: bool = False,
    ) -> None:
        """Set up.

        Args:
            sources: the user's settings for indexes; credentials in their URLs are used for
                their hosts.
            store: caches responses between commands.
            environ: environment variables, those of this process by default.
            retries: how often a request is sent again.
            patient: send it again also where no answer came in time.
            first_pause: seconds before the first retry; doubles with each.
            keyring: ask the keyring when an index answers 401.
            offline: send no request: responses are those of *store*, however old.
        """
        environ = os.environ if environ is None else environ
        self.store = store
        self._retries = retries
        self._patient = patient
        self._first_pause = first_pause
        self._offline = offline
        self._failed_places = FailedPlaces()
        self._closed = threading.Event()
        self._no_suffixes: set[str] = set()  # hosts that refuse ``bytes=-N``
        self.addresses = AddressPolicy(sources.trusted_hosts)
        self._routes = RoutingTransport(sources, environ, self.addresses)
        self._auth = AuthTransport(self._routes, environ, keyring=keyring)
        self._client = httpx.Client(
            transport=self._auth,
            timeout=sources.timeout or TIMEOUT,
            headers={"User-Agent": "pep-variants", "Accept-Encoding": ENCODINGS},
            trust_env=False,
            # Cookies know no ports: one that a file's host sets would reach the index.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )
        for url in (*sources.indexes, *sources.links):
            self.add_index(url)

    @property
    def requests(self) -> int:
        """The number of requests sent so far, retries and redirects included."""
        return self._routes.requests

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
        self._client.close()

    def fetch(
        self,
        url: str,
        *,
        limit: int,
        accept: str = "*/*",
        hashes: Mapping[str, str] | None = None,
        seconds: float = limits.ANSWER_SECONDS,
        grown: Callable[[int], None] | None = None,
        validators: Mapping[str, str] | None = None,
        same_host: bool = False,
        is_place: bool = False,
        retries: int | None = None,
    ) -> Response:
        """Return what is at *url*.

        Args:
            url: http, https or file.
            limit: the most bytes that are read.
            accept: media types.
            hashes: expected hexadecimal digests by algorithm; unknown algorithms are ignored.
            seconds: the most that it may take, with redirects and retries.
            grown: called with the number of bytes so far whenever there are more; may wait, to
                limit the memory of large responses, or raise.
            validators: `Response.validators` of a response that the caller has, empty if it has
                none; the cache is not used then. None to use it.
            same_host: a redirect to another host is not followed. Some indexes redirect to PyPI
                for projects that they do not have.
            is_place: whether it is a page of a catalogue's place, see `FailedPlaces`.
            retries: how often the request is sent again, None for as often as others.

        Raises:
            NotFound: there is nothing at *url*, or with *same_host* a redirect to another host.
            PackageIndexError: it cannot be fetched, is too large, or a hash differs.
        """
        if safe_files.is_local(url):
            response = _read_local(url, limit)
        else:
            until = time.monotonic() + seconds
            retries = self._retries if retries is None else retries
            places = self._failed_places
            patience = places.asking(url, retries) if is_place else nullcontext(retries)

            def ask(known: Mapping[str, str]) -> Response:
                return self._retrying(
                    url,
                    {"Accept": accept, **known},
                    lambda reply: Response(
                        str(reply.url),
                        reply.headers.get("Content-Type", ""),
                        read_body(reply, url, limit, until, seconds, grown),
                        validators_of(reply),
                        unchanged=reply.status_code == _NOT_MODIFIED,
                        max_age=max_age_of(reply),
                        may_be_stored=may_be_stored(reply),
                    ),
                    allowed=(_NOT_MODIFIED,) if known else (),
                    until=until,
                    same_host=same_host,
                    retries=retries,
                )

            with patience as retries:
                if validators is None and self.store is not None:
                    name, known = f"{accept} {split_credentials(url)[0]}", hashes or {}
                    response = _cached(self.store, name, limit, known, ask, always=self._offline)
                else:
                    response = ask(validators or {})
                    if response.unchanged:
                        return response
        check_digests(_digests(hashes or {}, response.body), url)
        return response

    def fetch_page(
        self,
        url: str,
        project: str = "",
        *,
        content_type: str | None = None,
        seconds: float = limits.ANSWER_SECONDS,
        same_host: bool = False,
        is_place: bool = False,
    ) -> Page:
        """Return the project page, or page of links, at *url*; see `fetch`.

        Args:
            url: http, https or file.
            project: name of the project.
            content_type: in place of the header, which files do not have.
            seconds: the most that it may take, with redirects and retries.
            same_host, is_place: as of `fetch`.

        Raises:
            PackageIndexError: it cannot be fetched, or is not a page.
        """
        found = self.fetch(
            url,
            limit=limits.PAGE_BYTES,
            accept=ACCEPT,
            seconds=seconds,
            same_host=same_host,
            is_place=is_place,
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
        if safe_files.is_local(url):
            with _open_local(url) as file:
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
            return wheel_files.last_part(partial(self._request_range, url), length)
        try:
            return self._request_range(url, Range(start, length))
        except RangeRefused:
            return None

    def _request_range(self, url: str, wanted: Range) -> Part | None:
        host = urlsplit(url).netloc
        if wanted.start is None and host in self._no_suffixes:
            raise RangeRefused
        headers = {
            "Range": wanted.header,
            "Accept-Encoding": "identity",
            "Cache-Control": "no-store",
        }
        try:
            return self._retrying(
                url,
                headers,
                lambda response: read_range(response, url, wanted),
                allowed=_RANGE_STATUSES,
            )
        except RangeRefused:
            if wanted.start is None:
                self._no_suffixes.add(host)  # some begin to send the whole file each time
            raise

    def _retrying(
        self,
        url: str,
        headers: Mapping[str, str],
        take: Callable[[httpx.Response], _T],
        *,
        allowed: tuple[int, ...] = (),
        until: float | None = None,
        same_host: bool = False,
        retries: int | None = None,
    ) -> _T:
        """Return what *take* makes of the response, which it closes; retry temporary failures."""
        retries = self._retries if retries is None else retries
        host = urlsplit(url).netloc
        held, reason = _UNREACHED.get(host, (0.0, ""))
        if time.monotonic() < held:
            raise Unreachable(reason, url=url)
        for attempt in range(retries + 1):
            pause = self._first_pause * 2**attempt * (1 + random.random() / 4)  # noqa: S311
            response, connects = None, None
            try:
                response = self._send(url, headers, same_host=same_host)
                if response.status_code not in BUSY or response.status_code in allowed:
                    check_status(response, url, allowed)
                    return take(response)
                asked = retry_after(response)
                response.close()
                problem = Unreachable(
                    f"the server cannot answer now (HTTP status {response.status_code}): try later",
                    response.status_code,
                    url=url,
                )
                pause = max(pause, asked)
            except (httpx.TimeoutException, httpx.NetworkError, httpx.ProtocolError) as error:
                reason = describe(error)
                problem = Unreachable(reason, url=url)
                connects = reason if isinstance(error, httpx.ConnectError) else None
                if certificate_error(error):
                    raise UntrustedServer(reason, url=url) from None
                is_late = isinstance(error, httpx.TimeoutException) and not self._patient
                if is_late or isinstance(error.__cause__, TooSlow):
                    raise problem from None
                # What h11 cannot read is no outage.
                reasons = getattr(error.__cause__, "args", ())
                if response is None and hasattr((*reasons, None)[0], "error_status_hint"):
                    raise BadResponse(reason, url=url) from None
            except ForbiddenAddress as error:
                raise BadResponse(str(error), url=url) from None
            except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
                # ValueError: a URL that httpx or the system's resolver cannot encode.
                raise BadResponse(describe(error), url=url) from None
            if until is not None and time.monotonic() + pause > until:
                raise problem
            if attempt == retries or pause > LONGEST_PAUSE or self._closed.wait(pause):
                if connects is not None and attempt:
                    _UNREACHED[host] = time.monotonic() + _HELD_SECONDS, connects
                raise problem
            logger.debug("Asking again after %s", problem)
        raise AssertionError("the last attempt returns or raises")

    def _send(self, url: str, headers: Mapping[str, str], *, same_host: bool) -> httpx.Response:
        if self._offline:
            raise Unreachable("is not in the cache, and nothing is asked offline", url=url)
        plain, credentials = split_credentials(url)
        request = self._client.build_request("GET", plain, headers=headers)
        if credentials is not None:
            request.extensions[OWN_CREDENTIALS] = credentials
        for _ in range(MAX_REDIRECTS + 1):
            response = self._client.send(request, stream=True)
            status = response.status_code
            logger.debug("GET %s: HTTP status %d", redacted(str(request.url)), status)
            following = response.next_request
            if following is None:
                return response
            response.close()
            if following.url.scheme not in ("http", "https"):
                raise BadResponse("redirects to a URL that is not http or https", url=url)
            if request.url.scheme == "https" and following.url.scheme != "https":
                raise BadResponse("redirects from https to http", url=url)
            if same_host and request.url.host != following.url.host:
                raise NotFound(f"redirects to {following.url.host}", url=url)
            self.addresses.allow_links(str(request.url), (str(following.url),))
            request = following
            # Credentials come from the user, never from a redirect; they would be in messages.
            request.url = request.url.copy_with(userinfo=b"")
            request.extensions = {
                name: value for name, value in request.extensions.items() if name != OWN_CREDENTIALS
            }
        raise BadResponse(f"redirects more than {MAX_REDIRECTS} times", url=url)


def _reported(chunks: Iterator[bytes], url: str) -> Iterator[bytes]:
    try:
        yield from chunks
    except httpx.HTTPError as error:
        raise Unreachable(describe(error), url=url) from None


def _cached(
    store: Store,
    name: str,
    limit: int,
    hashes: Mapping[str, str],
    ask: Callable[[Mapping[str, str]], Response],
    *,
    always: bool = False,
) -> Response:
    """Return the response *name* in *store* if it is still valid, else what *ask* returns.

    With *always* it counts as valid.
    """
    known = read_response(store.get(_KIND, name))
    if known is not None and (len(known.body) > limit or _digests(hashes, known.body).problem()):
        known = None
    if known is not None and (always or _digests(hashes, b"").found):
        logger.debug("Response for %s is of the cache", redacted(known.url))
        return known
    response = revalidated(known, ask)
    if (
        response is not known
        and response.may_be_stored
        and (response.validators or hashes)
        and len(response.body) <= limits.CACHED_ANSWER_BYTES
        and not _digests(hashes, response.body).problem()
    ):
        store.put(_KIND, name, response.record())
    return response


def _digests(expected: Mapping[str, str], body: bytes) -> Digests:
    check = Digests(expected)
    check.update(body)
    return check


def _open_local(url: str) -> IO[bytes]:
    """Open the ``file:`` URL *url*; raises NotFound and Unreachable."""
    path = safe_files.local_path(url)
    try:
        return safe_files.open_regular(path)
    except FileNotFoundError:
        raise NotFound(f"{path}: there is no such file") from None
    except OSError as error:
        raise Unreachable(f"{path}: {error.strerror or error}") from None


def _read_local(url: str, limit: int) -> Response:
    with _open_local(url) as file:
        body = file.read(limit + 1)
    if len(body) > limit:
        raise BadResponse(
            f"{safe_files.local_path(url)}: is larger than {limit} bytes, the most that is read"
        )
    return Response(url, "text/html" if url.endswith(".html") else "", body)
