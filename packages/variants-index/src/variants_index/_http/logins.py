"""Credentials are added to requests by origin.

So redirects cannot send them to another host, and messages do not see them.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from .credentials import Credentials, find_credentials, split_credentials

_UNAUTHORIZED = 401
OWN_CREDENTIALS = "pep_variants.credentials"
"""Extension of a request: the credentials in its own URL, for this request only."""

Origin = tuple[str, str, int | None]


def origin_of(url: httpx.URL) -> Origin:
    """Return the origin of *url*: scheme, host and port (RFC 6454), None for the default one."""
    return url.scheme, url.host, url.port


@dataclass
class _Login:
    """What is known of the user's login at an origin.

    Attributes:
        service: URL of the index as the user configured it, which keyrings have; empty for links.
        credentials: None without any.
        token: in place of credentials.
        netrc_read, keyring_asked: whether that was done.
    """

    service: str = ""
    credentials: Credentials | None = None
    token: str = ""
    netrc_read: bool = False
    keyring_asked: bool = False


class AuthTransport(httpx.BaseTransport):
    """Adds credentials: from index URLs and netrc to the first request, from keyring after a 401.

    Links do not change them. As in pip, a link that has credentials is requested with these if the
    user configured none; unlike in pip, no other request is.
    """

    def __init__(
        self, below: httpx.BaseTransport, environ: Mapping[str, str], *, keyring: bool = True
    ) -> None:
        self._below = below
        self._environ = environ
        self._keyring = keyring
        self._lock = threading.Lock()
        self._logins: defaultdict[Origin, _Login] = defaultdict(_Login)

    def add_token(self, url: str, token: str) -> None:
        """Use a bearer token (RFC 6750) for the host of *url*, in place of credentials."""
        with self._lock:
            self._logins[origin_of(httpx.URL(url))].token = token

    def is_authenticated(self, url: str) -> bool:
        """Return whether credentials are sent to the host of *url*."""
        with self._lock:
            login = self._logins[origin_of(httpx.URL(url))]
            return bool(login.token) or login.credentials is not None

    def add_index(self, url: str) -> str:
        """Use the credentials in the URL of an index for its host; return it without them."""
        plain, credentials = split_credentials(url)
        try:
            origin = origin_of(httpx.URL(plain))
        except httpx.InvalidURL:
            return plain
        with self._lock:
            login = self._logins[origin]
            login.service = login.service or plain
            login.credentials = login.credentials or credentials
        return plain

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send *request* with known credentials, and after a 401 with those of the keyring."""
        with self._lock:
            login = self._logins[origin_of(request.url)]
            if login.token:
                authorization = f"Bearer {login.token}"
            else:
                known = login.credentials
                if not (login.netrc_read or (known and known.password)):
                    login.netrc_read = True
                    self._find(login, request, keyring=False)
                credentials = login.credentials or request.extensions.get(OWN_CREDENTIALS)
                authorization = credentials.authorization if credentials else ""
        response = self._below.handle_request(_authorized(request, authorization))
        if response.status_code != _UNAUTHORIZED or not self._keyring or login.token:
            return response
        with self._lock:
            if not login.keyring_asked:
                login.keyring_asked = True
                self._find(login, request, keyring=True)
            found = login.credentials
        if found is None or found.authorization == authorization:
            return response
        response.close()  # unread: it may be of any size
        return self._below.handle_request(_authorized(request, found.authorization))

    def close(self) -> None:
        """Close what is below."""
        self._below.close()

    def _find(self, login: _Login, request: httpx.Request, *, keyring: bool) -> None:
        found = find_credentials(
            login.service or str(request.url.copy_with(query=None)),
            self._environ,
            username=login.credentials.username if login.credentials else None,
            keyring=keyring,
            configured=bool(login.service),
        )
        login.credentials = found or login.credentials


def _authorized(request: httpx.Request, authorization: str) -> httpx.Request:
    """Return a copy of *request* with the header, if it is not empty."""
    if not authorization:
        return request
    headers = request.headers.copy()
    headers["Authorization"] = authorization
    return httpx.Request(
        request.method,
        request.url,
        headers=headers,
        stream=request.stream,
        extensions=request.extensions,
    )
